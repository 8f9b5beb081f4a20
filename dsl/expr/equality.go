package expr

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// equality compiles == and !=.
func (c *compiler) equality(n *ast.BinaryNode, l, r code) code {
	if !comparable(l.typ, r.typ) {
		c.faultAt(c.at(n), "cannot compare %s with %s", l.typ.kind, r.typ.kind)
		return unknown()
	}
	c.never(n.Left, n.Right, l, r)
	negate := n.Operator == "!="
	out := code{typ: typ{kind: boolKind}}
	for _, p := range [2][2]code{{l, r}, {r, l}} {
		if x, nothing := p[0], p[1]; nothing.known && nothing.val == nil {
			out.eval = func(r *run) (any, error) {
				v, err := x.eval(r)
				return boolean((v == nil) != negate, err)
			}
			return out
		}
	}
	c.use(l, r)
	if text, ok := r.val.(string); ok && r.known {
		out.eval = func(r *run) (any, error) {
			v, err := l.eval(r)
			s, ok := v.(string)
			return boolean((ok && s == text) != negate, err)
		}
		return out
	}
	off := c.at(n)
	out.eval = sides(l, r, func(r *run, a, b any) (any, error) {
		same, err := r.equal(off, a, b)
		return boolean(same != negate, err)
	})
	return out
}

// never finds texts that an enum does not have.
func (c *compiler) never(ln, rn ast.Node, l, r code) {
	if l.typ.consts == nil || r.typ.consts == nil {
		return
	}
	for _, t := range l.typ.consts {
		if slices.Contains(r.typ.consts, t) {
			return
		}
	}
	at := rn
	if l.known {
		l, r, at = r, l, ln
	}
	if r.known && l.text != "" {
		c.fault(at, "%s is never %q%s", l.text, r.val, didYouMean(r.typ.consts[0], l.typ.consts))
		return
	}
	c.fault(at, "these two are never equal")
}

// equal compares two values; keys may stand in any order.
func (r *run) equal(off int, a, b any) (bool, error) {
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case int64, float64, value.Number:
		order, ok := compareNumbers(a, b)
		return ok && order == 0, nil
	case *value.Object, *row:
		return r.equalStructs(off, a, b)
	}
	x, ok := seqOf(a)
	y, okY := seqOf(b)
	if !ok || !okY || x.len() != y.len() {
		return false, nil
	}
	for i := range x.len() {
		if err := r.tick(off, 1); err != nil {
			return false, err
		}
		if same, err := r.equal(off, x.at(i), y.at(i)); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalStructs(off int, a, b any) (bool, error) {
	x, y := asObject(a), asObject(b)
	if y == nil || x.Len() != y.Len() {
		return false, nil
	}
	for i := range x.Len() {
		if err := r.tick(off, 1); err != nil {
			return false, err
		}
		k, v := x.At(i)
		w, ok := y.Get(k)
		if !ok {
			return false, nil
		}
		if same, err := r.equal(off, v, w); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// asObject gives a struct of any form as an object, nil for anything else.
func asObject(v any) *value.Object {
	switch v := v.(type) {
	case *value.Object:
		return v
	case *row:
		return v.object()
	}
	return nil
}

// in compiles `x in list` and `"key" in struct`.
func (c *compiler) in(n *ast.BinaryNode, l, r code) code {
	off := c.at(n)
	switch r.typ.kind {
	case anyKind, nilKind:
		c.use(l, r)
	case listKind:
		c.use(l, r)
		e := r.typ.element()
		if !comparable(l.typ, e) {
			c.faultAt(off, "%s is never in a list of %s", l.typ.kind, plurals[e.kind])
			return unknown()
		}
		c.neverIn(n.Right, l, r)
	case structKind:
		c.use(l)
		if l.typ.kind != textKind && l.typ.kind != anyKind {
			c.faultAt(off, "the name of a field is a text, not %s", l.typ.kind)
			return unknown()
		}
		key, ok := l.val.(string)
		if !ok {
			c.use(r)
			break
		}
		if _, ok := r.typ.field(key); !ok {
			c.fault(n.Left, "%s has no field %q%s", called(r), key, didYouMean(key, r.typ.fields()))
		}
		c.reads.touch(r.from.step(key, true))
	default:
		c.faultAt(off, "in is for a list or a struct, not %s", r.typ.kind)
		return unknown()
	}
	if r.known {
		fixed := r.val
		r.eval = func(*run) (any, error) { return fixed, nil }
	}
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		return boolean(r.isIn(off, a, b))
	})}
}

var plurals = [...]string{"anything", "nil", "true or false", "whole numbers", "numbers", "texts", "lists", "structs"}

// neverIn finds texts of a literal list that an enum does not have.
func (c *compiler) neverIn(n ast.Node, l, r code) {
	a, ok := n.(*ast.ArrayNode)
	if !ok || l.typ.consts == nil || l.known {
		return
	}
	for _, x := range a.Nodes {
		if s, ok := x.(*ast.StringNode); ok && !slices.Contains(l.typ.consts, s.Value) {
			c.fault(s, "%s is never %q%s", called(l), s.Value, didYouMean(s.Value, l.typ.consts))
		}
	}
}

func (r *run) isIn(off int, a, b any) (bool, error) {
	switch b := b.(type) {
	case nil:
		return false, nil
	case *value.Object, *row:
		key, ok := a.(string)
		if !ok {
			return false, r.fail(off, "the name of a field is a text, not %s", kindOf(a))
		}
		_, ok = fieldOf(b, key)
		return ok, nil
	}
	l, ok := seqOf(b)
	if !ok {
		return false, r.fail(off, "in is for a list or a struct, not %s", kindOf(b))
	}
	if err := r.tick(off, l.len()/16); err != nil {
		return false, err
	}
	for i := range l.len() {
		if same, err := r.equal(off, l.at(i), a); err != nil || same {
			return same, err
		}
	}
	return false, nil
}
