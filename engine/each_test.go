package engine_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine"
)

const linesSchema = `
CREATE TABLE orders (id integer PRIMARY KEY, note text);
CREATE TABLE lines (order_id integer NOT NULL REFERENCES orders, sku text NOT NULL, pieces integer NOT NULL CHECK (pieces > 0), PRIMARY KEY (order_id, sku));
`

func lines(url string) string {
	return fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: store: baseURL: %q
#Line: {sku: string, pieces: int, remote: bool | *false}
tools: {
	"orders.place": {
		kind: "action", description: "d"
		params: {id: int, lines?: [...#Line], skus: [...string] | *[]}
		steps: [
			{name: "placed", sql: {query: "INSERT INTO orders (id) VALUES (@id) RETURNING id", one: true}},
			{
				name: "added"
				each: "{{ args.lines }}"
				sql: {query: "INSERT INTO lines (order_id, sku, pieces) VALUES (@placed.id, @item.sku, @item.pieces) RETURNING sku", one: true}
				result: "{{ item.sku }} of {{ args.id }}"
				errors: [{sqlstate: "23514", code: "BAD_LINE", message: "A line needs pieces."}]
			},
			{
				name: "held"
				each: "{{ args.lines }}"
				when: "item.remote"
				http: {api: "store", post: "/hold/{{ item.sku }}", body: {sku: "{{ item.sku }}", of: "{{ placed.id }}"}}
				undo: http: {api: "store", post: "/free/{{ item.sku }}", body: held: "{{ held.id }}"}
			},
			{name: "extra", each: "{{ args.skus }}", sql: {query: "INSERT INTO lines (order_id, sku, pieces) VALUES (@id, @item, 1) RETURNING sku, pieces", one: true}},
		]
		result: {added: "{{ added }}", held: "{{ map(held ?? [], #?.id) }}", extra: "{{ extra }}"}
	}
	"orders.lines": {kind: "query", description: "d", sql: query: "SELECT sku, pieces FROM lines ORDER BY sku"}
}
`, url)
}

func TestEach(t *testing.T) {
	u := newUpstream(t, map[string]answer{
		"POST /hold/a": {body: map[string]any{"id": "h1"}}, "POST /hold/c": {body: map[string]any{"id": "h3"}},
		"POST /free/a": {}, "POST /free/c": {},
	})
	onBoth(t, lines(u.URL), linesSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		gives(t, p, "orders.place", `{"id":1,"lines":[{"sku":"a","pieces":1,"remote":true},{"sku":"b","pieces":2},{"sku":"c","pieces":3,"remote":true}],"skus":["d"]}`,
			`{"added":["a of 1","b of 1","c of 1"],"held":["h1",null,"h3"],"extra":[{"sku":"d","pieces":1}]}`)
		wantRequests(t, u, `POST /hold/a {"sku":"a","of":1}`, `POST /hold/c {"sku":"c","of":1}`)
		gives(t, p, "orders.lines", ``, `[{"sku":"a","pieces":1},{"sku":"b","pieces":2},{"sku":"c","pieces":3},{"sku":"d","pieces":1}]`)

		// nil is no element.
		gives(t, p, "orders.place", `{"id":2}`, `{"added":[],"held":[],"extra":[]}`)

		// One element fails: all is taken back, that of the elements before it too.
		ends(t, p, "orders.place", `{"id":3,"lines":[{"sku":"a","pieces":1},{"sku":"b","pieces":0}]}`, "BAD_LINE", failure("BAD_LINE", "A line needs pieces.", ""))
		wantRequests(t, u)
		ends(t, p, "orders.place", `{"id":3,"lines":[{"sku":"a","pieces":1,"remote":true},{"sku":"b","pieces":1},{"sku":"c","pieces":1,"remote":true}],"skus":["d","d"]}`,
			"CONFLICT", failure("CONFLICT", "There is an entry with these values already.", "Look it up, or send other values."))
		wantRequests(t, u, `POST /hold/a {"sku":"a","of":3}`, `POST /hold/c {"sku":"c","of":3}`, `POST /free/c {"held":"h3"}`, `POST /free/a {"held":"h1"}`)
		gives(t, p, "orders.place", `{"id":3}`, `{"added":[],"held":[],"extra":[]}`)

		many := `{"id":4,"skus":["x"` + strings.Repeat(`,"x"`, 1000) + `]}`
		ends(t, p, "orders.place", many, "VALIDATION_ERROR", failure("VALIDATION_ERROR", "This would go through 1001 elements one by one: 1000 are the most.", "Split them over several calls."))
	})
}

// An optional statement that fails leaves the transaction as it was; a rule of
// its own holds all the same.
func TestOptional(t *testing.T) {
	u := newUpstream(t, map[string]answer{"POST /hook": {status: 500}, "POST /other": {status: http.StatusConflict}})
	spec := fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: {baseURL: %q, errors: [{status: 500, code: "BROKEN", message: "It is broken."}]}
tools: {
	"orders.copy": {
		kind: "action", description: "d"
		params: {id: int, sku: string | *"a", strict: bool | *false}
		steps: [
			{sql: query: "INSERT INTO orders (id) VALUES (@id)"},
			{name: "line", optional: true, sql: {query: "INSERT INTO lines (order_id, sku, pieces) VALUES (@id, @sku, 0) RETURNING sku", one: true}
				errors: [{when: "args.strict", sqlstate: "23514", code: "STRICT", message: "No."}]},
			{name: "hook", optional: true, http: {api: "hooks", post: "/hook"}},
			{name: "other", optional: true, when: "args.sku == 'x'", http: {api: "hooks", post: "/other"}, errors: [{status: 409, code: "TAKEN", message: "Taken."}]},
			{name: "all", sql: {query: "SELECT id FROM orders ORDER BY id"}},
		]
		result: {line: "{{ line }}", hook: "{{ hook == nil }}", all: "{{ map(all, .id) }}"}
	}
	"orders.all": {kind: "query", description: "d", sql: query: "SELECT id FROM orders ORDER BY id"}
}
`, u.URL)
	onBoth(t, spec, linesSchema, func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		gives(t, p, "orders.copy", `{"id":1}`, `{"line":null,"hook":true,"all":[1]}`)
		for _, want := range []string{`msg="an optional step failed" tool=orders.copy cause="tools.\"orders.copy\".steps[1]: `, `steps[2]: service hooks answered 500"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("log:\n%s\nwant %s", log, want)
			}
		}
		ends(t, p, "orders.copy", `{"id":2,"strict":true}`, "STRICT", failure("STRICT", "No.", ""))
		ends(t, p, "orders.copy", `{"id":2,"sku":"x"}`, "TAKEN", failure("TAKEN", "Taken.", ""))
		gives(t, p, "orders.all", ``, `[{"id":1}]`)
	})
}

// The steps of a query see one state of the database, and cannot write.
func TestQuerySteps(t *testing.T) {
	var p *engine.Program
	u := newUpstream(t, map[string]answer{"GET /wait": {before: func(*http.Request) { gives(t, p, "orders.add", `{"id":7}`, `{"affected":1}`) }}})
	spec := fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: baseURL: %q
tools: {
	"orders.add": {kind: "action", description: "d", params: id: int, sql: query: "INSERT INTO orders (id) VALUES (@id)"}
	"orders.twice": {
		kind: "query", description: "d"
		steps: [
			{name: "before", sql: {query: "SELECT count(*) AS n FROM orders", one: true}},
			{http: {api: "hooks", get: "/wait"}},
			{name: "after", sql: {query: "SELECT count(*) AS n FROM orders", one: true}},
		]
		result: {before: "{{ before.n }}", after: "{{ after.n }}"}
	}
	"orders.sneak": {kind: "query", description: "d", steps: [{sql: query: "SELECT 1 AS n"}, {sql: query: "WITH one AS (SELECT 1) INSERT INTO orders (id) VALUES (9)"}]}
	"orders.alone": {kind: "query", description: "d", steps: [{name: "n", expr: "40"}, {sql: {query: "SELECT CAST(@n AS integer) + 2 AS n", one: true}}]}
	"orders.none": {kind: "query", description: "d", steps: [{name: "n", expr: "40"}, {sql: {query: "SELECT id FROM orders WHERE id = @n", one: true}}]}
	"orders.rows": {kind: "query", description: "d", steps: [{name: "n", expr: "40"}, {sql: query: "SELECT id, count(*) OVER () AS n FROM orders ORDER BY id"}], total: "n", limit: rows: 1}
}
`, u.URL)
	onBoth(t, spec, linesSchema, func(t *testing.T, q *engine.Program, log *bytes.Buffer) {
		p = q
		gives(t, p, "orders.twice", ``, `{"before":0,"after":0}`)
		gives(t, p, "orders.alone", ``, `{"n":42}`)
		ends(t, p, "orders.none", ``, "NOT_FOUND", failure("NOT_FOUND", "Nothing found for these arguments.", ""))
		if r := call(t, p, "orders.sneak", ``); r.Code != "INTERNAL_ERROR" || !strings.Contains(log.String(), `steps[1]: `) {
			t.Errorf("%s\n%s", text(r), log)
		}
		gives(t, p, "orders.add", `{"id":1}`, `{"affected":1}`)
		if got := text(call(t, p, "orders.rows", ``)); !strings.Contains(got, "Dataset truncated. 1 shown, 1 hidden.") {
			t.Errorf("the rows of the last step are not counted:\n%s", got)
		}
	})
}
