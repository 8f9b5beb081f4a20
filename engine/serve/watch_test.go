package serve_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/serve"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// audience are the watches of a program, and the sessions that it heard to be
// over.
type audience struct {
	mu      sync.Mutex
	watches []*watch
	begun   int
	eager   bool // the tools change the moment they are watched
	late    bool // the tools change the moment they are watched no more
	over    []string
}

type watch struct {
	caller  engine.Caller
	changed func()
}

func (a *audience) Watch(c *engine.Caller, changed func()) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := &watch{*c, changed}
	a.watches = append(a.watches, w)
	a.begun++
	if a.eager {
		changed()
	}
	return sync.OnceFunc(func() {
		if a.late {
			changed()
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watches = slices.DeleteFunc(a.watches, func(o *watch) bool { return o == w })
	})
}

func (a *audience) Ended(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = append(a.over, session)
}

// callers tells who watches, oldest first.
func (a *audience) callers() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var who []string
	for _, w := range a.watches {
		who = append(who, fmt.Sprintf("%s %s %s", anonymous(w.caller.Session), w.caller.Client, value.AppendJSON(nil, w.caller.Claims)))
	}
	return strings.Join(who, ", ")
}

// change says that the tools of a session's client changed; "": of everybody
// without a session.
func (a *audience) change(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watches {
		if w.caller.Session == session {
			w.changed()
		}
	}
}

// changeAll says it to everybody.
func (a *audience) changeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.watches {
		w.changed()
	}
}

// wait waits until something holds.
func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came: " + what)
		}
	}
}

func (a *audience) waitCallers(t *testing.T, want string) {
	t.Helper()
	wait(t, want+" watching", func() bool { return a.callers() == want })
}

func (a *audience) waitEnded(t *testing.T, sessions ...string) {
	t.Helper()
	wait(t, fmt.Sprint(sessions, " ended"), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.Equal(a.over, sessions)
	})
}

// silent demands that no event has come. What was sent before is there by
// then, if after was sent later on the same stream.
func (e *events) silent(t *testing.T, who string) {
	t.Helper()
	select {
	case s, ok := <-e.c:
		if ok {
			t.Errorf("%s hears %s", who, s)
		}
	default:
	}
}

func (e *events) wants(t *testing.T, event string) {
	t.Helper()
	if got := e.next(t); got != event {
		t.Errorf("event %s, not %s", got, event)
	}
}

const (
	me          = `{"sub":"me"}`
	listensHead = `{"jsonrpc":"2.0","method":"notifications/`
)

// listensTo is a subscriptions/listen.
func listensTo(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{` + filter + `},` + modernMeta + `}}`
}

func acknowledged(id string) string {
	return listensHead + `subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `},"notifications":{"toolsListChanged":true}}}`
}

