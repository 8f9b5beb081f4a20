package db_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// slow gives a statement that runs until it is stopped.
func slow(d *db.DB) *db.Stmt {
	if d.Dialect() == db.Postgres {
		return stmt(d, "SELECT pg_sleep(60)")
	}
	return stmt(d, "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c")
}

func TestCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			start := time.Now()
			_, err := d.Query(ctx, slow(d), nil, db.Limit{})
			cancel()
			var refused *db.Error
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &refused) || !refused.Timeout {
				t.Errorf("got %#v", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			err = d.Tx(ctx, db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
				_, err := q.Query(ctx, slow(d), nil, db.Limit{})
				return err
			})
			if !errors.Is(err, context.Canceled) || errors.As(err, &refused) && refused.Timeout {
				t.Errorf("got %#v", err)
			}
		}
		if got := asJSON(query(t, d, stmt(d, "SELECT 1 AS i"))); got != `[{"i":1}]` {
			t.Error(got)
		}
	})
}

// A cancelled call stops on the server too, and only then gives its place in
// the pool to another.
func TestCancelReachesServer(t *testing.T) {
	address := servers.Postgres(t)
	watch := open(t, db.Config{URL: address})
	d := open(t, db.Config{URL: address, Pool: db.Pool{Max: 2}})
	running := stmt(d, "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_sleep(60)' AND pid <> pg_backend_pid()")
	count := func() int64 { return query(t, watch, running).Rows.Value(0, 0).(int64) }
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = d.Query(ctx, slow(d), nil, db.Limit{}) })
		callers.Go(func() {
			_ = d.Tx(ctx, db.TxOptions{}, func(q *db.Tx) error { _, err := q.Query(ctx, slow(d), nil, db.Limit{}); return err })
		})
		until(t, "started", 2, count)
		cancel()
		callers.Wait()
		query(t, d, stmt(d, "SELECT 1 AS i"))
		if n := count(); n > 1 {
			t.Errorf("a call had a connection while %d of two cancelled ones were still at work", n)
		}
		until(t, "still at work", 0, count)
	}
}

func TestStatementTimeout(t *testing.T) {
	onBothWith(t, 80*time.Millisecond, func(t *testing.T, d *db.DB) {
		_, err := d.Query(t.Context(), slow(d), nil, db.Limit{})
		var refused *db.Error
		if !errors.As(err, &refused) || !refused.Timeout {
			t.Errorf("got %v", err)
		}
		// A script may take longer than a statement.
		if d.Dialect() == db.Postgres {
			script(t, d, "SELECT pg_sleep(0.2)")
		}
		err = d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			query(t, q, stmt(d, "SELECT 1 AS i"))
			time.Sleep(100 * time.Millisecond) // it is the statements that have the timeout
			query(t, q, stmt(d, "SELECT 1 AS i"))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func onBothWith(t *testing.T, timeout time.Duration, f func(t *testing.T, d *db.DB)) {
	t.Run("sqlite", func(t *testing.T) { f(t, open(t, db.Config{URL: "sqlite::memory:", Timeout: timeout})) })
	t.Run("postgres", func(t *testing.T) { f(t, postgres(t, timeout)) })
}

// Fifty callers read, write, give up and hit limits at the same time; every
// write that was reported is there, and no other.
func TestConcurrency(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE a (who int, n int, PRIMARY KEY (who, n)); CREATE TABLE big (i int);"+
			"INSERT INTO big WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2000) SELECT i FROM c")
		var callers sync.WaitGroup
		for who := range 50 {
			callers.Go(func() {
				for n := range 10 {
					if err := work(t, d, who, n); err != nil {
						t.Errorf("caller %d: %v", who, err)
					}
				}
			})
		}
		callers.Wait()
		if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM a"))); got != `[{"n":150}]` {
			t.Errorf("a has %s, want 150", got)
		}
	})
}

