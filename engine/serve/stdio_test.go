package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/serve"
)

// pipes is a client on stdio.
type pipes struct {
	in     *io.PipeWriter
	lines  chan string
	cancel context.CancelFunc
	served chan error
}

func startStdio(t *testing.T, s *serve.Server) *pipes {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	p := &pipes{in: inW, lines: make(chan string, 1000), cancel: cancel, served: make(chan error, 1)}
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	go func() {
		p.served <- s.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() { cancel(); inW.Close() })
	return p
}

func (p *pipes) send(t *testing.T, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if _, err := io.WriteString(p.in, m+"\n"); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *pipes) next(t *testing.T) string {
	t.Helper()
	select {
	case s, ok := <-p.lines:
		if !ok {
			return "end"
		}
		return s
	case <-time.After(5 * time.Second):
		t.Fatal("no line came")
		return ""
	}
}

// end waits for the end of the server.
func (p *pipes) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.served:
		return err
	case <-time.After(5 * time.Second):
		t.Fatal("the server goes on")
		return nil
	}
}

func (p *pipes) wants(t *testing.T, request, answer string) {
	t.Helper()
	p.send(t, request)
	if got := p.next(t); got != answer {
		t.Errorf("%s\n got %s\nwant %s", request, got, answer)
	}
}

func newStdio(t *testing.T, p *program, o serve.Options) *serve.Server {
	t.Helper()
	s, err := serve.New(serve.Fixed(p), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStdio(t *testing.T) {
	p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{}))
	p.wants(t, initialize("2025-11-25"), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"shop","version":"1.2.0","title":"Shop","websiteUrl":"https://shop.example.com"},"instructions":"Start with a."}}`)
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "", "  ")
	p.wants(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","era":"2025"}]}}`)
	p.wants(t, call(`"x"`, "who", `{}`, false), `{"jsonrpc":"2.0","id":"x","result":{"content":[`+text(`session=stdio-S client=tester claims={"sub":"me"} now=true`)+`]}}`)
	p.wants(t, call(`2`, "list", `{}`, false), `{"jsonrpc":"2.0","id":2,"result":{"content":[`+text(`[]`)+`],"structuredContent":{"items":[1]}}}`)
	p.wants(t, call(`3`, "nope", `{}`, false), `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Tool \"nope\" does not exist."}}`)
	p.wants(t, `{"jsonrpc":"2.0","id":4,"method":"ping"}`, `{"jsonrpc":"2.0","id":4,"result":{}}`)
	p.wants(t, `{"jsonrpc":"2.0","id":5,"method":"x/y"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"Method x/y not found"}}`)
	p.wants(t, `{"jsonrpc":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"request body is not valid json"}}`)
	p.wants(t, `{"jsonrpc":"2.0","id":6}`, `{"jsonrpc":"2.0","id":6,"error":{"code":-32600,"message":"method is missing"}}`)
	// 2026-07-28 on the same pipes
	p.wants(t, `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{`+modernMeta+`}}`, `{"jsonrpc":"2.0","id":7,"result":{`+modernHead+`"tools":[{"name":"a","era":"2026"}],"ttlMs":300000,"cacheScope":"private"}}`)
	p.wants(t, call(`8`, "who", `{}`, true), `{"jsonrpc":"2.0","id":8,"result":{`+modernHead+`"content":[`+text(`session=stdio-S client=moderner claims={"sub":"me"} now=true`)+`]}}`)
	p.wants(t, strings.Replace(call(`9`, "who", `{}`, true), `,"io.modelcontextprotocol/clientCapabilities":{}`, "", 1),
		`{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"missing or invalid _meta field io.modelcontextprotocol/clientCapabilities"}}`)
	p.wants(t, strings.Replace(call(`10`, "who", `{}`, true), "2026-07-28", "2027-01-01", 1),
		`{"jsonrpc":"2.0","id":10,"error":{"code":-32022,"message":"unsupported protocol version: \"2027-01-01\" (supported: [2026-07-28 2025-11-25 2025-06-18])","data":{"supported":["2026-07-28","2025-11-25","2025-06-18"],"requested":"2027-01-01"}}}`)
	p.in.Close()
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	if got := p.next(t); got != "end" {
		t.Errorf("more on stdout: %s", got)
	}
}

