package expr

import (
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Want says what an expression must give.
type Want uint8

// What an expression must give.
const (
	WantAny Want = iota
	WantBool
)

// Program is a compiled expression. It is not changed by its evaluation and
// may be used by many goroutines, each with its own Env.
type Program struct {
	src   *graph.Text
	off   int // byte of src where it begins
	eval  eval
	slots int
	typ   typ // of what it gives
	makes bool
	reads [][]string
}

// Eval gives the result as a value of package value: exact numbers and key
// order are kept where the expression only picks, and map literals keep their
// source order. A value that is only picked is the one in the Env, not a
// copy, and must not be changed. The error is an *Error.
func (p *Program) Eval(e *Env) (any, error) {
	v, err := p.raw(e)
	if err != nil {
		return nil, err
	}
	if r, ok := v.(*row); ok {
		return r.object(), nil
	}
	if p.makes {
		if v, err = e.run.settle(p.off, v); err != nil {
			return nil, p.placed(err)
		}
	}
	return v, nil
}

// Bool evaluates a condition; a result that is no bool is an error.
func (p *Program) Bool(e *Env) (bool, error) {
	v, err := p.raw(e)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, p.placed(e.run.fail(p.off, "must be true or false, not %s", kindOf(v)))
	}
	return b, nil
}

// raw evaluates; rows are still rows in what it gives.
func (p *Program) raw(e *Env) (v any, err error) {
	defer func() {
		if x := recover(); x != nil {
			v, err = nil, p.placed(e.run.fail(p.off, "stopped by a mistake in the expression's functions: %v", x))
		}
	}()
	r := e.begin(p.slots)
	if err := r.tick(p.off, 1); err != nil {
		return nil, p.placed(err)
	}
	if v, err = p.eval(r); err != nil {
		return nil, p.placed(err)
	}
	return v, nil
}

// placed puts the place in the spec into an error of the evaluation.
func (p *Program) placed(err error) error {
	e, ok := err.(*Error)
	if !ok {
		e = &Error{off: p.off, Message: fmt.Sprint(err), Err: err}
	}
	e.At, e.Path = p.src.Place(e.off), p.src.Path
	return e
}

// Reads gives the paths that the expression reads, each from a name of the
// scope down as far as it is known, sorted: ["data" "customer_email"],
// ["items" "*" "id"]. "*" is any element of a list. A path that ends in "**"
// stands for the value and everything below it; any other for the value
// itself: of a list its length, of a struct whether it is there. A path
// includes whether the values above it are there.
func (p *Program) Reads() [][]string { return p.reads }
