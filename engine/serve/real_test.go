package serve_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/serve"
)

const realSpec = `
package shop

server: {
	name:    "shop"
	version: "1.2.0"
	local: claims: sub: "me"
}

databases: main: {
	url: "sqlite::memory:"
	init: ["schema.sql"]
}

tools: {
	"items.get": {
		kind:        "query"
		description: "One item"
		params: id: int & >0
		sql: {
			query: "SELECT id, name, price FROM items WHERE id = @id"
			one:   true
		}
	}
	"items.who": {
		kind:        "query"
		description: "Who asks"
		value: {session: "{{ ctx.session startsWith 'stdio-' }}", client: "{{ ctx.client }}", sub: "{{ ctx.claims.sub }}"}
	}
}
`

// realProgram compiles and opens a spec, as the command line does.
func realProgram(t *testing.T) *engine.Program {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"shop.cue":   realSpec,
		"schema.sql": "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price NUMERIC); INSERT INTO items VALUES (1, 'Tea', 3);",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	graphs, faults := dsl.Load([]string{filepath.Join(dir, "shop.cue")}, dsl.Options{})
	if faults.Fatal() || len(graphs) != 1 {
		t.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		t.Fatal(faults)
	}
	if err := p.Open(t.Context(), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}

// TestRealProgram serves a spec with a database in every revision over both
// transports.
func TestRealProgram(t *testing.T) {
	p := realProgram(t)
	r := start(t, p, serve.Options{})
	s := r.open(t, "2025-11-25")
	tea := `"content":[` + text("{\n  \"id\": 1,\n  \"name\": \"Tea\",\n  \"price\": 3\n}") + `]`
	want(t, "2025", send(t, "POST", r.url, call("1", "items_get", `{"id":1}`, false), s...), `200 {"jsonrpc":"2.0","id":1,"result":{`+tea+`}}`)
	want(t, "2026", send(t, "POST", r.url, call("1", "items_get", `{"id":1}`, true), modernHeaders("tools/call", "items_get")...),
		`200 {"jsonrpc":"2.0","id":1,"result":{`+modernHead+tea+`}}`)
	want(t, "who", send(t, "POST", r.url, call("2", "items_who", `{}`, false), s...), `200 {"jsonrpc":"2.0","id":2,"result":{"content":[`+
		text("{\n  \"session\": false,\n  \"client\": \"tester\",\n  \"sub\": \"me\"\n}")+`]}}`)
	want(t, "unknown", send(t, "POST", r.url, call("3", "items_put", `{}`, false), s...), `200 {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Tool \"items_put\" does not exist."}}`)
	if got := send(t, "POST", r.url, call("4", "items_get", `{"id":0}`, false), s...); got.status != 200 || !strings.Contains(got.body, `<validation_error action=\"items/get\">`) || !strings.Contains(got.body, `"isError":true`) {
		t.Errorf("bad arguments: %s", got)
	}
	if got := send(t, "POST", r.url, call("5", "items_get", `{"id":9}`, false), s...); !strings.Contains(got.body, `code=\"NOT_FOUND\"`) {
		t.Errorf("no row: %s", got)
	}
	list := send(t, "POST", r.url, `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`, s...)
	if get, who := strings.Index(list.body, `"name":"items_get"`), strings.Index(list.body, `"name":"items_who"`); get < 0 || who < get {
		t.Errorf("list: %s", list)
	}
	pipe := startStdio(t, r.Server)
	pipe.wants(t, call("7", "items_get", `{"id":1}`, false), `{"jsonrpc":"2.0","id":7,"result":{`+tea+`}}`)
	pipe.wants(t, call("9", "items_who", `{}`, true), `{"jsonrpc":"2.0","id":9,"result":{`+modernHead+`"content":[`+
		text("{\n  \"session\": true,\n  \"client\": \"moderner\",\n  \"sub\": \"me\"\n}")+`]}}`)
	pipe.wants(t, call("8", "items_get", `{"id":1}`, true), `{"jsonrpc":"2.0","id":8,"result":{`+modernHead+tea+`}}`)
}
