package db_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func postgres(t testing.TB, timeout time.Duration) *db.DB {
	return open(t, db.Config{URL: servers.Postgres(t), Timeout: timeout})
}

func state(err error) string {
	var refused *db.Error
	if errors.As(err, &refused) {
		return refused.SQLState
	}
	return ""
}

func TestDialectOf(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://a@b/c": "PostgreSQL", "postgresql://a@b/c": "PostgreSQL", "sqlite::memory:": "SQLite", "sqlite:a.db": "SQLite",
	} {
		d, err := db.DialectOf(url)
		if err != nil || d.String() != want {
			t.Errorf("%s: %v, %v", url, d, err)
		}
	}
	for _, url := range []string{"", "sqlite:", "mysql://root:secret@x/y", "a.db"} {
		_, err := db.DialectOf(url)
		if want := "the URL must begin with postgres:// or sqlite: (sqlite::memory: is a database in memory)"; err == nil || err.Error() != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestBadURLShowsNoPassword(t *testing.T) {
	for _, url := range []string{
		"postgres://u:hunter2@h:port/d", "postgres://u:hunter2%zz@h/d", "postgres://u:hunter2@h/d?sslmode=hunter2",
		"postgres://u:hun%74er2@h/d?sslmode=hunter2", "postgres://u:hunter2@[::1/d",
	} {
		_, err := db.Open(t.Context(), db.Config{URL: url})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestScript(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		isEmpty := func(want bool) {
			t.Helper()
			if empty, err := d.Empty(t.Context()); err != nil || empty != want {
				t.Errorf("Empty gives %v, %v; want %v", empty, err, want)
			}
		}
		isEmpty(true)
		script(t, d, "-- nothing\n")
		isEmpty(true)
		for sql, line := range map[string]string{
			"CREATE TABLE a (i int);\n\nCREATE TABLE b (i int,\n  j nonsense nonsense nonsense, (;\n":             "line 4: ",
			"CREATE TABLE a (i int primary key);\nINSERT INTO a\n VALUES (1);\n-- ;\n\nINSERT INTO a VALUES (1);": "line 6: ",
			"SELECT 'é';\nSELECT nope": "line 2: ",
		} {
			err := d.Script(t.Context(), sql)
			if err == nil || !strings.HasPrefix(err.Error(), line) {
				t.Errorf("%q: %v, want %s…", sql, err, line)
			}
			isEmpty(true) // rolled back as a whole
		}
		script(t, d, "CREATE TABLE a (i int); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)")
		isEmpty(false)
		if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM a"))); got != `[{"n":2}]` {
			t.Error(got)
		}
	})
}

// A query cannot write, whatever it tries, and what it tried leaves nothing behind.
func TestReadOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE a (i int); INSERT INTO a VALUES (1)")
		attempts := []string{
			"INSERT INTO a VALUES (2)", "UPDATE a SET i = 3 RETURNING i", "DELETE FROM a", "DROP TABLE a", "CREATE TABLE b (i int)",
		}
		if d.Dialect() == db.Postgres {
			attempts = append(attempts, "WITH x AS (INSERT INTO a VALUES (2) RETURNING i) SELECT * FROM x",
				"DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO a VALUES (2); END $$", "CALL p()", "/* x */ call p()",
				"COPY (SELECT 1) TO PROGRAM 'true'", "COMMIT", "BEGIN READ WRITE", "SET default_transaction_read_only = off",
				"SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "LISTEN x")
			script(t, d, "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO a VALUES (2); END $$")
		} else {
			attempts = append(attempts, "WITH x AS (SELECT 2) INSERT INTO a SELECT * FROM x", "PRAGMA query_only=off",
				"PRAGMA user_version=5", "ATTACH ':memory:' AS other", "BEGIN", "VACUUM")
		}
		for _, sql := range attempts {
			if _, err := d.Query(t.Context(), stmt(d, sql), nil, db.Limit{}); err == nil {
				t.Errorf("alone: %s was done", sql)
			} else if want := "25006"; !strings.Contains("PRAGMA ATTACH BEGIN VACUUM", strings.Fields(sql)[0]) && state(err) != want {
				t.Errorf("alone: %s gives %q (%v), want %s", sql, state(err), err, want)
			}
			err := d.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
				_, err := q.Query(t.Context(), stmt(d, sql), nil, db.Limit{})
				return err
			})
			if err == nil {
				t.Errorf("in a read-only transaction: %s was done", sql)
			}
		}
		if got := asJSON(query(t, d, stmt(d, "SELECT i FROM a"))); got != `[{"i":1}]` {
			t.Errorf("afterwards a is %s", got)
		}
	})
}

