package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// slow is a program whose calls take longer than any limit.
type slow struct{ took time.Duration }

func (slow) Server() *graph.Server { return &graph.Server{Name: "slow"} }
func (slow) List(context.Context, *engine.Caller) (*engine.List, error) {
	return &engine.List{}, nil
}
func (slow) Watch(*engine.Caller, func()) func() { return nil }
func (slow) Ended(string)                        {}

func (p slow) Call(ctx context.Context, _ *engine.Caller, _ string, _ []byte) (*presenters.Response, error) {
	select {
	case <-time.After(p.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &presenters.Response{Blocks: []presenters.Content{{Type: "text", Text: []byte("done")}}}, nil
}

func TestLimits(t *testing.T) {
	s, err := New(Fixed(slow{600 * time.Millisecond}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.limits = limits{header: 100 * time.Millisecond, read: 200 * time.Millisecond, write: 300 * time.Millisecond, idle: time.Minute}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	// A call may take longer than reading and writing may, also the second
	// one on the same connection.
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := bufio.NewReader(c)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for range 2 {
		fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(b), `"text":"done"`) {
			t.Errorf("%s %v", b, err)
		}
	}

	// A client that sends slowly is shown the door.
	for what, head := range map[string]string{
		"headers": "POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
		"body":    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, head)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("slow %s: the connection stays: %v", what, err)
		}
	}
}

func TestShorten(t *testing.T) {
	for in, out := range map[string]string{
		"short":                         "short",
		strings.Repeat("x", 129):        strings.Repeat("x", 128) + "…",
		strings.Repeat("x", 127) + "éx": strings.Repeat("x", 127) + "…",
		strings.Repeat("\x80", 200):     "…",
	} {
		if got := shorten(in); got != out {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// TestStreamSaysThatItIsThere: between events an open stream sends comments.
func TestStreamSaysThatItIsThere(t *testing.T) {
	s, err := New(Fixed(slow{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.limits.alive = 10 * time.Millisecond
	web := httptest.NewServer(s)
	defer web.Close()
	defer s.stopStreams()
	post := func(method, body string, session string) *http.Response {
		q, _ := http.NewRequest(method, web.URL, strings.NewReader(body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Mcp-Session-Id", session)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	made := post("POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, "")
	made.Body.Close()
	get := post("GET", "", made.Header.Get("Mcp-Session-Id"))
	defer get.Body.Close()
	r := bufio.NewReader(get.Body)
	for _, line := range []string{": \n", "\n", ": \n", "\n"} {
		if got, err := r.ReadString('\n'); got != line {
			t.Fatalf("%q %v, not %q", got, err, line)
		}
	}
	s.ToolsChanged()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			break
		}
	}
}

// TestForgotten: mcp-go holds nothing of sessions that are gone.
func TestForgotten(t *testing.T) {
	s, err := New(Fixed(slow{}), Options{MaxSessions: 3})
	if err != nil {
		t.Fatal(err)
	}
	initialize := func(body string) string {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Header().Get("Mcp-Session-Id")
	}
	known := func(id string) bool {
		return s.core.SendNotificationToSpecificClient(id, "notifications/x", nil) == nil
	}
	var ids []string
	for range 5 {
		ids = append(ids, initialize(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
	}
	for i, id := range ids {
		if known(id) != (i >= 2) {
			t.Errorf("session %d: mcp-go knows it: %v", i, known(id))
		}
	}
	if id := initialize(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":[]}`); id == "" || known(id) {
		t.Errorf("a refused initialize leaves the session %q", id)
	}
	s.sessions.now = func() time.Time { return time.Now().Add(time.Hour) }
	s.forget(s.sessions.sweep())
	for i, id := range ids {
		if known(id) {
			t.Errorf("session %d has expired, and mcp-go knows it", i)
		}
	}
	if n := s.sessions.order.Len(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// TestLostLines: a log that cannot keep up loses lines and says how many.
func TestLostLines(t *testing.T) {
	log, out := stuckLog()
	l := newCallLog(log, nil)
	l.add(entry{tool: "first", outcome: "ok"})
	<-out.writing
	for range maxQueue + 3 {
		l.add(entry{tool: "x", outcome: "ok"})
	}
	close(out.free)
	l.flush()
	if got := strings.Count(out.b.String(), "msg=call "); got != maxQueue+1 {
		t.Errorf("%d lines", got)
	}
	if !strings.Contains(out.b.String(), `level=WARN msg="call log: the log is too slow" lost=3`) {
		t.Errorf("nothing is said of the lost lines")
	}
}

// TestLinesTogether: the lines of a busy moment are logged in one go.
func TestLinesTogether(t *testing.T) {
	log, out := stuckLog()
	var lines []int // in each go
	l := newCallLog(log, func(write func()) {
		before := strings.Count(out.b.String(), "\n")
		write()
		lines = append(lines, strings.Count(out.b.String(), "\n")-before)
	})
	l.add(entry{tool: "first", outcome: "ok"})
	<-out.writing
	for range 10 {
		l.add(entry{tool: "x", outcome: "ok"})
	}
	close(out.free)
	l.flush()
	if got := fmt.Sprint(lines); got != "[1 10]" {
		t.Errorf("lines at a time: %s", got)
	}
}
