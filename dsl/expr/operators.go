package expr

import (
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func (c *compiler) unary(n *ast.UnaryNode) code {
	off := c.at(n)
	if n.Operator == "not" || n.Operator == "!" {
		when := c.condition(n.Node)
		return code{typ: typ{kind: boolKind}, eval: func(r *run) (any, error) {
			ok, err := when(r)
			return !ok, err
		}}
	}
	x := c.node(n.Node)
	c.use(x)
	if !x.typ.kind.numeric() && x.typ.kind != anyKind {
		return c.fault(n, "%s is for numbers, not %s", n.Operator, x.typ.kind)
	}
	if n.Operator == "-" && x.known {
		if i, ok := x.val.(int64); ok {
			return constant(-i, x.typ)
		}
		if f, ok := x.val.(float64); ok {
			return constant(-f, x.typ)
		}
	}
	op := n.Operator
	return code{typ: x.typ, eval: func(r *run) (any, error) {
		v, err := x.eval(r)
		if err != nil {
			return nil, err
		}
		if op == "-" {
			return r.negate(off, v)
		}
		if _, ok := asNum(v); !ok {
			return nil, r.fail(off, "+ is for numbers, not %s", kindOf(v))
		}
		return v, nil
	}}
}

func (c *compiler) binary(n *ast.BinaryNode) code {
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.logic(n)
	case "??":
		return c.coalesce(n)
	}
	l, r := c.node(n.Left), c.node(n.Right)
	switch n.Operator {
	case "==", "!=":
		return c.equality(n, l, r)
	case "in":
		return c.in(n, l, r)
	}
	c.use(l, r)
	switch n.Operator {
	case "<", ">", "<=", ">=":
		return c.order(n, l, r)
	case "matches", "contains", "startsWith", "endsWith":
		return c.textTest(n, l, r)
	case "..":
		return c.between(n, l, r)
	case "+":
		return c.plus(n, l, r)
	case "-", "*", "/", "%", "**", "^":
		return c.numbers(n, l, r)
	}
	return c.fault(n, "there is no operator %s", n.Operator)
}

// mismatch is the fault of an operator whose sides do not fit.
func (c *compiler) mismatch(n *ast.BinaryNode, what string, l, r code) code {
	c.faultAt(c.at(n), "%s is for %s, not %s and %s", n.Operator, what, l.typ.kind, r.typ.kind)
	return unknown()
}

// sides computes both sides and hands them to f.
func sides(l, r code, f func(r *run, a, b any) (any, error)) eval {
	return func(run *run) (any, error) {
		a, err := l.eval(run)
		if err != nil {
			return nil, err
		}
		b, err := r.eval(run)
		if err != nil {
			return nil, err
		}
		return f(run, a, b)
	}
}

func (c *compiler) logic(n *ast.BinaryNode) code {
	l, r := c.condition(n.Left), c.condition(n.Right)
	stop := n.Operator == "or" || n.Operator == "||" // the left value that decides alone
	return code{typ: typ{kind: boolKind}, eval: func(run *run) (any, error) {
		ok, err := l(run)
		if err != nil || ok == stop {
			return ok, err
		}
		return r(run)
	}}
}

// boolean lets a condition stand for an eval.
func boolean(ok bool, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return ok, nil
}

func (c *compiler) coalesce(n *ast.BinaryNode) code {
	l, r := c.node(n.Left), c.node(n.Right)
	c.reads.touch(l.from)
	return code{typ: join(l.typ, r.typ), from: merge(l.from, r.from), eval: func(run *run) (any, error) {
		v, err := l.eval(run)
		if err != nil || v != nil {
			return v, err
		}
		return r.eval(run)
	}}
}

// equality compiles == and !=.
func (c *compiler) equality(n *ast.BinaryNode, l, r code) code {
	if !comparable(l.typ, r.typ) {
		c.faultAt(c.at(n), "%s can never be equal to %s", l.typ.kind, r.typ.kind)
		return unknown()
	}
	c.never(n.Left, n.Right, l, r)
	negate := n.Operator == "!="
	out := code{typ: typ{kind: boolKind}}
	for _, p := range [2][2]code{{l, r}, {r, l}} {
		if x, nothing := p[0], p[1]; nothing.known && nothing.val == nil {
			c.reads.touch(x.from)
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

func (c *compiler) order(n *ast.BinaryNode, l, r code) code {
	fits := func(t typ) bool { return t.kind == anyKind || t.kind.numeric() || t.kind == textKind }
	if !fits(l.typ) || !fits(r.typ) || !comparable(l.typ, r.typ) {
		return c.mismatch(n, "two numbers or two texts", l, r)
	}
	off, op := c.at(n), n.Operator
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		order, ok := compare(a, b)
		if !ok {
			return nil, r.fail(off, "%s is for two numbers or two texts, not %s and %s", op, kindOf(a), kindOf(b))
		}
		switch op {
		case "<":
			return order < 0, nil
		case ">":
			return order > 0, nil
		case "<=":
			return order <= 0, nil
		}
		return order >= 0, nil
	})}
}

// compare orders two numbers or two texts.
func compare(a, b any) (int, bool) {
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	}
	return compareNumbers(a, b)
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