func changedFor(id string) string {
	return listensHead + `tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

// TestWatchSessions: a session hears of its own tools while its stream is
// open, and of nobody else's.
func TestWatchSessions(t *testing.T) {
	p := newProgram("echo")
	r := start(t, p, serve.Options{})
	one, two := r.open(t, "2025-11-25"), r.open(t, "2025-06-18")
	first, second := listen(t, "GET", r.url, "", one...), listen(t, "GET", r.url, "", two...)
	p.waitCallers(t, `S tester `+me+`, S tester `+me)
	p.change(one[1])
	first.wants(t, changed)
	p.change(two[1])
	second.wants(t, changed)
	first.silent(t, "the first session")
	second.silent(t, "the second session")

	// A stream that another one replaces, and one that its client closes, watch
	// no more.
	again := listen(t, "GET", r.url, "", one...)
	first.wants(t, "end")
	p.waitCallers(t, `S tester `+me+`, S tester `+me)
	p.change(one[1])
	again.wants(t, changed)
	second.cancel()
	p.waitCallers(t, `S tester `+me)
	again.silent(t, "the first session")
	want(t, "DELETE", send(t, "DELETE", r.url, "", one...), "200 ")
	again.wants(t, "end")
	p.waitCallers(t, "")
	if p.begun != 3 {
		t.Errorf("%d watches were begun", p.begun)
	}
}

// TestWatchOwnCall: who changes its tools by a call is told as well, and a
// burst of changes ends in a notification after the last one.
func TestWatchOwnCall(t *testing.T) {
	p := newProgram("echo")
	p.tools["move"] = func(_ context.Context, c *engine.Caller, _ []byte) *presenters.Response {
		for range 1000 {
			p.change(c.Session)
		}
		return says("moved")
	}
	r := start(t, p, serve.Options{})
	s := r.open(t, "2025-11-25")
	get := listen(t, "GET", r.url, "", s...)
	p.waitCallers(t, `S tester `+me)
	want(t, "call", send(t, "POST", r.url, call("1", "move", `{}`, false), s...), `200 {"jsonrpc":"2.0","id":1,"result":{"content":[`+text("moved")+`]}}`)
	get.wants(t, changed)
}

// TestWatchMissed: what changed while a session had no stream is told when it
// opens one, and only then.
func TestWatchMissed(t *testing.T) {
	p := newProgram("echo")
	var mu sync.Mutex
	list, other, asked := p.list, &engine.List{}, 0
	p.lists = func(*engine.Caller) (*engine.List, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return list, nil
	}
	waitAsked := func(n int) {
		t.Helper()
		wait(t, fmt.Sprint(n, " lists"), func() bool { mu.Lock(); defer mu.Unlock(); return asked == n })
	}
	move := func(l *engine.List) {
		mu.Lock()
		defer mu.Unlock()
		list = l
	}
	r := start(t, p, serve.Options{})
	s, fresh := r.open(t, "2025-11-25"), r.open(t, "2025-11-25")
	before := p.list
	const ask = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	send(t, "POST", r.url, ask, s...)
	move(other)
	get := listen(t, "GET", r.url, "", s...)
	get.wants(t, changed)
	// It has not listed since: the next stream says it again.
	get.cancel()
	get = listen(t, "GET", r.url, "", s...)
	get.wants(t, changed)
	send(t, "POST", r.url, ask, s...)
	get.cancel()
	p.waitCallers(t, "")
	get = listen(t, "GET", r.url, "", s...)
	waitAsked(5) // twice by the client, three times for a stream
	move(before)
	// Who never listed has missed nothing.
	quiet := listen(t, "GET", r.url, "", fresh...)
	p.waitCallers(t, "S tester "+me+", S tester "+me)
	for range 2 {
		p.changeAll()
		quiet.wants(t, changed)
		get.wants(t, changed)
	}
	get.silent(t, "a session that was up to date")
	quiet.silent(t, "a session that never listed")
	waitAsked(5)
}

// TestWatchListen: a subscription watches as its request's caller, who has no
// session, and only if it asked for tools.
func TestWatchListen(t *testing.T) {
	p := newProgram("echo")
	r := start(t, p, serve.Options{})
	h := modernHeaders("subscriptions/listen", "")
	one := listen(t, "POST", r.url, listensTo(`"l"`, `"toolsListChanged":true`), h...)
	one.wants(t, acknowledged(`"l"`))
	two := listen(t, "POST", r.url, listensTo(`12345678901234567`, `"toolsListChanged":true`), append(h, "X-Forwarded-For", "192.0.2.1")...)
	two.next(t)
	p.waitCallers(t, ` moderner `+me+`,  moderner {}`)
	p.mu.Lock()
	p.watches[0].changed()
	p.mu.Unlock()
	one.wants(t, changedFor(`"l"`))
	p.mu.Lock()
	p.watches[1].changed()
	p.mu.Unlock()
	two.wants(t, changedFor(`12345678901234567`))
	one.silent(t, "the first subscription")

	none := listen(t, "POST", r.url, listensTo(`3`, `"promptsListChanged":true`), h...)
	none.next(t)
	refused := send(t, "POST", r.url, listensTo(`4`, `"toolsListChanged":true`), modernHeaders("tools/list", "")...)
	if refused.status != 400 {
		t.Errorf("a header that does not fit: %s", refused)
	}
	one.cancel()
	p.waitCallers(t, ` moderner {}`)
	two.cancel()
	p.waitCallers(t, "")
	if p.begun != 2 {
		t.Errorf("%d watches were begun", p.begun)
	}
}

// TestWatchAcknowledgedFirst: what changes at once comes behind the
// acknowledgement.
func TestWatchAcknowledgedFirst(t *testing.T) {
	p := newProgram("echo")
	p.eager = true
	r := start(t, p, serve.Options{})
	pipe := startStdio(t, r.Server)
	for i := range 50 {
		id := fmt.Sprint(i)
		sub := listen(t, "POST", r.url, listensTo(id, `"toolsListChanged":true`), modernHeaders("subscriptions/listen", "")...)
		sub.wants(t, acknowledged(id))
		sub.wants(t, changedFor(id))
		sub.cancel()
		pipe.wants(t, listensTo(id, `"toolsListChanged":true`), acknowledged(id))
		if got := pipe.next(t); got != changedFor(id) {
			t.Errorf("changed: %s", got)
		}
	}
}

// TestWatchReload: streams go on with the program that answers now.
func TestWatchReload(t *testing.T) {
	src, before, after := &swap{}, newProgram("a"), newProgram("z")
	after.spec.Local = value.Of("sub", "you")
	src.Store(before)
	r := startOn(t, src, serve.Options{}, "127.0.0.1:0")
	s := r.open(t, "2025-11-25")
	get := listen(t, "GET", r.url, "", s...)
	sub := listen(t, "POST", r.url, listensTo(`1`, `"toolsListChanged":true`), modernHeaders("subscriptions/listen", "")...)
	sub.wants(t, acknowledged(`1`))
	wait(t, "two watches", func() bool { return strings.Count(before.callers(), me) == 2 })
	src.Store(after)
	r.ToolsChanged()
	get.wants(t, changed)
	sub.wants(t, changedFor(`1`))
	before.waitCallers(t, "")
	wait(t, "two watches", func() bool { return strings.Count(after.callers(), `{"sub":"you"}`) == 2 })
	after.changeAll()
	get.wants(t, changed)
	sub.wants(t, changedFor(`1`))
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	after.waitCallers(t, "")
}

// TestWatchStdio: both eras on the same pipes.
func TestWatchStdio(t *testing.T) {
	p := newProgram("echo")
	s := newStdio(t, p, serve.Options{})
	pipe := startStdio(t, s)
	pipe.send(t, initialize("2025-11-25"))
	pipe.next(t)
	p.waitCallers(t, `stdio-S tester `+me)
	p.changeAll()
	if got := pipe.next(t); got != changed {
		t.Errorf("changed: %s", got)
	}
	pipe.wants(t, listensTo(`"l"`, `"toolsListChanged":true`), acknowledged(`"l"`))
	p.waitCallers(t, `stdio-S tester `+me+`, stdio-S moderner `+me)
	pipe.wants(t, listensTo(`"m"`, `"promptsListChanged":true`),
		listensHead+`subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"m"},"notifications":{}}}`)
	pipe.next(t) // nothing to listen to: it ends at once
	p.mu.Lock()
	p.watches[1].changed()
	p.mu.Unlock()
	if got := pipe.next(t); got != changedFor(`"l"`) {
		t.Errorf("changed: %s", got)
	}
	pipe.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}`)
	p.waitCallers(t, `stdio-S tester `+me)
	// A client that says hello again under another name.
	pipe.send(t, strings.Replace(initialize("2025-11-25"), "tester", "other", 1))
	pipe.next(t)
	p.waitCallers(t, `stdio-S other `+me)
	session := p.watches[0].caller.Session
	p.changeAll()
	pipe.in.Close()
	if got := pipe.next(t); got != changed {
		t.Errorf("changed: %s", got)
	}
	if err := pipe.end(t); err != nil {
		t.Error(err)
	}
	p.waitCallers(t, "")
	p.waitEnded(t, session)
}

