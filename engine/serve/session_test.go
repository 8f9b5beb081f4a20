package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/serve"
)

// events is an open stream; each event is what stands behind `data: `.
type events struct {
	status int
	c      chan string // closed when the stream ends
	cancel context.CancelFunc
}

func listen(t *testing.T, method, url, body string, headers ...string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	e := &events{status: resp.StatusCode, c: make(chan string, 16), cancel: cancel}
	go func() {
		defer close(e.c)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				e.c <- data
			}
		}
	}()
	return e
}

// next gives the next event, "end" at the end of the stream.
func (e *events) next(t *testing.T) string {
	t.Helper()
	select {
	case s, ok := <-e.c:
		if !ok {
			return "end"
		}
		return s
	case <-time.After(5 * time.Second):
		t.Fatal("no event came")
		return ""
	}
}

const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func TestSessionLifecycle(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	s, other := r.open(t, "2025-11-25"), r.open(t, "2025-11-25")
	get := listen(t, "GET", r.url, "", s...)
	r.ToolsChanged()
	if got := get.next(t); got != changed {
		t.Errorf("event %s", got)
	}
	// The last GET of a session has the stream.
	again := listen(t, "GET", r.url, "", s...)
	if got := get.next(t); got != "end" {
		t.Errorf("the first stream goes on: %s", got)
	}
	r.ToolsChanged()
	if got := again.next(t); got != changed {
		t.Errorf("event %s", got)
	}
	want(t, "DELETE", send(t, "DELETE", r.url, "", s...), "200 ")
	if got := again.next(t); got != "end" {
		t.Errorf("the stream outlives its session: %s", got)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		want(t, method, send(t, method, r.url, call("1", "echo", `{}`, false), s...), `404 There is no such session (any more): send initialize again.`)
	}
	want(t, "other", send(t, "POST", r.url, call("1", "echo", `{}`, false), other...), `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}]}}`)
}

