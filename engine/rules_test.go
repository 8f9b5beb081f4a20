package engine_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
)

// The rules of the step come first, then those of the tool, its group, the
// server and the service.
func TestRuleOrder(t *testing.T) {
	u := newUpstream(t, map[string]answer{})
	p, _ := program(t, fmt.Sprintf(`
server: errors: [{status: [404, 502, 503, 504], code: "SERVER", message: "{{ status }} {{ body.why }}"}]
groups: x: errors: [{status: [404, 503], code: "GROUP", message: "{{ status }} {{ headers['x-why'] }}", retryAfter: "{{ headers['retry-after'] }}"}]
apis: back: {baseURL: %q, errors: [
	{status: [404, 500, 502, 503, 504], code: "SERVICE", message: "{{ status }}"},
	{when: "body.ok == false", code: "NOT_OK", message: "{{ body.why }}"},
]}
tools: {
	"x.one": {
		kind: "query", description: "d", params: n: int
		http: {api: "back", get: "/{{ args.n }}"}
		errors: [
			{when: "result == nil", code: "NOTHING", message: "It gave nothing."},
			{status: 404, when: "args.n == 1", code: "TOOL", message: "{{ body.why }} {{ args.n }}"},
			{when: "status == 418", code: "TEAPOT", message: "{{ status }}"},
		]
	}
	"x.steps": {
		kind: "query", description: "d", params: n: int
		steps: [
			{name: "a", http: {api: "back", get: "/{{ args.n }}"}, errors: [{status: 404, when: "args.n == 0", code: "STEP", message: "{{ body.why }}"}]},
			{name: "b", value: seen: "{{ a.why }}"},
		]
		errors: [
			{when: "b == nil", code: "NOTHING", message: "It gave nothing."},
			{status: 404, when: "args.n == 1", code: "TOOL", message: "{{ body.why }} {{ args.n }}"},
		]
	}
	other: {kind: "query", description: "d", params: n: int, http: {api: "back", get: "/{{ args.n }}"}}
}
`, u.URL), "")
	for _, c := range []struct {
		tool   string
		n      int
		status int
		why    string // the body's; "": no body
		want   string // code and message
	}{
		{"x.one", 1, 404, "w", "TOOL w 1"}, {"x.one", 2, 404, "w", "GROUP 404 h"}, {"x.one", 2, 502, "w", "SERVER 502 w"}, {"x.one", 2, 500, "w", "SERVICE 500"},
		{"x.one", 2, 418, "w", "TEAPOT 418"}, {"x.one", 2, 200, "not so", "NOT_OK not so"}, {"x.one", 2, 200, "", "NOTHING It gave nothing."},
		{"x.one", 2, 401, "w", "UNAUTHORIZED The service behind this does not accept our credentials."}, {"x.one", 2, 429, "w", "RATE_LIMITED Too many requests to the service behind this."},
		{"x.one", 2, 409, "", "CONFLICT This conflicts with what is there already."}, {"x.one", 2, 451, "", "INTERNAL_ERROR [x/one] Something went wrong. Incident i1."},
		{"x.steps", 0, 404, "w", "STEP w"}, {"x.steps", 1, 404, "w", "TOOL w 1"}, {"x.steps", 2, 404, "w", "GROUP 404 h"}, {"x.steps", 2, 504, "w", "SERVER 504 w"},
		{"x.steps", 2, 500, "w", "SERVICE 500"}, {"x.steps", 2, 200, "not so", "NOT_OK not so"}, {"x.steps", 2, 422, "w", "VALIDATION_ERROR The service behind this does not take these values."},
		{"other", 2, 404, "w", "SERVER 404 w"}, {"other", 2, 500, "w", "SERVICE 500"}, {"other", 2, 403, "w", "FORBIDDEN The service behind this does not permit it."},
	} {
		a := answer{status: c.status, header: map[string]string{"X-Why": "h", "Retry-After": "9"}}
		if c.why != "" {
			a.body = map[string]any{"why": c.why, "ok": false}
		}
		u.set(fmt.Sprintf("GET /%d", c.n), a)
		r := call(t, p, c.tool, fmt.Sprintf(`{"n":%d}`, c.n))
		_, message, _ := strings.Cut(text(r), "<message>")
		message, _, _ = strings.Cut(message, "</message>")
		if got := r.Code + " " + message; got != c.want {
			t.Errorf("%s, status %d: %s, want %s", c.tool, c.status, got, c.want)
		}
		if again := strings.Contains(text(r), "<retry_after>9 seconds"); again != (r.Code == "GROUP" || r.Code == "RATE_LIMITED") {
			t.Errorf("%s, status %d: %s", c.tool, c.status, text(r))
		}
	}
}

