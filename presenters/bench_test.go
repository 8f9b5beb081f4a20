package presenters

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// The twins of the benchmarks below encode the same value with
// encoding/json: as maps and lists, whose form is known at run time only, as
// ours is, and from structs, which is its quickest way.

type twinOrder struct {
	ID       int64      `json:"id"`
	Number   string     `json:"number"`
	Status   string     `json:"status"`
	PlacedOn string     `json:"placed_on"`
	Customer string     `json:"customer"`
	City     string     `json:"city"`
	Total    int64      `json:"total_cents"`
	Paid     bool       `json:"paid"`
	Note     string     `json:"note"`
	Lines    []twinLine `json:"lines"`
}

type twinLine struct {
	SKU      string `json:"sku"`
	Name     string `json:"name"`
	Quantity int64  `json:"quantity"`
	Cents    int64  `json:"cents"`
}

type twinRow struct {
	ID     int64   `json:"id"`
	Name   string  `json:"name"`
	Price  float64 `json:"price"`
	Active bool    `json:"active"`
	Note   string  `json:"note"`
}

func fields(names string, shapes ...*shape.Shape) *shape.Shape {
	s := structOf()
	start := 0
	for _, x := range shapes {
		end := start
		for end < len(names) && names[end] != ' ' {
			end++
		}
		s.Fields = append(s.Fields, &shape.Field{Name: names[start:end], Shape: x})
		start = end + 1
	}
	return s
}

// orderView is a presenter of ten fields, of which one holds embedded lines
// with a rule and a table of their own; three rules, two suggestions and a
// table block.
func orderView(b *testing.B) *View {
	b.Helper()
	line := fields("sku name quantity cents", anyText(), anyText(), int1(), int1())
	order := fields("id number status placed_on customer city total_cents paid note lines",
		int1(), anyText(), anyText(), anyText(), anyText(), anyText(), int1(), &shape.Shape{Kind: shape.Bool}, anyText(), listOf1(line))
	child := &graph.Presenter{Name: "Line", Schema: line, Rules: []*graph.Rule{{Text: txt("cents are for one piece")}},
		Collection: graph.Collection{UI: []*graph.Block{{Kind: "table", Columns: []graph.Column{{Title: "SKU", Cell: txt("sku")}, {Title: "Name", Cell: txt("name")}, {Title: "Qty", Cell: txt("quantity")}, {Title: "Cents", Cell: txt("cents")}}}}}}
	parent := &graph.Presenter{Name: "Order", Schema: order,
		Rules: []*graph.Rule{
			{Text: txt("total_cents is in CENTS. Divide by 100.")},
			{When: ptr("data.status == 'new'"), Text: txt("Order {{ data.number }} is new: confirm it.")},
			{When: ptr("data.total_cents > 100000"), Text: txt("Large order of {{ data.total_cents }} cents.")},
		},
		Suggest: []*graph.Suggest{
			{When: ptr("data.status == 'new'"), Tool: "orders.pack", Reason: txt("Pack order {{ data.number }}")},
			{Tool: "orders.get", Reason: txt("Look again")},
		},
		UI:    []*graph.Block{{Kind: "table", Rows: ptr("{{ data.lines }}"), Columns: []graph.Column{{Title: "Name", Cell: txt("name")}, {Title: "Cents", Cell: txt("cents")}}}},
		Embed: []*graph.Embed{{Key: "lines", Presenter: "Line"}},
	}
	g := &graph.Graph{Presenters: []*graph.Presenter{child, parent}, Tools: []*graph.Tool{
		{Name: "orders.get", Kind: "query", Params: structOf(), Returns: parent}, {Name: "orders.pack", Kind: "action", Params: structOf()}}}
	s, faults := Compile(g, nil)
	if len(faults) > 0 {
		b.Fatal(faults)
	}
	return s.View("orders.get")
}

