package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// TestGateUnusable holds that nobody pays twice when a payment was made and its
// answer cannot be shown or judged, and that what a rule declines may be tried
// again.
func TestGateUnusable(t *testing.T) {
	var paid atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		paid.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"amount": "much"}`))
	}))
	defer service.Close()
	for _, c := range []struct{ on, more, code, then string }{
		{`"paid"`, `returns: "Number"`, "INTERNAL_ERROR", "CONFLICT"},
		{`"paid"`, `returns: "Small"`, "TOO_LARGE", "CONFLICT"},
		{`[{when: "result.amount > 5", to: "paid"}]`, "", "INTERNAL_ERROR", "CONFLICT"},
		{`"paid"`, `errors: [{when: "result.amount > 5", code: "ODD", message: "Odd."}]`, "INTERNAL_ERROR", "CONFLICT"},
		{`"paid"`, `errors: [{when: "result.amount == 'much'", code: "DECLINED", message: "No."}]`, "DECLINED", "DECLINED"},
	} {
		paid.Store(0)
		p, log := program(t, `
apis: bank: {baseURL: "`+service.URL+`", timeout: "30s"}
fsms: pay: {initial: "open", states: {open: on: PAY: `+c.on+`, paid: {}}, key: "{{ args.order }}"}
presenters: Number: schema: amount: int
presenters: Small: {schema: amount: string, limit: bytes: 10}
tools: "pay.pay": {
	kind: "mutation", description: "d", state: {in: ["open"], send: "PAY"}, params: order: string
	http: {post: "/"}
	`+c.more+`
}
`, "")
		for i, code := range []string{c.code, c.then} {
			if r := callAs(t, p, as("s"), "pay.pay", `{"order": "1"}`); r.Code != code {
				t.Errorf("%s %s: call %d ended in %q: %s\n%s", c.on, c.more, i, r.Code, text(r), log)
			}
		}
		want := int64(1)
		if c.then != "CONFLICT" {
			want = 2
		}
		if n := paid.Load(); n != want {
			t.Errorf("%s %s: %d payments", c.on, c.more, n)
		}
	}
}

// TestGateOnceElsewhere holds that a repeated call gets its first answer where it
// takes its key and its states are in the database in which the answer is kept: it needs one
// connection at a time.
func TestGateOnceElsewhere(t *testing.T) {
	b := newBank(t)
	spec := `
databases: main: {url: "sqlite::memory:", init: ["schema.sql"], pool: 1}
apis: bank: {baseURL: "` + b.URL + `", timeout: "30s"}
fsms: pay: {initial: "open", states: {open: on: PAY: "paid", paid: {}}, key: "{{ args.order }}", store: database: "main"}
tools: "pay.pay": {
	kind: "mutation", description: "d", state: {in: ["open"], send: "PAY"}
	params: {order: string, request: string}
	idempotency: {key: "{{ args.request }}", ttl: "1h"}
	steps: [{sql: query: "INSERT INTO payments VALUES (@order)"}, {http: post: "/ok"}]
}
`
	onBoth(t, spec, "CREATE TABLE payments (o text);", func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		b.paid.Store(0)
		for i, c := range []struct{ request, code string }{{"r1", ""}, {"r1", ""}, {"r2", "FORBIDDEN"}} {
			if r := callAs(t, p, as("s"), "pay.pay", `{"order": "1", "request": "`+c.request+`"}`); r.Code != c.code {
				t.Errorf("call %d ended in %q: %s\n%s", i, r.Code, text(r), log)
			}
		}
		if r := callAs(t, p, as("s"), "pay.pay", `{"order": "2", "request": "r1"}`); r.Code != "CONFLICT" || !strings.Contains(text(r), "other arguments") {
			t.Errorf("the key of another order: %s", text(r))
		}
		if r := callAs(t, p, as("s"), "pay.pay", `{"order": "2", "request": "r3"}`); r.Code != "" {
			t.Errorf("the key of an order is not free after a refusal: %s", text(r))
		}
		if n := b.paid.Load(); n != 2 {
			t.Errorf("%d payments", n)
		}
	})
}

// TestGateOnceFull holds that a repeated call which finds no room is told so, and
// not of a state that its first answer does not depend on.
func TestGateOnceFull(t *testing.T) {
	b := newBank(t)
	p, log := program(t, `
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: bank: {baseURL: "`+b.URL+`", timeout: "60s"}
fsms: pay: {initial: "open", states: {open: on: PAY: "paid", paid: {}}, key: "{{ args.order }}", store: "memory"}
tools: "pay.pay": {
	kind: "mutation", description: "d", state: {in: ["open"], send: "PAY"}
	params: {order: string, how: string | *"ok"}
	concurrency: {max: 1, queue: 0}
	idempotency: {key: "{{ args.order }}", ttl: "1h"}
	steps: [{sql: query: "INSERT INTO payments VALUES (@order)"}, {http: post: "/{{ args.how }}"}]
}
`, "CREATE TABLE payments (o text);")
	step := func(args, code string) {
		t.Helper()
		if r := callAs(t, p, as("s"), "pay.pay", args); r.Code != code {
			t.Errorf("%s ended in %q: %s%s", args, r.Code, text(r), log)
		}
	}
	step(`{"order": "1"}`, "")
	ended := make(chan *presenters.Response)
	go func() { ended <- callAs(t, p, as("s"), "pay.pay", `{"order": "2", "how": "wait"}`) }()
	<-b.in
	step(`{"order": "1"}`, "SERVER_BUSY")
	b.hold <- struct{}{}
	if r := <-ended; r.Code != "" {
		t.Error(text(r))
	}
	step(`{"order": "1"}`, "")
}

// TestWatchBurst holds that many moves while a client is busy cost it one look,
// which sees the last of them.
func TestWatchBurst(t *testing.T) {
	p, _ := program(t, `