// work does one of the things that callers do.
func work(t *testing.T, d *db.DB, who, n int) error {
	insert := stmt(d, "INSERT INTO a VALUES ($1, $2)")
	all := stmt(d, "SELECT i FROM big")
	switch n {
	case 0, 1, 2: // a write
		return d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			_, err := q.Query(t.Context(), insert, []any{int64(who), int64(n)}, db.Limit{})
			return err
		})
	case 3: // a write that is declined
		declined := errors.New("declined")
		err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			if _, err := q.Query(t.Context(), insert, []any{int64(who), int64(n)}, db.Limit{}); err != nil {
				return err
			}
			return declined
		})
		if err != declined {
			return fmt.Errorf("declined gives %w", err)
		}
	case 4, 5: // a caller who goes away
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(who%5)*time.Millisecond)
		defer cancel()
		_, err := d.Query(ctx, slow(d), nil, db.Limit{})
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("going away gives %w", err)
		}
	case 6: // two statements that see one state
		return d.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
			count := stmt(d, "SELECT count(*) AS n FROM a")
			a, err := q.Query(t.Context(), count, nil, db.Limit{})
			if err != nil {
				return err
			}
			b, err := q.Query(t.Context(), count, nil, db.Limit{})
			if err == nil && asJSON(a) != asJSON(b) {
				return fmt.Errorf("first %s, then %s", asJSON(a), asJSON(b))
			}
			return err
		})
	default: // a limit
		a, err := d.Query(t.Context(), all, nil, db.Limit{Rows: who + 1})
		if err == nil && (a.Rows.Len() != who+1 || !a.More) {
			return fmt.Errorf("%d rows, more %v", a.Rows.Len(), a.More)
		}
		return err
	}
	return nil
}

func TestMemoryDatabasesAreApart(t *testing.T) {
	a, b := open(t, db.Config{URL: "sqlite::memory:"}), open(t, db.Config{URL: "sqlite::memory:"})
	script(t, a, "CREATE TABLE t (i int)")
	if empty, err := b.Empty(t.Context()); err != nil || !empty {
		t.Errorf("the second database is the first: %v, %v", empty, err)
	}
}

func TestClose(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		ctx, stop := context.WithCancel(t.Context())
		started, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- d.Tx(ctx, db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
				close(started)
				_, err := q.Query(ctx, slow(d), nil, db.Limit{})
				return err
			})
		}()
		<-started
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := d.Close(short)
		if want := "closing database main: calls are still running: context deadline exceeded"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := d.Query(t.Context(), stmt(d, "SELECT 1"), nil, db.Limit{}); !errors.Is(err, db.ErrClosed) {
			t.Errorf("a closed database gives %v", err)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Nobody listens: opening is no error, calls say that the database is not there.
func TestServerDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	d := open(t, db.Config{URL: "postgres://u:hunter2@" + address + "/x"})
	_, err = d.Query(t.Context(), stmt(d, "SELECT 1"), nil, db.Limit{})
	var refused *db.Error
	if !errors.As(err, &refused) || !refused.Unavailable || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	_, err = db.Open(t.Context(), db.Config{URL: "sqlite:/nowhere/at/all.db"})
	if !errors.As(err, &refused) || !refused.Unavailable {
		t.Errorf("got %v", err)
	}
}

// Connections that died while they were idle, and plans that a migration made
// void, are not the caller's trouble.
func TestRecovers(t *testing.T) {
	d := postgres(t, 0)
	script(t, d, "CREATE TABLE a (i int); INSERT INTO a VALUES (1)")
	read, insert := stmt(d, "SELECT * FROM a"), stmt(d, "INSERT INTO a (i) VALUES (2) RETURNING *")
	add := func() {
		t.Helper()
		write(t, d, func(q *db.Tx) error { query(t, q, insert); return nil })
	}
	add()
	if got := asJSON(query(t, d, read)); got != `[{"i":1},{"i":2}]` {
		t.Error(got)
	}
	script(t, d, "ALTER TABLE a ADD COLUMN s text DEFAULT 'x'")
	if got := asJSON(query(t, d, read)); got != `[{"i":1,"s":"x"},{"i":2,"s":"x"}]` {
		t.Error(got)
	}
	add()
	killAll(t, d)
	if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM a"))); got != `[{"n":3}]` {
		t.Error(got)
	}
	killAll(t, d)
	add()
	if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM a"))); got != `[{"n":4}]` {
		t.Error(got)
	}
}

// killAll ends the connections of the database from a second pool.
func killAll(t *testing.T, d *db.DB) {
	t.Helper()
	name := query(t, d, stmt(d, "SELECT current_database() AS d")).Rows.Value(0, 0).(string)
	u, err := url.Parse(servers.Server(t))
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, db.Config{URL: u.String()})
	query(t, other, stmt(other, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"), name)
	time.Sleep(50 * time.Millisecond) // until the backends are gone
}

// The same columns are read after SQLite has compiled a statement anew.
func TestSQLiteSchemaChange(t *testing.T) {
	d := open(t, db.Config{URL: "sqlite::memory:", Pool: db.Pool{Max: 1}})
	script(t, d, "CREATE TABLE a (i int); INSERT INTO a VALUES (1)")
	read := stmt(d, "SELECT * FROM a")
	query(t, d, read)
	script(t, d, "ALTER TABLE a ADD COLUMN b boolean DEFAULT true")
	if got := asJSON(query(t, d, read)); got != `[{"i":1,"b":true}]` {
		t.Error(got)
	}
}
