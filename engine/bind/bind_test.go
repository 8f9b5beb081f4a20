package bind

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const shop = `
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, vip boolean NOT NULL);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, status text NOT NULL, placed_on date NOT NULL, total numeric(10,2) NOT NULL);
CREATE TABLE lines (order_id integer NOT NULL, sku text NOT NULL, quantity integer NOT NULL);
CREATE TABLE products (sku text PRIMARY KEY, name text NOT NULL);
INSERT INTO customers VALUES (1, 'Ann', true); INSERT INTO customers VALUES (2, 'Bob', false);
INSERT INTO orders VALUES (10, 1, 'new', '2026-03-01', 12.50); INSERT INTO orders VALUES (11, 1, 'paid', '2026-03-02', 7);
INSERT INTO orders VALUES (12, NULL, 'new', '2026-03-03', 100);
INSERT INTO lines VALUES (10, 'tea', 2); INSERT INTO lines VALUES (10, 'cup', 1); INSERT INTO lines VALUES (12, 'tea', 9);
INSERT INTO products VALUES ('tea', 'Tea'); INSERT INTO products VALUES ('cup', 'Cup');
`

func onBoth(t *testing.T, f func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, opened(t, "sqlite::memory:")) })
	t.Run("postgres", func(t *testing.T) { f(t, opened(t, servers.Postgres(t))) })
}

func opened(t testing.TB, url string) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{Name: "main", URL: url, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := d.Script(context.Background(), shop); err != nil {
		t.Fatal(err)
	}
	return d
}

// str and the like make shapes of parameters.
var (
	str   = &shape.Shape{Kind: shape.String}
	num   = &shape.Shape{Kind: shape.Int}
	yesno = &shape.Shape{Kind: shape.Bool}
	list  = &shape.Shape{Kind: shape.List, Items: &shape.Shape{Kind: shape.Any}}
	ctxIs = &shape.Shape{Kind: shape.Struct, Fields: []*shape.Field{
		{Name: "now", Shape: str},
		{Name: "claims", Shape: &shape.Shape{Kind: shape.Struct, Fields: []*shape.Field{{Name: "sub", Shape: str}}}, Optional: true},
	}}
)

// tool makes a tool that is bound to a query; its parameters are all optional.
func tool(kind, query string, params map[string]*shape.Shape) *graph.Tool {
	t := &graph.Tool{Name: "t", Kind: kind, Params: &shape.Shape{Kind: shape.Struct}}
	for name, s := range params {
		t.Params.Fields = append(t.Params.Fields, &shape.Field{Name: name, Shape: s, Optional: true})
	}
	if query != "" {
		t.SQL = &graph.SQL{Database: "main", Query: *text(query)}
	}
	return t
}

func node(s string) *graph.Node {
	t := text(s)
	return &graph.Node{Kind: graph.String, Text: *t, At: t.At, Path: t.Path}
}

func scopeOf(t *graph.Tool) *expr.Scope {
	return new(expr.Scope).With("args", t.Params).With("ctx", ctxIs).With("env", &shape.Shape{Kind: shape.Struct})
}

var spec = &Spec{Graph: &graph.Graph{
	Databases: []*graph.Database{{Name: "main", URL: graph.Text{S: graph.Marker("DATABASE_URL")}}},
	Env:       []*graph.EnvVar{{Name: "TOKEN", Secret: true}},
}}

// only is a host with one database, whatever it is called.
func only(d *db.DB) *Host { return &Host{DB: func(string) *db.DB { return d }} }