// TestWatchStdioLast: what changed by the end of the input, or of a
// subscription, is told before the end.
func TestWatchStdioLast(t *testing.T) {
	for range 20 {
		p := newProgram("echo")
		p.late = true
		pipe := startStdio(t, newStdio(t, p, serve.Options{}))
		pipe.send(t, initialize("2025-11-25"))
		pipe.next(t)
		p.waitCallers(t, `stdio-S tester `+me)
		pipe.wants(t, listensTo(`"l"`, `"toolsListChanged":true`), acknowledged(`"l"`))
		pipe.in.Close()
		if got := pipe.next(t); got != changedFor(`"l"`) {
			t.Fatalf("before the end of the subscription: %s", got)
		}
		if got := pipe.next(t); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"l","result":`) {
			t.Fatalf("end of the subscription: %s", got)
		}
		if got := pipe.next(t); got != changed {
			t.Fatalf("before the end: %s", got)
		}
		if err := pipe.end(t); err != nil {
			t.Error(err)
		}
	}
}

// TestWatchStdioSession: two clients on stdio have two sessions, each of them
// one in both eras.
func TestWatchStdioSession(t *testing.T) {
	p := newProgram("session")
	p.tools["session"] = func(_ context.Context, c *engine.Caller, _ []byte) *presenters.Response { return says(c.Session) }
	seen := map[string]bool{}
	for range 2 {
		pipe := startStdio(t, newStdio(t, p, serve.Options{}))
		pipe.send(t, call("1", "session", `{}`, false))
		first := pipe.next(t)
		session := first[strings.Index(first, "stdio-"):]
		session = session[:strings.Index(session, `"`)]
		pipe.wants(t, call("2", "session", `{}`, true), `{"jsonrpc":"2.0","id":2,"result":{`+modernHead+`"content":[`+text(session)+`]}}`)
		seen[session] = true
		if len(session) != len("stdio-")+26 {
			t.Errorf("session %q", session)
		}
	}
	if len(seen) != 2 {
		t.Errorf("sessions %v", seen)
	}
}