fsms: door: {initial: "shut", states: {shut: on: OPEN: "open", open: on: SHUT: "shut"}, key: "all"}
tools: {
	open: {kind: "action", description: "d", state: {in: ["shut"], send: "OPEN"}, value: "ok"}
	shut: {kind: "action", description: "d", state: {in: ["open"], send: "SHUT"}, value: "ok"}
}
`, "")
	heard, goOn := make(chan string, 10), make(chan struct{})
	defer p.Watch(as("ann"), func() {
		heard <- menu(t, p, as("ann"))
		<-goOn
	})()
	wait := func(want string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("the menu is %s, not %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing was heard")
		}
	}
	callAs(t, p, as("bob"), "open", "")
	wait("shut")
	before := runtime.NumGoroutine()
	for range 250 {
		callAs(t, p, as("bob"), "shut", "")
		callAs(t, p, as("bob"), "open", "")
	}
	callAs(t, p, as("bob"), "shut", "")
	if n := runtime.NumGoroutine() - before; n > 50 {
		t.Errorf("%d more goroutines", n)
	}
	close(goOn)
	wait("open")
}

// TestGateGone holds that a caller who goes away while his key is being taken
// leaves no doubt: nothing has happened.
func TestGateGone(t *testing.T) {
	b := newBank(t)
	address, err := url.Parse(servers.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(context.Background())
	defer leave()
	taken := func(b []byte) bool {
		return bytes.Contains(b, []byte("pay.pay")) && bytes.Contains(b, []byte("order 1"))
	}
	address.Host = between(t, address.Host, taken, leave)
	p, log := program(t, elsewhere(b.URL, fmt.Sprintf("{redis: %q}", address), ""), "")
	callAs(t, p, as("s"), "pay.pay", `{"order": "order 2"}`) // now the server knows the scripts
	if r, err := p.Traced(gone, as("s"), "pay.pay", []byte(`{"order": "order 1"}`), nil); err != nil || r.IsError == nil || !*r.IsError {
		t.Fatalf("%v %s", err, text(r))
	}
	if r := callAs(t, p, as("s"), "pay.pay", `{"order": "order 1"}`); r.Code != "" {
		t.Errorf("%s\n%s", text(r), log)
	}
	if n := b.paid.Load(); n != 2 {
		t.Errorf("%d payments", n)
	}
}

// between is a server in front of another one. The first time that a request
// is the one, it keeps the answer to itself and calls instead.
func between(t *testing.T, server string, is func([]byte) bool, instead func()) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var seen sync.Once
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			var keep atomic.Bool
			copyTo := func(to, from net.Conn, look func([]byte) bool) {
				defer to.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := from.Read(buf)
					if err != nil || !look(buf[:n]) {
						return
					}
					if _, err := to.Write(buf[:n]); err != nil {
						return
					}
				}
			}
			go copyTo(behind, client, func(b []byte) bool {
				if is(b) {
					seen.Do(func() { keep.Store(true) })
				}
				return true
			})
			go copyTo(client, behind, func([]byte) bool {
				if !keep.Load() {
					return true
				}
				instead()
				return false
			})
		}
	}()
	return l.Addr().String()
}

// TestGateDenied holds that who is denied learns nothing of a state that is not
// his, and that his own state comes first.
func TestGateDenied(t *testing.T) {
	for key, want := range map[string]string{"{{ args.tenant }}": "Not yours.", "{{ ctx.session }}": "not available in the current FSM state"} {
		p, _ := program(t, `