func compile(t testing.TB, tool *graph.Tool) *Binding {
	t.Helper()
	b, faults := Compile(spec, tool, scopeOf(tool), db.Limit{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return b
}

func env(args *value.Object) *expr.Env {
	e := expr.NewEnv()
	e.Set("args", args)
	e.Set("ctx", value.Of("now", "2026-03-02T00:00:00Z", "claims", value.Of("sub", "Ann")))
	return e
}

// call runs a tool; pairs are its arguments.
func call(t testing.TB, d *db.DB, tool *graph.Tool, pairs ...any) *Outcome {
	t.Helper()
	return compile(t, tool).Run(context.Background(), only(d), env(value.Of(pairs...)))
}

func wants(t testing.TB, o *Outcome, want string) {
	t.Helper()
	got := ""
	if o.Err != nil {
		got = "error: " + o.Err.Error()
	} else {
		got = string(value.AppendJSON(nil, o.Result))
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		one := func(x *graph.Tool) *graph.Tool { x.SQL.One = true; return x }
		id := map[string]*shape.Shape{"id": num}
		get := "SELECT id, name, vip FROM customers WHERE id = @id"
		wants(t, call(t, d, one(tool("query", get, id)), "id", int64(1)), `{"id":1,"name":"Ann","vip":true}`)
		wants(t, call(t, d, one(tool("query", get, id)), "id", int64(9)), `null`)
		wants(t, call(t, d, tool("query", get, id), "id", int64(9)), `[]`)
		wants(t, call(t, d, tool("query", "SELECT id FROM customers ORDER BY id", nil)), `[{"id":1},{"id":2}]`)
		wants(t, call(t, d, one(tool("query", "SELECT id FROM customers", nil))), `error: one: true, but the query gave more than one row`)
		wants(t, call(t, d, tool("action", "UPDATE customers SET vip = true WHERE id >= @id", id), "id", int64(1)), `{"affected":2}`)
		wants(t, call(t, d, one(tool("action", "UPDATE customers SET vip = false WHERE id = @id RETURNING name, vip", id)), "id", int64(1)),
			`{"name":"Ann","vip":false}`)
		wants(t, call(t, d, one(tool("mutation", "DELETE FROM customers WHERE id = @id RETURNING name", id)), "id", int64(9)), `null`)
		o := call(t, d, tool("query", "WITH one AS (SELECT 1) DELETE FROM customers WHERE id = @id", id), "id", int64(1))
		var refused *db.Error
		if !errors.As(o.Err, &refused) || refused.SQLState != "25006" {
			t.Errorf("a query that writes gives %v", o.Err)
		}
		wants(t, call(t, d, tool("query", "SELECT count(*) AS n FROM customers", nil)), `[{"n":2}]`)
	})
}

func TestFilters(t *testing.T) {
	params := map[string]*shape.Shape{"status": str, "day": str, "min": num, "vip": yesno, "ids": list, "states": list, "sum": num, "skip": list}
	filtered := tool("query", `SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer_id
		WHERE (@status IS NULL OR o.status = @status)
		  AND (o.placed_on >= @day OR @day IS NULL)
		  AND (@min IS NULL OR o.id >= @min)
		  AND (@vip IS NULL OR c.vip = @vip)
		  AND (@ids IS NULL OR o.id IN (@ids))
		  AND (@sum IS NULL OR o.total = @sum)
		  AND (CASE WHEN @states IS NOT NULL THEN o.status IN (@states) ELSE 1 = 1 END)
		  AND (@skip IS NULL OR o.id NOT IN (@skip))
		ORDER BY o.id`, params)
	onBoth(t, func(t *testing.T, d *db.DB) {
		for _, c := range []struct {
			args []any
			want string
		}{
			{nil, "10 11 12"},
			{[]any{"status", "new"}, "10 12"},
			{[]any{"status", nil, "day", "2026-03-02"}, "11 12"},
			{[]any{"min", int64(12)}, "12"},
			{[]any{"vip", true}, "10 11"},
			{[]any{"sum", value.Number("12.50")}, "10"},
			{[]any{"sum", 7.0}, "11"},
			{[]any{"ids", []any{int64(12), int64(10), int64(99)}}, "10 12"},
			{[]any{"ids", []any{}}, ""},
			{[]any{"ids", []any{nil}}, ""},
			{[]any{"ids", int64(11)}, "11"},
			{[]any{"states", []any{"paid", `odd "' \ {,}`}}, "11"},
			{[]any{"skip", []any{int64(10)}}, "11 12"},
			{[]any{"skip", []any{}}, "10 11 12"},
			{[]any{"status", "new", "min", int64(11), "ids", []any{int64(10), int64(12)}}, "12"},
		} {
			o := call(t, d, filtered, c.args...)
			if o.Err != nil {
				t.Errorf("%v: %v", c.args, o.Err)
				continue
			}
			var ids []string
			for _, row := range o.Result.(*value.Rows).List() {
				id, _ := row.(*value.Object).Get("id")
				ids = append(ids, string(value.AppendText(nil, id)))
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("%v gives %q, want %q", c.args, got, c.want)
			}
		}
	})
}

func TestChoose(t *testing.T) {
	sorted := tool("query", "SELECT id FROM orders WHERE id <> @not ORDER BY @sort, id @rest LIMIT @limit",
		map[string]*shape.Shape{"sort": str, "limit": num, "not": num, "rest": str})
	for _, f := range sorted.Params.Fields {
		f.Optional = false
	}
	sorted.SQL.Choose = []graph.Choose{
		{Param: "sort", Pieces: []graph.Piece{{Key: "newest", SQL: *text("placed_on DESC")}, {Key: "status", SQL: *text("status DESC, id = @not")}}},
		{Param: "rest", Pieces: []graph.Piece{{Key: "up", SQL: *text("ASC")}, {Key: "down", SQL: *text("DESC")}}},
	}
	if n := len(compile(t, sorted).Statements()); n != 4 {
		t.Errorf("%d statements", n)
	}
	onBoth(t, func(t *testing.T, d *db.DB) {
		for _, c := range []struct{ sort, rest, want string }{
			{"newest", "up", `[{"id":12},{"id":11},{"id":10}]`},
			{"status", "up", `[{"id":11},{"id":10},{"id":12}]`},
			{"status", "down", `[{"id":11},{"id":12},{"id":10}]`},
			{"id; DROP TABLE orders", "up", `error: choose: there is no piece for sort = "id; DROP TABLE orders"`},
		} {
			wants(t, call(t, d, sorted, "sort", c.sort, "rest", c.rest, "limit", int64(9), "not", int64(0)), c.want)
		}
		wants(t, call(t, d, sorted, "rest", "up"), `error: choose: there is no piece for sort = null`)
	})
}

func TestNames(t *testing.T) {
	x := tool("query", "SELECT name, CAST(@double AS integer) AS double, CAST(@ctx.now AS text) AS now FROM customers WHERE name = @ctx.claims.sub AND @args.n = 21", map[string]*shape.Shape{"n": num})
	x.SQL.Args = []graph.NodeField{{Name: "double", Node: node("{{ args.n * 2 }}")}}
	onBoth(t, func(t *testing.T, d *db.DB) {
		wants(t, call(t, d, x, "n", int64(21)), `[{"name":"Ann","double":42,"now":"2026-03-02T00:00:00Z"}]`)
		b := compile(t, tool("query", "SELECT name FROM customers WHERE name = @ctx.claims.sub", nil))
		e := env(value.Of())
		e.Set("ctx", value.Of("now", "x"))
		wants(t, b.Run(t.Context(), only(d), e), `[]`)
		json := tool("query", "SELECT CAST(@o AS json) AS o", map[string]*shape.Shape{"o": {Kind: shape.Any}})
		if d.Dialect() == db.SQLite {
			json = tool("query", "SELECT json(@o) AS o", map[string]*shape.Shape{"o": {Kind: shape.Any}})
		}
		wants(t, call(t, d, json, "o", []any{value.Of("a", int64(1)), nil}), `[{"o":[{"a":1},null]}]`)
		wants(t, call(t, d, json, "o", value.Of("a", []any{})), `[{"o":{"a":[]}}]`)
	})
}

func TestAccept(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		b := compile(t, tool("action", "INSERT INTO customers VALUES (3, 'Eve', false) RETURNING id", nil))
		accepting := func(accept func(*Outcome) error) *Host {
			h := only(d)
			h.Accept = accept
			return h
		}
		declined := errors.New("declined")
		var seen string
		o := b.Run(t.Context(), accepting(func(o *Outcome) error {
			seen = string(value.AppendJSON(nil, o.Result))
			return declined
		}), env(value.Of()))
		if !errors.Is(o.Err, declined) || o.Result != nil || seen != `[{"id":3}]` {
			t.Errorf("got %+v, accept saw %s", o, seen)
		}
		count := tool("query", "SELECT count(*) AS n FROM customers", nil)
		wants(t, call(t, d, count), `[{"n":2}]`)
		wants(t, b.Run(t.Context(), accepting(func(*Outcome) error { return nil }), env(value.Of())), `[{"id":3}]`)
		wants(t, call(t, d, count), `[{"n":3}]`)
		asked := false
		compile(t, count).Run(t.Context(), accepting(func(*Outcome) error { asked = true; return declined }), env(value.Of()))
		if asked {
			t.Error("a read asks")
		}
		wants(t, b.Run(t.Context(), only(nil), env(value.Of())), "error: database main is not open")
	})
}

