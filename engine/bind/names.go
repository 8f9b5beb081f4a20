package bind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// source is where the value of an @name comes from.
type source struct {
	kind     sourceKind
	path     []string // fromArgs: the one name; fromScope: name and fields; fromRows: the column
	computed int      // fromComputed: place in binding.computed
}

type sourceKind uint8

const (
	fromComputed sourceKind = iota // sql.args
	fromArgs                       // the call's arguments
	fromScope                      // a dotted name
	fromRows                       // a column of the rows above
)

// names resolves the @names of one tool.
type names struct {
	graph    *graph.Graph
	params   *shape.Shape
	computed []string
	scope    *expr.Scope
	answers  []string // of earlier steps, and the element of each
}

// known tells whether a bare name is one of ours.
func (n *names) known(name string) bool {
	return slices.Contains(n.computed, name) || n.params.Field(name) != nil || slices.Contains(n.answers, name)
}

// source finds where an @name comes from. inNest tells that there are rows
// above. The message says what is wrong, without the @name.
func (n *names) source(name string, inNest bool) (source, string) {
	first, rest, dotted := strings.Cut(name, ".")
	switch {
	case !dotted:
		return n.bare(name)
	case first == "rows":
		return rowsSource(rest, inNest)
	}
	path := strings.Split(name, ".")
	typ, ok := n.scope.Lookup(first)
	if !ok {
		if n.params.Field(first) != nil {
			return source{}, fmt.Sprintf("a dotted name begins with a name in scope: write @args.%s", name)
		}
		return source{}, fmt.Sprintf("there is no %q here%s", first, near(first, n.scope.Names()))
	}
	if first == "env" {
		for _, v := range n.graph.Env {
			if v.Secret && v.Name == path[1] {
				return source{}, "a secret cannot be bound: it would reach the database's logs"
			}
		}
	}
	for i, field := range path[1:] {
		fields, open := fieldsOf(typ)
		at := slices.IndexFunc(fields, func(f *shape.Field) bool { return f.Name == field })
		switch {
		case at >= 0:
			typ = fields[at].Shape
		case open:
			return source{kind: fromScope, path: path}, ""
		default:
			return source{}, fmt.Sprintf("%s has no %q%s", strings.Join(path[:i+1], "."), field, near(field, fieldNames(fields)))
		}
	}
	return source{kind: fromScope, path: path}, ""
}

// bare resolves a name without a dot: a computed name, which stands right
// beside the query, before a parameter; then an earlier step, whose name no
// parameter has.
func (n *names) bare(name string) (source, string) {
	if i := slices.Index(n.computed, name); i >= 0 {
		return source{kind: fromComputed, computed: i}, ""
	}
	if n.params.Field(name) != nil {
		return source{kind: fromArgs, path: []string{name}}, ""
	}
	if slices.Contains(n.answers, name) {
		return source{kind: fromScope, path: []string{name}}, ""
	}
	known := slices.Concat(fieldNames(n.params.Fields), n.computed, n.answers)
	if hint := near(name, known); hint != "" {
		return source{}, "no parameter has this name" + hint
	}
	return source{}, "no parameter has this name: declare it in params, or compute it in args beside the query"
}

func rowsSource(column string, inNest bool) (source, string) {
	switch {
	case !inNest:
		return source{}, "only the query of a nest has rows above it"
	case strings.Contains(column, "."):
		return source{}, "rows are flat: write @rows.COLUMN"
	}
	return source{kind: fromRows, path: []string{column}}, ""
}

// fieldsOf gives the fields that a value of the type may have; open tells that
// there may be others.
func fieldsOf(s *shape.Shape) (fields []*shape.Field, open bool) {
	switch {
	case s == nil || s.Kind == shape.Any:
		return nil, true
	case s.Kind == shape.Struct:
		return s.Fields, s.Rest != nil || len(s.KeyPatterns) > 0
	case s.Kind == shape.Union:
		for _, alt := range s.Alts {
			f, o := fieldsOf(alt)
			fields, open = append(fields, f...), open || o
		}
	}
	return fields, open
}

func fieldNames(fields []*shape.Field) []string {
	l := make([]string, len(fields))
	for i, f := range fields {
		l[i] = f.Name
	}
	return l
}

func near(name string, known []string) string {
	if n := value.Near(name, known); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}