fsms: door: {initial: "shut", states: {shut: on: OPEN: "open", open: {}}, key: "`+key+`"}
tools: open: {
	kind: "action", description: "d", state: {in: ["shut"], send: "OPEN"}, params: tenant: string, value: "ok"
	deny: [{when: "args.tenant != ctx.claims.sub", code: "FORBIDDEN", message: "Not yours."}]
}
`, "")
		who := func(sub string) *engine.Caller { return &engine.Caller{Session: "s", Claims: value.Of("sub", sub)} }
		if r := callAs(t, p, who("ann"), "open", `{"tenant": "ann"}`); r.Code != "" {
			t.Fatal(text(r))
		}
		if r := callAs(t, p, who("bob"), "open", `{"tenant": "ann"}`); !strings.Contains(text(r), want) {
			t.Errorf("%s: %s", key, text(r))
		}
	}
}

// TestGateGrouped holds that a group does not name the actions that its caller
// does not see, and that one without any is not there.
func TestGateGrouped(t *testing.T) {
	p, _ := program(t, `
server: exposition: "grouped"
fsms: door: {initial: "shut", states: {shut: on: OPEN: "open", open: on: SHUT: "shut"}, key: "{{ ctx.session }}"}
tools: {
	"door.open": {kind: "action", description: "d", state: {in: ["shut"], send: "OPEN"}, value: "ok"}
	"door.shut": {kind: "action", description: "d", state: {in: ["open"], send: "SHUT"}, value: "ok"}
	"door.look": {kind: "query", description: "d", value: "ok"}
	"vault.take": {kind: "action", description: "d", state: {in: ["open"], send: "SHUT"}, value: "ok"}
	"vault.fill": {kind: "action", description: "d", state: in: ["open"], value: "ok"}
}
`, "")
	for _, c := range []struct{ group, args, code, offers string }{
		{"door", `{"action": "shut"}`, "FORBIDDEN", "<available_actions>\n  <action>door.open</action>\n  <action>door.look</action>\n</available_actions>"},
		{"door", `{}`, "MISSING_DISCRIMINATOR", "<available_actions>open, look</available_actions>"},
		{"door", `{"action": "x"}`, "UNKNOWN_ACTION", "<available_actions>open, look</available_actions>"},
		{"vault", `{"action": "take"}`, "FORBIDDEN", "<action>door.look</action>\n</available_actions>"},
		{"vault", `{}`, "UNKNOWN_TOOL", "via tools/list"},
		{"vault", `{"action": "x"}`, "UNKNOWN_TOOL", "via tools/list"},
		{"vault", `{"action": 5}`, "UNKNOWN_TOOL", "via tools/list"},
	} {
		r, _ := p.Call(context.Background(), as("s"), c.group, []byte(c.args))
		if r.Code != c.code || !strings.Contains(text(r), c.offers) {
			t.Errorf("%s %s: %s", c.group, c.args, text(r))
		}
	}
}

// TestEnded holds that the end of a session takes its own state with it, and
// not one that it shares.
func TestEnded(t *testing.T) {
	for key, after := range map[string]string{"{{ ctx.session }}": "open", "{{ ctx.claims.sub ?? ctx.session }}": "shut"} {
		p, _ := program(t, `
fsms: door: {initial: "shut", states: {shut: on: OPEN: "open", open: on: SHUT: "shut"}, key: "`+key+`"}
tools: {
	open: {kind: "action", description: "d", state: {in: ["shut"], send: "OPEN"}, value: "ok"}
	shut: {kind: "action", description: "d", state: {in: ["open"], send: "SHUT"}, value: "ok"}
}
`, "")
		me := func(session string) *engine.Caller {
			return &engine.Caller{Session: session, Claims: value.Of("sub", "me")}
		}
		callAs(t, p, me("a"), "open", "")
		p.Ended("a")
		if got := menu(t, p, me("a")); got != after {
			t.Errorf("%s: after the end of the session the menu is %s", key, got)
		}
	}
}
