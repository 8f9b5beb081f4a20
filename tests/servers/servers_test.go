package servers_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func TestPostgres(t *testing.T) {
	var url string
	t.Run("is fresh", func(t *testing.T) {
		url = servers.Postgres(t)
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		// The connection is left open: dropping does not wait for anybody.
		var tables int
		if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'").Scan(&tables); err != nil || tables != 0 {
			t.Errorf("%d tables, error %v; want none", tables, err)
		}
	})
	if url == "" {
		t.Skip("there is no server, as said above")
	}
	if conn, err := pgx.Connect(context.Background(), url); err == nil {
		conn.Close(context.Background())
		t.Error("the database is still there after its test")
	}
}

// Each test has a database of its own, which is empty before it and after it.
func TestRedis(t *testing.T) {
	dial := func(t *testing.T, url string) redis.Conn {
		conn, err := redis.DialURL(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	size := func(t *testing.T, conn redis.Conn) int {
		n, err := redis.Int(conn.Do("DBSIZE"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var url string
	t.Run("is fresh", func(t *testing.T) {
		url = servers.Redis(t)
		if other := servers.Redis(t); other == url {
			t.Errorf("%s is two tests' at once", url)
		}
		conn := dial(t, url)
		if n := size(t, conn); n != 0 {
			t.Errorf("%d keys before the test", n)
		}
		if _, err := conn.Do("SET", "k", "v"); err != nil {
			t.Fatal(err)
		}
	})
	if url == "" {
		t.Skip("there is no server, as said above")
	}
	// Another test process may have the database by now, but not with this key.
	conn := dial(t, url)
	if kept, err := redis.Bool(conn.Do("EXISTS", "k")); err != nil || kept {
		t.Errorf("the key is still there after its test, error %v", err)
	}
}

// A private server keeps over a kill what it is told to keep.
func TestPrivateRedis(t *testing.T) {
	own := servers.PrivateRedis(t, "appendonly", "yes", "appendfsync", "always")
	own.Do("SET", "k", "v")
	own.Kill()
	if conn, err := redis.DialURL(own.URL); err == nil {
		conn.Close()
		t.Error("the server answers after it was killed")
	}
	own.Start()
	if v, err := redis.String(own.Do("GET", "k"), nil); err != nil || v != "v" {
		t.Errorf("%q, error %v", v, err)
	}
}

// A started program is found by the URL that it prints, even in two halves,
// and what ends badly is told with its output.
func TestStart(t *testing.T) {
	p, err := servers.Start(exec.Command("sh", "-c", `trap 'exit 0' TERM; printf 'serving on http://127.0.0.'; sleep 0.1; echo '1:8383/mcp now'; while :; do sleep 0.1; done`))
	if err != nil {
		t.Fatal(err)
	}
	if want := "http://127.0.0.1:8383/mcp"; p.URL != want {
		t.Errorf("URL %q, want %q", p.URL, want)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}

	_, err = servers.Start(exec.Command("sh", "-c", "echo no port left >&2; exit 3"))
	if want := "[sh -c echo no port left >&2; exit 3] ended before it printed a URL: exit status 3\nno port left\n"; err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}

	p, err = servers.Start(exec.Command("sh", "-c", `trap 'echo DATA RACE; exit 0' TERM; echo http://127.0.0.1:1/; while :; do sleep 0.1; done`))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err == nil || !strings.HasPrefix(err.Error(), "the race detector reports:") {
		t.Errorf("a report of the race detector went unseen: %v", err)
	}
}