// What an action sets on SQLite's one writer would hold for all calls after it.
func TestWriterKeepsItsSettings(t *testing.T) {
	d := open(t, db.Config{Name: "lite", URL: "sqlite::memory:"})
	script(t, d, "CREATE TABLE a (i int)")
	for _, sql := range []string{"PRAGMA query_only=on", "PRAGMA foreign_keys=off", "PRAGMA user_version=5", "ATTACH ':memory:' AS other", "COMMIT", "SAVEPOINT x"} {
		err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			_, err := q.Query(t.Context(), stmt(d, sql), nil, db.Limit{})
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "not authorized") {
			t.Errorf("%s gives %v", sql, err)
		}
	}
	err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		_, err := q.Query(t.Context(), stmt(d, "INSERT INTO a SELECT count(*) FROM pragma_table_info('a')"), nil, db.Limit{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
	script(t, d, "PRAGMA user_version=5") // the owner's own file
	if got := asJSON(query(t, d, stmt(d, "SELECT i FROM a"))); got != `[{"i":1}]` {
		t.Errorf("afterwards a is %s", got)
	}
}

// What was committed to a file outlives a power cut: the writer syncs each COMMIT
// (2 is full). The engine's own default for a write-ahead log does not.
func TestCommitsAreSynced(t *testing.T) {
	d := open(t, db.Config{URL: "sqlite:a.db", Dir: t.TempDir()})
	err := d.Tx(t.Context(), db.TxOptions{}, func(tx *db.Tx) error {
		for pragma, want := range map[string]string{"journal_mode": `"wal"`, "synchronous": `2`} {
			if got := asJSON(query(t, tx, stmt(d, "PRAGMA "+pragma))); got != `[{"`+pragma+`":`+want+`}]` {
				t.Errorf("%s: %s", pragma, got)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestConstraintStates(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, `CREATE TABLE p (id int PRIMARY KEY);
			CREATE TABLE c (id int PRIMARY KEY, u int UNIQUE, n int NOT NULL DEFAULT 1, p int REFERENCES p, k int CHECK (k > 0));
			INSERT INTO c (id, u) VALUES (1, 1)`)
		for sql, want := range map[string]string{
			"INSERT INTO c (id) VALUES (1)":          "23505",
			"INSERT INTO c (id, u) VALUES (2, 1)":    "23505",
			"INSERT INTO c (id, n) VALUES (2, NULL)": "23502",
			"INSERT INTO c (id, p) VALUES (2, 9)":    "23503",
			"INSERT INTO c (id, k) VALUES (2, 0)":    "23514",
		} {
			err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
				_, err := q.Query(t.Context(), stmt(d, sql), nil, db.Limit{})
				return err
			})
			if got := state(err); got != want {
				t.Errorf("%s gives %q (%v), want %s", sql, got, err, want)
			}
		}
		if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM c"))); got != `[{"n":1}]` {
			t.Error(got)
		}
	})
}

func TestTx(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE a (i int PRIMARY KEY)")
		insert, count := stmt(d, "INSERT INTO a VALUES ($1)"), stmt(d, "SELECT count(*) AS n FROM a")
		rows := func(want string) {
			t.Helper()
			if got := asJSON(query(t, d, count)); got != `[{"n":`+want+`}]` {
				t.Errorf("a has %s, want %s", got, want)
			}
		}
		write(t, d, func(q *db.Tx) error {
			if a := query(t, q, insert, int64(1)); a.Rows != nil || a.Affected != 1 || a.More {
				t.Errorf("INSERT gives %+v", a)
			}
			query(t, q, insert, int64(2))
			return nil
		})
		rows("2")
		declined := errors.New("declined")
		if err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			query(t, q, insert, int64(3))
			return declined
		}); err != declined {
			t.Errorf("got %v", err)
		}
		rows("2")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
				query(t, q, insert, int64(3))
				panic("boom")
			})
		}()
		rows("2")
		// A failed statement fails the transaction, even if f forgets it.
		if err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			query(t, q, insert, int64(3))
			_, _ = q.Query(t.Context(), insert, []any{int64(1)}, db.Limit{})
			_, err := q.Query(t.Context(), insert, []any{int64(4)}, db.Limit{})
			if state(err) != "23505" {
				t.Errorf("the next statement gives %v", err)
			}
			return nil
		}); state(err) != "23505" {
			t.Errorf("got %v", err)
		}
		rows("2")
		ctx, cancel := context.WithCancel(t.Context())
		if err := d.Tx(ctx, db.TxOptions{}, func(q *db.Tx) error {
			query(t, q, insert, int64(3))
			cancel()
			return nil
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled commit gives %v", err)
		}
		rows("2")
		write(t, d, func(*db.Tx) error { return nil })
		if a := query(t, d, stmt(d, "SELECT i FROM a WHERE i = $1"), int64(99)); asJSON(a) != "[]" || a.Affected != 0 {
			t.Errorf("no row gives %s, %d", asJSON(a), a.Affected)
		}
		write(t, d, func(q *db.Tx) error {
			if a := query(t, q, stmt(d, "DELETE FROM a WHERE i = $1"), int64(99)); a.Rows != nil || a.Affected != 0 {
				t.Errorf("no row deleted gives %+v", a)
			}
			return nil
		})
	})
}

