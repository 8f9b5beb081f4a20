package servers_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

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
