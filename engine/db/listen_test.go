package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// next gives what comes, or fails.
func next(t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case s := <-c:
		return s
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		return ""
	}
}

func TestListen(t *testing.T) {
	server := servers.PrivatePostgres(t)
	d := open(t, db.Config{URL: server.URL, Pool: db.Pool{Max: 1}})
	other := open(t, db.Config{URL: server.URL})
	said, ended := make(chan string, 100), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(ended)
		d.Listen(ctx, "Fusion events", func(payload string) { said <- payload }, func() { said <- "again" })
	}()
	notify := ours(d, "SELECT pg_notify($1, $2) AS n")
	say := func(channel, payload string) {
		t.Helper()
		if _, err := other.Write(t.Context(), notify, []any{channel, payload}); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(t, said); got != "again" {
		t.Fatalf("first came %s", got)
	}
	say("fusion events", "another channel")
	say("Fusion events", "1")
	say("Fusion events", "2")
	if a, b := next(t, said), next(t, said); a != "1" || b != "2" {
		t.Errorf("got %s and %s", a, b)
	}
	query(t, d, stmt(d, "SELECT 1 AS i")) // it has no connection of the pool
	server.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
	if got := next(t, said); got != "again" {
		t.Errorf("after its end came %s", got)
	}
	server.Kill()
	server.Start()
	if got := next(t, said); got != "again" {
		t.Errorf("after a restart came %s", got)
	}
	query(t, other, stmt(other, "SELECT 1 AS i")) // a dead connection of the pool shows itself here
	say("Fusion events", "3")
	if got := next(t, said); got != "3" {
		t.Errorf("got %s", got)
	}
	cancel()
	<-ended
}

// A database that is closed ends the listening.
func TestListenEnds(t *testing.T) {
	for _, url := range []string{"sqlite::memory:", servers.Postgres(t)} {
		d, err := db.Open(t.Context(), db.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		ready, ended := make(chan string, 1), make(chan struct{})
		go func() {
			defer close(ended)
			d.Listen(context.Background(), "c", func(string) {}, func() { ready <- "again" })
		}()
		if d.Dialect() == db.Postgres {
			next(t, ready)
			if err := d.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-ended
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
