package expr

import (
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// chain compiles a?.b.c: nil where ?. meets nil.
func (c *compiler) chain(n *ast.ChainNode) code {
	x := c.node(n.Node)
	inner := x.eval
	x.eval = func(r *run) (any, error) {
		v, err := inner(r)
		if err == errChain {
			return nil, nil
		}
		return v, err
	}
	return x
}

func (c *compiler) member(n *ast.MemberNode) code {
	base := c.node(n.Node)
	if s, ok := n.Property.(*ast.StringNode); ok {
		return c.field(n, base, s.Value)
	}
	return c.index(n, base)
}

// called is how a message calls a part: as it was written, if it is a path.
func called(x code) string {
	if x.text == "" {
		return "this"
	}
	return x.text
}

func under(base code, seg string) string {
	if base.text == "" {
		return ""
	}
	return base.text + seg
}

func (c *compiler) field(n *ast.MemberNode, base code, name string) code {
	off := c.at(n.Property)
	t := typ{}
	switch base.typ.kind {
	case anyKind:
	case structKind:
		f, ok := base.typ.field(name)
		if !ok {
			c.faultAt(off, "%s has no field %q%s", called(base), name, didYouMean(name, base.typ.fields()))
			return unknown()
		}
		t = f
	case listKind:
		c.faultAt(off, "%s is a list: take an element ([0]) or map(%s, .%s)", called(base), called(base), name)
		return unknown()
	default:
		c.faultAt(off, "%s is %s and has no fields", called(base), base.typ.kind)
		return unknown()
	}
	what, optional := called(base), n.Optional
	return code{typ: t, from: base.from.step(name, t.leaf()), text: under(base, "."+name), eval: func(r *run) (any, error) {
		v, err := base.eval(r)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case *value.Object:
			x, _ := v.Get(name)
			return x, nil
		case *row:
			return v.field(name), nil
		case nil:
			if optional {
				return nil, errChain
			}
			return nil, r.fail(off, "%s is nil: where it may be missing write ?.%s", what, name)
		}
		return nil, r.fail(off, "%s is %s and has no fields", what, kindOf(v))
	}}
}

func (c *compiler) index(n *ast.MemberNode, base code) code {
	i := c.node(n.Property)
	c.use(i)
	off := c.at(n)
	var t typ
	seg := "**"
	switch base.typ.kind {
	case anyKind:
	case listKind:
		t, seg = base.typ.element(), "*"
		if i.typ.kind != intKind && i.typ.kind != anyKind {
			return c.fault(n.Property, "the place of an element is a whole number, not %s", i.typ.kind)
		}
	case structKind:
		if i.typ.kind != textKind && i.typ.kind != anyKind {
			return c.fault(n.Property, "the name of a field is a text, not %s", i.typ.kind)
		}
	case textKind:
		c.faultAt(off, "a text has no elements: write %s[0:1] for its first character", called(base))
		return unknown()
	default:
		c.faultAt(off, "%s is %s and has no elements", called(base), base.typ.kind)
		return unknown()
	}
	what, optional := called(base), n.Optional
	place := "[…]"
	if i.known {
		place = "[" + string(value.AppendJSON(nil, i.val)) + "]"
	}
	return code{typ: t, from: base.from.step(seg, t.leaf()), text: under(base, place), eval: func(r *run) (any, error) {
		v, err := base.eval(r)
		if err != nil {
			return nil, err
		}
		if v == nil && optional {
			return nil, errChain
		}
		k, err := i.eval(r)
		if err != nil {
			return nil, err
		}
		return r.element(off, what, v, k)
	}}
}

// element gives v[k]: the field of a struct, or the element of a list counted
// from 0, or from the end with -1.
func (r *run) element(off int, what string, v, k any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, r.fail(off, "%s is nil: where it may be missing write ?.[…]", what)
	case *value.Object, *row:
		name, ok := k.(string)
		if !ok {
			return nil, r.fail(off, "the name of a field is a text, not %s", kindOf(k))
		}
		x, _ := fieldOf(v, name)
		return x, nil
	}
	l, ok := seqOf(v)
	if !ok {
		return nil, r.fail(off, "%s is %s and has no elements", what, kindOf(v))
	}
	i, ok := asInt(k)
	if !ok {
		return nil, r.fail(off, "the place of an element is a whole number, not %s", kindOf(k))
	}
	if i < 0 {
		i += int64(l.len())
	}
	if i < 0 || i >= int64(l.len()) {
		return nil, r.fail(off, "%s has no element %d: it has %d", what, i, l.len())
	}
	return l.at(int(i)), nil
}

// fieldOf gives a field of a struct of any form.
func fieldOf(v any, name string) (any, bool) {
	switch v := v.(type) {
	case *value.Object:
		return v.Get(name)
	case *row:
		c := v.rows.Col(name)
		if c < 0 {
			return nil, false
		}
		return v.rows.Value(v.i, c), true
	}
	return nil, false
}

// slice compiles list[from:to] and text[from:to].
func (c *compiler) slice(n *ast.SliceNode) code {
	base := c.node(n.Node)
	switch base.typ.kind {
	case anyKind, listKind:
	case textKind:
		base.typ.consts = nil
	default:
		return c.fault(n.Node, "%s is %s: [from:to] is for lists and texts", called(base), base.typ.kind)
	}
	bound := func(n ast.Node) *code {
		if n == nil {
			return nil
		}
		x := c.node(n)
		c.use(x)
		if x.typ.kind != intKind && x.typ.kind != anyKind {
			c.fault(n, "must be a whole number, not %s", x.typ.kind)
		}
		return &x
	}
	from, to := bound(n.From), bound(n.To)
	c.makes = true
	off, what := c.at(n), called(base)
	out := code{typ: base.typ, from: base.from, eval: func(r *run) (any, error) {
		v, err := base.eval(r)
		if err != nil {
			return nil, err
		}
		var ends [2]*int64
		for k, x := range []*code{from, to} {
			if x == nil {
				continue
			}
			b, err := x.eval(r)
			if err != nil {
				return nil, err
			}
			i, ok := asInt(b)
			if !ok {
				return nil, r.fail(off, "must be a whole number, not %s", kindOf(b))
			}
			ends[k] = &i
		}
		return r.cut(off, what, v, ends)
	}}
	return out
}

func (r *run) cut(off int, what string, v any, ends [2]*int64) (any, error) {
	if s, ok := v.(string); ok {
		if err := r.tick(off, len(s)>>10); err != nil {
			return nil, err
		}
		a, b := clamp(ends, utf8.RuneCountInString(s))
		from := byteAt(s, a)
		return s[from : from+byteAt(s[from:], b-a)], nil
	}
	l, ok := seqOf(v)
	if !ok {
		return nil, r.fail(off, "%s is %s: [from:to] is for lists and texts", what, kindOf(v))
	}
	a, b := clamp(ends, l.len())
	if l.rows == nil {
		return l.list[a:b:b], nil
	}
	if err := r.room(off, b-a); err != nil {
		return nil, err
	}
	out := make([]any, 0, b-a)
	for i := a; i < b; i++ {
		out = append(out, l.at(i))
	}
	return out, nil
}

// byteAt is the byte where character n of s begins.
func byteAt(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// clamp counts ends from the back where they are negative and keeps them inside.
func clamp(ends [2]*int64, n int) (int, int) {
	at := func(p *int64, none int) int {
		if p == nil {
			return none
		}
		i := *p
		if i < 0 {
			i += int64(n)
		}
		return int(min(max(i, 0), int64(n)))
	}
	a, b := at(ends[0], 0), at(ends[1], n)
	return min(a, b), b
}
