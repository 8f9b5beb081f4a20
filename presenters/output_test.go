package presenters

import (
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// What a tool gives is known from its last binding, unless from or result
// makes something else of it.
func TestOutcomeOf(t *testing.T) {
	one := graph.Binding{SQL: &graph.SQL{One: true}}
	many := graph.Binding{SQL: &graph.SQL{}}
	record := &graph.Node{Kind: graph.Struct}
	hole := &graph.Text{S: "{{ a }}"}
	steps := func(l ...*graph.Step) graph.Binding { return graph.Binding{Steps: l} }
	with := func(b graph.Binding, from *graph.Text, result *graph.Node) graph.Binding {
		b.From, b.Result = from, result
		return b
	}
	for i, c := range []struct {
		b    graph.Binding
		want outcome
	}{
		{one, oneItem}, {many, listOfItems}, {with(many, hole, nil), anything}, {with(many, nil, record), listOfItems},
		{steps(&graph.Step{Binding: many}, &graph.Step{Binding: one}), oneItem},
		{steps(&graph.Step{Binding: one}, &graph.Step{Binding: many}), listOfItems},
		{steps(&graph.Step{Binding: one, Each: hole}), listOfItems},
		{steps(&graph.Step{Binding: one, When: hole}), anything},
		{steps(&graph.Step{Binding: one, Optional: true}), anything},
		{with(steps(&graph.Step{Binding: many}), nil, record), oneItem},
		{with(steps(&graph.Step{Binding: many}), hole, record), anything},
		{with(steps(&graph.Step{Binding: many}), nil, &graph.Node{Kind: graph.String}), anything},
		{graph.Binding{Expr: hole}, anything},
	} {
		if got := outcomeOf(&graph.Tool{Binding: c.b}); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}
