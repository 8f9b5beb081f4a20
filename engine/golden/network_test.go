package golden_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/golden"
)

const shop = `package shop

server: {name: "shop", version: "1"}
apis: {
	items: {baseURL: "https://items.example.com/v1", retry: 1, auth: oauth2: {tokenURL: "https://auth.example.com/token", clientID: "me", clientSecret: "x"}}
	stock: baseURL: "https://stock.example.com"
}
tools: {
	"shop.find": {
		kind: "query", description: "d", params: {q: string, tags: [...string] | *[]}
		http: {api: "items", get: "/items", query: {q: "{{ args.q }}", tag: "{{ args.tags }}", all: true}, pages: next: "link"}
	}
	"shop.add": {
		kind: "action", description: "d", params: {name: string, price: number}
		steps: [
			{name: "made", http: {api: "items", post: "/items", body: {name: "{{ args.name }}", price: "{{ args.price }}", kind: {b: 1, a: [true, null]}}}},
			{http: {api: "stock", put: "/stock/{{ made.id }}", form: {n: 0, of: ["a", "b"]}}},
		]
		result: "{{ made.id }}"
	}
	"shop.picture": {
		kind: "query", description: "d"
		http: {api: "stock", get: "/picture"}
		content: {image: "data", mimeType: "{{ data.type }}"}
	}
	"shop.prices": {kind: "query", description: "d", http: {api: "stock", get: "/prices"}}
}
`

const (
	find = `call: "shop.find", args: {q: "a b"}, `
	add  = `call: "shop.add", args: {name: "Tea", price: 1.50}, `
)

// networkCases has one row for each way in which a case and its requests
// agree or do not; the detail is what the author reads.
var networkCases = []struct{ name, test, want string }{
	{"queries in any order", find + `http: [{api: "items", get: "/items?all=true&q=a%20b", response: {status: 200, body: [1]}}]`, "passed"},
	{"a tag twice", `call: "shop.find", args: {q: "x", tags: ["1", "2"]}, http: [{api: "items", get: "/items?tag=1&q=x&tag=2&all=true", response: {status: 200, body: []}}]`, "passed"},
	{"tags in another order", `call: "shop.find", args: {q: "x", tags: ["1", "2"]}, http: [{api: "items", get: "/items?tag=2&tag=1&q=x&all=true", response: {status: 200, body: []}}]`,
		`PLACE: http[0]: another request was made
diff expected sent
--- expected
+++ sent
@@ -1,5 +1,5 @@
 GET items /items
 query all = "true"
 query q = "x"
-query tag = "2"
 query tag = "1"
+query tag = "2"
`},
	{"a second page, below the host", find + `http: [
			{api: "items", get: "/items?q=a+b&all=true", response: {status: 200, body: [1], headers: link: "</v2/items>; rel=next"}},
			{api: "items", get: "/v2/items", response: {status: 200, body: [2]}},
		]`, "passed"},
	{"tried again without a wait", find + `http: [
			{api: "items", get: "/items?q=a+b&all=true", response: {status: 503, headers: "retry-after": "15"}},
			{api: "items", get: "/items?q=a+b&all=true", response: {status: 200, body: [1]}},
		]`, "passed"},
	{"no answer", find + `http: [{api: "items", get: "/items?q=a+b&all=true", response: timeout: true}], error: "TIMEOUT"`, "passed"},
	{"nothing declared", find + `error: "SERVER_BUSY"`, `a request was made that the case does not declare in http:
GET items /items
query all = "true"
query q = "a b"
`},
	{"not made", find + `http: [
			{api: "items", get: "/items?q=a+b&all=true", response: {status: 200, body: [1]}},
			{api: "stock", delete: "/x?y=1", response: status: 204},
		]`, `PLACE: http[1]: this request was not made: DELETE stock /x?y=1`},
	{"another service", find + `http: [{api: "stock", get: "/items?q=a+b&all=true", response: {status: 200, body: [1]}}]`,
		`PLACE: http[0]: another request was made
diff expected sent
--- expected
+++ sent
@@ -1,3 +1,3 @@
-GET stock /items
+GET items /items
 query all = "true"
 query q = "a b"
`},
	{"bodies in any order", add + `http: [
			{api: "items", post: "/items", body: {price: 1.5, kind: {a: [true, null], b: 1.0}, name: "Tea"}, response: {status: 201, body: id: "7"}},
			{api: "stock", put: "/stock/7", body: {of: ["a", "b"], n: 0}, response: status: 204},
		]`, "passed"},
	{"a body that is not looked at", add + `http: [
			{api: "items", post: "/items", response: {status: 201, body: id: "7"}},
			{api: "stock", put: "/stock/7", response: status: 204},
		]`, "passed"},
	{"another body", add + `http: [{api: "items", post: "/items", body: {name: "Tea", price: "1.5", kind: {b: 1, a: [true]}}, response: {status: 201, body: id: "7"}}]`,
		`PLACE: http[0]: another request was made
diff expected sent
--- expected
+++ sent
@@ -2,10 +2,11 @@
 body {
   "kind": {
     "a": [
-      true
+      true,
+      null
     ],
     "b": 1
   },
   "name": "Tea",
-  "price": "1.5"
+  "price": 1.5
 }
`},
	{"another form", add + `http: [
			{api: "items", post: "/items", response: {status: 201, body: id: "7"}},
			{api: "stock", put: "/stock/7", body: {of: "a", n: 0}, response: status: 204},
		]`, `PLACE: http[1]: another request was made
diff expected sent
--- expected
+++ sent
@@ -1,5 +1,8 @@
 PUT stock /stock/7
 body {
   "n": "0",
-  "of": "a"
+  "of": [
+    "a",
+    "b"
+  ]
 }
`},
	{"a body where none is sent", `call: "shop.prices", http: [{api: "stock", get: "/prices", body: {}, response: status: 204}]`,
		`PLACE: http[0]: another request was made
diff expected sent
--- expected
+++ sent
@@ -1,2 +1,1 @@
 GET stock /prices
-body {}
`},
	{"an image from a file", `call: "shop.picture", http: [{api: "stock", get: "/picture", response: {status: 200, file: "dot.png"}}]`, "passed"},
	{"a table from a file", `call: "shop.prices", http: [{api: "stock", get: "/prices", response: {status: 200, file: "prices.csv"}}]`, "passed"},
	{"a text", `call: "shop.prices", http: [{api: "stock", get: "/prices", response: {status: 200, headers: "content-type": "text/csv", body: "a\n1\n"}}]`, "passed"},
}

