package expr

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// eval computes a part of an expression.
type eval func(r *run) (any, error)

// code is a compiled part of an expression.
type code struct {
	eval  eval
	typ   typ
	from  *origin
	text  string // as the author wrote it, if it is a path
	known bool   // a literal: val
	val   any
}

func constant(v any, t typ) code {
	return code{eval: func(*run) (any, error) { return v, nil }, typ: t, known: true, val: v}
}

// unknown stands for a part that has a fault.
func unknown() code { return code{eval: func(*run) (any, error) { return nil, nil }} }

// compiler compiles one expression.
type compiler struct {
	source
	scope  *Scope
	faults graph.Faults
	reads  reads
	vars   []variable
	loops  []loop
	slots  int
	makes  bool // the expression makes lists or structs
}

// variable is a let in scope.
type variable struct {
	name string
	slot int
	code code
}

// loop is a closure in scope: the slots of its element, index and, for
// reduce, what there is so far (-1: none).
type loop struct {
	item, index, acc int
	typ              typ
	from             *origin
	text             string
}

func (c *compiler) slot() int {
	c.slots++
	return c.slots - 1
}

func (c *compiler) fault(n ast.Node, format string, args ...any) code {
	c.faultAt(c.off(first(n)), format, args...)
	return unknown()
}

func (c *compiler) faultAt(off int, format string, args ...any) {
	c.faults = append(c.faults, c.source.fault(off, format, args...))
}

// at is the byte where a node is said to stand: its operator or field name.
func (c *compiler) at(n ast.Node) int { return c.off(n.Location().From) }

// use notes that the parts are read with everything inside.
func (c *compiler) use(parts ...code) {
	for _, p := range parts {
		c.reads.use(p.from)
	}
}

// Compile compiles a bare expression. All faults have their place inside the text.
func Compile(src *graph.Text, scope *Scope, want Want) (*Program, graph.Faults) {
	return compile(source{src: src, text: src.S}, scope, want)
}

func compile(s source, scope *Scope, want Want) (*Program, graph.Faults) {
	tree, fault := s.parse()
	if fault != nil {
		return nil, graph.Faults{*fault}
	}
	c := &compiler{source: s, scope: scope}
	x := c.node(tree)
	if want == WantBool && !c.faults.Fatal() && x.typ.kind != boolKind && x.typ.kind != anyKind {
		c.fault(tree, "must be true or false, not %s", x.typ.kind)
	}
	if c.faults.Fatal() {
		return nil, c.faults
	}
	c.use(x)
	return &Program{
		src: s.src, off: s.off(first(tree)), eval: x.eval, slots: c.slots, typ: x.typ,
		makes: c.makes, reads: c.reads.sorted(),
	}, c.faults
}

// node compiles a part. Its value is looked at wherever it goes, so that the
// paths it may come from are read.
func (c *compiler) node(n ast.Node) code {
	x := c.part(n)
	x.from = c.keep(x.from)
	c.reads.touch(x.from)
	return x
}

// keep gives the origin, or none after noting that all of it is read, where
// it has become too large to follow.
func (c *compiler) keep(o *origin) *origin {
	left := maxOrigin
	if o.fits(&left) {
		return o
	}
	c.reads.use(o)
	return nil
}

func (c *compiler) merge(a, b *origin) *origin { return c.keep(merge(a, b)) }

