package expr

import (
	"math"
	"math/big"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// whole gives an exact number that is a whole one within 64 bits.
func whole(n value.Number) (int64, bool) {
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

// num is a number as arithmetic sees it: a whole number, or a float64.
type num struct {
	isInt bool
	i     int64
	f     float64
}

func (n num) float() float64 {
	if n.isInt {
		return float64(n.i)
	}
	return n.f
}

// asNum gives the number that v is.
func asNum(v any) (num, bool) {
	switch v := v.(type) {
	case int64:
		return num{isInt: true, i: v}, true
	case float64:
		return num{f: v}, true
	case value.Number:
		if i, ok := whole(v); ok {
			return num{isInt: true, i: i}, true
		}
		f, err := strconv.ParseFloat(string(v), 64)
		return num{f: f}, err == nil
	}
	return num{}, false
}

// asInt gives the whole number that v is; 3.0 is one.
func asInt(v any) (int64, bool) {
	n, ok := asNum(v)
	switch {
	case !ok:
		return 0, false
	case n.isInt:
		return n.i, true
	}
	return floatToInt(n.f)
}

func floatToInt(f float64) (int64, bool) {
	if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}

// compareNumbers orders two numbers; ok is false when one of them is none.
// Exact numbers are compared exactly among themselves and with whole numbers,
// everything else as expr-lang does: as float64 unless both are whole.
func compareNumbers(a, b any) (order int, ok bool) {
	x, okX := asNum(a)
	y, okY := asNum(b)
	if !okX || !okY {
		return 0, false
	}
	if x.isInt && y.isInt {
		switch {
		case x.i < y.i:
			return -1, true
		case x.i > y.i:
			return 1, true
		}
		return 0, true
	}
	_, floatA := a.(float64)
	_, floatB := b.(float64)
	if !floatA && !floatB {
		return exact(a, x).Cmp(exact(b, y)), true
	}
	switch f, g := x.float(), y.float(); {
	case f < g:
		return -1, true
	case f > g:
		return 1, true
	}
	return 0, true
}

func exact(v any, n num) *big.Rat {
	if s, ok := v.(value.Number); ok {
		if r, ok := new(big.Rat).SetString(string(s)); ok {
			return r
		}
	}
	if n.isInt {
		return new(big.Rat).SetInt64(n.i)
	}
	r := new(big.Rat).SetFloat64(n.f)
	if r == nil {
		return new(big.Rat)
	}
	return r
}

// arithmetic computes a op b.
func (r *run) arithmetic(off int, op string, a, b any) (any, error) {
	x, okX := asNum(a)
	y, okY := asNum(b)
	if !okX || !okY {
		if op == "+" {
			return nil, r.fail(off, "+ is for two numbers or two texts, not %s and %s: write str(…)", kindOf(a), kindOf(b))
		}
		return nil, r.fail(off, "%s is for numbers, not %s and %s", op, kindOf(a), kindOf(b))
	}
	if op == "%" {
		return r.modulo(off, a, b)
	}
	if x.isInt && y.isInt && op != "/" && op != "**" {
		n, ok := wholeArithmetic(op, x.i, y.i)
		if !ok {
			return nil, r.fail(off, "the result does not fit a whole number of 64 bits")
		}
		return n, nil
	}
	f, g := x.float(), y.float()
	switch op {
	case "+":
		f += g
	case "-":
		f -= g
	case "*":
		f *= g
	case "/":
		if g == 0 {
			return nil, r.fail(off, "division by zero")
		}
		f /= g
	default:
		f = math.Pow(f, g)
	}
	return r.finite(off, f)
}

func (r *run) finite(off int, f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, r.fail(off, "the result is not a finite number")
	}
	return f, nil
}

func (r *run) modulo(off int, a, b any) (any, error) {
	x, okX := asInt(a)
	y, okY := asInt(b)
	switch {
	case !okX || !okY:
		return nil, r.fail(off, "%% is for whole numbers, not %s and %s", kindOf(a), kindOf(b))
	case y == 0:
		return nil, r.fail(off, "division by zero")
	case y == -1: // the one quotient that would not fit
		return int64(0), nil
	}
	return x % y, nil
}

func wholeArithmetic(op string, x, y int64) (int64, bool) {
	switch op {
	case "+":
		n := x + y
		return n, (n > x) == (y > 0)
	case "-":
		n := x - y
		return n, (n < x) == (y > 0)
	}
	if x == 0 || y == 0 {
		return 0, true
	}
	n := x * y
	return n, n/y == x && (x != -1 || y != math.MinInt64) && (y != -1 || x != math.MinInt64)
}

func (r *run) negate(off int, v any) (any, error) {
	n, ok := asNum(v)
	switch {
	case !ok:
		return nil, r.fail(off, "- is for numbers, not %s", kindOf(v))
	case !n.isInt:
		return -n.f, nil
	case n.i == math.MinInt64:
		return nil, r.fail(off, "the result does not fit a whole number of 64 bits")
	}
	return -n.i, nil
}
