package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// ours makes a statement of ours.
func ours(d *db.DB, sql string) *db.Stmt { return db.Ours(d.Dialect(), sql) }

var errRefused = errors.New("not in this state")

// trail makes a table that statements of ours write their steps to.
func trail(t *testing.T, d *db.DB) (left func() string) {
	t.Helper()
	script(t, d, "CREATE TABLE trail (n integer PRIMARY KEY, who text NOT NULL); CREATE TABLE a (i int)")
	return func() string {
		t.Helper()
		return asJSON(query(t, d, stmt(d, "SELECT n, who FROM trail ORDER BY n")))
	}
}

// Every way in which statements of ours and of the caller end, on both engines.
func TestAheadAndLast(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		left := trail(t, d)
		step := ours(d, "INSERT INTO trail (n, who) VALUES ($1, $2)")
		ask := ours(d, "SELECT count(*) AS n FROM trail WHERE n < $1")
		insert, bad := stmt(d, "INSERT INTO a VALUES (1)"), stmt(d, "INSERT INTO trail (n, who) VALUES (1, NULL)")
		mapped := func(error) error { return errRefused }
		for _, c := range []struct {
			name string
			want string
			f    func(q *db.Tx) error
			rows string
		}{
			{"both", "", func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), step, []any{int64(1), "x"}, yes), run(t, q, insert), q.Last(step, []any{int64(2), "y"}, nil))
			}, `[{"n":1,"who":"x"},{"n":2,"who":"y"}]`},
			{"the answer comes before that of the statement", "", func(q *db.Tx) error {
				told := int64(-1)
				err := q.Ahead(t.Context(), ask, []any{int64(9)}, func(a *db.Answer) error { told = a.Rows.Value(0, 0).(int64); return nil })
				if err = errors.Join(err, run(t, q, insert)); told != 0 {
					t.Errorf("told %d", told)
				}
				return err
			}, "[]"},
			{"a refusal", errRefused.Error(), func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), step, []any{int64(1), "x"}, no), run(t, q, insert))
			}, "[]"},
			{"a refusal before a statement that fails", errRefused.Error(), func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), ask, []any{int64(1)}, no), run(t, q, bad))
			}, "[]"},
			{"a refusal with nothing behind", errRefused.Error(), func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), step, []any{int64(1), "x"}, no), q.Last(step, []any{int64(2), "y"}, nil))
			}, "[]"},
			{"nothing but ours", "", func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), step, []any{int64(1), "x"}, yes), q.Last(step, []any{int64(2), "y"}, nil))
			}, `[{"n":1,"who":"x"},{"n":2,"who":"y"}]`},
			{"nothing but the last", "", func(q *db.Tx) error { return q.Last(step, []any{int64(2), "y"}, nil) }, `[{"n":2,"who":"y"}]`},
			{"the last fails", errRefused.Error(), func(q *db.Tx) error {
				return errors.Join(run(t, q, insert), q.Last(step, []any{int64(2), "y"}, nil), q.Last(step, []any{int64(2), "z"}, mapped))
			}, "[]"},
			{"only the last, and it fails", errRefused.Error(), func(q *db.Tx) error { return q.Last(step, []any{int64(2), nil}, mapped) }, "[]"},
			{"declined", "declined", func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), step, []any{int64(1), "x"}, yes), run(t, q, insert),
					q.Last(step, []any{int64(2), "y"}, nil), errors.New("declined"))
			}, "[]"},
			{"a try takes its last along", "", func(q *db.Tx) error {
				err := errors.Join(q.Ahead(t.Context(), step, []any{int64(1), "x"}, yes), q.Last(step, []any{int64(2), "y"}, nil))
				_ = q.Try(t.Context(), func() error {
					_ = q.Ahead(t.Context(), step, []any{int64(3), "z"}, yes)
					_ = q.Last(step, []any{int64(4), "z"}, nil)
					return errors.New("undone")
				})
				return errors.Join(err, run(t, q, insert))
			}, `[{"n":1,"who":"x"},{"n":2,"who":"y"}]`},
			{"refused before a try", errRefused.Error(), func(q *db.Tx) error {
				err := q.Ahead(t.Context(), step, []any{int64(1), "x"}, no)
				return errors.Join(err, q.Try(t.Context(), func() error { return run(t, q, insert) }))
			}, "[]"},
			{"in the middle", "", func(q *db.Tx) error {
				return errors.Join(run(t, q, insert), q.Ahead(t.Context(), step, []any{int64(1), "x"}, yes), run(t, q, insert))
			}, `[{"n":1,"who":"x"}]`},
			{"the wrong number of arguments", "the statement has 2 parameters and was given 1", func(q *db.Tx) error {
				_ = q.Last(step, []any{int64(1)}, nil)
				return nil
			}, "[]"},
		} {
			script(t, d, "DELETE FROM trail; DELETE FROM a")
			err := d.Tx(t.Context(), db.TxOptions{}, c.f)
			// On SQLite the answer is there at once; later calls repeat the error.
			if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); err == nil && c.want != "" || err != nil && got != c.want {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
			if got := left(); got != c.rows {
				t.Errorf("%s: left %s, want %s", c.name, got, c.rows)
			}
			if c.want != "" {
				has(t, d, 0)
			}
		}
		if a, err := d.Write(t.Context(), step, []any{int64(7), "w"}); err != nil || a.Affected != 1 {
			t.Errorf("Write: %v", err)
		}
		if _, err := d.Write(t.Context(), step, []any{int64(7), "w"}); state(err) != "23505" {
			t.Errorf("Write of the same row: %v", err)
		}
		if got := left(); got != `[{"n":7,"who":"w"}]` {
			t.Errorf("Write: left %s", got)
		}
	})
}