func TestSessionsExpire(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{SessionTTL: 300 * time.Millisecond})
	idle, used, open := r.open(t, "2025-11-25"), r.open(t, "2025-11-25"), r.open(t, "2025-11-25")
	get := listen(t, "GET", r.url, "", open...)
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		if got := send(t, "POST", r.url, call("1", "echo", `{}`, false), used...); got.status != 200 {
			t.Fatalf("a session in use: %s", got)
		}
	}
	want(t, "idle", send(t, "POST", r.url, call("1", "echo", `{}`, false), idle...), `404 There is no such session (any more): send initialize again.`)
	r.ToolsChanged()
	if got := get.next(t); got != changed {
		t.Errorf("a session with an open stream: %s", got)
	}
	if got := send(t, "POST", r.url, call("1", "echo", `{}`, false), open...); got.status != 200 {
		t.Errorf("a session with an open stream: %s", got)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{MaxSessions: 2})
	a, b := r.open(t, "2025-11-25"), r.open(t, "2025-11-25")
	send(t, "POST", r.url, call("1", "echo", `{}`, false), a...)
	c := r.open(t, "2025-11-25")
	for name, x := range map[string]struct {
		s    []string
		want int
	}{"used last": {a, 200}, "unused": {b, 404}, "new": {c, 200}} {
		if got := send(t, "POST", r.url, call("1", "echo", `{}`, false), x.s...); got.status != x.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestRefusedInitializeMakesNoSession(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	got := send(t, "POST", r.url, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":[]}`)
	if got.status != 200 || !strings.Contains(got.body, "-32600") {
		t.Errorf("%s", got)
	}
	id := got.header.Get("Mcp-Session-Id")
	want(t, "its id", send(t, "POST", r.url, call("1", "echo", `{}`, false), "Mcp-Session-Id", id), `404 There is no such session (any more): send initialize again.`)
}

func TestCancel(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	s, other := r.open(t, "2025-11-25"), r.open(t, "2025-11-25")
	cancel := func(headers []string, id string) reply {
		return send(t, "POST", r.url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`, headers...)
	}
	got := make(chan reply, 1)
	go func() {
		got <- send(t, "POST", r.url, call(`"c"`, "block", `{}`, false), s...)
	}()
	waitStarted(t, 1)
	want(t, "another session's", cancel(other, `"c"`), "202 ")
	want(t, "another id", cancel(s, `"d"`), "202 ")
	want(t, "no id", cancel(s, `null`), "202 ")
	time.Sleep(20 * time.Millisecond)
	waitStarted(t, 1)
	want(t, "cancel", cancel(s, `"c"`), "202 ")
	want(t, "cancelled", <-got, "202 ")
	waitStarted(t, 0)

	// A modern request is cancelled by closing it, and by nobody else.
	ctx, drop := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := try(ctx, "POST", r.url, call(`1`, "block", `{}`, true), modernHeaders("tools/call", "block")...)
		gone <- err
	}()
	waitStarted(t, 1)
	want(t, "modern", send(t, "POST", r.url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,`+modernMeta+`}}`,
		modernHeaders("notifications/cancelled", "")...), "202 ")
	time.Sleep(20 * time.Millisecond)
	waitStarted(t, 1)
	drop()
	if err := <-gone; err == nil {
		t.Error("the request was answered")
	}
	waitStarted(t, 0)
}

func TestListen(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	body := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},` + modernMeta + `}}`
	one := listen(t, "POST", r.url, body, modernHeaders("subscriptions/listen", "")...)
	if got := one.next(t); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true}}}` {
		t.Errorf("acknowledged: %s", got)
	}
	r.ToolsChanged()
	if got := one.next(t); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}` {
		t.Errorf("changed: %s", got)
	}
}

// TestShutdown: streams end at once, calls in flight are answered, nobody new
// is let in.
func TestShutdown(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{Grace: 5 * time.Second})
	s := r.open(t, "2025-11-25")
	get := listen(t, "GET", r.url, "", s...)
	sub := listen(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`,
		modernHeaders("subscriptions/listen", "")...)
	sub.next(t)
	got := make(chan reply, 1)
	go func() { got <- send(t, "POST", r.url, call(`1`, "wait", `{}`, false), s...) }()
	waitStarted(t, 1)
	begin := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("it took %s", d)
	}
	if e := get.next(t); e != "end" {
		t.Errorf("the GET stream: %s", e)
	}
	if e := sub.next(t); e != "end" {
		t.Errorf("the subscription: %s", e)
	}
	want(t, "call in flight", <-got, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[`+text("waited")+`]}}`)
	if _, err := try(context.Background(), "POST", r.url, call(`2`, "echo", `{}`, false), s...); err == nil {
		t.Error("a stopped server answers")
	}
}

// TestShutdownGrace: a call that outlives its grace is cancelled and still
// answered.
func TestShutdownGrace(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{Grace: 50 * time.Millisecond})
	s := r.open(t, "2025-11-25")
	got := make(chan reply, 1)
	go func() { got <- send(t, "POST", r.url, call(`1`, "block", `{}`, false), s...) }()
	waitStarted(t, 1)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	want(t, "call in flight", <-got, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[`+text("TIMEOUT!")+`],"isError":true}}`)
}

func TestManyClients(t *testing.T) {
	r := start(t, newProgram("a", "b"), serve.Options{})
	var clients sync.WaitGroup
	for i := range 50 {
		clients.Go(func() {
			s, modern := r.open(t, "2025-11-25"), i%2 == 0
			for n := range 10 {
				args := fmt.Sprintf(`{"i":%d,"n":%d}`, i, n)
				h, head := s, ""
				if modern {
					h, head = modernHeaders("tools/call", "echo"), modernHead
				}
				want(t, "call", send(t, "POST", r.url, call(fmt.Sprint(n), "echo", args, modern), h...),
					fmt.Sprintf(`200 {"jsonrpc":"2.0","id":%d,"result":{%s"content":[%s]}}`, n, head, text(args)))
			}
			if i%3 == 0 {
				r.ToolsChanged()
			}
			want(t, "DELETE", send(t, "DELETE", r.url, "", s...), "200 ")
		})
	}
	clients.Wait()
}
