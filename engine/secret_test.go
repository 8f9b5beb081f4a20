package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
)

// A database's URL that is secret is in no error, whole or in parts; of one
// that is not, the user part is not.
func TestSecretURL(t *testing.T) {
	for _, c := range []struct{ name, url, secret, want string }{
		{"a file", `env.DB`, "sqlite:/nonexist/LEAKME/x.db", "opening [REDACTED]: "},
		{"a server", `env.DB`, "postgres://robert:hunter2@127.0.0.9:1/ledger", "user=[REDACTED] database=[REDACTED]"},
		{"a server that is known", `"postgres://robert:\(env.DB)@127.0.0.9:1/ledger"`, "hunter2", "user=[REDACTED] database=[REDACTED]"},
		{"no secret", `"postgres://robert:hunter2@127.0.0.9:1/ledger"`, "unused", "user=[REDACTED] database=ledger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := saidOf(t, `env: DB: string @secret()
databases: main: url: `+c.url+`
tools: "a.b": {kind: "query", description: "d", sql: query: "SELECT 1 AS n"}
`, c.secret)
			if !strings.Contains(said, c.want) {
				t.Errorf("%s\ndoes not say %s", said, c.want)
			}
			for _, leak := range []string{"LEAKME", "x.db", "robert", "hunter2", "ledger", "127.0.0.9"} {
				if c.name == "no secret" && (leak == "ledger" || leak == "127.0.0.9") {
					continue
				}
				if strings.Contains(said, leak) {
					t.Errorf("%s came out: %s", leak, said)
				}
			}
		})
	}
}

// saidOf opens a spec whose variable DB has a value, calls a.b and gives the
// error of opening, or else the log.
func saidOf(t *testing.T, spec, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.cue")
	if err := os.WriteFile(file, []byte("package spec\nserver: {name: \"spec\", version: \"1\"}\n"+spec), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) (string, bool) { return secret, name == "DB" }
	graphs, faults := dsl.Load([]string{file}, dsl.Options{Env: env})
	if faults.Fatal() {
		t.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		t.Fatal(faults)
	}
	var log strings.Builder
	if err := p.Open(context.Background(), engine.Options{Env: env, Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		return err.Error()
	}
	defer func() { _ = p.Close(context.Background()) }()
	if r, err := p.Call(t.Context(), &engine.Caller{}, "a_b", nil); err != nil || r.Code != "SERVER_BUSY" {
		t.Fatalf("%v %v", r, err)
	}
	return log.String()
}

// What quotes an argument does not bring it into the log; a panic neither.
func TestNoArgumentInTheLog(t *testing.T) {
	p, log := programWith(t, `
databases: main: url: "sqlite::memory:"
apis: shop: baseURL: "https://shop.example.com"
tools: {
	"doc.read": {kind: "query", description: "d", params: path: string, sql: query: "SELECT json_extract('{}', @path) AS x"}
	"doc.send": {kind: "query", description: "d", params: {id: string, deep: {pin: string @secret()}}, http: {get: "/{{ args.id }}", query: pin: "{{ args.deep.pin }}"}}
}
`, "", engine.Options{Transport: func(string) http.RoundTripper { return echo{} }})
	call(t, p, "doc.read", `{"path":"it's private"}`)
	call(t, p, "doc.send", `{"id":"it's private-17","deep":{"pin":"pin"}}`)
	got := log.String()
	if strings.Count(got, "msg=") != 2 || !strings.Contains(got, "call failed") || !strings.Contains(got, `msg="call panicked" incident=i1 tool=doc.send cause="no … with [REDACTED]"`) {
		t.Errorf("the log: %s", got)
	}
	if strings.Contains(got, "private") {
		t.Errorf("an argument came out: %s", got)
	}
}

// echo panics with what it is asked for.
type echo struct{}

func (echo) RoundTrip(r *http.Request) (*http.Response, error) {
	panic("no " + strings.TrimPrefix(r.URL.Path, "/") + " with " + r.URL.Query().Get("pin"))
}

// Only what the list of tools shows can be called: a name of the spec alone is
// unknown to a caller.
func TestCallExposedOnly(t *testing.T) {
	const tools = `
tools: {
	solo: {kind: "query", description: "d", value: "solo"}
	"u.list": {kind: "query", description: "d", value: "list"}
}
`
	for _, c := range []struct{ spec, name, args, code, want string }{
		{"", "solo", ``, "", "solo\n"},
		{"", "u_list", ``, "", "list\n"},
		{"", "u.list", ``, "UNKNOWN_TOOL", ""},
		{`server: exposition: "grouped"`, "u.list", ``, "UNKNOWN_TOOL", ""},
		{`server: exposition: "grouped"`, "u_list", ``, "UNKNOWN_TOOL", ""},
		{`server: exposition: "grouped"`, "u", `{"action":"list"}`, "", "list\n"},
		{`server: exposition: "grouped"`, "solo", `{"action":"default"}`, "", "solo\n"},
		{`server: exposition: "grouped"`, "solo", ``, "MISSING_DISCRIMINATOR", ""},
		{`server: separator: "."`, "u.list", ``, "", "list\n"},
	} {
		p, _ := program(t, c.spec+tools, "")
		r, err := p.Call(t.Context(), &engine.Caller{}, c.name, []byte(c.args))
		if errors.Is(err, engine.ErrUnknownTool) != (c.code == "UNKNOWN_TOOL") || r.Code != c.code || c.want != "" && text(r) != c.want {
			t.Errorf("%s %s %s: %v, code %q\n%s", c.spec, c.name, c.args, err, r.Code, text(r))
		}
	}
}