// TestStdioPipelined: a call right behind initialize, all in one write.
func TestStdioPipelined(t *testing.T) {
	p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{}))
	p.send(t, initialize("2025-11-25")+"\n"+call("1", "who", `{}`, false))
	if got := p.next(t); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion"`) {
		t.Errorf("first comes %s", got)
	}
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":1,"result":{"content":[`+text(`session=stdio-S client=tester claims={"sub":"me"} now=true`)+`]}}` {
		t.Errorf("then comes %s", got)
	}
}

// TestStdioConcurrent: calls run beside each other and lines stay whole.
func TestStdioConcurrent(t *testing.T) {
	p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{}))
	big := `{"x":"` + strings.Repeat("y", 20_000) + `"}`
	var wanted []string
	for i := range 50 {
		wanted = append(wanted, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[%s]}}`, i, text(big)),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"w%d","result":{"content":[%s]}}`, i, text("waited")))
	}
	go func() {
		for i := range 50 {
			p.send(t, call(fmt.Sprintf(`"w%d"`, i), "wait", `{}`, false), call(fmt.Sprint(i), "echo", big, false))
		}
	}()
	begin := time.Now()
	var got []string
	for range wanted {
		got = append(got, p.next(t))
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Error("the answers are not those of the calls")
	}
	if d := time.Since(begin); d > 4*time.Second {
		t.Errorf("50 calls of 0.3 s took %s", d)
	}
}

func TestStdioCancel(t *testing.T) {
	p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{}))
	p.send(t, call(`"c"`, "block", `{}`, false))
	waitStarted(t, 1)
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)
	waitStarted(t, 0)
	p.wants(t, `{"jsonrpc":"2.0","id":4,"method":"ping"}`, `{"jsonrpc":"2.0","id":4,"result":{}}`)
}

func TestStdioListen(t *testing.T) {
	s := newStdio(t, newProgram("a"), serve.Options{})
	p := startStdio(t, s)
	p.wants(t, call(`8`, "echo", `{}`, true), `{"jsonrpc":"2.0","id":8,"result":{`+modernHead+`"content":[`+text(`{}`)+`]}}`)
	s.ToolsChanged() // nobody asked for it
	for _, id := range []string{`"l"`, `7`} {
		p.wants(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`,
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`+id+`},"notifications":{"toolsListChanged":true}}}`)
	}
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	p.wants(t, `{"jsonrpc":"2.0","id":4,"method":"ping"}`, `{"jsonrpc":"2.0","id":4,"result":{}}`)
	time.Sleep(20 * time.Millisecond)
	s.ToolsChanged()
	if got := p.next(t); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}` {
		t.Errorf("changed: %s", got)
	}
	p.in.Close()
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":"l","result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop","version":"1.2.0"},"io.modelcontextprotocol/subscriptionId":"l"},"resultType":"complete"}}` {
		t.Errorf("end of the subscription: %s", got)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

func TestStdioListChanged(t *testing.T) {
	program := newProgram("a")
	s := newStdio(t, program, serve.Options{})
	p := startStdio(t, s)
	s.ToolsChanged() // before initialize nobody is told
	p.send(t, initialize("2025-06-18"))
	p.next(t)
	program.waitCallers(t, `stdio-S tester `+me) // which begins behind the answer
	s.ToolsChanged()
	if got := p.next(t); got != changed {
		t.Errorf("changed: %s", got)
	}
}

// TestStdioEnds: what is in flight is answered, whatever ends the server.
func TestStdioEnds(t *testing.T) {
	for name, stop := range map[string]func(p *pipes){
		"end of input": func(p *pipes) { p.in.Close() },
		"signal":       func(p *pipes) { p.cancel() },
	} {
		p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{Grace: 5 * time.Second}))
		p.send(t, call(`1`, "wait", `{}`, false))
		waitStarted(t, 1)
		stop(p)
		if got := p.next(t); got != `{"jsonrpc":"2.0","id":1,"result":{"content":[`+text("waited")+`]}}` {
			t.Errorf("%s: %s", name, got)
		}
		if err := p.end(t); err != nil {
			t.Errorf("%s: %v", name, err)
		}

		p = startStdio(t, newStdio(t, newProgram("a"), serve.Options{Grace: 50 * time.Millisecond}))
		p.send(t, call(`1`, "block", `{}`, false))
		waitStarted(t, 1)
		stop(p)
		if got := p.next(t); got != `{"jsonrpc":"2.0","id":1,"result":{"content":[`+text("TIMEOUT!")+`],"isError":true}}` {
			t.Errorf("%s, past the grace: %s", name, got)
		}
		if err := p.end(t); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStdioLastLineWithoutBreak(t *testing.T) {
	p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{}))
	go func() {
		_, _ = io.WriteString(p.in, call(`1`, "echo", `{}`, false))
		p.in.Close()
	}()
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":1,"result":{"content":[`+text("{}")+`]}}` {
		t.Errorf("%s", got)
	}
}