func TestNetwork(t *testing.T) {
	for _, c := range networkCases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			got, _ := runCase(t, dir, c.test)
			if got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// TestNetworkAnswers looks at what the tools made of the answers.
func TestNetworkAnswers(t *testing.T) {
	for _, c := range []struct{ test, want string }{
		{`call: "shop.picture", http: [{api: "stock", get: "/picture", response: {status: 200, file: "dot.png"}}]`,
			"call shop.picture\n\n=== text\n{\n  \"type\": \"image/png\",\n  \"size\": 4\n}\n\n=== image image/png\niVBORw==\n"},
		{`call: "shop.prices", http: [{api: "stock", get: "/prices", response: {status: 200, file: "prices.csv"}}]`,
			"call shop.prices\n\n=== text\n[\n  {\n    \"sku\": \"tea\",\n    \"n\": \"1\"\n  }\n]\n"},
		{`call: "shop.prices", http: [{api: "stock", get: "/prices", response: status: 404}], error: "NOT_FOUND"`,
			"call shop.prices\nisError: true\n\n=== text\n<tool_error code=\"NOT_FOUND\" severity=\"error\">\n<message>Nothing found for these arguments.</message>\n</tool_error>\n"},
	} {
		if _, got := runCase(t, t.TempDir(), c.test); got != c.want {
			t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.test, got, c.want)
		}
	}
}

// runCase runs one case, writing its golden file: how it ended, and that file.
func runCase(t *testing.T, dir, test string) (string, string) {
	t.Helper()
	file := filepath.Join(dir, "shop.cue")
	for name, text := range map[string]string{
		"shop.cue": shop + "tests: \"the case\": {" + test + "}\n", "dot.png": "\x89PNG", "prices.csv": "sku,n\ntea,1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(env golden.Lookup) (*graph.Graph, graph.Faults) {
		graphs, faults := dsl.Load([]string{file}, dsl.Options{Env: env, WithTests: true})
		if len(graphs) == 0 {
			return nil, faults
		}
		return graphs[0], faults
	}
	none := func(string) (string, bool) { return "", false }
	g, faults := load(none)
	if faults.Fatal() {
		t.Fatal(faults)
	}
	results, err := golden.Run(t.Context(), g, golden.Options{Update: true, Out: new(bytes.Buffer), Load: load, Env: none})
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Status != golden.Passed {
		case0 := g.Tests[0]
		detail := strings.TrimPrefix(r.Detail, case0.At.String()+": ")
		for _, e := range case0.HTTP {
			detail = strings.ReplaceAll(detail, e.At.String(), "PLACE")
		}
		return detail, ""
	}
	b, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Status), string(b)
}
