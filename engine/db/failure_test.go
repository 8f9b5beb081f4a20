package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// fault gives what an error says to programs, and fails for one that is no
// *db.Error.
func fault(t *testing.T, err error) db.Error {
	t.Helper()
	var e *db.Error
	if !errors.As(err, &e) {
		t.Errorf("%v is no *db.Error", err)
		return db.Error{}
	}
	return db.Error{SQLState: e.SQLState, Unavailable: e.Unavailable, Busy: e.Busy, Timeout: e.Timeout}
}

const count = "SELECT count(*) AS n FROM a"

// has checks how many rows a has: that nothing half-done is left, and that
// the next call works.
func has(t *testing.T, d *db.DB, want int) {
	t.Helper()
	if got := asJSON(query(t, d, stmt(d, count))); got != fmt.Sprintf(`[{"n":%d}]`, want) {
		t.Errorf("a has %s rows, want %d", got, want)
	}
}

// insertThen makes a transaction that inserts a row and goes on with one more
// statement.
func insertThen(ctx context.Context, d *db.DB, next *db.Stmt) error {
	return d.Tx(ctx, db.TxOptions{}, func(q *db.Tx) error {
		if _, err := q.Query(ctx, stmt(d, "INSERT INTO a VALUES (1)"), nil, db.Limit{}); err != nil {
			return err
		}
		_, err := q.Query(ctx, next, nil, db.Limit{})
		return err
	})
}

