package expr

import (
	"strings"

	"github.com/expr-lang/expr/ast"
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
	return code{typ: join(l.typ, r.typ), from: c.merge(l.from, r.from), eval: func(run *run) (any, error) {
		v, err := l.eval(run)
		if err != nil || v != nil {
			return v, err
		}
		return r.eval(run)
	}}
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
		return c.numbers(n, l, r)
	}
	off := c.at(n)
	t := typ{}
	if l.typ.kind == textKind || r.typ.kind == textKind {
		t.kind = textKind
	}
	return code{typ: t, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, okS := a.(string)
		t, okT := b.(string)
		if !okS || !okT {
			return r.arithmetic(off, "+", a, b)
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
	t := typ{kind: max(l.typ.kind, r.typ.kind)}
	switch op := n.Operator; {
	case op == "%":
		t.kind = intKind
	case op == "/" || op == "**" || op == "^":
		t.kind = numberKind
	case l.typ.kind == anyKind || r.typ.kind == anyKind: // whole or not
		t.kind = anyKind
	}
	off, op := c.at(n), n.Operator
	if op == "^" {
		op = "**"
	}
	return code{typ: t, eval: sides(l, r, func(r *run, a, b any) (any, error) { return r.arithmetic(off, op, a, b) })}
}