func TestStdioLongLine(t *testing.T) {
	spec := newProgram("a")
	spec.spec.HTTP.MaxBody = 100_000
	p := startStdio(t, newStdio(t, spec, serve.Options{}))
	p.wants(t, strings.Repeat("x", 100_001), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The message is larger than 100000 bytes (server.http.maxBody)."}}`)
	p.wants(t, call(`1`, "echo", `{}`, false), `{"jsonrpc":"2.0","id":1,"result":{"content":[`+text("{}")+`]}}`)
}

// failWriter takes nothing.
type failWriter struct{}

func (failWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStdioClientGone(t *testing.T) {
	in, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = io.WriteString(w, initialize("2025-11-25")+"\n") }()
	err := newStdio(t, newProgram("a"), serve.Options{}).ServeStdio(context.Background(), in, failWriter{})
	if err == nil || err.Error() != "writing to the client: io: read/write on closed pipe" {
		t.Error(err)
	}
}

func TestStdioPanics(t *testing.T) {
	log, _ := logger()
	p := startStdio(t, newStdio(t, newProgram("a"), serve.Options{Log: log}))
	p.send(t, call(`1`, "panic", `{}`, false))
	var e struct {
		ID    int
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(p.next(t)), &e); err != nil || e.ID != 1 || e.Error.Code != -32603 || !strings.HasPrefix(e.Error.Message, "Something went wrong. Incident ") {
		t.Errorf("%+v %v", e, err)
	}
	p.wants(t, call(`2`, "echo", `{}`, false), `{"jsonrpc":"2.0","id":2,"result":{"content":[`+text("{}")+`]}}`)
}

func TestFaulty(t *testing.T) {
	var faults graph.Faults
	faults.Add(graph.Place{File: "shop.cue", Line: 7, Col: 3}, "tools.b", "two bindings")
	faults.Add(graph.Place{File: "shop.cue", Line: 3, Col: 1}, "server", "name is missing")
	told := `The spec of this server has mistakes and was not loaded. Correct them and start the server again:\nshop.cue:3:1: server: name is missing\nshop.cue:7:3: tools.b: two bindings`
	p := startStdio(t, serve.Faulty(faults))
	p.wants(t, initialize("2025-11-25"), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fusion-serve","version":"0.0.0","title":"fusion-serve (spec not loaded)"},"instructions":"`+told+`"}}`)
	p.wants(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"`+told+`"}}`)
	p.wants(t, call(`2`, "x", `{}`, true), `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"`+told+`"}}`)
	p.in.Close()
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}