func yes(*db.Answer) error { return nil }
func no(*db.Answer) error  { return errRefused }

func run(t *testing.T, q *db.Tx, s *db.Stmt) error {
	_, err := q.Query(t.Context(), s, nil, db.Limit{})
	return err
}

// A session's role has no right to what is ours, and its own statements run
// under it, whatever of ours runs before, between and behind.
func TestAheadOfSession(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 1}})
	tenants(t, d)
	trail(t, d)
	script(t, d, "CREATE SCHEMA hidden; ALTER TABLE trail SET SCHEMA hidden")
	step := ours(d, "INSERT INTO hidden.trail (n, who) VALUES ($1, current_user)")
	as := stmt(d, "SELECT current_user AS who, current_setting('app.tenant', true) AS tenant")
	for i := range int64(4) { // later the connection knows the statements
		err := d.As(tenant("bee")).Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			n := 10 * i
			check := func() {
				t.Helper()
				if got, want := asJSON(query(t, q, as)), `[{"who":"`+tenantRole+`","tenant":"bee"}]`; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			err := q.Ahead(t.Context(), step, []any{n}, yes)
			if i%2 == 0 {
				check()
			}
			err = errors.Join(err, q.Ahead(t.Context(), step, []any{n + 1}, yes))
			check()
			return errors.Join(err, q.Last(step, []any{n + 2}, nil), q.Last(step, []any{n + 3}, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n, min(who) AS a, max(who) AS z FROM hidden.trail"))), `[{"n":16,"a":"postgres","z":"postgres"}]`; got != want {
		t.Errorf("left %s, want %s", got, want)
	}
}

// A transaction with a statement of ours before and behind costs what it costs
// without.
func TestRoundTripsOfOurs(t *testing.T) {
	d, trips := counted(t)
	tenants(t, d)
	trail(t, d)
	var n atomic.Int64
	ask, step := ours(d, "SELECT count(*) AS n FROM trail"), ours(d, "INSERT INTO trail (n, who) VALUES ($1, 'x')")
	insert := stmt(d, "INSERT INTO notes VALUES ('bee', 'x')")
	both := func(q *db.Tx) error {
		return errors.Join(q.Ahead(t.Context(), ask, nil, yes), q.Ahead(t.Context(), ask, nil, yes), run(t, q, insert),
			q.Last(step, []any{n.Add(1)}, nil))
	}
	in := func(who *db.Session, f func(q *db.Tx) error) func() error {
		return func() error { return d.As(who).Tx(t.Context(), db.TxOptions{}, f) }
	}
	costTrips(t, trips, []trip{
		{"both", 2, in(nil, both)},
		{"both, of a session", 2, in(tenant("bee"), both)},
		{"before, with two statements", 3, in(nil, func(q *db.Tx) error {
			return errors.Join(q.Ahead(t.Context(), ask, nil, yes), run(t, q, insert), run(t, q, insert))
		})},
		{"before, with nothing behind", 2, in(nil, func(q *db.Tx) error { return q.Ahead(t.Context(), ask, nil, yes) })},
		{"behind alone", 1, in(nil, func(q *db.Tx) error { return q.Last(step, []any{n.Add(1)}, nil) })},
		{"a write of ours", 1, func() error { _, err := d.Write(t.Context(), step, []any{n.Add(1)}); return err }},
	})
}

// A connection that was lost before the first statement is replaced, and what
// goes ahead goes out again.
func TestAheadAgain(t *testing.T) {
	server := servers.PrivatePostgres(t)
	d := open(t, db.Config{URL: server.URL, Pool: db.Pool{Max: 1}})
	left := trail(t, d)
	step := ours(d, "INSERT INTO trail (n, who) VALUES ($1, 'x')")
	move := func(n int64) error {
		return d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			return errors.Join(q.Ahead(t.Context(), step, []any{n}, yes), run(t, q, stmt(d, "INSERT INTO a VALUES (1)")), q.Last(step, []any{n + 1}, nil))
		})
	}
	if err := move(1); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Start()
	if err := move(3); err != nil {
		t.Error(err)
	}
	// A plan of ours that is out of date.
	ask := ours(d, "SELECT * FROM trail WHERE n = $1")
	for _, want := range []string{`[{"n":1,"who":"x"}]`, `[{"n":1,"who":"x","more":null}]`} {
		err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			return errors.Join(q.Ahead(t.Context(), ask, []any{int64(1)}, func(a *db.Answer) error {
				if got := asJSON(a); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				return nil
			}), run(t, q, stmt(d, "SELECT 1 AS i")))
		})
		if err != nil {
			t.Error(err)
		}
		script(t, d, "ALTER TABLE trail ADD IF NOT EXISTS more text")
	}
	if got := left(); got != `[{"n":1,"who":"x"},{"n":2,"who":"x"},{"n":3,"who":"x"},{"n":4,"who":"x"}]` {
		t.Errorf("left %s", got)
	}
}

