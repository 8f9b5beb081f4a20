package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// bounded has a tool that asks a service and lets so many callers in.
func bounded(url, concurrency string) string {
	return fmt.Sprintf(`
apis: slow: baseURL: %q
tools: {
	"jobs.run": {kind: "query", description: "d", timeout: "10s", concurrency: %s, params: n: int | *0, http: {api: "slow", get: "/job", query: n: "{{ args.n }}"}}
	"jobs.quick": {kind: "query", description: "d", expr: "1 + 1"}
}
`, url, concurrency)
}

func TestQueue(t *testing.T) {
	started := make(chan string)
	leave := make(chan struct{})
	u := newUpstream(t, map[string]answer{"GET /job": {before: func(r *http.Request) {
		started <- r.URL.Query().Get("n")
		<-leave
	}}})
	p, _ := program(t, bounded(u.URL, "{max: 1, queue: 2}"), "")
	done := make(chan string, 3)
	run := func(n int) {
		go func() { done <- call(t, p, "jobs.run", fmt.Sprintf(`{"n":%d}`, n)).Code }()
	}
	run(0)
	if n := <-started; n != "0" {
		t.Fatalf("%s started", n)
	}
	// Two wait, in the order in which they came.
	for n := 1; n <= 2; n++ {
		run(n)
		time.Sleep(30 * time.Millisecond)
	}
	ends(t, p, "jobs.run", `{"n":3}`, "SERVER_BUSY", failure("SERVER_BUSY", `Tool "jobs_run" is at capacity (1 active, 2 queued). Retry after a short delay.`,
		"Reduce the number of concurrent calls to this tool. Send requests sequentially or in smaller batches."))
	gives(t, p, "jobs.quick", ``, `2`) // another tool does not wait
	for n := 1; n <= 2; n++ {
		leave <- struct{}{}
		if got := <-started; got != fmt.Sprint(n) {
			t.Errorf("%s started, want %d", got, n)
		}
	}
	leave <- struct{}{}
	for range 3 {
		if code := <-done; code != "" {
			t.Errorf("code %s", code)
		}
	}
}

func TestCancelledInTheQueue(t *testing.T) {
	started, leave := make(chan struct{}), make(chan struct{})
	u := newUpstream(t, map[string]answer{"GET /job": {before: func(*http.Request) {
		started <- struct{}{}
		<-leave
	}}})
	p, _ := program(t, bounded(u.URL, "{max: 1, queue: 1}"), "")
	var wg sync.WaitGroup
	wg.Go(func() { call(t, p, "jobs.run", ``) })
	<-started
	for range 3 { // the place in the queue is free again after each
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		resp, _ := p.Traced(ctx, &engine.Caller{}, "jobs.run", nil, nil)
		if got, want := text(resp), "<tool_error>\n<message>[jobs/run] Request cancelled while waiting for execution slot.</message>\n</tool_error>\n"; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if resp, _ := p.Traced(ctx, &engine.Caller{}, "jobs.run", nil, nil); resp.Code != "TIMEOUT" {
		t.Errorf("time is over in the queue: %s", text(resp))
	}
	leave <- struct{}{}
	wg.Wait()
}

// 200 callers, a pool of 10 and 10 at a time: an answer or SERVER_BUSY, soon.
func TestManyCallers(t *testing.T) {
	p, _ := programWith(t, `
databases: main: {url: "sqlite::memory:", pool: {max: 10, acquire: "2s"}}
tools: {
	"many.slow": {kind: "query", description: "d", concurrency: {max: 10, queue: 40}, sql: {query: "SELECT 1 AS n FROM pg_sleep(0.02)", one: true}}
	"many.unbounded": {kind: "query", description: "d", sql: {query: "SELECT 1 AS n FROM pg_sleep(0.05)", one: true}}
	"many.quick": {kind: "query", description: "d", expr: "2"}
}
`, "", engine.Options{URL: func(string) string { return servers.Postgres(t) }})
	for tool, mustBeBusy := range map[string]bool{"many.slow": true, "many.unbounded": false} {
		start := time.Now()
		var mu sync.Mutex
		codes := map[string]int{}
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				r := call(t, p, tool, ``)
				mu.Lock()
				defer mu.Unlock()
				codes[r.Code]++
			})
		}
		wg.Go(func() {
			start := time.Now()
			if gives(t, p, "many.quick", ``, `2`); time.Since(start) > 5*time.Second {
				t.Errorf("another tool waited %s", time.Since(start))
			}
		})
		wg.Wait()
		busy := codes["SERVER_BUSY"]
		if codes[""]+busy != 200 || codes[""] < 50 || mustBeBusy && busy == 0 || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %v in %s", tool, codes, time.Since(start))
		}
	}
}

