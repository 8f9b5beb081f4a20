package dsl

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// sortFields puts fields in the order in which the author wrote them: CUE
// puts embedded ones first. It can tell only for a struct that is written in
// one piece.
func sortFields(v cue.Value, fields []*shape.Field) {
	var lit *ast.StructLit
	for _, e := range sourceExprs(v) {
		lit, _ = unparen(e).(*ast.StructLit)
	}
	if lit == nil || len(fields) < 2 {
		return
	}
	var order []string
	embedded := embeddedValues(v)
	for _, d := range lit.Elts {
		switch d := d.(type) {
		case *ast.Field:
			if name, _, err := ast.LabelName(d.Label); err == nil {
				order = append(order, name)
			}
		case *ast.EmbedDecl:
			if len(embedded) > 0 {
				order = append(order, typeFields(embedded[0], 0)...)
				embedded = embedded[1:]
			}
		}
	}
	rank := func(f *shape.Field) int {
		if i := slices.Index(order, f.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(fields, func(a, b *shape.Field) int { return rank(a) - rank(b) })
}

// embeddedValues gives the values that are embedded in a struct, in order.
func embeddedValues(v cue.Value) []cue.Value {
	op, args := v.Expr()
	if op != cue.AndOp {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(args), func(a cue.Value) bool { return a.Source() == nil })
}

// typeFields names the fields of a struct type, of all its alternatives.
func typeFields(v cue.Value, depth int) []string {
	var names []string
	if op, args := v.Eval().Expr(); op == cue.OrOp && depth < maxNoteDepth {
		for _, a := range args {
			names = append(names, typeFields(a, depth+1)...)
		}
		return names
	}
	it, err := v.Fields(cue.Optional(true))
	if err != nil {
		return nil
	}
	for it.Next() {
		names = append(names, it.Selector().Unquoted())
	}
	return names
}