func TestShapedAnswers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		x := tool("query", "SELECT id, status, count(*) OVER () AS matches FROM orders WHERE id > @min ORDER BY id LIMIT 2", map[string]*shape.Shape{"min": num})
		x.Result = &graph.Node{Kind: graph.Struct, Fields: []graph.NodeField{
			{Name: "zz", Node: node("{{ item.status }}")}, {Name: "nr", Node: node("{{ item.id }}")}, {Name: "text", Node: node("order {{ item.id }} of {{ args.min }}")},
		}}
		x.Total = text("matches")
		o := call(t, d, x, "min", int64(0))
		wants(t, o, `[{"zz":"new","nr":10,"text":"order 10 of 0"},{"zz":"paid","nr":11,"text":"order 11 of 0"}]`)
		if o.Total != 3 {
			t.Errorf("total %d", o.Total)
		}
		if _, rows := o.Item.(*value.Rows); !rows {
			t.Errorf("item is %T", o.Item)
		}
		o = call(t, d, x, "min", int64(99))
		if wants(t, o, `[]`); o.Total != 0 {
			t.Errorf("total %d", o.Total)
		}
		x.Total = text("{{ len(item) + 40 }}")
		if o = call(t, d, x, "min", int64(0)); o.Total != 42 {
			t.Errorf("total %d", o.Total)
		}
		x.Total = text("nope")
		wants(t, call(t, d, x, "min", int64(0)), `error: total: the query gives no column "nope"`)
		x.Total = text("status")
		wants(t, call(t, d, x, "min", int64(0)), `error: total: column status: "new" is no count`)

		x = tool("query", "SELECT id FROM orders WHERE id = @id", map[string]*shape.Shape{"id": num})
		x.SQL.One = true
		x.Result = node("{{ item.id * 2 }}")
		wants(t, call(t, d, x, "id", int64(10)), `20`)
		wants(t, call(t, d, x, "id", int64(1)), `null`)
		if o := call(t, d, x, "id", int64(10)); o.Total != -1 {
			t.Errorf("total %d", o.Total)
		}
	})
}

