package shape

import (
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// MaxFaults is how many faults Check and Strip report at most: enough for
// every honest mistake, too few to blow up an answer.
const MaxFaults = 200

const (
	maxKeys     = 50                 // unknown keys named in one fault
	maxDepth    = 2 * value.MaxDepth // shapes nest at most twice a level of the value: the value and a union around it
	trialBudget = 1 << 16            // unions tried deep inside other unions, where each level may double the work
	trialFree   = 3                  // levels of unions inside unions that do not count
)

// Check compares a value with the shape and gives it back with defaults
// filled in, keys in the order of the shape. A field that is not declared is
// a fault. null for an optional field that does not take null counts as left
// out. All faults are reported, in the order of the shape, up to MaxFaults.
// The value itself is not changed.
func (s *Shape) Check(v any) (any, []Fault) {
	c := checker{}
	r := c.value(s, v)
	return r, c.faults
}

// Strip compares a value with the shape and gives it back with only what is
// declared, keys in the order of the shape: the way out. A NULL in an
// optional field without null is left out; an absent field with a default
// becomes the default. It understands what databases write for want of a
// type: 0 and 1 for a bool, text that holds JSON for a list or struct.
func (s *Shape) Strip(v any) (any, []Fault) {
	c := checker{out: true, coerce: true}
	r := c.value(s, v)
	return r, c.faults
}

// TakesNull tells whether null is one of the shape's values.
func (s *Shape) TakesNull() bool {
	switch s.Kind {
	case Any, Null:
		return true
	case Const:
		return s.Const == nil
	case Union:
		return slices.ContainsFunc(s.Alts, (*Shape).TakesNull)
	}
	return false
}

// checker is one run of Check or Strip.
type checker struct {
	out    bool // Strip
	coerce bool // 0 and 1 are bools, text is JSON
	faults []Fault
	path   []step
	depth  int
	secret int // inside this many secret fields
	trial  int // inside this many unions whose alternatives are tried
	tried  int
	lost   int // undeclared fields that were dropped
}

type step struct {
	key   string
	index int // of a list, -1 for a key
}

func (c *checker) enter(key string) { c.path = append(c.path, step{key, -1}) }
func (c *checker) at(i int)         { c.path = append(c.path, step{index: i}) }
func (c *checker) leave()           { c.path = c.path[:len(c.path)-1] }

func (c *checker) fault(f Fault) {
	if len(c.faults) >= MaxFaults {
		return
	}
	f.Secret = c.secret > 0
	if c.trial > trialFree { // nobody will see it
		c.faults = append(c.faults, f)
		return
	}
	f.Path = make([]any, len(c.path))
	for i, p := range c.path {
		if p.index < 0 {
			f.Path[i] = p.key
		} else {
			f.Path[i] = p.index
		}
	}
	c.faults = append(c.faults, f)
}

func (c *checker) wrongType(expected string, v any) any {
	c.fault(Fault{Code: InvalidType, Expected: expected, Got: v})
	return nil
}

// value checks one value. What it gives back counts only if it added no fault.
func (c *checker) value(s *Shape, v any) any {
	if c.depth >= maxDepth || c.tried > trialBudget {
		c.fault(Fault{Code: TooDeep})
		return nil
	}
	c.depth++
	r := c.kind(s, v)
	c.depth--
	return r
}

func (c *checker) kind(s *Shape, v any) any {
	switch s.Kind {
	case Null:
		if v != nil {
			return c.wrongType("null", v)
		}
		return nil
	case Bool:
		return c.boolean(v)
	case Int, Float:
		return c.number(s, v)
	case String:
		t, ok := v.(string)
		if !ok {
			return c.wrongType("string", v)
		}
		c.text(s, t, v)
		return v
	case Const:
		if c.constant(s, v) {
			return s.Const
		}
		c.fault(Fault{Code: InvalidValue, Values: []any{s.Const}, Got: v})
		return nil
	case List:
		return c.list(s, v)
	case Struct:
		return c.object(s, v)
	case Union:
		return c.union(s, v)
	}
	return v
}

func (c *checker) boolean(v any) any {
	if b, ok := v.(bool); ok {
		return b
	}
	if b, ok := c.asBool(v); ok {
		return b
	}
	return c.wrongType("boolean", v)
}

// asBool reads the 0 and 1 that a database without bools writes.
func (c *checker) asBool(v any) (b, ok bool) {
	n, isInt := v.(int64)
	if !c.coerce || !isInt || n < 0 || n > 1 {
		return false, false
	}
	return n == 1, true
}

func (c *checker) constant(s *Shape, v any) bool {
	if want, ok := s.Const.(bool); ok {
		if b, ok := c.asBool(v); ok {
			return b == want
		}
	}
	return equal(s.Const, v)
}

func (c *checker) number(s *Shape, v any) any {
	if _, ok := v.(int64); ok && s.anyNumber() {
		return v
	}
	var buf [maxFloatDigits]byte
	d, ok := decimal(buf[:0], v)
	if !ok {
		return c.wrongType("number", v)
	}
	if s.Kind == Int {
		if !isWhole(d) {
			return c.wrongType("int", v)
		}
		v = whole(v, d)
	}
	for _, f := range s.numberFaults(nil, d) {
		f.Got = v
		c.fault(f)
	}
	return v
}

// numberFaults appends what is wrong with a number, given as decimal text.
func (s *Shape) numberFaults(dst []Fault, d []byte) []Fault {
	if b := s.Min; b != nil {
		if n := compareDecimals(d, b.Value); n < 0 || n == 0 && b.Exclusive {
			dst = append(dst, Fault{Code: TooSmall, Origin: "number", Limit: string(b.Value), Inclusive: !b.Exclusive})
		}
	}
	if b := s.Max; b != nil {
		if n := compareDecimals(d, b.Value); n > 0 || n == 0 && b.Exclusive {
			dst = append(dst, Fault{Code: TooBig, Origin: "number", Limit: string(b.Value), Inclusive: !b.Exclusive})
		}
	}
	if s.MultipleOf != "" && !isMultiple(d, s.MultipleOf) {
		dst = append(dst, Fault{Code: NotMultipleOf, Limit: string(s.MultipleOf)})
	}
	for _, n := range s.Not {
		var buf [maxFloatDigits]byte
		if x, ok := decimal(buf[:0], n); ok && compareDecimals(d, x) == 0 {
			dst = append(dst, Fault{Code: Forbidden, Values: s.Not})
			break
		}
	}
	return dst
}

func (c *checker) text(s *Shape, t string, v any) {
	if s.plainText() {
		return
	}
	for _, f := range textFaults(nil, s, t) {
		f.Got = v
		c.fault(f)
	}
}

// plainText tells whether every text fits a String shape.
// anyNumber tells whether every whole number fits.
func (s *Shape) anyNumber() bool {
	return s.Min == nil && s.Max == nil && s.MultipleOf == "" && len(s.Not) == 0
}

func (s *Shape) plainText() bool {
	return s.MinRunes <= 0 && s.MaxRunes < 0 && s.Format == "" && len(s.Patterns) == 0 && len(s.Not) == 0
}

// textFaults appends what is wrong with a text.
func textFaults[T string | []byte](dst []Fault, s *Shape, t T) []Fault {
	if s.MinRunes > 0 || s.MaxRunes >= 0 {
		n := runes(t)
		if n < s.MinRunes {
			dst = append(dst, Fault{Code: TooSmall, Origin: "string", Limit: strconv.Itoa(s.MinRunes), Inclusive: true})
		}
		if s.MaxRunes >= 0 && n > s.MaxRunes {
			dst = append(dst, Fault{Code: TooBig, Origin: "string", Limit: strconv.Itoa(s.MaxRunes), Inclusive: true})
		}
	}
	for _, p := range s.Patterns {
		if matches(p.Re, t) != p.Not {
			continue
		}
		format := "regex"
		if p.Not {
			format = "not_regex"
		}
		dst = append(dst, Fault{Code: InvalidFormat, Format: format, Pattern: p.Re.String()})
	}
	if s.Format != "" && !hasFormat(s.Format, t) {
		f := Fault{Code: InvalidFormat, Format: s.Format}
		if layout, ok := Layout(s.Format); ok {
			f.Format, f.Pattern = "layout", layout
		}
		dst = append(dst, f)
	}
	for _, n := range s.Not {
		if x, ok := n.(string); ok && x == string(t) {
			dst = append(dst, Fault{Code: Forbidden, Values: s.Not})
			break
		}
	}
	return dst
}

func runes[T string | []byte](t T) int {
	switch t := any(t).(type) {
	case string:
		return utf8.RuneCountInString(t)
	case []byte:
		return utf8.RuneCount(t)
	}
	return 0
}

func matches[T string | []byte](re *regexp.Regexp, t T) bool {
	switch t := any(t).(type) {
	case string:
		return re.MatchString(t)
	case []byte:
		return re.Match(t)
	}
	return false
}
