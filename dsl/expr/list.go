package expr

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// CompileList compiles a node that must give a list; one that never can is a
// fault. elem is the type of an element, nil if nothing is known of it.
func CompileList(n *graph.Node, scope *Scope) (t *Tree, elem *shape.Shape, faults graph.Faults) {
	t, faults = CompileTree(n, scope)
	if t == nil {
		return nil, nil, faults
	}
	is := t.root.typ()
	switch is.kind {
	case anyKind, nilKind, listKind:
		return t, is.element().shape(), faults
	}
	faults.Add(n.At, n.Path, "must be a list, not %s", is.kind)
	return nil, nil, faults
}

// typ is the type of what a branch gives.
func (b *branch) typ() typ {
	switch b.kind {
	case graph.String:
		if b.text.IsHole() {
			return b.text.parts[0].hole.typ
		}
		return typ{kind: textKind}
	case graph.Struct:
		return typ{kind: structKind}
	case graph.List:
		return typ{kind: listKind}
	}
	return typ{kind: kindOf(b.fixed)}
}

// shape is what is known of values of the type, nil for nothing. They may be
// nil all the same, as any value may.
func (t typ) shape() *shape.Shape {
	switch t.kind {
	case nilKind:
		return &shape.Shape{Kind: shape.Null}
	case boolKind:
		return &shape.Shape{Kind: shape.Bool}
	case intKind:
		return &shape.Shape{Kind: shape.Int}
	case numberKind:
		return &shape.Shape{Kind: shape.Float}
	case textKind:
		return t.textShape()
	case listKind:
		return &shape.Shape{Kind: shape.List, Items: t.element().shape(), MaxItems: -1}
	case structKind:
		return t.structShape()
	}
	return nil
}

func (t typ) textShape() *shape.Shape {
	if t.consts == nil {
		return &shape.Shape{Kind: shape.String, MaxRunes: -1}
	}
	out := &shape.Shape{Kind: shape.Union}
	for _, c := range t.consts {
		out.Alts = append(out.Alts, &shape.Shape{Kind: shape.Const, Const: c})
	}
	return out
}

func (t typ) structShape() *shape.Shape {
	if len(t.alts) == 0 {
		return &shape.Shape{Kind: shape.Struct, Rest: &shape.Shape{Kind: shape.Any}}
	}
	out := &shape.Shape{Kind: shape.Union}
	for _, a := range t.alts {
		s := a.shape
		if s == nil { // a map literal
			s = &shape.Shape{Kind: shape.Struct}
			for i, name := range a.names {
				s.Fields = append(s.Fields, &shape.Field{Name: name, Shape: a.types[i].shape()})
			}
		}
		out.Alts = append(out.Alts, s)
	}
	if len(out.Alts) == 1 {
		return out.Alts[0]
	}
	return out
}