func benchOrder() (*value.Object, twinOrder) {
	twin := twinOrder{ID: 4711, Number: "2026-004711", Status: "new", PlacedOn: "2026-03-01", Customer: "Ann Example", City: "Copenhagen", Total: 123450, Paid: true, Note: "Ring twice, please."}
	var lines []any
	for i := range 20 {
		l := twinLine{SKU: fmt.Sprintf("SKU-%03d", i), Name: fmt.Sprintf("Product number %d", i), Quantity: int64(i + 1), Cents: int64(100 * i)}
		twin.Lines = append(twin.Lines, l)
		lines = append(lines, value.Of("sku", l.SKU, "name", l.Name, "quantity", l.Quantity, "cents", l.Cents, "order_id", twin.ID))
	}
	return value.Of("id", twin.ID, "number", twin.Number, "status", twin.Status, "placed_on", twin.PlacedOn, "customer", twin.Customer, "city", twin.City,
		"total_cents", twin.Total, "paid", twin.Paid, "note", twin.Note, "lines", lines), twin
}

func benchEnv() *expr.Env {
	e := expr.NewEnv()
	e.Set("args", &value.Object{})
	e.Set("ctx", &value.Object{})
	return e
}

func present(b *testing.B, v *View, data any) {
	b.Helper()
	b.ReportAllocs()
	env := benchEnv()
	for b.Loop() {
		if _, err := v.Present(&Call{Env: env, Total: -1}, data); err != nil {
			b.Fatal(err)
		}
	}
}

func marshalIndent(b *testing.B, v any) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.MarshalIndent(v, "", "  "); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPresentOrder(b *testing.B) {
	data, twin := benchOrder()
	b.Run("present", func(b *testing.B) { present(b, orderView(b), data) })
	b.Run("marshalindent", func(b *testing.B) { marshalIndent(b, goValue(data)) })
	b.Run("marshalindent-structs", func(b *testing.B) { marshalIndent(b, twin) })
}

// goValue is a value as encoding/json knows it: maps and lists.
func goValue(v any) any {
	switch v := v.(type) {
	case *value.Object:
		m := make(map[string]any, v.Len())
		for i := range v.Len() {
			k, x := v.At(i)
			m[k] = goValue(x)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = goValue(x)
		}
		return l
	}
	return v
}

// rowsView is a list of five columns with one static rule, and with two
// conditional ones that no row meets.
func rowsView(b *testing.B, conditional bool) *View {
	b.Helper()
	s := fields("id name price active note", int1(), anyText(), &shape.Shape{Kind: shape.Float}, &shape.Shape{Kind: shape.Bool}, anyText())
	p := &graph.Presenter{Name: "Row", Schema: s, Rules: []*graph.Rule{{Text: txt("price is in EUR")}}}
	if conditional {
		p.Rules = append(p.Rules,
			&graph.Rule{When: ptr("data.id < 0"), Text: txt("{{ data.name }} has no number")},
			&graph.Rule{When: ptr("!data.active"), Text: txt("{{ data.name }} is not sold")})
	}
	g := &graph.Graph{Presenters: []*graph.Presenter{p}, Tools: []*graph.Tool{{Name: "rows.list", Kind: "query", Params: structOf(), Returns: p}}}
	set, faults := Compile(g, nil)
	if len(faults) > 0 {
		b.Fatal(faults)
	}
	return set.View("rows.list")
}

func BenchmarkPresentRows(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rows := benchRows(n)
			var twin []twinRow
			for i := range n {
				twin = append(twin, twinRow{int64(i + 1), fmt.Sprintf("Product number %d", i), float64(i) + 0.5, true, "2026-03-01T09:00:00Z"})
			}
			b.Run("present", func(b *testing.B) { present(b, rowsView(b, false), rows) })
			b.Run("conditional", func(b *testing.B) { present(b, rowsView(b, true), rows) })
			b.Run("marshalindent", func(b *testing.B) { marshalIndent(b, goValue(rows.List())) })
			b.Run("marshalindent-structs", func(b *testing.B) { marshalIndent(b, twin) })
		})
	}
}