// textTest compiles the operators between two texts. nil has, starts with and
// matches nothing.
func (c *compiler) textTest(n *ast.BinaryNode, l, r code) code {
	fits := func(t typ) bool { return t.kind == anyKind || t.kind == textKind }
	if !fits(l.typ) || !fits(r.typ) {
		return c.mismatch(n, "texts", l, r)
	}
	test := strings.Contains
	switch n.Operator {
	case "startsWith":
		test = strings.HasPrefix
	case "endsWith":
		test = strings.HasSuffix
	case "matches":
		return c.matches(n, l, r)
	}
	off, op := c.at(n), n.Operator
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, t, ok, err := r.texts2(off, op, a, b)
		return boolean(ok && test(s, t), err)
	})}
}

// texts2 gives the two texts; ok is false when one of them is nil.
func (r *run) texts2(off int, op string, a, b any) (s, t string, ok bool, err error) {
	if a == nil || b == nil {
		return "", "", false, nil
	}
	s, okS := a.(string)
	t, okT := b.(string)
	if !okS || !okT {
		return "", "", false, r.fail(off, "%s is for texts, not %s and %s", op, kindOf(a), kindOf(b))
	}
	return s, t, true, r.tick(off, len(s)>>10)
}

func (c *compiler) matches(n *ast.BinaryNode, l, r code) code {
	off := c.at(n)
	var fixed *regexp.Regexp
	if s, ok := r.val.(string); ok {
		re, err := regexp.Compile(s)
		if err != nil {
			return c.fault(n.Right, "%s", strings.Replace(err.Error(), "error parsing regexp", "this is not a regular expression", 1))
		}
		fixed = re
	}
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, t, ok, err := r.texts2(off, "matches", a, b)
		if err != nil || !ok {
			return boolean(false, err)
		}
		re := fixed
		if re == nil {
			if len(t) > maxPattern {
				return nil, r.fail(off, "the regular expression is longer than %d bytes", maxPattern)
			}
			if re, err = regexp.Compile(t); err != nil {
				return nil, r.fail(off, "the text behind matches is not a regular expression")
			}
			if err := r.tick(off, 1+len(t)); err != nil {
				return nil, err
			}
		}
		return re.MatchString(s), r.tick(off, len(s)>>6)
	})}
}

// between compiles from..to.
func (c *compiler) between(n *ast.BinaryNode, l, r code) code {
	fits := func(t typ) bool { return t.kind == anyKind || t.kind == intKind }
	if !fits(l.typ) || !fits(r.typ) {
		return c.mismatch(n, "whole numbers", l, r)
	}
	c.makes = true
	off := c.at(n)
	return code{typ: list(typ{kind: intKind}), eval: sides(l, r, func(r *run, a, b any) (any, error) {
		from, okA := asInt(a)
		to, okB := asInt(b)
		if !okA || !okB {
			return nil, r.fail(off, ".. is for whole numbers, not %s and %s", kindOf(a), kindOf(b))
		}
		if to < from {
			return []any{}, nil
		}
		if n := uint64(to) - uint64(from); n >= MaxCells {
			return nil, r.room(off, MaxCells+1)
		}
		n := int(to-from) + 1
		if err := r.room(off, n); err != nil {
			return nil, err
		}
		out := make([]any, n)
		for i := range out {
			out[i] = from + int64(i)
		}
		return out, nil
	})}
}

// plus compiles + between numbers or texts.
func (c *compiler) plus(n *ast.BinaryNode, l, r code) code {
	texts := func(t typ) bool { return t.kind == anyKind || t.kind == textKind }
	if !texts(l.typ) || !texts(r.typ) {
		out := c.numbers(n, l, r)
		return out
	}
	off := c.at(n)
	t := typ{}
	if l.typ.kind == textKind || r.typ.kind == textKind {
		t.kind = textKind
	}
	return code{typ: t, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, okS := a.(string)
		t, okT := b.(string)
		if !okS && !okT {
			return r.arithmetic(off, "+", a, b)
		}
		if !okS || !okT {
			return nil, r.fail(off, "+ is for two numbers or two texts, not %s and %s: write str(…)", kindOf(a), kindOf(b))
		}
		if err := r.text(off, len(s)+len(t)); err != nil {
			return nil, err
		}
		return s + t, nil
	})}
}

// numbers compiles arithmetic.
func (c *compiler) numbers(n *ast.BinaryNode, l, r code) code {
	fits := func(t typ) bool { return t.kind == anyKind || t.kind.numeric() }
	if n.Operator == "%" {
		fits = func(t typ) bool { return t.kind == anyKind || t.kind == intKind }
	}
	if !fits(l.typ) || !fits(r.typ) {
		what := "numbers"
		switch n.Operator {
		case "+":
			c.faultAt(c.at(n), "+ is for two numbers or two texts, not %s and %s: write str(…)", l.typ.kind, r.typ.kind)
			return unknown()
		case "%":
			what = "whole numbers"
		}
		return c.mismatch(n, what, l, r)
	}
	t := typ{kind: intKind}
	if l.typ.kind != intKind || r.typ.kind != intKind || n.Operator == "/" || n.Operator == "**" || n.Operator == "^" {
		t.kind = numberKind
	}
	if n.Operator == "%" {
		t.kind = intKind
	}
	off, op := c.at(n), n.Operator
	if op == "^" {
		op = "**"
	}
	return code{typ: t, eval: sides(l, r, func(r *run, a, b any) (any, error) { return r.arithmetic(off, op, a, b) })}
}
