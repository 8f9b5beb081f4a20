package db_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// backends gives how many connections a database has besides the asking one.
func backends(t *testing.T, d *db.DB) int64 {
	t.Helper()
	a := query(t, d, stmt(d, "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'pool test'"))
	return a.Rows.Value(0, 0).(int64)
}

// until waits until a number is as wanted.
func until(t *testing.T, what string, want int64, number func() int64) {
	t.Helper()
	for i := 0; ; i++ {
		got := number()
		if got == want {
			return
		}
		if i == 1500 { // half a minute
			t.Fatalf("%s: %d, want %d", what, got, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// together runs n statements at the same time.
func together(t *testing.T, d *db.DB, n int) {
	t.Helper()
	done := make(chan error, n)
	for range n {
		go func() {
			_, err := d.Query(context.Background(), stmt(d, "SELECT pg_sleep(0.1)"), nil, db.Limit{})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestPoolOfPostgres(t *testing.T) {
	address := servers.Postgres(t)
	watch := open(t, db.Config{URL: address})
	d := open(t, db.Config{URL: address + "?application_name=pool%20test", Pool: db.Pool{Max: 4, Min: 2, MaxIdle: 300 * time.Millisecond}})
	until(t, "open from the start", 2, func() int64 { return backends(t, watch) })
	together(t, d, 8)
	if n := backends(t, watch); n < 3 || n > 4 {
		t.Errorf("eight callers have made %d connections, want 4", n)
	}
	until(t, "left when nobody calls", 2, func() int64 { return backends(t, watch) })
	short := open(t, db.Config{URL: address, Pool: db.Pool{Max: 1, MaxLifetime: 200 * time.Millisecond}})
	pid := func() int64 {
		return query(t, short, stmt(short, "SELECT pg_backend_pid() AS n")).Rows.Value(0, 0).(int64)
	}
	first := pid()
	until(t, "a new connection after its lifetime", 1, func() int64 {
		if pid() != first {
			return 1
		}
		return 0
	})
}

// The least number of readers is there from the start, the others go when
// they are idle, and all go when they are old: what is in memory stays.
func TestPoolOfSQLite(t *testing.T) {
	for _, u := range []string{"sqlite::memory:", "sqlite:a.db"} {
		d := open(t, db.Config{URL: u, Dir: t.TempDir(), Pool: db.Pool{
			Max: 4, Min: 2, MaxIdle: 50 * time.Millisecond, MaxLifetime: 100 * time.Millisecond,
		}})
		script(t, d, "CREATE TABLE a (i int); INSERT INTO a VALUES (1)")
		for range 5 {
			done := make(chan struct{})
			for range 6 {
				go func() { has(t, d, 1); done <- struct{}{} }()
			}
			for range 6 {
				<-done
			}
			time.Sleep(60 * time.Millisecond)
		}
		write(t, d, func(q *db.Tx) error { query(t, q, stmt(d, "INSERT INTO a VALUES (2)")); return nil })
		has(t, d, 2)
	}
}

// A call of a session is one round trip: BEGIN, the settings, the statement
// and, of a lone query, COMMIT go out together.
func TestRoundTrips(t *testing.T) {
	d, trips := counted(t)
	tenants(t, d)
	who := d.As(tenant("bee"))
	read, insert := stmt(d, "SELECT body FROM notes"), stmt(d, "INSERT INTO notes VALUES ('bee', 'x')")
	costTrips(t, trips, []trip{
		{"a query", 1, func() error { query(t, d, read); return nil }},
		{"a query of a session", 1, func() error { query(t, who, read); return nil }},
		{"a write", 2, func() error {
			return d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error { query(t, q, insert); return nil })
		}},
		{"a write of a session", 2, func() error {
			return who.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error { query(t, q, insert); return nil })
		}},
		{"two reads of a session", 3, func() error {
			return who.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error { query(t, q, read); query(t, q, read); return nil })
		}},
		{"an empty transaction", 0, func() error { return who.Tx(t.Context(), db.TxOptions{}, func(*db.Tx) error { return nil }) }},
	})
}

// trip is a call and the round trips that it may make.
type trip struct {
	name string
	want int64
	call func() error
}

func costTrips(t *testing.T, trips *atomic.Int64, calls []trip) {
	t.Helper()
	for _, c := range calls {
		for range 2 { // the first time the statements are prepared
			trips.Store(0)
			if err := c.call(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if got := trips.Load(); got != c.want {
			t.Errorf("%s makes %d round trips, want %d", c.name, got, c.want)
		}
	}
}

// counted opens a database with one connection whose round trips are counted.
func counted(t *testing.T) (*db.DB, *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(servers.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	trips := &atomic.Int64{}
	u.Host = countTrips(t, u.Host, trips)
	u.RawQuery = "sslmode=disable"
	return open(t, db.Config{URL: u.String(), Pool: db.Pool{Max: 1}}), trips
}

// countTrips gives the address of a relay to a server that counts the messages
// after which a client waits for an answer: Sync and Query.
func countTrips(t *testing.T, server string, trips *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				return
			}
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
			go func() { _ = relayMessages(out, in, trips); _ = out.Close() }()
		}
	}()
	return l.Addr().String()
}

// relayMessages copies the messages of a client, of which the first has no
// type.
func relayMessages(out io.Writer, in io.Reader, trips *atomic.Int64) error {
	for first := true; ; first = false {
		head := make([]byte, 5)
		if first {
			head = head[:4]
		}
		if _, err := io.ReadFull(in, head); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(head[len(head)-4:])
		if size < 4 || size > 1<<20 {
			return fmt.Errorf("a message of %d bytes", size)
		}
		body := make([]byte, size-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		if c := head[0]; !first && (c == 'S' || c == 'Q') {
			trips.Add(1)
		}
		if _, err := out.Write(append(head, body...)); err != nil {
			return err
		}
	}
}