func TestDeny(t *testing.T) {
	p, _ := program(t, `
server: deny: [{when: "ctx.client == 'bad'", code: "FORBIDDEN", message: "Not you, {{ ctx.client }}."}]
groups: x: deny: [{when: "ctx.session == nil", code: "UNAUTHORIZED", message: "Who is it?", actions: ["x.ask"]}]
tools: {
	"x.ask": {
		kind: "query", description: "d"
		params: n: int | *0
		deny: [
			{when: "args.n > 10", code: "VALIDATION_ERROR", message: "{{ args.n }} is too much.", severity: "warning"},
			{when: "args.n > 5", code: "CONFLICT", message: "{{ args.n }} is much.", suggestion: "Less.", details: most: 5, retryAfter: 3},
		]
		expr: "args.n"
	}
	ping: {kind: "query", description: "d", expr: "1"}
}
`, "")
	for _, c := range []struct {
		who  engine.Caller
		tool string
		args string
		want string
	}{
		{engine.Caller{Session: "s"}, "x.ask", ``, "0\n"},
		{engine.Caller{Client: "bad"}, "x.ask", `{"n":7}`, failure("FORBIDDEN", "Not you, bad.", "")},
		{engine.Caller{Client: "bad"}, "ping", ``, failure("FORBIDDEN", "Not you, bad.", "")},
		{engine.Caller{}, "x.ask", `{"n":7}`, "<tool_error code=\"UNAUTHORIZED\" severity=\"error\">\n<message>Who is it?</message>\n<available_actions>\n  <action>x_ask</action>\n</available_actions>\n</tool_error>\n"},
		{engine.Caller{}, "ping", ``, "1\n"},
		{engine.Caller{Session: "s"}, "x.ask", `{"n":7}`, "<tool_error code=\"CONFLICT\" severity=\"error\">\n<message>7 is much.</message>\n<recovery>Less.</recovery>\n<details>\n  <detail key=\"most\">5</detail>\n</details>\n<retry_after>3 seconds</retry_after>\n</tool_error>\n"},
		{engine.Caller{Session: "s"}, "x.ask", `{"n":70}`, "<tool_error code=\"VALIDATION_ERROR\" severity=\"warning\">\n<message>70 is too much.</message>\n</tool_error>\n"},
	} {
		r, _ := p.Traced(t.Context(), &c.who, c.tool, []byte(c.args), nil)
		if got := text(r); got != c.want {
			t.Errorf("%+v %s %s:\n%s\nwant\n%s", c.who, c.tool, c.args, got, c.want)
		}
	}
}

// An expression that goes too far, or fails, ends its call; the log has its
// place, and the agent nothing but an incident.
func TestExpressionFails(t *testing.T) {
	p, log := program(t, `
tools: {
	"x.bomb": {kind: "query", description: "d", params: n: int, expr: "reduce(1..30, #acc + #acc, 'aaaaaaaaaa')"}
	"x.steps": {kind: "query", description: "d", params: n: int, steps: [{name: "a", value: {b: 1}}, {when: "a.b == 2", expr: "1"}, {expr: "[1][args.n]"}]}
	"x.rule": {kind: "query", description: "d", params: n: int, expr: "nil", errors: [{when: "result.a.b == 1", code: "X", message: "x"}]}
	"x.deny": {kind: "query", description: "d", params: n: int, deny: [{when: "[1][args.n] == 1", code: "X", message: "x"}], expr: "1"}
}
`, "")
	for tool, want := range map[string]string{
		"x.bomb":  `tools.\"x.bomb\".expr: `,
		"x.steps": `tools.\"x.steps\".steps[2]`,
		"x.rule":  `tools.\"x.rule\".errors[0].when`,
		"x.deny":  `tools.\"x.deny\".deny[0].when`,
	} {
		log.Reset()
		action := strings.Replace(tool, ".", "/", 1)
		ends(t, p, tool, `{"n":70}`, "INTERNAL_ERROR", failure("INTERNAL_ERROR", "["+action+"] Something went wrong. Incident i1.", "This may be a transient error. Retry the same call with identical parameters."))
		if got := log.String(); !strings.Contains(got, want) || !strings.Contains(got, "spec.cue:") {
			t.Errorf("%s: the log is\n%s\nwant\n%s", tool, got, want)
		}
	}
}