// panicking is a network on which one path panics.
type panicking struct{ http.RoundTripper }

func (p panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/panic" {
		panic("a mistake in the transport")
	}
	return p.RoundTripper.RoundTrip(r)
}

// A mistake of ours in the middle of a call still rolls back and undoes.
func TestPanicInAStep(t *testing.T) {
	u := newUpstream(t, map[string]answer{"POST /made": {}, "DELETE /made": {}})
	p, log := programWith(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: baseURL: %q
tools: {
	"x.do": {kind: "action", description: "d", steps: [
		{sql: query: "INSERT INTO notes (id, text) VALUES (1, 'x')"},
		{http: {api: "hooks", post: "/made"}, undo: http: {api: "hooks", delete: "/made"}},
		{http: {api: "hooks", get: "/panic"}},
	]}
	"x.count": {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM notes", one: true}}
}
`, u.URL), twoSchema, engine.Options{Transport: func(string) http.RoundTripper { return panicking{http.DefaultTransport} }})
	if r := call(t, p, "x.do", ``); r.Code != "INTERNAL_ERROR" || !strings.Contains(log.String(), "a mistake in the transport") {
		t.Errorf("%s\n%s", text(r), log)
	}
	wantRequests(t, u, "POST /made", "DELETE /made")
	gives(t, p, "x.count", ``, `{"n":0}`)
}

// What can be known of steps and rules before any call is a fault with its
// place.
func TestStepFaults(t *testing.T) {
	for _, c := range []struct{ tool, want string }{
		{`steps: [{name: "a", expr: "b + 1"}, {name: "b", expr: "1"}]`, `5:72: tools.t.steps[0].expr: there is no "b" here`},
		{`steps: [{name: "a", sql: query: "SELECT @b.id AS x"}, {name: "b", expr: "1"}]`, `steps[0].sql.query: @b.id: there is no "b" here`},
		{`steps: [{name: "a", expr: "1"}, {expr: "a"}], total: "n"`, `total: only the rows of the last step, where they are the answer, have columns: write {{ NAME.n }}`},
		{`steps: [{name: "a", expr: "1"}, {expr: "a", errors: [{when: "c == 1", code: "X", message: "x"}]}]`, `steps[1].errors[0].when: there is no "c" here`},
		{`steps: [{name: "a", expr: "1"}, {expr: "a"}], result: "{{ item }}"`, `result: there is no "item" here`},
		{`steps: [{name: "a", expr: "{mail: 'x'}"}, {expr: "a"}], returns: {schema: mail: string, redact: ["mail"]}, errors: [{when: "true", code: "X", message: "{{ a.mail }}"}]`,
			`errors[0].message: this reads a.mail, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same`},
		{`steps: [{name: "a", expr: "{mail: 'x'}", errors: [{when: "true", code: "X", message: "{{ a.mail }}"}]}], returns: {schema: mail: string, redact: ["mail"]}`,
			`steps[0].errors[0].message: this reads a.mail, which the presenter may mask`},
		{`expr: "1", errors: [{when: "status == 404", code: "X", message: "x"}]`, `errors[0].when: there is no "status" here`},
		{`expr: "1", deny: [{when: "result == 1", code: "X", message: "x"}]`, `deny[0].when: there is no "result" here`},
		{`params: key: string, sql: query: "SELECT 1 AS n", deny: [{when: "args.kye == 'x'", code: "X", message: "x"}]`, `deny[0].when: `},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "spec.cue")
		spec := fmt.Sprintf("package spec\nserver: {name: \"spec\", version: \"1\"}\ndatabases: main: url: \"sqlite::memory:\"\n_used: 1\ntools: t: {kind: \"query\", description: \"d\", %s}\ntools: u: {kind: \"query\", description: \"d\", sql: query: \"SELECT 1 AS n\"}\n", c.tool)
		if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		graphs, faults := dsl.Load([]string{file}, dsl.Options{})
		if len(graphs) > 0 && graphs[0] != nil && !faults.Fatal() {
			_, faults = engine.Compile(graphs[0])
		}
		if !strings.Contains(faults.Error(), c.want) {
			t.Errorf("%s:\n%s\nwant %s", c.tool, faults.Error(), c.want)
		}
	}
}