// working waits until n statements run on the server.
func working(t *testing.T, url string, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for i := 0; ; i++ {
		var got int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()").Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		if got == n {
			return
		}
		if i == 200 {
			t.Fatalf("%d statements run, want %d", got, n)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestServerKilled(t *testing.T) {
	server := servers.PrivatePostgres(t)
	d := open(t, db.Config{URL: server.URL, Pool: db.Pool{Acquire: 2 * time.Second}})
	script(t, d, "CREATE TABLE a (i int)")
	var callers sync.WaitGroup
	callers.Go(func() {
		_, err := d.Query(t.Context(), slow(d), nil, db.Limit{})
		if got := fault(t, err); !got.Unavailable {
			t.Errorf("a query gives %+v (%v)", got, err)
		}
	})
	for range 3 {
		callers.Go(func() {
			err := insertThen(t.Context(), d, slow(d))
			if got := fault(t, err); !got.Unavailable {
				t.Errorf("a transaction gives %+v (%v)", got, err)
			}
		})
	}
	working(t, server.URL, 4)
	server.Kill()
	callers.Wait()
	start := time.Now()
	for range 3 {
		_, err := d.Query(t.Context(), stmt(d, count), nil, db.Limit{})
		if got := fault(t, err); !got.Unavailable {
			t.Errorf("without a server a query gives %+v (%v)", got, err)
		}
		err = insertThen(t.Context(), d, stmt(d, count))
		if got := fault(t, err); !got.Unavailable {
			t.Errorf("without a server a transaction gives %+v (%v)", got, err)
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("six refusals took %v", took)
	}
	server.Start()
	has(t, d, 0)
	if err := insertThen(t.Context(), d, stmt(d, count)); err != nil {
		t.Error(err)
	}
	has(t, d, 1)
	// A restart between two calls is nobody's trouble.
	server.Kill()
	server.Start()
	if err := insertThen(t.Context(), d, stmt(d, count)); err != nil {
		t.Error(err)
	}
	has(t, d, 2)
}

// The server has no connection left for us: the calls wait as long as for one
// of the pool, and go on when there is one.
func TestServerFull(t *testing.T) {
	server := servers.PrivatePostgres(t, "max_connections=6", "superuser_reserved_connections=0", "max_wal_senders=0", "autovacuum=off")
	d := open(t, db.Config{URL: server.URL, Pool: db.Pool{Max: 5, Acquire: 300 * time.Millisecond}})
	script(t, d, "CREATE TABLE a (i int)")
	has(t, d, 0) // makes a connection, which is all that we get
	occupied := occupy(t, server.URL)
	has(t, d, 0)
	held := make(chan struct{})
	var holder sync.WaitGroup
	holder.Go(func() {
		err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			query(t, q, stmt(d, count))
			close(held)
			time.Sleep(time.Second)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-held
	start := time.Now()
	_, err := d.Query(t.Context(), stmt(d, count), nil, db.Limit{})
	if got, want := fault(t, err), (db.Error{SQLState: "53300", Busy: true}); got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if took := time.Since(start); took > 900*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	holder.Wait()
	for _, c := range occupied {
		_ = c.Close(context.Background())
	}
	has(t, d, 0)
}

// occupy takes all connections of a server that are left.
func occupy(t *testing.T, url string) []*pgx.Conn {
	t.Helper()
	var all []*pgx.Conn
	for {
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			if !strings.Contains(err.Error(), "53300") {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, c)
	}
}

func TestPoolExhausted(t *testing.T) {
	pool := db.Pool{Max: 2, Acquire: 150 * time.Millisecond}
	for name, c := range map[string]db.Config{
		"sqlite":   {URL: "sqlite::memory:", Pool: pool},
		"postgres": {Pool: pool},
	} {
		t.Run(name, func(t *testing.T) {
			if c.URL == "" {
				c.URL = servers.Postgres(t)
			}
			d := open(t, c)
			script(t, d, "CREATE TABLE a (i int)")
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			hold := func() {
				started := make(chan struct{})
				callers.Go(func() {
					_ = d.Tx(ctx, db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
						close(started)
						_, err := q.Query(ctx, slow(d), nil, db.Limit{})
						return err
					})
				})
				<-started
			}
			hold()
			has(t, d, 0) // a slow statement is in nobody's way
			hold()
			start := time.Now()
			_, err := d.Query(t.Context(), stmt(d, count), nil, db.Limit{})
			if got, want := fault(t, err), (db.Error{Busy: true}); got != want || err.Error() != "no connection (of 2) was free within 150ms" {
				t.Errorf("got %+v (%v), want %+v", got, err, want)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err = d.Query(short, stmt(d, count), nil, db.Limit{}); !fault(t, err).Timeout {
				t.Errorf("a caller in a hurry: %v", err)
			}
			stop()
			callers.Wait()
			has(t, d, 0)
		})
	}
}

// One writer at a time on SQLite: the next one does not wait for ever.
func TestWriterBusy(t *testing.T) {
	d := open(t, db.Config{URL: "sqlite::memory:", Pool: db.Pool{Acquire: 100 * time.Millisecond}})
	script(t, d, "CREATE TABLE a (i int)")
	write(t, d, func(*db.Tx) error {
		err := insertThen(t.Context(), d, stmt(d, count))
		if got, want := fault(t, err), (db.Error{Busy: true}); got != want || err.Error() != "no writer was free within 100ms" {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
		return nil
	})
	has(t, d, 0)
}

// Another process has locked the file.
func TestSQLiteLocked(t *testing.T) {
	dir := t.TempDir()
	d := open(t, db.Config{URL: "sqlite:a.db", Dir: dir, Pool: db.Pool{Acquire: 100 * time.Millisecond}})
	other := open(t, db.Config{URL: "sqlite:a.db", Dir: dir})
	script(t, d, "CREATE TABLE a (i int)")
	write(t, other, func(q *db.Tx) error {
		query(t, q, stmt(d, "INSERT INTO a VALUES (1)"))
		err := insertThen(t.Context(), d, stmt(d, count))
		if got, want := fault(t, err), (db.Error{Busy: true}); got != want {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
		has(t, d, 0) // a reader does not mind
		return nil
	})
	has(t, d, 1)
}

// Every way in which a statement of a transaction ends badly: its error is
// told, the row before it is not left, and the connection goes on.
func TestStatementsFail(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Timeout: 150 * time.Millisecond, Pool: db.Pool{Max: 1}})
	script(t, d, "CREATE TABLE a (i int); CREATE TABLE gone (i int)")
	gone := stmt(d, "SELECT i FROM gone")
	query(t, d, gone)
	script(t, d, "DROP TABLE gone")
	pid := stmt(d, "SELECT pg_backend_pid() AS pid")
	before := asJSON(query(t, d, pid))
	for _, c := range []struct {
		name string
		next *db.Stmt
		want db.Error
		same bool // the connection lives on
	}{
		{"a dropped table", gone, db.Error{SQLState: "42P01"}, true},
		{"a statement that takes too long", slow(d), db.Error{SQLState: "57014", Timeout: true}, true},
		{"an ended backend", stmt(d, "SELECT pg_terminate_backend(pg_backend_pid())"), db.Error{SQLState: "57P01", Unavailable: true}, false},
		{"a division by zero", stmt(d, "SELECT 1 / (count(*) - 1) AS x FROM a"), db.Error{SQLState: "22012"}, true},
	} {
		err := insertThen(t.Context(), d, c.next)
		if got := fault(t, err); got != c.want {
			t.Errorf("%s gives %+v (%v), want %+v", c.name, got, err, c.want)
		}
		has(t, d, 0)
		after := asJSON(query(t, d, pid))
		if (after == before) != c.same {
			t.Errorf("after %s the connection is the same: %v", c.name, after == before)
		}
		before = after
	}
	_, err := d.Query(t.Context(), gone, nil, db.Limit{})
	if got := fault(t, err); got.SQLState != "42P01" {
		t.Errorf("a query of a dropped table gives %+v", got)
	}
	script(t, d, "CREATE TABLE gone (i int, more text); INSERT INTO gone VALUES (1, 'x')")
	if got := asJSON(query(t, d, gone)); got != `[{"i":1}]` {
		t.Error(got)
	}
}

// 200 callers and ten connections: everybody has an answer or Busy, in bounded
// time, and nobody waits for a slow statement that has a connection of its own.
func TestCrowd(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 10, Acquire: 500 * time.Millisecond}})
	script(t, d, "CREATE TABLE a (i int)")
	nap := stmt(d, "SELECT pg_sleep($1) AS s")
	var answered, refused atomic.Int32
	var callers sync.WaitGroup
	start := time.Now()
	for i := range 200 {
		callers.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = d.Query(t.Context(), nap, []any{0.2}, db.Limit{})
			} else {
				err = insertThen(t.Context(), d, stmt(d, count))
			}
			switch {
			case err == nil && i%2 == 1:
				answered.Add(1)
			case err == nil:
			case fault(t, err) == db.Error{Busy: true}:
				refused.Add(1)
			default:
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	callers.Wait()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if refused.Load() == 0 {
		t.Error("nobody was refused: 100 naps of 200 ms do not fit into ten connections and 500 ms")
	}
	has(t, d, int(answered.Load()))
}