func (c *compiler) part(n ast.Node) code {
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(nil, typ{kind: nilKind})
	case *ast.BoolNode:
		return constant(n.Value, typ{kind: boolKind})
	case *ast.IntegerNode:
		return constant(int64(n.Value), typ{kind: intKind})
	case *ast.FloatNode:
		return constant(n.Value, typ{kind: numberKind})
	case *ast.StringNode:
		return constant(n.Value, typ{kind: textKind, consts: []string{n.Value}})
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.PointerNode:
		return c.pointer(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ChainNode:
		return c.chain(n)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.SliceNode:
		return c.slice(n)
	case *ast.CallNode:
		return c.callNode(n)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.VariableDeclaratorNode:
		return c.let(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.ArrayNode:
		return c.array(n)
	case *ast.MapNode:
		return c.object(n)
	case *ast.SequenceNode:
		return c.fault(n, "only the last of these expressions would count: remove the others")
	case *ast.BytesNode:
		return c.fault(n, "there are no bytes here: write a text without b")
	}
	return c.fault(n, "this is not allowed here")
}

func (c *compiler) identifier(n *ast.IdentifierNode) code {
	for i := len(c.vars) - 1; i >= 0; i-- {
		if c.vars[i].name == n.Value {
			return c.vars[i].code
		}
	}
	s, ok := c.scope.find(n.Value)
	if !ok {
		known := c.scope.list()
		for _, v := range c.vars {
			known = append(known, v.name)
		}
		if _, isFunction := functionNamed(n.Value); isFunction || isClosure(n.Value) {
			return c.fault(n, "%s is a function: write %s(…)", n.Value, n.Value)
		}
		hint := didYouMean(n.Value, known)
		if hint == "" {
			hint = suggestion(c.fieldInScope(n.Value))
		}
		return c.fault(n, "there is no %q here%s", n.Value, hint)
	}
	name, t := n.Value, typeOf(s)
	return code{
		eval: func(r *run) (any, error) { return r.env.look(name), nil },
		typ:  t,
		from: &origin{paths: []path{{segs: []string{name}, leaf: t.leaf()}}},
		text: name,
	}
}

// fieldInScope gives the field of a name in scope that is called n, or nearly
// so, as it must be written; "" if there is none.
func (c *compiler) fieldInScope(n string) string {
	for _, s := range c.scope.list() {
		shape, _ := c.scope.find(s)
		if f := nearest(n, typeOf(shape).fields()); f != "" {
			return s + "." + f
		}
	}
	return ""
}

// let compiles `let name = value; expr`.
func (c *compiler) let(n *ast.VariableDeclaratorNode) code {
	v := c.node(n.Value)
	if slices.Contains(c.scope.list(), n.Name) || slices.ContainsFunc(c.vars, func(v variable) bool { return v.name == n.Name }) {
		return c.fault(n, "%s is there already: call the variable something else", n.Name)
	}
	if _, ok := functionNamed(n.Name); ok || isClosure(n.Name) {
		return c.fault(n, "%s is a function: call the variable something else", n.Name)
	}
	slot := c.slot()
	c.vars = append(c.vars, variable{n.Name, slot, code{
		eval: func(r *run) (any, error) { return r.slots[slot], nil },
		typ:  v.typ, from: v.from, text: n.Name,
	}})
	body := c.node(n.Expr)
	c.vars = c.vars[:len(c.vars)-1]
	out := code{typ: body.typ, from: body.from}
	out.eval = func(r *run) (any, error) {
		x, err := v.eval(r)
		if err != nil {
			return nil, err
		}
		r.slots[slot] = x
		return body.eval(r)
	}
	return out
}

func (c *compiler) conditional(n *ast.ConditionalNode) code {
	when := c.condition(n.Cond)
	a, b := c.node(n.Exp1), c.node(n.Exp2)
	return code{typ: join(a.typ, b.typ), from: c.merge(a.from, b.from), eval: func(r *run) (any, error) {
		ok, err := when(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return a.eval(r)
		}
		return b.eval(r)
	}}
}

// condition compiles a part that must be true or false.
func (c *compiler) condition(n ast.Node) func(*run) (bool, error) {
	x := c.node(n)
	c.use(x)
	if x.typ.kind != boolKind && x.typ.kind != anyKind {
		c.fault(n, "must be true or false, not %s", x.typ.kind)
	}
	return truth(x.eval, c.off(first(n)))
}

func truth(x eval, off int) func(*run) (bool, error) {
	return func(r *run) (bool, error) {
		v, err := x(r)
		if err != nil {
			return false, err
		}
		b, ok := v.(bool)
		if !ok {
			return false, r.fail(off, "must be true or false, not %s", kindOf(v))
		}
		return b, nil
	}
}

func (c *compiler) array(n *ast.ArrayNode) code {
	c.makes = true
	parts := make([]code, len(n.Nodes))
	out := code{typ: typ{kind: listKind}, from: &origin{}, known: true}
	vals := make([]any, len(parts))
	for i, x := range n.Nodes {
		parts[i] = c.node(x)
		if i == 0 {
			out.typ = list(parts[i].typ)
		} else {
			out.typ = list(join(out.typ.element(), parts[i].typ))
		}
		out.from.elem = c.merge(out.from.elem, parts[i].from)
		out.known = out.known && parts[i].known
		vals[i] = parts[i].val
	}
	if out.known {
		out.val = vals
	}
	off := c.at(n)
	out.eval = func(r *run) (any, error) {
		if err := r.room(off, len(parts)); err != nil {
			return nil, err
		}
		l := make([]any, len(parts))
		for i := range parts {
			v, err := parts[i].eval(r)
			if err != nil {
				return nil, err
			}
			l[i] = v
		}
		return l, nil
	}
	return out
}

// object compiles a map literal; its keys keep their order.
func (c *compiler) object(n *ast.MapNode) code {
	c.makes = true
	keys, vals := make([]code, len(n.Pairs)), make([]code, len(n.Pairs))
	rec := record{}
	from := &origin{fields: map[string]*origin{}}
	computed := false
	for i, p := range n.Pairs {
		pair := p.(*ast.PairNode)
		keys[i], vals[i] = c.node(pair.Key), c.node(pair.Value)
		key, ok := keys[i].val.(string)
		if !ok {
			computed = true
			c.use(keys[i])
			if k := keys[i].typ.kind; k != textKind && k != anyKind {
				c.fault(pair.Key, "a key must be a text, not %s", k)
			}
			from.elem = c.merge(from.elem, vals[i].from)
			continue
		}
		if j := slices.Index(rec.names, key); j >= 0 {
			c.fault(pair.Key, "the key %q is there twice", key)
			continue
		}
		rec.names, rec.types = append(rec.names, key), append(rec.types, vals[i].typ)
		from.fields[key] = vals[i].from
	}
	out := code{typ: typ{kind: structKind}, from: from}
	if !computed {
		out.typ.alts = []record{rec}
	}
	off := c.at(n)
	out.eval = func(r *run) (any, error) {
		if err := r.room(off, len(keys)); err != nil {
			return nil, err
		}
		o := value.NewObject(len(keys))
		for i := range keys {
			k, err := keys[i].eval(r)
			if err != nil {
				return nil, err
			}
			key, ok := k.(string)
			if !ok {
				return nil, r.fail(off, "a key must be a text, not %s", kindOf(k))
			}
			v, err := vals[i].eval(r)
			if err != nil {
				return nil, err
			}
			o.Set(key, v)
		}
		return o, nil
	}
	return out
}
