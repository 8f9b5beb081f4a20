package dsl

import (
	"cuelang.org/go/cue"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// tree makes the tree of a value whose strings are texts with holes, keys in
// the order of the source. What has no value is told and nil.
func (d *doc) tree(n *node) *graph.Node {
	x := &graph.Node{At: n.at(), Path: n.path}
	switch n.kind() {
	case aString:
		t, ok := n.text()
		if !ok {
			d.noValue(n)
			return nil
		}
		if !d.checkBraces(&t) {
			return nil
		}
		x.Kind, x.Text = graph.String, t
	case aStruct:
		x.Kind = graph.Struct
		fields, optional := n.fields()
		d.sayOptional(optional)
		for _, f := range fields {
			if c := d.tree(f); c != nil {
				x.Fields = append(x.Fields, graph.NodeField{Name: f.name, At: f.labelAt(), Node: c})
			}
		}
	case aList:
		x.Kind = graph.List
		for _, e := range n.elements() {
			if c := d.tree(e); c != nil {
				x.Items = append(x.Items, c)
			}
		}
	default:
		c, ok := d.scalar(n)
		if !ok {
			return nil
		}
		x.Kind, x.Const = graph.Const, c
	}
	return x
}

// scalar is a value that is no string, struct or list.
func (d *doc) scalar(n *node) (any, bool) {
	switch n.kind() {
	case aNull:
		return nil, true
	case aBool:
		return n.bool(), true
	case anInt, aFloat:
		v := n.value()
		if dv, ok := v.Default(); ok {
			v = dv
		}
		return numberOf(v), true
	case aBytes:
		d.faults.Add(n.at(), n.path, `must not be bytes: write it in "", not in ''`)
	case noKind:
		d.noValue(n)
	}
	return nil, false
}

// numberOf is a concrete number of CUE's with all its digits.
func numberOf(v cue.Value) any {
	b, err := v.MarshalJSON()
	if err != nil {
		return int64(0)
	}
	return value.ParseNumber(string(b))
}

// data makes plain data: claims and the arguments of tests.
func (d *doc) data(n *node) (any, bool) {
	switch n.kind() {
	case aString:
		t, ok := n.text()
		if !ok {
			d.noValue(n)
		}
		return t.S, ok
	case aStruct:
		fields, optional := n.fields()
		d.sayOptional(optional)
		o := value.NewObject(len(fields))
		whole := true
		for _, f := range fields {
			x, ok := d.data(f)
			whole = whole && ok
			o.Set(f.name, x)
		}
		return o, whole
	case aList:
		l := []any{}
		whole := true
		for _, e := range n.elements() {
			x, ok := d.data(e)
			whole = whole && ok
			l = append(l, x)
		}
		return l, whole
	}
	return d.scalar(n)
}

// object makes plain data of a map item; nil where the author wrote none.
func (d *doc) object(it *item) *value.Object {
	if it == nil {
		return nil
	}
	x, _ := d.data(it.node)
	o, _ := x.(*value.Object)
	return o
}
