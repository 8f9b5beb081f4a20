package expr

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/fusion-serve/fusion-serve/dsl/value"
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

func sumType(_, body typ) typ {
	if body.kind == intKind {
		return body
	}
	return typ{kind: numberKind}
}

// over is one closure at work.
type over struct {
	seq
	off   int
	loop  loop
	body  eval // nil for count(list) and sum(list): the element itself
	extra eval // third argument
	inOff int  // where the part stands
}

// closure compiles a call of a function with a closure.
func (c *compiler) closure(n ast.Node, name string, args []ast.Node) code {
	f := closures[name]
	coll := c.node(args[0])
	if coll.typ.kind != listKind && coll.typ.kind != anyKind {
		c.fault(args[0], "%s is for a list, not %s", name, coll.typ.kind)
		return unknown()
	}
	c.reads.touch(coll.from)
	elem := coll.typ.element()
	l := loop{
		item: c.slot(), index: c.slot(), acc: -1,
		typ: elem, from: coll.from.step("*", elem.leaf()), text: "an element of " + called(coll),
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
	if name == "sum" && !body.typ.kind.numeric() && body.typ.kind != anyKind {
		return c.fault(args[len(args)-1], "sum is for numbers, not %s", body.typ.kind)
	}
	out := code{typ: f.typ(coll.typ, body.typ)}
	switch f.keeps {
	case keepsOne:
		out.from = l.from
	case keepsList:
		out.from = &origin{elem: l.from}
	case keepsGroups:
		out.from = &origin{elem: &origin{elem: l.from}}
	}
	if f.keeps == keepsBody {
		out.from = &origin{elem: body.from}
	} else {
		c.use(body)
	}
	c.makes = c.makes || f.keeps != keepsNothing || name == "reduce"
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
		l.seq = s
		return f.run(r, &l)
	}
	return out
}

// turn runs the part for element i and gives the element and what came out.
func (l *over) turn(r *run, i int) (item, out any, err error) {
	if err := r.tick(l.off, 1); err != nil {
		return nil, nil, err
	}
	item = l.at(i)
	if l.body == nil {
		return item, item, nil
	}
	r.slots[l.loop.item], r.slots[l.loop.index] = item, int64(i)
	out, err = l.body(r)
	return item, out, err
}

// test runs the part for element i, which must come out true or false.
func (l *over) test(r *run, i int) (item any, ok bool, err error) {
	item, out, err := l.turn(r, i)
	if err != nil {
		return nil, false, err
	}
	ok, isBool := out.(bool)
	if !isBool {
		return nil, false, r.fail(l.inOff, "must be true or false, not %s", kindOf(out))
	}
	return item, ok, nil
}

// search gives the place of the first element, from the front or the back,
// whose test is want, or -1.
func (l *over) search(r *run, want, back bool) (int, any, error) {
	n := l.len()
	for k := range n {
		i := k
		if back {
			i = n - 1 - k
		}
		item, ok, err := l.test(r, i)
		if err != nil {
			return -1, nil, err
		}
		if ok == want {
			return i, item, nil
		}
	}
	return -1, nil, nil
}

func (r *run) all(l *over) (any, error) {
	i, _, err := l.search(r, false, false)
	return boolean(i < 0, err)
}

func (r *run) none(l *over) (any, error) {
	i, _, err := l.search(r, true, false)
	return boolean(i < 0, err)
}

func (r *run) any(l *over) (any, error) {
	i, _, err := l.search(r, true, false)
	return boolean(i >= 0, err)
}

func (r *run) one(l *over) (any, error) {
	n, err := l.holding(r)
	return boolean(n == 1, err)
}