// A deferred constraint fails in COMMIT itself, after the last statement.
func TestLastBeforeFailingCommit(t *testing.T) {
	d := postgres(t, 0)
	left := trail(t, d)
	script(t, d, "CREATE TABLE c (id int PRIMARY KEY, of int REFERENCES c DEFERRABLE INITIALLY DEFERRED)")
	err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		return errors.Join(run(t, q, stmt(d, "INSERT INTO c VALUES (1, 2)")),
			q.Last(ours(d, "INSERT INTO trail (n, who) VALUES (1, 'x')"), nil, func(error) error { return errRefused }))
	})
	if state(err) != "23503" || errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
	if got := left(); got != "[]" {
		t.Errorf("left %s", got)
	}
}

// The last statement does not go out after a failure that the caller keeps to
// himself.
func TestLastAfterAFailure(t *testing.T) {
	d := postgres(t, 0)
	left := trail(t, d)
	err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		_ = run(t, q, stmt(d, "SELECT 1 / (count(*)) AS x FROM a"))
		return q.Last(ours(d, "INSERT INTO trail (n, who) VALUES (1, 'x')"), nil, nil)
	})
	if state(err) != "22012" {
		t.Errorf("got %v", err)
	}
	if got := left(); got != "[]" {
		t.Errorf("left %s", got)
	}
}

// Each statement ahead sees what was committed when it began, though all of them
// go out at once: one that reads behind one that takes a lock sees what whoever
// had the lock before has left.
func TestAheadSeesTheNewest(t *testing.T) {
	d := postgres(t, 0)
	trail(t, d)
	waiting := stmt(d, "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
	var seen any
	read := make(chan error, 1)
	err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		query(t, q, stmt(d, "SELECT pg_advisory_xact_lock(7) AS l"))
		go func() {
			read <- d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
				return errors.Join(q.Ahead(t.Context(), ours(d, "SELECT pg_advisory_xact_lock(7) AS l"), nil, yes),
					q.Ahead(t.Context(), ours(d, "SELECT count(*) AS n FROM a"), nil, func(a *db.Answer) error { seen = a.Rows.Value(0, 0); return nil }),
					run(t, q, stmt(d, "SELECT 1 AS i")))
			})
		}()
		until(t, "waiting for the lock", 1, func() int64 { return query(t, d, waiting).Rows.Value(0, 0).(int64) })
		return run(t, q, stmt(d, "INSERT INTO a VALUES (1)"))
	})
	if err = errors.Join(err, <-read); err != nil || seen != int64(1) {
		t.Errorf("it sees %v rows, %v", seen, err)
	}
}

// Whoever goes away while the last statement waits does not break it off.
func TestLastIsNotBrokenOff(t *testing.T) {
	d := postgres(t, 0)
	left := trail(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(50*time.Millisecond, cancel)
	err := d.Tx(ctx, db.TxOptions{}, func(q *db.Tx) error {
		return q.Last(ours(d, "INSERT INTO trail (n, who) SELECT 1, 'x' FROM pg_sleep(0.3)"), nil, nil)
	})
	if err != nil {
		t.Error(err)
	}
	if got := left(); got != `[{"n":1,"who":"x"}]` {
		t.Errorf("left %s", got)
	}
}