// TestListFails: the cause is for the log, the incident for both.
func TestListFails(t *testing.T) {
	p := newProgram("echo")
	p.lists = func(*engine.Caller) (*engine.List, error) { return nil, errors.New("10.0.0.7 does not answer") }
	log, out := logger()
	r := start(t, p, serve.Options{Log: log})
	pipe := startStdio(t, newStdio(t, p, serve.Options{Log: log}))
	legacy, modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`
	answers := []string{
		send(t, "POST", r.url, legacy, r.open(t, "2025-11-25")...).String(),
		send(t, "POST", r.url, modern, modernHeaders("tools/list", "")...).String(),
	}
	for _, q := range []string{legacy, modern} {
		pipe.send(t, q)
		answers = append(answers, "200 "+pipe.next(t))
	}
	const head, tail = `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The tools cannot be listed right now: try again later. Incident `, `."}}`
	for i, a := range answers {
		if !strings.HasPrefix(a, head) || !strings.HasSuffix(a, tail) || len(a) != len(head)+12+len(tail) {
			t.Errorf("answer %d: %s", i, a)
		}
	}
	if n := strings.Count(out.String(), `level=ERROR msg="listing the tools" incident=12 cause="10.0.0.7 does not answer"`); n != 4 {
		t.Errorf("%d lines in the log:\n%s", n, out)
	}
}

// TestEnded: a program hears of each session that is over, whatever ended it.
func TestEnded(t *testing.T) {
	p := newProgram("echo")
	r := start(t, p, serve.Options{MaxSessions: 2})
	deleted := r.open(t, "2025-11-25")
	send(t, "DELETE", r.url, "", deleted...)
	p.waitEnded(t, deleted[1])
	pushed := r.open(t, "2025-11-25")
	r.open(t, "2025-11-25")
	r.open(t, "2025-11-25")
	p.waitEnded(t, deleted[1], pushed[1])
	if err := r.stop(); err != nil {
		t.Error(err)
	}

	p = newProgram("echo")
	r = start(t, p, serve.Options{SessionTTL: 50 * time.Millisecond})
	expired := r.open(t, "2025-11-25")
	p.waitEnded(t, expired[1])

	// A call that outlives its session may leave something behind.
	p = newProgram("echo")
	p.tools["late"] = func(ctx context.Context, c *engine.Caller, _ []byte) *presenters.Response {
		send(t, "DELETE", r.url, "", "Mcp-Session-Id", c.Session)
		return says("late")
	}
	r = start(t, p, serve.Options{})
	late := r.open(t, "2025-11-25")
	want(t, "late", send(t, "POST", r.url, call("1", "late", `{}`, false), late...), `200 {"jsonrpc":"2.0","id":1,"result":{"content":[`+text("late")+`]}}`)
	p.waitEnded(t, late[1], late[1])
}
