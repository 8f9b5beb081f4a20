package bind

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Columns are the columns that statements give, by their texts, once a database
// was asked. A statement without rows has none.
type Columns map[*graph.Text][]string

// Recheck compiles the binding of a tool once more, knowing the columns of its
// statements: a misspelt one in result, in a later step or in @step.column is
// a fault then.
func Recheck(s *Spec, t *graph.Tool, scope *expr.Scope, columns Columns) graph.Faults {
	c := newCompiler(s, t, scope)
	c.columns = columns
	c.binding(&t.Binding, db.Limit{})
	return c.faults
}

// Row gives the type of one row of a query with its nests, of whose fields only
// the names are known; nil if the columns are not.
func (l Columns) Row(s *graph.SQL) *shape.Shape {
	if s == nil {
		return nil
	}
	names, known := l[&s.Query]
	if !known {
		return nil
	}
	if len(names) == 0 {
		names = []string{"affected"}
	}
	row := &shape.Shape{Kind: shape.Struct}
	for _, n := range names {
		row.Fields = append(row.Fields, &shape.Field{Name: n, Shape: &shape.Shape{}, Optional: true})
	}
	for _, n := range s.Nest {
		row.Fields = append(row.Fields, &shape.Field{Name: n.Key, Shape: &shape.Shape{}, Optional: true})
	}
	return row
}

// Rows gives the type of all that a query gives: a row that may be missing, or
// a list; nil if it is not known.
func (l Columns) Rows(s *graph.SQL) *shape.Shape {
	row := l.Row(s)
	switch {
	case row == nil:
		return nil
	case s.One || len(l[&s.Query]) == 0:
		return &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{{Kind: shape.Null}, row}}
	}
	return &shape.Shape{Kind: shape.List, Items: row, MaxItems: -1}
}

// Answer gives the type of what a binding gives in the end, nil if it is not
// known: something else may stand between the rows and it.
func (l Columns) Answer(b *graph.Binding) *shape.Shape {
	if b.From != nil || b.Result != nil {
		return nil
	}
	return l.Rows(b.SQL)
}

// Step is Answer of a step, for those behind it.
func (l Columns) Step(s *graph.Step) *shape.Shape {
	if s.Each != nil {
		return nil
	}
	answer := l.Answer(&s.Binding)
	if answer != nil && answer.Kind == shape.List && (s.Optional || s.When != nil) {
		return nil // it may be nil, and a list is not
	}
	return answer
}

// has tells whether a query gives a column, or its columns are not known.
func (l Columns) has(s *graph.SQL, name string) bool {
	names, known := l[&s.Query]
	return !known || slices.Contains(names, name)
}
