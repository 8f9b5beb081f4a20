package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/serve"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// program is a program without an engine: its tools are Go functions.
type program struct {
	spec  graph.Server
	list  *engine.List
	tools map[string]func(ctx context.Context, c *engine.Caller, args []byte) *presenters.Response
	// lists gives each caller a list; nil: everybody gets list.
	lists func(c *engine.Caller) (*engine.List, error)
	audience
}

func (p *program) Server() *graph.Server { return &p.spec }

func (p *program) List(_ context.Context, c *engine.Caller) (*engine.List, error) {
	if p.lists != nil {
		return p.lists(c)
	}
	return p.list, nil
}

func (p *program) Call(ctx context.Context, c *engine.Caller, name string, args []byte) (*presenters.Response, error) {
	f := p.tools[name]
	if f == nil {
		return nil, engine.ErrUnknownTool
	}
	return f(ctx, c, args), nil
}

func says(text string) *presenters.Response {
	return &presenters.Response{Blocks: []presenters.Content{{Type: "text", Text: []byte(text)}}}
}

func failing(code string) *presenters.Response {
	yes := true
	r := says(code + "!")
	r.IsError, r.Code = &yes, code
	return r
}

// anonymous puts S in the place of what is random in the id of a session.
func anonymous(session string) string {
	id := strings.TrimPrefix(session, "stdio-")
	if len(id) == 26 {
		return strings.TrimSuffix(session, id) + "S"
	}
	return session
}

// started counts the calls of wait that are under way.
var started atomic.Int64

func newProgram(names ...string) *program {
	p := &program{
		spec: graph.Server{
			Name: "shop", Version: "1.2.0", Title: "Shop", Instructions: "Start with a.", Docs: "https://shop.example.com",
			Local: value.Of("sub", "me"),
		},
		list: &engine.List{},
	}
	for _, n := range names {
		p.list.Tools = append(p.list.Tools, presenters.Definition{
			Name: n, JSON: fmt.Appendf(nil, `{"name":%q,"era":"2025"}`, n), Modern: fmt.Appendf(nil, `{"name":%q,"era":"2026"}`, n),
		})
	}
	p.tools = map[string]func(ctx context.Context, c *engine.Caller, args []byte) *presenters.Response{
		"echo": func(_ context.Context, _ *engine.Caller, args []byte) *presenters.Response { return says(string(args)) },
		"who": func(_ context.Context, c *engine.Caller, _ []byte) *presenters.Response {
			return says(fmt.Sprintf("session=%s client=%s claims=%s now=%v", anonymous(c.Session), c.Client, value.AppendJSON(nil, c.Claims), time.Since(c.Now) < time.Minute))
		},
		"fail": func(context.Context, *engine.Caller, []byte) *presenters.Response { return failing("NOT_FOUND") },
		"broken": func(context.Context, *engine.Caller, []byte) *presenters.Response {
			return presenters.Internal("broken/default", "abc", presenters.Unknown)
		},
		"panic": func(context.Context, *engine.Caller, []byte) *presenters.Response { panic("boom") },
		"wait": func(ctx context.Context, _ *engine.Caller, _ []byte) *presenters.Response {
			started.Add(1)
			defer started.Add(-1)
			select {
			case <-ctx.Done():
				return failing("TIMEOUT")
			case <-time.After(300 * time.Millisecond):
				return says("waited")
			}
		},
		"block": func(ctx context.Context, _ *engine.Caller, _ []byte) *presenters.Response {
			started.Add(1)
			defer started.Add(-1)
			<-ctx.Done()
			return failing("TIMEOUT")
		},
		"list": func(context.Context, *engine.Caller, []byte) *presenters.Response {
			r := says("[]")
			r.Structured = []byte("[1]")
			return r
		},
	}
	return p
}

// waitStarted waits until n calls of wait or block are under way.
func waitStarted(t *testing.T, n int64) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); started.Load() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d calls are under way, not %d", started.Load(), n)
		}
	}
}

// running is a server on a port of its own.
type running struct {
	*serve.Server
	url  string
	stop func() error
}

func start(t *testing.T, p serve.Program, o serve.Options) *running {
	t.Helper()
	return startOn(t, serve.Fixed(p), o, "127.0.0.1:0")
}

