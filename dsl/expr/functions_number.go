package expr

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// numberFunctions work on numbers.
var numberFunctions = []function{
	{Function: Function{Signature: "int(x any) int", Doc: "the whole number that a text or number says; what stands behind the point falls off", Example: "int('42')", Gives: "42"}, run: toInt},
	{Function: Function{Signature: "float(x any) number", Doc: "the number that a text or number says", Example: "float('1.5')", Gives: "1.5"}, run: toFloat},
	{Function: Function{Signature: "abs(x number) number", Doc: "without its sign", Example: "abs(-3)", Gives: "3"}, run: abs, typ: sameNumber},
	{Function: Function{Signature: "ceil(x number) int", Doc: "the next whole number above", Example: "ceil(1.2)", Gives: "2"}, run: rounded(math.Ceil)},
	{Function: Function{Signature: "floor(x number) int", Doc: "the next whole number below", Example: "floor(1.8)", Gives: "1"}, run: rounded(math.Floor)},
	{Function: Function{Signature: "max(numbers... any) any", Doc: "the largest of numbers and lists of numbers; nil without one", Example: "max([1, 3], 2)", Gives: "3"}, run: extreme("max", 1)},
	{Function: Function{Signature: "min(numbers... any) any", Doc: "the smallest of numbers and lists of numbers; nil without one", Example: "min([1, 3], 2)", Gives: "1"}, run: extreme("min", -1)},
	{Function: Function{Signature: "mean(numbers... any) number", Doc: "the average of numbers and lists of numbers; 0 without one", Example: "mean([1, 2])", Gives: "1.5"}, run: mean},
	{Function: Function{Signature: "median(numbers... any) number", Doc: "the one in the middle of numbers and lists of numbers; 0 without one", Example: "median([1, 9, 2])", Gives: "2"}, run: median},
}

func sameNumber(args []code) typ { return typ{kind: args[0].typ.kind} }

func toInt(r *run, off int, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		i, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, r.fail(off, "x of int is a text that is no whole number of 64 bits")
		}
		return i, nil
	}
	n, ok := asNum(args[0])
	if !ok {
		return nil, r.fail(off, "x of int must be a number or a text, not %s", kindOf(args[0]))
	}
	if n.isInt {
		return n.i, nil
	}
	i, ok := floatToInt(math.Trunc(n.f))
	if !ok {
		return nil, r.fail(off, "the result does not fit a whole number of 64 bits")
	}
	return i, nil
}

func toFloat(r *run, off int, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "xXnN_") {
			return nil, r.fail(off, "x of float is a text that is no number")
		}
		return f, nil
	}
	n, ok := asNum(args[0])
	if !ok {
		return nil, r.fail(off, "x of float must be a number or a text, not %s", kindOf(args[0]))
	}
	return n.float(), nil
}

func abs(r *run, off int, args []any) (any, error) {
	n, _ := asNum(args[0])
	if n.isInt && n.i < 0 {
		return r.negate(off, n.i)
	}
	if !n.isInt {
		return math.Abs(n.f), nil
	}
	return n.i, nil
}

func rounded(f func(float64) float64) func(*run, int, []any) (any, error) {
	return func(_ *run, _ int, args []any) (any, error) {
		n, _ := asNum(args[0])
		if n.isInt {
			return n.i, nil
		}
		return wholeIfFits(f(n.f)), nil
	}
}

func wholeIfFits(f float64) any {
	if i, ok := floatToInt(f); ok {
		return i
	}
	return f
}

// eachNumber hands all numbers of args and of the lists in them to f.
func (r *run) eachNumber(off int, name string, args []any, f func(v any)) error {
	for _, a := range args {
		if err := r.tick(off, 1); err != nil {
			return err
		}
		if _, ok := asNum(a); ok {
			f(a)
			continue
		}
		l, ok := seqOf(a)
		if !ok {
			return r.fail(off, "%s is for numbers and lists of numbers, not %s", name, kindOf(a))
		}
		if err := r.eachNumber(off, name, l.all(), f); err != nil {
			return err
		}
	}
	return nil
}

func extreme(name string, sign int) func(*run, int, []any) (any, error) {
	return func(r *run, off int, args []any) (any, error) {
		var best any
		err := r.eachNumber(off, name, args, func(v any) {
			if best == nil {
				best = v
			} else if order, _ := compareNumbers(v, best); order == sign {
				best = v
			}
		})
		return best, err
	}
}

func (r *run) floats(off int, name string, args []any) ([]float64, error) {
	var l []float64
	err := r.eachNumber(off, name, args, func(v any) {
		n, _ := asNum(v)
		l = append(l, n.float())
	})
	return l, err
}

func mean(r *run, off int, args []any) (any, error) {
	l, err := r.floats(off, "mean", args)
	if err != nil || len(l) == 0 {
		return 0.0, err
	}
	total := 0.0
	for _, f := range l {
		total += f
	}
	return r.finite(off, total/float64(len(l)))
}

func median(r *run, off int, args []any) (any, error) {
	l, err := r.floats(off, "median", args)
	if err != nil || len(l) == 0 {
		return 0.0, err
	}
	slices.Sort(l)
	if n := len(l); n%2 == 0 {
		return r.finite(off, (l[n/2-1]+l[n/2])/2)
	}
	return l[len(l)/2], nil
}

// appendStr appends String(v) of JavaScript: what people expect of a value
// inside a text that is not JSON.
func appendStr(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return append(dst, v...)
	case *value.Object, *row:
		return append(dst, "[object Object]"...)
	}
	l, ok := seqOf(v)
	if !ok {
		return value.AppendJSON(dst, v)
	}
	for i := range l.len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if x := l.at(i); x != nil {
			dst = appendStr(dst, x)
		}
	}
	return dst
}