func TestExprAndValue(t *testing.T) {
	x := tool("query", "", map[string]*shape.Shape{"n": num})
	x.Expr = text("{z: args.n + 1, a: [1, 2]}")
	wants(t, call(t, nil, x, "n", int64(1)), `{"z":2,"a":[1,2]}`)
	x.From = text("{{ item.a }}")
	x.Result = node("{{ item * 10 }}")
	wants(t, call(t, nil, x, "n", int64(1)), `[10,20]`)
	// total stands beside the list that from picks.
	x.Expr, x.From, x.Result = text("{total: 40 + args.n, rows: [1, 2]}"), text("{{ item.rows }}"), node("{{ item * 10 }}")
	x.Total = text("{{ item.total }}")
	o := call(t, nil, x, "n", int64(2))
	if wants(t, o, `[10,20]`); o.Total != 42 {
		t.Errorf("total %d", o.Total)
	}
	x = tool("query", "", map[string]*shape.Shape{"n": num})
	x.Value = &graph.Node{Kind: graph.Struct, Fields: []graph.NodeField{{Name: "b", Node: node("n is {{ args.n }}")}, {Name: "a", Node: &graph.Node{Kind: graph.Const, Const: int64(7)}}}}
	wants(t, call(t, nil, x, "n", int64(1)), `{"b":"n is 1","a":7}`)
	x.Total = text("matches")
	if _, faults := Compile(spec, x, scopeOf(x), db.Limit{}); faults.Error() != `a.cue:1:1: tools.t.sql.query: only SQL has columns: write {{ item.matches }}` {
		t.Error(faults)
	}
}

func TestLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		x := tool("query", "SELECT id FROM orders ORDER BY id", nil)
		b, _ := Compile(spec, x, scopeOf(x), db.Limit{Rows: 2})
		o := b.Run(t.Context(), only(d), env(value.Of()))
		if wants(t, o, `[{"id":10},{"id":11}]`); !o.More {
			t.Error("it does not say that there are more")
		}
	})
}

// No argument is ever a part of the statement: every hostile text comes back
// as it went in, from every place that takes a parameter.
func TestHostileArguments(t *testing.T) {
	hostile := []string{
		"", "'", "''", `"`, `\`, `\'`, "'; DROP TABLE orders; --", "/*", "*/", "--", "$1", "?1", "@id", "$$", "$x$", "{", "}", `{"a",b}`,
		"NULL", "null", "é\u2028\U0001F600", "\n\r\t\x01", "%", "_", "E'\\''", strings.Repeat("x'", 5000), "ANY($1)", `"]}`,
	}
	params := map[string]*shape.Shape{"x": {Kind: shape.Any}, "l": list}
	onBoth(t, func(t *testing.T, d *db.DB) {
		echo := tool("query", "SELECT CAST(@x AS text) AS x, 'in' AS was WHERE @x IS NOT NULL AND CAST(@x AS text) IN (@l)", params)
		b := compile(t, echo)
		before := b.Statements()[0].Stmt[d.Dialect()].SQL
		for _, h := range hostile {
			want := string(value.AppendJSON(nil, []any{value.Of("x", h, "was", "in")}))
			wants(t, b.Run(t.Context(), only(d), env(value.Of("x", h, "l", []any{"other", h, nil}))), want)
		}
		if after := b.Statements()[0].Stmt[d.Dialect()].SQL; after != before {
			t.Errorf("the statement became %s", after)
		}
		wants(t, call(t, d, tool("query", "SELECT count(*) AS n FROM orders", nil)), `[{"n":3}]`)
	})
}