// What a query sets for the session is gone with the query: the next one on
// the only connection cannot write either.
func TestQuerySetsNothing(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 1}})
	script(t, d, "CREATE SEQUENCE s")
	settings := stmt(d, "SELECT current_setting('default_transaction_read_only') AS r, current_setting('TimeZone') AS z")
	for _, sql := range []string{
		"SELECT set_config('default_transaction_read_only', 'off', false)", "(SELECT set_config('TimeZone', 'Asia/Tokyo', false))",
	} {
		query(t, d, stmt(d, sql))
		if got := asJSON(query(t, d, settings)); got != `[{"r":"on","z":"UTC"}]` {
			t.Errorf("after %s the settings are %s", sql, got)
		}
		if _, err := d.Query(t.Context(), stmt(d, "SELECT nextval('s')"), nil, db.Limit{}); state(err) != "25006" {
			t.Errorf("after %s nextval gives %v", sql, err)
		}
	}
}

// A data exception does not show the value that it is about.
func TestDataExceptionShowsNoValue(t *testing.T) {
	d := postgres(t, 0)
	for sql, want := range map[string]string{
		"SELECT CAST(CAST($1 AS text) AS int)":    `ERROR: invalid input syntax for type integer: "…" (SQLSTATE 22P02)`,
		"SELECT CAST(CAST($1 AS text) AS date)":   `ERROR: invalid input syntax for type date: "…" (SQLSTATE 22007)`,
		"SELECT 1 / length(CAST($1 AS text)) / 0": `ERROR: division by zero (SQLSTATE 22012)`,
	} {
		_, err := d.Query(t.Context(), stmt(d, sql), []any{`a "secret" value`}, db.Limit{})
		if err == nil || err.Error() != want || state(err)[:2] != "22" {
			t.Errorf("%s gives %v, want %s", sql, err, want)
		}
	}
}

// A write that says COMMIT itself, or opens a transaction, leaves none behind.
func TestWriteLeavesNoTransaction(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 1}})
	for _, sql := range []string{"COMMIT", "COMMIT AND CHAIN", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"} {
		_ = d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			_, err := q.Query(t.Context(), stmt(d, sql), nil, db.Limit{})
			return err
		})
		if got := asJSON(query(t, d, stmt(d, "SELECT current_setting('default_transaction_read_only') AS r"))); got != `[{"r":"on"}]` {
			t.Errorf("after %s: %s", sql, got)
		}
		if _, err := d.Query(t.Context(), stmt(d, "CREATE TABLE b (i int)"), nil, db.Limit{}); state(err) != "25006" {
			t.Errorf("after %s: %v", sql, err)
		}
	}
}

// A read-only transaction sees one state.
func TestSnapshot(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE a (i int)")
		count := stmt(d, "SELECT count(*) AS n FROM a")
		err := d.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
			before := asJSON(query(t, q, count))
			write(t, d, func(w *db.Tx) error { query(t, w, stmt(d, "INSERT INTO a VALUES (1)")); return nil })
			if after := asJSON(query(t, q, count)); after != before {
				t.Errorf("first %s, then %s", before, after)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(query(t, d, count)); got != `[{"n":1}]` {
			t.Error(got)
		}
	})
}

