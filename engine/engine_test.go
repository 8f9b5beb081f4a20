package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// program loads, compiles and opens a spec given as text, on a database with
// the tables of schema.
func program(t *testing.T, spec, schema string) (*engine.Program, *bytes.Buffer) {
	t.Helper()
	return programWith(t, spec, schema, engine.Options{})
}

// onBoth runs f with the program on SQLite and on PostgreSQL.
func onBoth(t *testing.T, spec, schema string, f func(t *testing.T, p *engine.Program, log *bytes.Buffer)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		p, log := program(t, spec, schema)
		f(t, p, log)
	})
	t.Run("postgres", func(t *testing.T) {
		urls := map[string]string{}
		p, log := programWith(t, spec, schema, engine.Options{Fresh: true, URL: func(database string) string {
			if urls[database] == "" {
				urls[database] = servers.Postgres(t)
			}
			return urls[database]
		}})
		f(t, p, log)
	})
}

func programWith(t *testing.T, spec, schema string, o engine.Options) (*engine.Program, *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("schema.sql", schema)
	write("spec.cue", "package spec\n\nserver: {name: \"spec\", version: \"1\", local: claims: sub: \"me\"}\n"+spec)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"TOKEN": "token-0123456789"}[name]
		return v, ok
	}
	graphs, faults := dsl.Load([]string{filepath.Join(dir, "spec.cue")}, dsl.Options{Env: env})
	if faults.Fatal() {
		t.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		t.Fatal(faults)
	}
	log := new(bytes.Buffer)
	o.Env, o.Log, o.Incident = env, slog.New(slog.NewTextHandler(log, nil)), func() string { return "i1" }
	if err := p.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p, log
}

func call(t *testing.T, p *engine.Program, tool, args string) *presenters.Response {
	t.Helper()
	resp, err := p.Traced(context.Background(), &engine.Caller{Session: "s", Claims: p.Server().Local}, tool, []byte(args), nil)
	if err != nil && !errors.Is(err, engine.ErrUnknownTool) {
		t.Fatal(err)
	}
	return resp
}

func text(r *presenters.Response) string {
	var b strings.Builder
	for i := range r.Blocks {
		b.Write(r.Blocks[i].Text)
		b.WriteByte('\n')
	}
	return b.String()
}

const accounts = `
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
tools: {
	"accounts.get": {
		kind: "query", description: "d"
		params: id: int
		sql: {query: "SELECT id, owner, cents FROM accounts WHERE id = @id", one: true}
	}
	"accounts.list": {kind: "query", description: "d", sql: query: "SELECT id, owner, cents FROM accounts ORDER BY id"}
	"accounts.open": {
		kind: "action", description: "d"
		params: {id: int, owner: string}
		sql: query: "INSERT INTO accounts (id, owner, cents) VALUES (@id, @owner, 0)"
		errors: [{sqlstate: "23505", code: "CONFLICT", message: "{{ args.owner }} has an account.", actions: ["accounts.get"], details: id: "{{ args.id }}"}]
	}
	"accounts.take": {
		kind: "mutation", description: "d"
		params: {id: int, cents: int}
		sql: {query: "UPDATE accounts SET cents = cents - @cents WHERE id = @id RETURNING id, cents", one: true}
		errors: [{when: "result.cents < 0", code: "CONFLICT", message: "Only {{ result.cents + args.cents }} cents are left.", retryAfter: "{{ 30 }}"}]
	}
	"accounts.odd": {
		kind: "mutation", description: "d"
		params: id: int
		sql: {query: "UPDATE accounts SET cents = 5 WHERE id = @id RETURNING id, owner", one: true}
		returns: schema: {id: int, owner: "nobody"}
	}
	"accounts.bad": {
		kind: "query", description: "d"
		params: {name: string, password: string @secret()}
		sql: query: "SELECT no_such_function(@name, @password)"
	}
	"accounts.deep": {
		kind: "query", description: "d"
		params: {
			login: {pin: string @secret()} | {token: string @secret(), pins?: [...{pin: string @secret()}]}
			key: {...} @secret()
		}
		sql: {query: "SELECT @sum AS n", args: sum: "{{ int(args.login.pins[0].pin) + int(args.key.a) }}"}
	}
	"accounts.write": {kind: "query", description: "d", sql: query: "WITH one AS (SELECT 1) DELETE FROM accounts"}
	"accounts.slow": {
		kind: "query", description: "d", timeout: "50ms"
		sql: query: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
	}
}
`

