package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// The benchmark starts its own program again for the floor and for the load.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && children[os.Args[1]] != nil {
		main()
		return
	}
	servers.Main(m)
}

// TestMeasure makes a whole run in small, so that the benchmark is known to
// work when somebody needs it. Every number in its tables must be one.
func TestMeasure(t *testing.T) {
	server := servers.Server(t)
	small := settings{starts: 1, tools: []int{5, 30}, callers: []int{1, 2}, rounds: 1, period: 150 * time.Millisecond}
	text, err := measure(context.Background(), small, server)
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?\b`)
	got := number.ReplaceAllString(text[strings.Index(text, "###"):], "N")
	want := `### Start-up and memory

From exec to the first answer of ` + "`tools/list`" + ` over HTTP, files in the page cache, N starts a row; VmRSS after that answer.

| | best ms | median ms | RSS MiB |
| --- | ---: | ---: | ---: |
| ` + "`fusion-serve version`" + ` (no spec) | N | N | |
| N tools, SQLite in memory | N | N | N |
| N tools, PostgreSQL | N | N | N |
| N tools, SQLite in memory | N | N | N |
| N tools, PostgreSQL | N | N | N |

### Get by id over HTTP, PostgreSQL

Closed loop over keep-alive connections, one each caller, load generator in its own process; best of N rounds of 150ms, the variants taking turns. CPU is that of the server alone. The floor is ` + "`tests/bench/floor.go`" + `, net/http and pgx.

| callers | | calls/s | of the floor | p50 µs | p99 µs | server CPU µs/call |
| ---: | --- | ---: | ---: | ---: | ---: | ---: |
| N | floor | N | N | N | N | N |
| N | N-N-N | N | N | N | N | N |
| N | N-N-N | N | N | N | N | N |
| N | N-N-N | N | N | N | N | N |
| N | floor | N | N | N | N | N |
| N | N-N-N | N | N | N | N | N |
| N | N-N-N | N | N | N | N | N |
| N | N-N-N | N | N | N | N | N |
`
	if got != want {
		t.Errorf("report:\n%s\nwant:\n%s", got, want)
	}
}

func TestBetween(t *testing.T) {
	page := "# Speed\n\n" + beginMark + "old\n" + endMark + "\nWhy.\n"
	got, err := between(page, "new")
	if want := "# Speed\n\n" + beginMark + "\nnew\n" + endMark + "\nWhy.\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := between("# Speed\n", "new"); err == nil || err.Error() != `it lacks the lines "<!-- bench: begin -->" and "<!-- bench: end -->"` {
		t.Errorf("a page without marks: %v", err)
	}
}

// The load generator reads answers by itself: both framings, and only 200.
func TestReadAnswer(t *testing.T) {
	for _, c := range []struct{ answer, body, err string }{
		{"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", ""},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", ""},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "no", "HTTP/1.1 404 Not Found: no"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "hello\x00\x00\x00\x00", "unexpected EOF"},
	} {
		body, err := readAnswer(bufio.NewReader(strings.NewReader(c.answer)), nil)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if string(body) != c.body || said != c.err {
			t.Errorf("%q: %q, error %q; want %q, error %q", c.answer, body, said, c.body, c.err)
		}
	}
}

// Load goes to the loopback only.
func TestLoadElsewhere(t *testing.T) {
	err := load(strings.NewReader(`{"Address":"192.0.2.1:80"}`), os.Stdout)
	if want := fmt.Sprintf("%q is no loopback address", "192.0.2.1:80"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
