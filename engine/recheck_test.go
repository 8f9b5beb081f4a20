package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
)

// TestRecheck holds that a name which no column has is told with its place,
// wherever it is read, and that everything else is left alone.
func TestRecheck(t *testing.T) {
	onBoth(t, `
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
_one: {query: "SELECT id, owner, cents FROM accounts WHERE id = @id", one: true}
_all: {query: "SELECT id, owner, cents, count(*) OVER () AS n FROM accounts", nest: lines: {query: "SELECT account, text FROM lines WHERE account IN (@rows.id)", by: "account"}}
tools: {
	"good.result": {
		kind: "query", description: "d", params: id: int
		sql: _one
		result: {cents: "{{ item.cents }}", who: "{{ item.owner ?? 'nobody' }}"}
		errors: [{when: "result == nil", code: "NOT_FOUND", message: "None."}]
	}
	"good.list": {
		kind: "query", description: "d"
		sql: _all
		total: "n"
		errors: [{when: "result == nil || len(result ?? []) > 5 && result[0].lines[0].text == 'x'", code: "BUSY", message: "{{ len(result) }}"}]
	}
	"good.steps": {
		kind: "action", description: "d", params: id: int
		steps: [
			{name: "one", sql: _one, errors: [{when: "one == nil || one.cents < 0", code: "NOT_FOUND", message: "None {{ result?.owner }}."}]},
			{name: "list", when: "one.cents > 0", sql: _all},
			{name: "hurt", sql: query: "UPDATE accounts SET cents = @one.cents WHERE owner = @one.owner"},
			{name: "made", sql: _one, result: {total: "{{ item.cents }}"}},
			{value: {z: "{{ one == nil ? 0 : one.id ?? 1 }} {{ list == nil }} {{ len(list ?? []) }}", a: "{{ hurt.affected }}", b: "{{ list[0].owner }}", c: "{{ made.total }}", d: "{{ one?.cents }}"}},
		]
	}
	"good.choose": {
		kind: "query", description: "d", params: {what: *"short" | "long", id: int}
		sql: {query: "SELECT @what FROM accounts WHERE id = @id", one: true, choose: what: {short: "id", long: "id, owner"}}
		result: "{{ item.owner }}"
		errors: [{when: "result.owner == 'x'", code: "BUSY", message: "Busy."}]
	}
	"good.returning": {
		kind: "action", description: "d", params: how: *"count" | "rows"
		sql: {query: "UPDATE accounts SET cents = 0 WHERE id > 0 @how", choose: how: {count: "AND true", rows: "RETURNING id"}}
		errors: [{when: "args.how == 'count' && result.affected == 0", code: "NOT_FOUND", message: "None."}]
	}
	"bad.result": {
		kind: "query", description: "d", params: id: int
		sql: _one
		result: {cents: "{{ item.cent }}"}
	}
	"bad.total": {kind: "query", description: "d", sql: _all, total: "m"}
	"bad.hole": {kind: "query", description: "d", sql: _all, total: "{{ item[0].m }}"}
	"bad.error": {
		kind: "query", description: "d", params: id: int
		sql: _one
		errors: [{when: "result.cts < 0", code: "CONFLICT", message: "{{ result.ownr }}"}]
	}
	"bad.steps": {
		kind: "action", description: "d", params: id: int
		steps: [
			{name: "one", sql: _one, errors: [{when: "one.balance < 0", code: "CONFLICT", message: "No."}]},
			{when: "one.open", sql: query: "UPDATE accounts SET cents = @one.cens"},
			{value: "{{ one.name }}"},
		]
	}
}
`, "CREATE TABLE accounts (id integer, owner text, cents integer); CREATE TABLE lines (account integer, text text);", func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		var got []string
		for _, f := range p.Prove(context.Background()) {
			if !f.Warning {
				got = append(got, strings.TrimPrefix(f.String(), f.At.File+":"))
			}
		}
		want := `45:28: tools."bad.result".result.cents: item has no field "cent" (did you mean "cents"?)
47:68: tools."bad.total".total: the query gives no column "m" (did you mean "n"?)
48:78: tools."bad.hole".total: item[0] has no field "m" (did you mean "n"?)
52:27: tools."bad.error".errors[0].when: result has no field "cts"
52:75: tools."bad.error".errors[0].message: result has no field "ownr" (did you mean "owner"?)
57:50: tools."bad.steps".steps[0].errors[0].when: one has no field "balance"
58:16: tools."bad.steps".steps[1].when: one has no field "open"
58:64: tools."bad.steps".steps[1].sql.query: @one.cens: one has no "cens" (did you mean "cents"?)
59:20: tools."bad.steps".steps[2].value: one has no field "name"`
		if got := strings.Join(got, "\n"); got != want {
			t.Errorf("faults:\n%s\nwant:\n%s", got, want)
		}
	})
}

// TestRecheckChosen holds that no column is missed where the caller chooses the
// database: another one may have it.
func TestRecheckChosen(t *testing.T) {
	p, _ := program(t, `
databases: {
	north: {url: "sqlite::memory:", init: ["schema.sql"]}
	south: url: "sqlite::memory:"
}
tools: t: {
	kind: "query", description: "d"
	sql: {database: "{{ ctx.claims.sub }}", query: "SELECT * FROM accounts", one: true}
	result: "{{ item.nickname ?? item.owner }}"
}
`, "CREATE TABLE accounts (id integer, owner text);")
	seed := script(t, "CREATE TABLE accounts (id integer, owner text, nickname text);")
	if err := p.Seed(context.Background(), "south", []graph.File{seed}); err != nil {
		t.Fatal(err)
	}
	if faults := p.Prove(context.Background()); len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
}