func TestLimits(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		numbers := stmt(d, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < $1) SELECT i, 'abcdefghij' AS s FROM c")
		for _, c := range []struct {
			rows  int64
			limit db.Limit
			want  int
			more  bool
		}{
			{10, db.Limit{}, 10, false},
			{10, db.Limit{Rows: 10}, 10, false},
			{10, db.Limit{Rows: 11}, 10, false},
			{10, db.Limit{Rows: 9}, 9, true},
			{10, db.Limit{Rows: 1}, 1, true},
			{1, db.Limit{Rows: 1}, 1, false},
			{9, db.Limit{Bytes: 33}, 3, true},
			{9, db.Limit{Bytes: 32}, 2, true},
			{9, db.Limit{Bytes: 99}, 9, false},
			{9, db.Limit{Bytes: 1}, 1, true},
			{9, db.Limit{Rows: 2, Bytes: 33}, 2, true},
			{100000, db.Limit{Rows: 1}, 1, true},
			{100000, db.Limit{Rows: 5}, 5, true},
			{100000, db.Limit{Bytes: 33}, 3, true},
		} {
			for _, how := range []string{"alone", "transaction"} {
				run := func(q db.Querier) error {
					a, err := q.Query(t.Context(), numbers, []any{c.rows}, c.limit)
					if err != nil {
						return err
					}
					if a.Rows.Len() != c.want || a.More != c.more {
						t.Errorf("%s: %d rows with %+v give %d, more %v; want %d, %v", how, c.rows, c.limit, a.Rows.Len(), a.More, c.want, c.more)
					}
					// The next statement on the connection is not disturbed.
					a, err = q.Query(t.Context(), stmt(d, "SELECT 7 AS i"), nil, db.Limit{})
					if err == nil && asJSON(a) != `[{"i":7}]` {
						t.Errorf("then: %s", asJSON(a))
					}
					return err
				}
				err := run(d)
				if how == "transaction" {
					err = d.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error { return run(q) })
				}
				if err != nil {
					t.Errorf("%s: %d rows with %+v: %v", how, c.rows, c.limit, err)
				}
			}
		}
		// A write is done to its end, whatever of its rows is wanted.
		script(t, d, "CREATE TABLE a (i int)")
		write(t, d, func(q *db.Tx) error {
			a, err := q.Query(t.Context(), stmt(d, "INSERT INTO a VALUES (1), (2), (3), (4) RETURNING i"), nil, db.Limit{Rows: 2})
			if err == nil && (a.Rows.Len() != 2 || !a.More) {
				t.Errorf("RETURNING gives %s, more %v", asJSON(a), a.More)
			}
			return err
		})
		if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM a"))); got != `[{"n":4}]` {
			t.Error(got)
		}
	})
}

// SQLite takes a bare ? or :name for NULL; we do not.
func TestSQLiteForeignParameters(t *testing.T) {
	d := open(t, db.Config{URL: "sqlite::memory:"})
	for _, sql := range []string{"SELECT ?", "SELECT :id", "SELECT $id", "SELECT ?2"} {
		s := &db.Stmt{SQL: sql}
		if _, err := d.Query(t.Context(), s, nil, db.Limit{}); err == nil || !strings.HasSuffix(err.Error(), "write parameters as @name") {
			t.Errorf("%s gives %v", sql, err)
		}
	}
	if _, err := d.Query(t.Context(), &db.Stmt{SQL: "SELECT 1; SELECT 2"}, nil, db.Limit{}); err == nil || err.Error() != "there is more than one statement" {
		t.Errorf("got %v", err)
	}
	if _, err := d.Query(t.Context(), &db.Stmt{SQL: `SELECT "text"`}, nil, db.Limit{}); err == nil {
		t.Error(`"text" is a text`)
	}
	if a := query(t, d, &db.Stmt{SQL: "SELECT 1 AS i; -- end"}); asJSON(a) != `[{"i":1}]` {
		t.Error(asJSON(a))
	}
}

// What is set for a role, a database or in the URL changes neither how values
// look nor that queries cannot write.
func TestForeignSettings(t *testing.T) {
	url := servers.Postgres(t)
	d := open(t, db.Config{URL: url})
	name := query(t, d, stmt(d, "SELECT current_database() AS d")).Rows.Value(0, 0).(string)
	for _, s := range []string{
		"timezone = 'Asia/Tokyo'", "datestyle = 'German'", "bytea_output = 'escape'", "extra_float_digits = -5",
		"default_transaction_read_only = off", "standard_conforming_strings = off", "intervalstyle = 'postgres'",
	} {
		script(t, d, "ALTER DATABASE "+name+" SET "+s)
	}
	for _, more := range []string{"", "?TimeZone=Asia/Tokyo&default_transaction_read_only=off", "?options=-c%20timezone%3DAsia/Tokyo%20-c%20default_transaction_read_only%3Doff"} {
		d := open(t, db.Config{URL: url + more})
		a := query(t, d, stmt(d, `SELECT '2026-03-01T09:00:00Z'::timestamptz AS z, '2026-03-01'::date AS d, '\x00ff'::bytea AS b, 0.1::float8 + 0.2::float8 AS f, 'a\b' AS s, '2 h'::interval AS i`))
		want := `[{"z":"2026-03-01T09:00:00Z","d":"2026-03-01","b":"AP8=","f":0.30000000000000004,"s":"a\\b","i":"PT2H"}]`
		if got := asJSON(a); got != want {
			t.Errorf("%q: got %s, want %s", more, got, want)
		}
		if _, err := d.Query(t.Context(), stmt(d, "CREATE TABLE x (i int)"), nil, db.Limit{}); state(err) != "25006" {
			t.Errorf("%q: a query that writes gives %v", more, err)
		}
	}
}
