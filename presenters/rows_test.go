package presenters

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func int1() *shape.Shape { return &shape.Shape{Kind: shape.Int} }

// rowSchema declares columns of every kind, in another order than the rows have.
func rowSchema() *shape.Shape {
	return structOf(
		&shape.Field{Name: "name", Shape: anyText(), Optional: true},
		&shape.Field{Name: "id", Shape: int1()},
		&shape.Field{Name: "active", Shape: &shape.Shape{Kind: shape.Bool}, Optional: true},
		&shape.Field{Name: "price", Shape: &shape.Shape{Kind: shape.Float}, Optional: true},
		&shape.Field{Name: "tags", Shape: listOf1(anyText()), Optional: true},
		&shape.Field{Name: "email", Shape: anyText(), Optional: true},
		&shape.Field{Name: "note", Shape: &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{anyText(), {Kind: shape.Null}}}, Optional: true},
	)
}

// rowSpec is a tool over rows with rules, blocks and a mask.
func rowSpec(t testing.TB, schema *shape.Shape, tool func(*graph.Tool, *graph.Presenter)) *View {
	t.Helper()
	p := &graph.Presenter{Name: "Row", Schema: schema,
		Rules:  []*graph.Rule{{Text: txt("static")}, {When: ptr("data.id == 3"), Text: txt("third is {{ data.name }}")}, {When: ptr("data.active == true"), Text: txt("{{ data.id }} is active at {{ data.price }}")}},
		Redact: []*graph.Redact{{Paths: []graph.Text{txt("email")}, As: "[REDACTED]"}},
		Collection: graph.Collection{
			Rules: []*graph.Rule{{Text: txt("{{ len(items) }} of {{ total }}, ids {{ map(items, .id) }}")}},
			UI: []*graph.Block{
				{Kind: "table", Columns: []graph.Column{{Title: "Id", Cell: txt("id")}, {Title: "Name", Cell: txt("name")}, {Title: "Tags", Cell: txt("tags")}, {Title: "Price", Cell: txt("price")}}},
				{Kind: "json", Content: leaf("{{ map(items, .price) }}")},
			},
		},
		Suggest: []*graph.Suggest{{When: ptr("data.id > 1"), Tool: "rows.list", Reason: txt("from {{ data.name }}")}},
		Limit:   graph.Limit{Rows: 7},
	}
	g := &graph.Graph{Presenters: []*graph.Presenter{p}, Tools: []*graph.Tool{{Name: "rows.list", Kind: "query", Params: structOf(), Returns: p}}}
	if schema == nil {
		p.Rules, p.Suggest = p.Rules[:1], nil
	}
	if tool != nil {
		tool(g.Tools[0], p)
	}
	s, faults := Compile(g, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return s.View("rows.list")
}

var rowCols = []string{"id", "name", "secret", "active", "price", "tags", "email", "note"}

// randomRows makes rows with cells of every kind, now and then one that does
// not fit.
func randomRows(r *rand.Rand, n int) *value.Rows {
	rows := value.NewRows(rowCols)
	or := func(k value.Kind, text string) {
		if r.IntN(6) == 0 {
			k, text = value.Null, ""
		}
		rows.Add(k, []byte(text))
	}
	for i := range n {
		rows.Add(value.Int, []byte(fmt.Sprint(i+1)))
		or(value.Text, []string{"Ann", "a|b\nc", "</domain_rules>", "", "\x01\"\\"}[r.IntN(5)])
		rows.Add(value.Text, []byte("undeclared-marker"))
		if r.IntN(2) == 0 {
			or(value.Int, []string{"0", "1"}[r.IntN(2)])
		} else {
			or(value.Bool, []string{"true", "false"}[r.IntN(2)])
		}
		number := r.IntN(3)
		or([]value.Kind{value.Exact, value.Float, value.Int}[number], []string{"-1.50", "1e+21", "7"}[number])
		or([]value.Kind{value.JSON, value.Text}[r.IntN(2)], []string{`["a","b"]`, `[]`}[r.IntN(2)])
		or(value.Text, "masked-marker")
		or(value.Text, "note")
	}
	if r.IntN(8) == 0 && n > 0 {
		bad := value.NewRows(rowCols)
		for i := range n {
			for k := range rowCols {
				kind, text := rows.Cell(i, k)
				if i == n-1 && k == 0 {
					kind, text = value.Text, []byte("not an id")
				}
				bad.Add(kind, text)
			}
		}
		return bad
	}
	return rows
}

// TestRowsAsObjects presents rows from their cells and as objects: both ways
// must give the same bytes, values and failures.
func TestRowsAsObjects(t *testing.T) {
	tools := map[string]func(*graph.Tool, *graph.Presenter){
		"plain":      nil,
		"toon":       func(x *graph.Tool, _ *graph.Presenter) { x.Format = "toon" },
		"structured": func(x *graph.Tool, _ *graph.Presenter) { x.Structured = true },
		"select":     func(x *graph.Tool, _ *graph.Presenter) { x.Select = true },
		"bytes":      func(x *graph.Tool, p *graph.Presenter) { x.Limit.Bytes = 1500 },
		"tokens":     func(x *graph.Tool, p *graph.Presenter) { x.Limit.Tokens = 400 },
		"gone":       func(_ *graph.Tool, p *graph.Presenter) { p.Redact[0].Remove = true },
	}
	for name, tool := range tools {
		for _, schema := range []*shape.Shape{rowSchema(), nil} {
			view := rowSpec(t, schema, tool)
			r := rand.New(rand.NewPCG(1, uint64(len(name))))
			for range 60 {
				rows := randomRows(r, r.IntN(10))
				got, want := presentBoth(view, rows, []string{"email", "id", "nothing", "id"})
				if got != want {
					t.Fatalf("%s, schema %t:\n%s\nas objects:\n%s", name, schema != nil, got, want)
				}
				got, _, _ = strings.Cut(got, "\nwithheld ")
				if strings.Contains(got, "masked-marker") || schema != nil && strings.Contains(got, "undeclared-marker") {
					t.Fatalf("%s: a hidden value leaves:\n%s", name, got)
				}
			}
		}
	}
}

func presentBoth(view *View, rows *value.Rows, keys []string) (cells, objects string) {
	one := func(data any) string {
		var withheld []any
		resp, err := view.Present(&Call{Env: expr.NewEnv(), Total: -1, Select: keys, Withheld: func(v any) { withheld = append(withheld, v) }}, data)
		if err != nil {
			return "error: " + err.Error()
		}
		side := resp.Side()
		return string(resp.AppendResult(nil, true)) + string(value.AppendJSON(nil, side.Value())) + "\nwithheld " + string(value.AppendJSON(nil, withheld))
	}
	return one(rows), one(rows.List())
}

// TestRowsKeepTheirCells shows that rows without masks and embeds are not made
// into objects: one more row costs a few allocations at most.
func TestRowsKeepTheirCells(t *testing.T) {
	view := rowSpec(t, rowSchema(), func(_ *graph.Tool, p *graph.Presenter) {
		p.Limit, p.Collection, p.Suggest, p.Rules = graph.Limit{}, graph.Collection{}, nil, p.Rules[:1]
	})
	count := func(n int) float64 {
		rows := benchRows(n)
		return testing.AllocsPerRun(20, func() {
			if _, err := view.Present(&Call{Env: expr.NewEnv(), Total: -1}, rows); err != nil {
				t.Fatal(err)
			}
		})
	}
	count(2000)
	if few, many := count(10), count(2000); many-few > 10 {
		t.Errorf("%g allocations for 10 rows, %g for 2000", few, many)
	}
}

// benchRows are rows of five columns as a database gives them.
func benchRows(n int) *value.Rows {
	rows := value.NewRows([]string{"id", "name", "price", "active", "note"})
	for i := range n {
		rows.Add(value.Int, fmt.Append(nil, i+1))
		rows.Add(value.Text, fmt.Appendf(nil, "Product number %d", i))
		rows.Add(value.Exact, fmt.Appendf(nil, "%d.50", i))
		rows.Add(value.Bool, []byte("true"))
		rows.Add(value.Text, []byte("2026-03-01T09:00:00Z"))
	}
	return rows
}
