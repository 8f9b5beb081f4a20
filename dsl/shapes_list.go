package dsl

import (
	"cuelang.org/go/cue"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// A list with validators loses them when CUE evaluates it, and one that must
// not be empty is an error to CUE as long as it has no elements. Both are
// therefore read as they are written, part by part.

// listParts are the parts of a list type that & joins.
type listParts struct {
	lists      []cue.Value
	validators [][]cue.Value // name and arguments
	others     []cue.Value
}

func (p *listParts) add(v cue.Value, depth int) {
	if depth > maxShapeDepth {
		return
	}
	if key, _ := refKey(v); key != "" {
		p.add(cue.Dereference(v), depth+1)
		return
	}
	op, args := v.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			p.add(a, depth+1)
		}
		return
	case cue.CallOp:
	case cue.SelectorOp: // a validator without parentheses
		op, args = v.Eval().Expr()
	}
	switch {
	case op == cue.CallOp && isListBuiltin(args[0]):
		p.validators = append(p.validators, args)
	case v.Kind() == cue.ListKind:
		p.lists = append(p.lists, v)
	default:
		p.others = append(p.others, v)
	}
}

func isListBuiltin(v cue.Value) bool {
	switch builtinName(v) {
	case "list.MinItems", "list.MaxItems", "list.UniqueItems":
		return true
	}
	return false
}

// isListType tells whether a type is a list, alone or joined with validators.
func isListType(v cue.Value) bool {
	if v.IncompleteKind() == cue.ListKind {
		op, _ := v.Eval().Expr()
		return op != cue.OrOp && !hasDefault(v)
	}
	if k := v.IncompleteKind(); k != cue.BottomKind && k != cue.TopKind && k&cue.ListKind == 0 {
		return false // the common case, without a look at the parts
	}
	if op, _ := v.Expr(); op != cue.AndOp && op != cue.CallOp {
		return false
	}
	var p listParts
	p.add(v, 0)
	return len(p.validators) > 0 && len(p.others) == 0
}

func (c *shapeCompiler) list(v cue.Value) *shape.Shape {
	var p listParts
	p.add(v, 0)
	s := newShape(shape.List)
	if len(p.lists) > 0 {
		l := p.lists[0]
		for _, x := range p.lists[1:] {
			l = l.Unify(x)
		}
		if err := l.Err(); err != nil {
			c.cueError(v, err)
			return s
		}
		c.elements(s, l)
	}
	for _, args := range p.validators {
		c.listValidator(s, args, v)
	}
	for _, o := range p.others {
		if op, args := o.Eval().Expr(); op == cue.CallOp {
			c.builtin(newShape(shape.List), args, v)
			continue
		}
		c.fault(c.place(v), "%s cannot be checked in a call", shortCUE(o))
	}
	return s
}

func (c *shapeCompiler) elements(s *shape.Shape, l cue.Value) {
	outer := c.path
	c.path += "[]"
	defer func() { c.path = outer }()
	it, err := l.List()
	if err != nil {
		c.cueError(l, err)
		return
	}
	for it.Next() {
		s.Prefix = append(s.Prefix, c.compile(it.Value()))
	}
	s.MinItems = len(s.Prefix)
	any := l.LookupPath(cue.MakePath(cue.AnyIndex))
	if !any.Exists() {
		s.MaxItems = len(s.Prefix)
		return
	}
	if s.Items = c.compile(any); c.isAny(s.Items) {
		s.Items = nil
	}
}

func (c *shapeCompiler) listValidator(s *shape.Shape, args []cue.Value, v cue.Value) {
	name := builtinName(args[0])
	if name == "list.UniqueItems" {
		s.Unique = true
		return
	}
	if len(args) != 2 {
		c.fault(c.place(v), "%s takes a number", name)
		return
	}
	n, ok := c.count(args[1], v)
	switch {
	case !ok:
	case name == "list.MinItems":
		s.MinItems = max(s.MinItems, n)
	case s.MaxItems < 0 || n < s.MaxItems:
		s.MaxItems = n
	}
}
