package dsl

import (
	"encoding/base64"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

var everyKey = regexp.MustCompile("")

// scalar compiles what is neither struct nor list nor union, from its normal
// form: one leaf, or several joined by &.
func (c *shapeCompiler) scalar(v cue.Value, op cue.Op, args []cue.Value, e cue.Value) *shape.Shape {
	if e.IsConcrete() {
		if x, err := concrete(e); err == nil {
			s := newShape(shape.Const)
			if s.Const = x; x == nil {
				s.Kind = shape.Null
			}
			return s
		}
	}
	kind := e.IncompleteKind()
	s := newShape(shape.Any)
	switch {
	case kind == cue.IntKind:
		s.Kind = shape.Int
	case kind&^cue.NumberKind == 0:
		s.Kind = shape.Float
	case kind == cue.StringKind:
		s.Kind = shape.String
	case kind == cue.BytesKind:
		s.Kind, s.Format = shape.String, "base64"
	case kind == cue.BoolKind:
		s.Kind = shape.Bool
	}
	leaves := []cue.Value{e}
	if op == cue.AndOp {
		leaves = args
	}
	for _, l := range leaves {
		c.leaf(s, l, v)
	}
	if s.Kind == shape.String && s.Format == "" {
		if f := c.joinedFormat(v, 0); f != "" {
			s.Format = f
		}
	}
	if s.Kind == shape.Any && len(s.Not) > 0 { // only !=null is left
		return notNull()
	}
	return s
}

// notNull is every value but null.
func notNull() *shape.Shape {
	u := newShape(shape.Union)
	for _, k := range []shape.Kind{shape.Bool, shape.Float, shape.String, shape.List, shape.Struct} {
		a := newShape(k)
		if k == shape.Struct {
			a.Rest = newShape(shape.Any)
		}
		u.Alts = append(u.Alts, a)
	}
	return u
}

// leaf adds one constraint; v is the type that holds it.
func (c *shapeCompiler) leaf(s *shape.Shape, l, v cue.Value) {
	op, args := l.Expr()
	switch op {
	case cue.NoOp: // a basic type
	case cue.GreaterThanEqualOp, cue.GreaterThanOp:
		if b := c.bound(args[0], v, op == cue.GreaterThanOp); b != nil && (s.Min == nil || tighter(b, s.Min, 1)) {
			s.Min = b
		}
	case cue.LessThanEqualOp, cue.LessThanOp:
		if b := c.bound(args[0], v, op == cue.LessThanOp); b != nil && (s.Max == nil || tighter(b, s.Max, -1)) {
			s.Max = b
		}
	case cue.RegexMatchOp, cue.NotRegexMatchOp:
		c.pattern(s, args[0], v, op == cue.NotRegexMatchOp)
	case cue.NotEqualOp:
		x, err := concrete(args[0])
		if err != nil {
			c.fault(c.place(v), "!= takes a value that is known at the start, not %s", shortCUE(args[0]))
			return
		}
		s.Not = append(s.Not, x)
	case cue.CallOp:
		c.builtin(s, args, v)
	default:
		c.fault(c.place(v), "%s is no type that can be checked in a call", shortCUE(v))
	}
}

func (c *shapeCompiler) bound(arg, v cue.Value, exclusive bool) *shape.Bound {
	n, ok := number(arg)
	if !ok {
		if arg.IncompleteKind() == cue.StringKind {
			c.fault(c.place(v), "texts cannot be bounded by order: use =~ with a pattern, or strings.MinRunes and strings.MaxRunes")
		} else {
			c.fault(c.place(v), "a bound must be a number that is known at the start, not %s", shortCUE(arg))
		}
		return nil
	}
	return &shape.Bound{Value: n, Exclusive: exclusive}
}

// tighter tells whether bound a takes away more than b; sign is 1 for lower bounds.
func tighter(a, b *shape.Bound, sign int) bool {
	x, _ := new(big.Rat).SetString(string(a.Value))
	y, _ := new(big.Rat).SetString(string(b.Value))
	n := x.Cmp(y) * sign
	return n > 0 || n == 0 && a.Exclusive
}

func (c *shapeCompiler) pattern(s *shape.Shape, arg, v cue.Value, not bool) {
	src, err := arg.String()
	if err != nil {
		c.fault(c.place(v), "a pattern must be known at the start, not %s", shortCUE(arg))
		return
	}
	re, err := regexp.Compile(src)
	if err != nil {
		c.fault(c.place(v), "the pattern %q is no regular expression: %v", src, err)
		return
	}
	s.Patterns = append(s.Patterns, shape.Pattern{Re: re, Not: not})
}

// textFormats are CUE's validators of texts that are a format here.
var textFormats = map[string]string{
	"time.Time":  "date-time",
	"net.IPv4":   "ipv4",
	"net.IPv6":   "ipv6",
	"net.IP":     "ip",
	"net.IPCIDR": "cidr",
	"uuid.Valid": "uuid",
}

// builtin compiles a validator of CUE's packages.
func (c *shapeCompiler) builtin(s *shape.Shape, args []cue.Value, v cue.Value) {
	name := builtinName(args[0])
	if f := textFormats[name]; f != "" {
		s.Kind, s.Format = shape.String, f
		return
	}
	if len(args) == 2 {
		switch name {
		case "strings.MinRunes":
			if n, ok := c.count(args[1], v); ok {
				s.MinRunes = max(s.MinRunes, n)
			}
			return
		case "strings.MaxRunes":
			if n, ok := c.count(args[1], v); ok && (s.MaxRunes < 0 || n < s.MaxRunes) {
				s.MaxRunes = n
			}
			return
		case "math.MultipleOf":
			c.multiple(s, args[1], v)
			return
		case "time.Format":
			if layout, err := args[1].String(); err == nil {
				s.Format = shape.LayoutFormat(layout)
				return
			}
		}
	}
	c.fault(c.place(v), "%s cannot be checked in a call%s", name, instead(name))
}

// builtinName is the name of a validator: strings.MinRunes.
func builtinName(v cue.Value) string { return strings.TrimSuffix(fmt.Sprint(v), "()") }

// instead tells what to write for a validator that does not compile.
func instead(name string) string {
	switch name {
	case "net.AbsURL", "net.URL":
		return ": write string @format(uri)"
	case "net.FQDN":
		return ": write string @format(hostname)"
	case "time.Duration":
		return `: write a pattern such as =~"^[0-9]+(ms|s|m|h)$", or string @format(duration) for ISO 8601`
	case "matchN", "matchIf":
		return ": write the alternatives with |"
	}
	return ""
}

func (c *shapeCompiler) count(arg, v cue.Value) (int, bool) {
	n, err := arg.Int64()
	if err != nil || n < 0 || n > 1<<31-1 {
		c.fault(c.place(v), "a length must be a whole number that is known at the start, not %s", shortCUE(arg))
		return 0, false
	}
	return int(n), true
}

func (c *shapeCompiler) multiple(s *shape.Shape, arg, v cue.Value) {
	n, ok := number(arg)
	switch {
	case !ok || strings.Trim(string(n), "-0.") == "":
		c.fault(c.place(v), "math.MultipleOf takes a number that is known at the start and not 0, not %s", shortCUE(arg))
	case s.MultipleOf != "":
		c.fault(c.place(v), "math.MultipleOf may stand once only: write their common multiple")
	default:
		s.MultipleOf = value.Number(strings.TrimPrefix(string(n), "-"))
	}
}

// number gives a concrete number in plain decimal form.
func number(v cue.Value) (value.Number, bool) {
	if v.Kind()&^cue.NumberKind != 0 || v.Kind() == cue.BottomKind {
		return "", false
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return "", false
	}
	return plainDecimal(string(b))
}

// plainDecimal writes a number without an exponent.
func plainDecimal(s string) (value.Number, bool) {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return value.Number(s), true
	}
	exp, err := strconv.Atoi(s[i+1:])
	if err != nil || exp < -400 || exp > 400 {
		return "", false
	}
	sign := ""
	digits := s[:i]
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = whole + fraction
	point := len(whole) + exp
	if point <= 0 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole = strings.TrimLeft(digits[:point], "0")
	fraction = strings.TrimRight(digits[point:], "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return value.Number(sign + whole), true
}

// concrete gives a concrete CUE value as a value; bytes are base64.
func concrete(v cue.Value) (any, error) {
	switch v.Kind() {
	case cue.NullKind:
		return nil, nil
	case cue.BoolKind:
		return v.Bool()
	case cue.StringKind:
		return v.String()
	case cue.BytesKind:
		b, err := v.Bytes()
		return base64.StdEncoding.EncodeToString(b), err
	}
	if err := v.Validate(cue.Concrete(true)); err != nil {
		return nil, err
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return value.Parse(b)
}