func startOn(t *testing.T, src serve.Source, o serve.Options, addr string) *running {
	t.Helper()
	s, err := serve.New(src, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	r := &running{Server: s, url: "http://" + l.Addr().String() + "/mcp"}
	r.stop = sync.OnceValue(func() error { cancel(); return <-served })
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// reply is what came back over HTTP.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// send makes a request; headers are alternating names and values, Host too.
func send(t *testing.T, method, url, body string, headers ...string) reply {
	t.Helper()
	r, err := try(context.Background(), method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func try(ctx context.Context, method, url, body string, headers ...string) (reply, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			q.Host = headers[i+1]
		default:
			q.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, strings.TrimSuffix(string(b), "\n")}, err
}

// open makes a session and gives its header.
func (r *running) open(t *testing.T, revision string) []string {
	t.Helper()
	got := send(t, "POST", r.url, initialize(revision))
	id := got.header.Get("Mcp-Session-Id")
	if got.status != 200 || len(id) != 26 {
		t.Fatalf("initialize: %s, session %q", got, id)
	}
	return []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", revision}
}

func initialize(revision string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + revision +
		`","capabilities":{},"clientInfo":{"name":"tester","version":"1"}}}`
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"moderner","version":"2"},"io.modelcontextprotocol/clientCapabilities":{}}`

// call is the body of a tools/call; modern adds _meta.
func call(id, name, args string, modern bool) string {
	s := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","arguments":` + args
	if modern {
		s += "," + modernMeta
	}
	return s + "}}"
}

func modernHeaders(method, name string) []string {
	h := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

func text(s string) string {
	b, _ := json.Marshal(s)
	return `{"type":"text","text":` + string(b) + `}`
}

const modernHead = `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop","version":"1.2.0"}},`

func want(t *testing.T, what string, got fmt.Stringer, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func TestInitialize(t *testing.T) {
	r := start(t, newProgram("a"), serve.Options{})
	for _, revision := range []string{"2025-06-18", "2025-11-25"} {
		got := send(t, "POST", r.url, initialize(revision))
		want(t, revision, got, `200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"`+revision+
			`","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"shop","version":"1.2.0","title":"Shop","websiteUrl":"https://shop.example.com"},"instructions":"Start with a."}}`)
	}
	got := send(t, "POST", r.url, `{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{`+modernMeta+`}}`, modernHeaders("server/discover", "")...)
	want(t, "discover", got, `200 {"jsonrpc":"2.0","id":"d","result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop","version":"1.2.0","title":"Shop","websiteUrl":"https://shop.example.com"}},"resultType":"complete","ttlMs":300000,"cacheScope":"private","supportedVersions":["2026-07-28","2025-11-25","2025-06-18"],"capabilities":{"tools":{"listChanged":true}},"instructions":"Start with a."}}`)
	if id := got.header.Get("Mcp-Session-Id"); id != "" {
		t.Errorf("discover made a session %q", id)
	}
}

func TestListAndCall(t *testing.T) {
	r := start(t, newProgram("a", "b"), serve.Options{})
	for _, revision := range []string{"2025-06-18", "2025-11-25"} {
		s := r.open(t, revision)
		want(t, "list", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, s...),
			`200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","era":"2025"},{"name":"b","era":"2025"}]}}`)
		want(t, "call", send(t, "POST", r.url, call(`"x"`, "echo", `{"n": 1.50}`, false), s...),
			`200 {"jsonrpc":"2.0","id":"x","result":{"content":[`+text(`{"n": 1.50}`)+`]}}`)
		want(t, "who", send(t, "POST", r.url, call("2", "who", `null`, false), s...),
			`200 {"jsonrpc":"2.0","id":2,"result":{"content":[`+text(`session=S client=tester claims={"sub":"me"} now=true`)+`]}}`)
		want(t, "fail", send(t, "POST", r.url, call("3", "fail", `{}`, false), s...),
			`200 {"jsonrpc":"2.0","id":3,"result":{"content":[`+text(`NOT_FOUND!`)+`],"isError":true}}`)
		want(t, "structured", send(t, "POST", r.url, call("4", "list", `{}`, false), s...),
			`200 {"jsonrpc":"2.0","id":4,"result":{"content":[`+text(`[]`)+`],"structuredContent":{"items":[1]}}}`)
	}
	want(t, "modern list", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modernHeaders("tools/list", "")...),
		`200 {"jsonrpc":"2.0","id":1,"result":{`+modernHead+`"tools":[{"name":"a","era":"2026"},{"name":"b","era":"2026"}],"ttlMs":300000,"cacheScope":"private"}}`)
	want(t, "modern who", send(t, "POST", r.url, call("12345678901234567890", "who", `{}`, true), modernHeaders("tools/call", "who")...),
		`200 {"jsonrpc":"2.0","id":12345678901234567890,"result":{`+modernHead+`"content":[`+text(`session= client=moderner claims={"sub":"me"} now=true`)+`]}}`)
	want(t, "modern structured, name in base64", send(t, "POST", r.url, call("4", "list", `{}`, true), modernHeaders("tools/call", "=?base64?bGlzdA==?=")...),
		`200 {"jsonrpc":"2.0","id":4,"result":{`+modernHead+`"content":[`+text(`[]`)+`],"structuredContent":[1]}}`)
}

func TestPages(t *testing.T) {
	p := newProgram("a", "b", "c", "d")
	p.spec.PageSize = 2
	r := start(t, p, serve.Options{})
	s := r.open(t, "2025-11-25")
	list := func(cursor string) reply {
		return send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":`+cursor+`}}`, s...)
	}
	first := `200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","era":"2025"},{"name":"b","era":"2025"}],"nextCursor":"Yg"}}`
	want(t, "first", list(`null`), first)
	want(t, "first", list(`""`), first)
	want(t, "last", list(`"Yg"`), `200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"c","era":"2025"},{"name":"d","era":"2025"}]}}`)
	want(t, "bad", list(`"Yw"`), `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown cursor: list the tools again from the start."}}`)
	want(t, "bad, modern", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"?",`+modernMeta+`}}`, modernHeaders("tools/list", "")...),
		`400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown cursor: list the tools again from the start."}}`)
}

