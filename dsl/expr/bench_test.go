package expr_test

import (
	"fmt"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// text is a text of the spec that begins at s.cue:1:1.
func text(s string) *graph.Text {
	t := &graph.Text{S: s, At: graph.Place{File: "s.cue", Line: 1, Col: 1}, Marks: []graph.Mark{{Off: 0, Line: 1, Col: 1}}}
	for i, c := range s {
		if c == '\n' {
			t.Marks = append(t.Marks, graph.Mark{Off: i + 1, Line: len(t.Marks) + 1, Col: 1})
		}
	}
	return t
}

var (
	textShape = &shape.Shape{Kind: shape.String, MaxRunes: -1}
	intShape  = &shape.Shape{Kind: shape.Int}
)

func structOf(fields ...*shape.Field) *shape.Shape {
	return &shape.Shape{Kind: shape.Struct, Fields: fields}
}

func field(name string, s *shape.Shape) *shape.Field { return &shape.Field{Name: name, Shape: s} }

func enum(texts ...string) *shape.Shape {
	u := &shape.Shape{Kind: shape.Union}
	for _, t := range texts {
		u.Alts = append(u.Alts, &shape.Shape{Kind: shape.Const, Const: t})
	}
	return u
}

func listOf(s *shape.Shape) *shape.Shape {
	return &shape.Shape{Kind: shape.List, Items: s, MaxItems: -1}
}

// invoices makes rows of an answer.
func invoices(n int) *value.Rows {
	rows := value.NewRows([]string{"id", "amount_cents", "status", "due_on", "rate"})
	for i := range n {
		rows.Add(value.Text, fmt.Appendf(nil, "INV-%d", i))
		rows.Add(value.Int, fmt.Append(nil, 100*i))
		rows.Add(value.Text, []byte([]string{"draft", "paid", "approved"}[i%3]))
		rows.Add(value.Text, []byte("2026-03-01"))
		rows.Add(value.Exact, []byte("1.50"))
	}
	return rows
}

var invoice = structOf(field("id", textShape), field("amount_cents", intShape),
	field("status", enum("draft", "approved", "paid", "overdue")), field("due_on", textShape), field("rate", nil))

func must[T any](x T, faults graph.Faults) T {
	if len(faults) > 0 {
		panic(faults)
	}
	return x
}

// One operation is the rule over 10,000 rows; the target is 0.5 µs a row.
func BenchmarkRuleOverRows(b *testing.B) {
	rows := invoices(10_000)
	for _, rule := range []string{
		"data.status == 'overdue'",
		"data.amount_cents > 1000000 && data.status != 'paid'",
		"data.status in ['overdue', 'paid'] && data.due_on > '2026-04-01'",
	} {
		p := must(expr.Compile(text(rule), (&expr.Scope{}).With("data", invoice), expr.WantBool))
		b.Run(rule, func(b *testing.B) {
			b.ReportAllocs()
			e := expr.NewEnv()
			for b.Loop() {
				for i := range rows.Len() {
					e.SetRow("data", rows, i)
					if ok, err := p.Bool(e); ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows.Len()), "ns/row")
		})
	}
}

func BenchmarkRuleOverObject(b *testing.B) {
	e := expr.NewEnv()
	e.Set("data", invoices(1).Object(0))
	p := must(expr.Compile(text("data.status == 'overdue'"), (&expr.Scope{}).With("data", invoice), expr.WantBool))
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := p.Bool(e); ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkTemplate5(b *testing.B) {
	e := expr.NewEnv()
	e.SetRow("data", invoices(3), 2)
	t := must(expr.CompileTemplate(text("Invoice {{ data.id }} over {{ money(data.amount_cents, 'EUR') }} is {{ data.status }}, due on {{ data.due_on }}: {{ data.rate }}"),
		(&expr.Scope{}).With("data", invoice)))
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = t.Append(dst[:0], e, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCountRows(b *testing.B) {
	e := expr.NewEnv()
	e.Set("items", invoices(10_000))
	p := must(expr.Compile(text("count(items, .status == 'paid')"), (&expr.Scope{}).With("items", listOf(invoice)), expr.WantAny))
	b.ReportAllocs()
	for b.Loop() {
		if v, err := p.Eval(e); v != int64(3333) || err != nil {
			b.Fatal(v, err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	scope := (&expr.Scope{}).With("data", invoice)
	src := text("data.status == 'overdue' && data.amount_cents > 100")
	b.ReportAllocs()
	for b.Loop() {
		if _, f := expr.Compile(src, scope, expr.WantBool); f != nil {
			b.Fatal(f)
		}
	}
}
