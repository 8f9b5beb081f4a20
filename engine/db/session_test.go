package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// tenantRole is a role of the server, not of one database: its name is apart
// from any that is not a test's.
const tenantRole = "fusion_test_tenant"

// tenants makes a table of two tenants' notes under row-level security. The
// login owns it, and sees all of it.
func tenants(t testing.TB, d *db.DB) {
	t.Helper()
	script(t, d, `DO $$ BEGIN CREATE ROLE `+tenantRole+` NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	script(t, d, `CREATE TABLE notes (tenant text NOT NULL, body text NOT NULL);
		ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
		CREATE POLICY own ON notes USING (tenant = current_setting('app.tenant', true)) WITH CHECK (tenant = current_setting('app.tenant', true));
		GRANT SELECT, INSERT ON notes TO `+tenantRole+`;
		INSERT INTO notes VALUES ('ant', 'a1'), ('bee', 'b1'), ('bee', 'b2')`)
}

func tenant(name string) *db.Session {
	return &db.Session{Role: tenantRole, Settings: [][2]string{{"app.tenant", name}, {"app.note", `it's "x" \ %s`}}}
}

func TestSession(t *testing.T) {
	d := postgres(t, 0)
	tenants(t, d)
	notes := stmt(d, "SELECT body, current_user AS who, current_setting('app.note', true) AS note FROM notes ORDER BY body")
	one := stmt(d, "SELECT body FROM notes WHERE body = $1")
	said := `"who":"` + tenantRole + `","note":"it's \"x\" \\ %s"`
	for range 3 { // also on a connection that knows the statements
		for name, want := range map[string]string{
			"ant": `[{"body":"a1",` + said + `}]`,
			"bee": `[{"body":"b1",` + said + `},{"body":"b2",` + said + `}]`,
			"":    `[]`,
		} {
			a := d.As(tenant(name))
			if got := asJSON(query(t, a, notes)); got != want {
				t.Errorf("%q alone: got %s, want %s", name, got, want)
			}
			for _, o := range []db.TxOptions{{ReadOnly: true}, {}} {
				err := a.Tx(t.Context(), o, func(q *db.Tx) error {
					for range 2 {
						if got := asJSON(query(t, q, notes)); got != want {
							t.Errorf("%q in %+v: got %s, want %s", name, o, got, want)
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
		if got := asJSON(query(t, d.As(tenant("ant")), one, "b1")); got != "[]" {
			t.Errorf("ant sees %s", got)
		}
		if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM notes"))); got != `[{"n":3}]` {
			t.Errorf("the login sees %s", got)
		}
	}
	err := d.As(tenant("ant")).Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		_, err := q.Query(t.Context(), stmt(d, "INSERT INTO notes VALUES ('bee', 'x')"), nil, db.Limit{})
		return err
	})
	if state(err) != "42501" {
		t.Errorf("a note for another tenant: %v", err)
	}
	if _, err := d.As(tenant("ant")).Query(t.Context(), stmt(d, "INSERT INTO notes VALUES ('ant', 'x')"), nil, db.Limit{}); state(err) != "25006" {
		t.Errorf("a query that writes: %v", err)
	}
}

// A session's role may see what its login does not.
func TestSessionOfPoorLogin(t *testing.T) {
	url := servers.Postgres(t)
	owner := open(t, db.Config{URL: url})
	tenants(t, owner)
	const login = "fusion_test_login"
	script(t, owner, `DO $$ BEGIN CREATE ROLE `+login+` LOGIN NOINHERIT; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	script(t, owner, `GRANT `+tenantRole+` TO `+login+`; CREATE SCHEMA hidden; CREATE TABLE hidden.t (i int); INSERT INTO hidden.t VALUES (1);
		GRANT USAGE ON SCHEMA hidden TO `+tenantRole+`; GRANT SELECT ON hidden.t TO `+tenantRole)
	d := open(t, db.Config{URL: strings.Replace(url, "postgres@", login+"@", 1)})
	s := stmt(d, "SELECT i FROM hidden.t")
	who := &db.Session{Role: tenantRole}
	for range 2 {
		if got := asJSON(query(t, d.As(who), s)); got != `[{"i":1}]` {
			t.Error(got)
		}
		err := d.As(who).Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			if got := asJSON(query(t, q, s)); got != `[{"i":1}]` {
				t.Error(got)
			}
			return q.Try(t.Context(), func() error { query(t, q, s); return nil })
		})
		if err != nil {
			t.Error(err)
		}
		if x, err := d.As(who).Describe(t.Context(), s); err != nil || len(x.Columns) != 1 {
			t.Errorf("described as the role: %v", err)
		}
		if _, err := d.Query(t.Context(), s, nil, db.Limit{}); state(err) != "42501" {
			t.Errorf("the login reads it: %v", err)
		}
	}
	_, err := d.As(&db.Session{Role: "postgres"}).Query(t.Context(), s, nil, db.Limit{})
	if state(err) != "42501" {
		t.Errorf("the login takes the owner's role: %v", err)
	}
}

// However a call of a session ends, its connection comes back clean.
func TestSessionIsForgotten(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 1}})
	tenants(t, d)
	bee := d.As(tenant("bee"))
	clean := stmt(d, "SELECT current_user = session_user AND coalesce(current_setting('app.tenant', true), '') = '' AS clean, pg_backend_pid() AS pid")
	boom := stmt(d, "SELECT 1 / (count(*) - 2) AS x FROM notes")
	notes := stmt(d, "SELECT body FROM notes")
	inTx := func(f func(q *db.Tx) error) func() {
		return func() { _ = bee.Tx(t.Context(), db.TxOptions{}, f) }
	}
	short := func(f func(ctx context.Context)) func() {
		return func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			f(ctx)
		}
	}
	ends := []struct {
		name string
		call func()
		kept bool // the connection is used again
	}{
		{"an answer", func() { query(t, bee, notes) }, true},
		{"an answer again", func() { query(t, bee, notes) }, true},
		{"a limit", func() { _, _ = bee.Query(t.Context(), notes, nil, db.Limit{Rows: 1}) }, true},
		{"an error at run time", func() { _, _ = bee.Query(t.Context(), boom, nil, db.Limit{}) }, true},
		{"an error when prepared", func() { _, _ = bee.Query(t.Context(), stmt(d, "SELECT nope FROM notes"), nil, db.Limit{}) }, true},
		{"a bad argument", func() { _, _ = bee.Query(t.Context(), stmt(d, "SELECT $1 AS a"), []any{make(chan int)}, db.Limit{}) }, true},
		{"a transaction", inTx(func(q *db.Tx) error { query(t, q, notes); return nil }), true},
		{"a declined transaction", inTx(func(q *db.Tx) error { query(t, q, notes); return errors.New("no") }), true},
		{"a failed transaction", inTx(func(q *db.Tx) error { _, err := q.Query(t.Context(), boom, nil, db.Limit{}); return err }), true},
		{"a try", inTx(func(q *db.Tx) error {
			return q.Try(t.Context(), func() error { _, err := q.Query(t.Context(), boom, nil, db.Limit{}); return err })
		}), true},
		{"a panic", func() {
			defer func() { _ = recover() }()
			_ = bee.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error { query(t, q, notes); panic("boom") })
		}, true},
		{"a cancelled query", short(func(ctx context.Context) { _, _ = bee.Query(ctx, slow(d), nil, db.Limit{}) }), false},
		{"a cancelled transaction", short(func(ctx context.Context) {
			_ = bee.Tx(ctx, db.TxOptions{}, func(q *db.Tx) error { _, err := q.Query(ctx, slow(d), nil, db.Limit{}); return err })
		}), false},
	}
	pid := query(t, d, clean).Rows.Value(0, 1)
	for _, e := range ends {
		e.call()
		a := query(t, d, clean)
		if a.Rows.Value(0, 0) != true {
			t.Errorf("after %s the connection keeps the session", e.name)
		}
		if now := a.Rows.Value(0, 1); (now == pid) != e.kept {
			t.Errorf("after %s: same connection %v, want %v", e.name, now == pid, e.kept)
			pid = now
		} else {
			pid = now
		}
	}
}

// A statement that leaves something on its connection takes it along.
func TestMarksAreForgotten(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 1}})
	// Of the locks only those of this connection count: pg_locks shows those of
	// all databases, and for a moment those of a connection that was closed.
	script(t, d, "CREATE TABLE temp (hold int, listen int); SET search_path = nowhere; SET app.mark = 'x'")
	clean := stmt(d, "SELECT coalesce(current_setting('app.mark', true), '') = '' AND to_regclass('left_behind') IS NULL AND to_regclass('temp') IS NOT NULL "+
		"AND NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS clean, pg_backend_pid() AS pid")
	var pid any
	for _, c := range []struct {
		sql  string
		kept bool
	}{
		{"SELECT 1 AS i", true},
		{"SELECT temp.hold, listen FROM temp", true},
		{"SELECT set_config('app.mark', 'x', false) AS s", false},
		{"SELECT pg_advisory_lock(1) AS l", false},
		{"SELECT Pg_Try_Advisory_Lock_Shared (1) AS l", false},
		{"CREATE TEMP TABLE left_behind (i int)", false},
		{"CREATE /* at once */ TEMPORARY TABLE left_behind (i int)", false},
		{"SELECT 1 AS i INTO TEMP left_behind", false},
		{"SET app.mark = 'x'", false},
		{"LISTEN news", false},
		{"SELECT pg_advisory_xact_lock(1) AS l", true},
	} {
		before := query(t, d, clean).Rows.Value(0, 1)
		write(t, d, func(q *db.Tx) error { query(t, q, stmt(d, c.sql)); return nil })
		a := query(t, d, clean)
		if pid = a.Rows.Value(0, 1); a.Rows.Value(0, 0) != true || (pid == before) != c.kept {
			t.Errorf("after %s: clean %v, same connection %v, want %v", c.sql, a.Rows.Value(0, 0), pid == before, c.kept)
		}
	}
}

func TestSessionRefused(t *testing.T) {
	d := postgres(t, 0)
	for _, c := range []struct {
		who  *db.Session
		want string
	}{
		{&db.Session{Role: "none"}, `a session cannot have the role "none", which is the login's`},
		{&db.Session{Settings: [][2]string{{"role", "x"}}}, "the setting role cannot be changed: write role beside settings"},
		{&db.Session{Settings: [][2]string{{"Session_Authorization", "x"}}}, "the setting Session_Authorization cannot be changed: write role beside settings"},
		{&db.Session{Settings: [][2]string{{"TimeZone", "x"}}}, "the setting TimeZone cannot be changed: reading and writing rely on it"},
		{&db.Session{Settings: [][2]string{{"transaction_read_only", "off"}}}, "the setting transaction_read_only cannot be changed: reading and writing rely on it"},
		{&db.Session{Settings: [][2]string{{"a b", "x"}}}, `"a b" is not the name of a setting: write one such as app.tenant`},
		{&db.Session{Settings: [][2]string{{"app.", "x"}}}, `"app." is not the name of a setting: write one such as app.tenant`},
	} {
		_, err := d.As(c.who).Query(t.Context(), stmt(d, "SELECT 1 AS i"), nil, db.Limit{})
		if err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if err := d.As(c.who).Tx(t.Context(), db.TxOptions{}, func(*db.Tx) error { return nil }); err == nil || err.Error() != c.want {
			t.Errorf("a transaction: got %v, want %s", err, c.want)
		}
	}
	_, err := d.As(&db.Session{Role: "fusion_test_nobody"}).Query(t.Context(), stmt(d, "SELECT 1 AS i"), nil, db.Limit{})
	if state(err) != "22023" {
		t.Errorf("an unknown role: %v", err)
	}
	many := &db.Session{}
	for i := range 20 {
		many.Settings = append(many.Settings, [2]string{fmt.Sprintf("app.s%d", i), fmt.Sprint(i)})
	}
	if got := asJSON(query(t, d.As(many), stmt(d, "SELECT current_setting('app.s19') AS v"))); got != `[{"v":"19"}]` {
		t.Error(got)
	}
}

func TestSessionNeedsPostgres(t *testing.T) {
	_, err := db.Open(t.Context(), db.Config{URL: "sqlite::memory:", Session: true})
	if want := "session (row-level security) needs a PostgreSQL database"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	d := open(t, db.Config{URL: "sqlite::memory:"})
	_, err = d.As(&db.Session{}).Query(t.Context(), stmt(d, "SELECT 1"), nil, db.Limit{})
	if want := "a session needs a PostgreSQL database"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
