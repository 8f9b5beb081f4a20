package expr

import (
	"strings"

	"github.com/expr-lang/expr/ast"
)

// closure is a function that runs a part of the expression for each element
// of a list: filter(list, .x > 1).
type closure struct {
	// boolean: the part must be true or false.
	boolean bool
	// keeps: the result may hold the elements, as one of them or as a list.
	keeps keeps
	// typ is the type of the result.
	typ func(list, body typ) typ
	// run computes the result.
	run func(r *run, l *over) (any, error)
}

type keeps uint8

const (
	keepsNothing keeps = iota
	keepsOne           // the result is an element
	keepsList          // a list of elements
	keepsBody          // a list of what the part gave
	keepsGroups        // lists of elements in a struct
)

var closures = map[string]closure{
	"all":           {boolean: true, typ: fixed(boolKind), run: (*run).all},
	"none":          {boolean: true, typ: fixed(boolKind), run: (*run).none},
	"any":           {boolean: true, typ: fixed(boolKind), run: (*run).any},
	"one":           {boolean: true, typ: fixed(boolKind), run: (*run).one},
	"count":         {boolean: true, typ: fixed(intKind), run: (*run).count},
	"filter":        {boolean: true, keeps: keepsList, typ: sameList, run: (*run).filter},
	"find":          {boolean: true, keeps: keepsOne, typ: elementOf, run: (*run).find},
	"findLast":      {boolean: true, keeps: keepsOne, typ: elementOf, run: (*run).findLast},
	"findIndex":     {boolean: true, typ: fixed(intKind), run: (*run).findIndex},
	"findLastIndex": {boolean: true, typ: fixed(intKind), run: (*run).findLastIndex},
	"map":           {keeps: keepsBody, typ: func(_, body typ) typ { return list(body) }, run: (*run).mapped},
	"sum":           {typ: sumType, run: (*run).sum},
	"groupBy":       {keeps: keepsGroups, typ: fixed(structKind), run: (*run).groupBy},
	"sortBy":        {keeps: keepsList, typ: sameList, run: (*run).sortBy},
	"reduce":        {typ: fixed(anyKind), run: (*run).reduce},
}

func isClosure(name string) bool { _, ok := closures[name]; return ok }

func fixed(k kind) func(list, body typ) typ {
	return func(_, _ typ) typ { return typ{kind: k} }
}

func sameList(l, _ typ) typ { return list(l.element()) }

func elementOf(l, _ typ) typ { return l.element() }

func sumType(_, body typ) typ { return typ{kind: body.kind} }

// closure compiles a call of a function with a closure.
func (c *compiler) closure(n ast.Node, name string, args []ast.Node) code {
	f := closures[name]
	coll := c.node(args[0])
	if coll.typ.kind != listKind && coll.typ.kind != anyKind {
		c.fault(args[0], "%s is for a list, not %s", name, coll.typ.kind)
		return unknown()
	}
	elem := coll.typ.element()
	l := loop{
		item: c.slot(), index: c.slot(), acc: -1,
		typ: elem, from: coll.from.step("*", elem.leaf()), text: under(coll, "[…]"),
	}
	var extra code
	if name == "reduce" {
		l.acc = c.slot()
	}
	if len(args) > 2 {
		extra = c.node(args[2])
		c.use(extra)
		if name == "sortBy" && extra.typ.kind != textKind && extra.typ.kind != anyKind {
			c.fault(args[2], `the order is "asc" or "desc", not %s`, extra.typ.kind)
		}
	} else if name == "reduce" {
		c.reads.use(l.from) // the first element is the start
	}
	body := code{typ: elem, from: l.from}
	o := over{off: c.at(n), loop: l, extra: extra.eval, inOff: c.at(n)}
	if len(args) > 1 {
		part := args[1]
		if p, ok := part.(*ast.PredicateNode); ok {
			part = p.Node
		}
		c.loops = append(c.loops, l)
		body = c.node(part)
		c.loops = c.loops[:len(c.loops)-1]
		o.body, o.inOff = body.eval, c.off(first(part))
		if f.boolean && body.typ.kind != boolKind && body.typ.kind != anyKind {
			return c.fault(part, "must be true or false, not %s", body.typ.kind)
		}
	}
	if f.boolean && len(args) == 1 && elem.kind != boolKind && elem.kind != anyKind {
		return c.fault(args[0], "%s without a closure is for true and false, not %s: len(…) is the number of elements", name, elem.kind)
	}
	if name == "sum" && !body.typ.kind.numeric() && body.typ.kind != anyKind {
		return c.fault(args[len(args)-1], "sum is for numbers, not %s", body.typ.kind)
	}
	out := code{typ: f.typ(coll.typ, body.typ)}
	out.from = c.kept(f, l, body)
	c.makes = c.makes || f.keeps != keepsNothing || name == "reduce"
	// What comes out of the part is a bool or a number, which holds no element.
	once := f.keeps == keepsNothing && name != "reduce"
	out.eval = func(r *run) (any, error) {
		v, err := coll.eval(r)
		if err != nil {
			return nil, err
		}
		l := o
		s, ok := seqOf(v)
		if !ok {
			return nil, r.fail(o.off, "%s is for a list, not %s", name, kindOf(v))
		}
		l.seq, l.once = s, once
		return f.run(r, &l)
	}
	return out
}

// kept is where the values in the result of a closure come from. What the
// part gave is read, unless it only goes on into the result.
func (c *compiler) kept(f closure, l loop, body code) *origin {
	if f.keeps == keepsBody {
		return &origin{elem: body.from}
	}
	c.use(body)
	switch f.keeps {
	case keepsOne:
		return l.from
	case keepsList:
		return &origin{elem: l.from}
	case keepsGroups:
		return &origin{elem: &origin{elem: l.from}}
	}
	return nil
}

// pointer compiles #, #index and #acc.
func (c *compiler) pointer(n *ast.PointerNode) code {
	if len(c.loops) == 0 {
		return c.fault(n, "# stands only inside closures such as filter(list, # > 1)")
	}
	l := c.loops[len(c.loops)-1]
	slot := l.item
	switch n.Name {
	case "":
		return code{eval: load(slot), typ: l.typ, from: l.from, text: l.text}
	case "index":
		return code{eval: load(l.index), typ: typ{kind: intKind}}
	case "acc":
		if l.acc >= 0 {
			return code{eval: load(l.acc), text: "#acc"}
		}
		return c.fault(n, "#acc stands only inside reduce")
	}
	return c.fault(n, "there is no #%s: # is the element, #index its place%s", n.Name,
		didYouMean(strings.ToLower(n.Name), []string{"index", "acc"}))
}

func load(slot int) eval {
	return func(r *run) (any, error) { return r.slots[slot], nil }
}