const accountsSchema = `
CREATE TABLE accounts (id integer PRIMARY KEY, owner text NOT NULL, cents integer NOT NULL);
INSERT INTO accounts VALUES (1, 'ann', 100), (2, 'bob', 200);
`

func TestOutcomes(t *testing.T) {
	p, _ := program(t, accounts, accountsSchema)
	for _, c := range []struct{ name, tool, args, code, want string }{
		{"by the spec's name", "accounts.get", `{"id":1}`, "", "{\n  \"id\": 1,\n  \"owner\": \"ann\",\n  \"cents\": 100\n}\n"},
		{"by the exposed name", "accounts_get", `{"id":1}`, "", "{\n  \"id\": 1,\n  \"owner\": \"ann\",\n  \"cents\": 100\n}\n"},
		{"no row", "accounts.get", `{"id":9}`, "NOT_FOUND", "<tool_error code=\"NOT_FOUND\" severity=\"error\">\n<message>Nothing found for these arguments.</message>\n</tool_error>\n"},
		{"no such tool", "accounts.gt", ``, "UNKNOWN_TOOL", "<tool_error code=\"UNKNOWN_TOOL\" severity=\"error\">\n<message>Tool \"accounts.gt\" does not exist.</message>\n<recovery>Check the available tools via tools/list and call a valid one.</recovery>\n</tool_error>\n"},
		{"arguments that are no JSON", "accounts.get", `{"id":`, "VALIDATION_ERROR", "<tool_error code=\"VALIDATION_ERROR\" severity=\"error\">\n<message>The arguments of accounts.get cannot be read: unexpected EOF.</message>\n<recovery>Send the arguments as one JSON object.</recovery>\n</tool_error>\n"},
		{"arguments that are a list", "accounts.get", `[1]`, "VALIDATION_ERROR", "<tool_error code=\"VALIDATION_ERROR\" severity=\"error\">\n<message>The arguments of accounts.get cannot be read: they must be an object.</message>\n<recovery>Send the arguments as one JSON object.</recovery>\n</tool_error>\n"},
		{"a declared sqlstate", "accounts.open", `{"id":1,"owner":"ann"}`, "CONFLICT", "<tool_error code=\"CONFLICT\" severity=\"error\">\n<message>ann has an account.</message>\n<available_actions>\n  <action>accounts_get</action>\n</available_actions>\n<details>\n  <detail key=\"id\">1</detail>\n</details>\n</tool_error>\n"},
		{"a declared outcome", "accounts.take", `{"id":1,"cents":150}`, "CONFLICT", "<tool_error code=\"CONFLICT\" severity=\"error\">\n<message>Only 100 cents are left.</message>\n<retry_after>30 seconds</retry_after>\n</tool_error>\n"},
		{"a row that does not fit", "accounts.odd", `{"id":2}`, "INTERNAL_ERROR", "<tool_error code=\"INTERNAL_ERROR\" severity=\"error\">\n<message>[accounts/odd] Something went wrong. Incident i1.</message>\n<recovery>Nothing was changed. Give the incident id to the user.</recovery>\n</tool_error>\n"},
		{"a query that writes", "accounts.write", ``, "INTERNAL_ERROR", "<tool_error code=\"INTERNAL_ERROR\" severity=\"error\">\n<message>[accounts/write] Something went wrong. Incident i1.</message>\n<recovery>This may be a transient error. Retry the same call with identical parameters.</recovery>\n</tool_error>\n"},
		{"no answer in time", "accounts.slow", ``, "TIMEOUT", "<tool_error code=\"TIMEOUT\" severity=\"error\">\n<message>[accounts/slow] There was no answer within 50ms.</message>\n<recovery>Retry once with narrower arguments.</recovery>\n</tool_error>\n"},
		{"nothing was changed by any of them", "accounts.list", ``, "", "[\n  {\n    \"id\": 1,\n    \"owner\": \"ann\",\n    \"cents\": 100\n  },\n  {\n    \"id\": 2,\n    \"owner\": \"bob\",\n    \"cents\": 200\n  }\n]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := call(t, p, c.tool, c.args)
			if resp.Code != c.code || text(resp) != c.want {
				t.Errorf("code %q\n%s\nwant code %q\n%s", resp.Code, text(resp), c.code, c.want)
			}
		})
	}
}