// A list that is another one in another state is not to be kept.
func TestListByState(t *testing.T) {
	p := newProgram("a")
	p.list.ByState = true
	r := start(t, p, serve.Options{})
	want(t, "modern", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modernHeaders("tools/list", "")...),
		`200 {"jsonrpc":"2.0","id":1,"result":{`+modernHead+`"tools":[{"name":"a","era":"2026"}],"ttlMs":0,"cacheScope":"private"}}`)
}

func TestNoToolsIsAnEmptyList(t *testing.T) {
	r := start(t, newProgram(), serve.Options{})
	want(t, "list", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, r.open(t, "2025-11-25")...),
		`200 {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
}

// swap is a source whose program changes.
type swap struct{ atomic.Pointer[program] }

func (s *swap) Program() serve.Program { return s.Load() }

func TestReload(t *testing.T) {
	src := &swap{}
	src.Store(newProgram("a"))
	r := startOn(t, src, serve.Options{}, "127.0.0.1:0")
	s := r.open(t, "2025-11-25")
	next := newProgram("z")
	next.spec.Instructions, next.spec.Name = "Start with z.", "shop2"
	next.spec.HTTP.MaxBody = 400
	src.Store(next)
	want(t, "list", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, s...),
		`200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"z","era":"2025"}]}}`)
	want(t, "initialize", send(t, "POST", r.url, initialize("2025-11-25")), `200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"shop2","version":"1.2.0","title":"Shop","websiteUrl":"https://shop.example.com"},"instructions":"Start with z."}}`)
	want(t, "body", send(t, "POST", r.url, call("1", "echo", `{"x":"`+strings.Repeat("x", 400)+`"}`, false), s...),
		`413 The request body is larger than 400 bytes (server.http.maxBody).`)
}

// lines is a log that a test reads.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// logger writes lines without what differs from run to run.
func logger() (*slog.Logger, *lines) {
	out := &lines{}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "time", "took", "stack":
			return slog.Attr{}
		case "incident":
			a.Value = slog.IntValue(len(a.Value.String()))
		}
		return a
	}})), out
}

func TestLog(t *testing.T) {
	log, out := logger()
	r := start(t, newProgram("a"), serve.Options{Log: log})
	s := r.open(t, "2025-11-25")
	for i, name := range []string{"echo", "fail", "nothing", "panic", "broken"} {
		send(t, "POST", r.url, call(fmt.Sprint(i), name, `{"secret":"s3cret"}`, false), s...)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(out.String(), "\n")
	for _, line := range []string{
		`level=INFO msg=call tool=echo outcome=ok`,
		`level=INFO msg=call tool=fail outcome=NOT_FOUND`,
		`level=INFO msg=call tool=nothing outcome=UNKNOWN_TOOL`,
		`level=INFO msg=call tool=broken outcome=INTERNAL_ERROR incident=3`,
		`level=INFO msg=call tool=panic outcome=INTERNAL_ERROR incident=12`,
		`level=ERROR msg="request panicked" incident=12 method=tools/call cause=boom`,
	} {
		n := 0
		for _, g := range got {
			if g == line {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q stands %d times in:\n%s", line, n, out)
		}
	}
	if strings.Contains(out.String(), "s3cret") {
		t.Errorf("an argument is in the log:\n%s", out)
	}
}
