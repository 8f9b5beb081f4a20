package shape

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// notNull gives the alternatives but null.
func (s *Shape) notNull() []*Shape {
	isNull := func(a *Shape) bool { return a.Kind == Null || a.Kind == Const && a.Const == nil }
	if !slices.ContainsFunc(s.Alts, isNull) {
		return s.Alts
	}
	return slices.DeleteFunc(slices.Clone(s.Alts), isNull)
}

// constants gives the values of alternatives that are all constants, else nil.
func constants(alts []*Shape) []any {
	var l []any
	for _, a := range alts {
		if a.Kind != Const {
			return nil
		}
		l = append(l, a.Const)
	}
	return l
}

func (c *checker) union(s *Shape, v any) any {
	allConst, others := true, 0
	var only *Shape
	for _, a := range s.Alts {
		switch a.Kind {
		case Const:
			if c.constant(a, v) {
				return a.Const
			}
			if a.Const == nil {
				continue
			}
		case Null:
			if v == nil {
				return nil
			}
			continue
		default:
			allConst = false
		}
		others++
		only = a
	}
	if others == 1 {
		return c.value(only, v)
	}
	alts := s.notNull()
	switch {
	case allConst:
		c.fault(Fault{Code: InvalidValue, Values: constants(alts), Got: v})
		return nil
	case s.Discriminator != "":
		return c.tagged(s, alts, v)
	}
	return c.anyOf(alts, v)
}

// tagged goes to the alternative that the discriminator names.
func (c *checker) tagged(s *Shape, alts []*Shape, v any) any {
	o, ok := c.parsed(v).(*value.Object)
	if !ok {
		return c.wrongType("object", v)
	}
	tag, has := o.Get(s.Discriminator)
	var values []any
	for _, a := range alts {
		f := a.Field(s.Discriminator)
		if f == nil {
			continue
		}
		if has && c.constant(f.Shape, tag) {
			return c.value(a, o)
		}
		values = append(values, f.Shape.Const)
	}
	c.enter(s.Discriminator)
	c.fault(Fault{Code: InvalidValue, Values: values, Got: tag, Missing: !has})
	c.leave()
	return nil
}

// anyOf takes the first alternative that fits as it is; on the way out the one
// that loses the fewest fields, and only then one that fits by coercion.
func (c *checker) anyOf(alts []*Shape, v any) any {
	before, coerce := len(c.faults), c.coerce
	if c.trial++; c.trial > trialFree {
		c.tried++
	}
	defer func() { c.trial--; c.coerce = coerce }()
	c.coerce = false
	r, faults, ok := c.try(alts, v)
	if !ok && coerce {
		c.coerce = true
		r, faults, ok = c.try(alts, v)
	}
	if ok {
		return r
	}
	c.faults = c.faults[:before]
	// The one alternative that the value only just misses says more than
	// that none fits.
	nearest := -1
	for i, l := range faults {
		if slices.ContainsFunc(l, Fault.decides) {
			continue
		}
		if nearest >= 0 {
			nearest = -1
			break
		}
		nearest = i
	}
	if nearest >= 0 && c.trial <= trialFree {
		c.faults = append(c.faults, faults[nearest]...)
		return nil
	}
	if c.trial > 1 {
		faults = nil // the outermost union tells enough
	}
	c.fault(Fault{Code: InvalidUnion, Alts: faults, Got: v})
	return nil
}

// decides tells whether a fault shows that the value was not meant for this
// alternative, as a wrong type does and a number out of range does not.
func (f Fault) decides() bool {
	switch f.Code {
	case TooSmall, TooBig, NotMultipleOf, InvalidFormat, Forbidden, NotUnique:
		return false
	}
	return true
}

func (c *checker) try(alts []*Shape, v any) (best any, faults [][]Fault, ok bool) {
	before, lost := len(c.faults), c.lost
	least := -1
	for _, a := range alts {
		c.faults, c.lost = c.faults[:before], 0
		r := c.value(a, v)
		if len(c.faults) > before {
			faults = append(faults, slices.Clone(c.faults[before:]))
			continue
		}
		if least < 0 || c.lost < least {
			best, least = r, c.lost
		}
		if least == 0 {
			break
		}
	}
	c.faults = c.faults[:before]
	c.lost = lost + max(least, 0)
	return best, faults, least >= 0
}