func (r *run) count(l *over) (any, error) {
	n, err := l.holding(r)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (l *over) holding(r *run) (int64, error) {
	var n int64
	for i := range l.len() {
		_, ok, err := l.test(r, i)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func (r *run) filter(l *over) (any, error) {
	out := []any{}
	for i := range l.len() {
		item, ok, err := l.test(r, i)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item)
		}
	}
	return out, r.room(l.off, len(out))
}

func (r *run) find(l *over) (any, error) {
	_, item, err := l.search(r, true, false)
	return item, err
}

func (r *run) findLast(l *over) (any, error) {
	_, item, err := l.search(r, true, true)
	return item, err
}

func (r *run) findIndex(l *over) (any, error)     { return l.place(r, false) }
func (r *run) findLastIndex(l *over) (any, error) { return l.place(r, true) }

func (l *over) place(r *run, back bool) (any, error) {
	i, _, err := l.search(r, true, back)
	if err != nil || i < 0 {
		return nil, err
	}
	return int64(i), nil
}

func (r *run) mapped(l *over) (any, error) {
	if err := r.room(l.off, l.len()); err != nil {
		return nil, err
	}
	out := make([]any, l.len())
	for i := range out {
		_, v, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (r *run) sum(l *over) (any, error) {
	var total any = int64(0)
	for i := range l.len() {
		_, v, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		if total, err = r.arithmetic(l.inOff, "+", v, total); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// groupBy gives a struct of lists, in the order in which the keys appear; a
// key that is no text stands there as str gives it.
func (r *run) groupBy(l *over) (any, error) {
	out := &value.Object{}
	if err := r.room(l.off, l.len()); err != nil {
		return nil, err
	}
	for i := range l.len() {
		item, k, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			if err := r.weigh(l.inOff, k); err != nil {
				return nil, err
			}
			key = string(appendStr(nil, k))
		}
		group, _ := out.Get(key)
		members, _ := group.([]any)
		out.Set(key, append(members, item))
	}
	return out, nil
}

func (r *run) sortBy(l *over) (any, error) {
	desc, err := l.descending(r)
	if err != nil {
		return nil, err
	}
	if err := r.room(l.off, 2*l.len()); err != nil {
		return nil, err
	}
	items, keys := make([]any, l.len()), make([]any, l.len())
	for i := range items {
		if items[i], keys[i], err = l.turn(r, i); err != nil {
			return nil, err
		}
	}
	return r.sorted(l.inOff, items, keys, desc)
}

func (l *over) descending(r *run) (bool, error) {
	if l.extra == nil {
		return false, nil
	}
	v, err := l.extra(r)
	if err != nil {
		return false, err
	}
	return r.descending(l.off, v)
}

func (r *run) descending(off int, order any) (bool, error) {
	if order != "asc" && order != "desc" {
		return false, r.fail(off, `the order is "asc" or "desc"`)
	}
	return order == "desc", nil
}

// sorted orders items by their keys; equal ones keep their order.
func (r *run) sorted(off int, items, keys []any, desc bool) (any, error) {
	at := make([]int, len(items))
	for i := range at {
		at[i] = i
	}
	var bad error
	slices.SortStableFunc(at, func(i, j int) int {
		if bad != nil {
			return 0
		}
		order, ok := compare(keys[i], keys[j])
		if !ok {
			bad = r.fail(off, "only numbers or only texts can be sorted, not %s and %s", kindOf(keys[i]), kindOf(keys[j]))
		}
		if desc {
			return -order
		}
		return order
	})
	out := make([]any, len(items))
	for i, k := range at {
		out[i] = items[k]
	}
	return out, bad
}

func (r *run) reduce(l *over) (any, error) {
	var acc any
	from := 0
	switch {
	case l.extra != nil:
		v, err := l.extra(r)
		if err != nil {
			return nil, err
		}
		acc = v
	case l.len() == 0:
		return nil, r.fail(l.off, "reduce of an empty list needs a start: reduce(list, …, 0)")
	default:
		acc, from = l.at(0), 1
	}
	for i := from; i < l.len(); i++ {
		r.slots[l.loop.acc] = acc
		_, v, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		acc = v
	}
	return acc, nil
}