func TestNoSecretInTheLog(t *testing.T) {
	p, log := program(t, `env: TOKEN: string @secret()`+accounts, accountsSchema)
	resp := call(t, p, "accounts.bad", `{"name":"no such function token-0123456789","password":"hunter2hunter2"}`)
	if resp.Code != "INTERNAL_ERROR" {
		t.Fatalf("code %s", resp.Code)
	}
	line := log.String()
	if !strings.Contains(line, "incident=i1") || !strings.Contains(line, "no such function") {
		t.Errorf("the log does not hold the cause: %s", line)
	}
	for _, secret := range []string{"hunter2", "token-0123456789"} {
		if strings.Contains(line, secret) || strings.Contains(text(resp), secret) {
			t.Errorf("%s came out: %s", secret, line)
		}
	}
}

// In grouped exposition a tool of one word has the name of its group: the
// arguments that the group's schema asks for must fit.
func TestOneWordGrouped(t *testing.T) {
	p, _ := program(t, `
tools: {
	ping: {kind: "query", description: "d", params: x?: int, value: "pong {{ args.x }}"}
	"ping.far": {kind: "query", description: "d", value: "far"}
}
server: exposition: "grouped"
`, "")
	for args, want := range map[string]string{
		`{"action":"default","x":1}`: "pong 1\n",
		`{"action":"far"}`:           "far\n",
		`{"x":2}`:                    "pong 2\n", // by the name in the spec
		`{"action":"near"}`: "<tool_error code=\"UNKNOWN_ACTION\">\n<message>The action \"near\" does not exist.</message>\n" +
			"<available_actions>default, far</available_actions>\n" +
			"<recovery>Choose a valid action from available_actions and call the tool again.</recovery>\n</tool_error>\n",
	} {
		if got := text(call(t, p, "ping", args)); got != want {
			t.Errorf("%s gives\n%s\nwant\n%s", args, got, want)
		}
	}
}

// A secret parameter is one at any depth.
func TestSecretValues(t *testing.T) {
	p, _ := program(t, accounts, accountsSchema)
	args, err := value.Parse([]byte(`{"login":{"token":"tt","pins":[{"pin":"p1"},{"pin":"p2"}]},"key":{"a":"k1","b":["k2",3]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(p.SecretValues("accounts.deep", args.(*value.Object))), "[tt p1 p2 k1 k2 3]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCancelledCall(t *testing.T) {
	p, _ := program(t, accounts, accountsSchema)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	resp, err := p.Traced(ctx, &engine.Caller{}, "accounts.take", []byte(`{"id":1,"cents":1}`), nil)
	if err != nil || text(resp) != "<tool_error>\n<message>[accounts/take] Request cancelled.</message>\n</tool_error>\n" {
		t.Errorf("%v %s", err, text(resp))
	}
	if got := text(call(t, p, "accounts.get", `{"id":1}`)); !strings.Contains(got, `"cents": 100`) {
		t.Errorf("the cancelled call took effect: %s", got)
	}
}

func TestCallsAtOnce(t *testing.T) {
	p, _ := program(t, accounts, accountsSchema)
	var wg sync.WaitGroup
	for range 20 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			if r := call(t, p, "accounts.take", `{"id":2,"cents":10}`); r.Code != "" {
				t.Errorf("take: %s", text(r))
			}
		}()
		go func() {
			defer wg.Done()
			if r := call(t, p, "accounts.list", ``); r.Code != "" {
				t.Errorf("list: %s", text(r))
			}
		}()
	}
	wg.Wait()
	if got := text(call(t, p, "accounts.get", `{"id":2}`)); !strings.Contains(got, `"cents": 0`) {
		t.Errorf("200 cents less 20 times 10 are not 0: %s", got)
	}
}

func TestNothingToSayIsStillAnswered(t *testing.T) {
	p, _ := program(t, `tools: ping: {kind: "query", description: "d", expr: "nil"}`, "")
	resp := call(t, p, "ping", "")
	if got := string(resp.AppendResult(nil, true)); got != `{"content":[{"type":"text","text":"OK"}]}` {
		t.Errorf("got %s", got)
	}
	if v, _ := value.Parse([]byte(`{"a":1}`)); call(t, p, "ping", string(value.AppendJSON(nil, v))).Code != "VALIDATION_ERROR" {
		t.Error("an unknown argument was taken")
	}
}
