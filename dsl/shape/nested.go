package shape

import (
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// parsed reads the JSON text that a database without nested types writes.
func (c *checker) parsed(v any) any {
	t, ok := v.(string)
	if !c.coerce || !ok {
		return v
	}
	p, err := value.Parse([]byte(t))
	if err != nil {
		return v
	}
	return p
}

func (c *checker) list(s *Shape, v any) any {
	if r, ok := v.(*value.Rows); ok {
		v = r.List()
	}
	l, ok := c.parsed(v).([]any)
	if !ok {
		return c.wrongType("array", v)
	}
	before := len(c.faults)
	if len(s.Prefix) > 0 && !c.size(s, l) {
		return nil
	}
	r := make([]any, len(l))
	for i, x := range l {
		item := s.Items
		if i < len(s.Prefix) {
			item = s.Prefix[i]
		}
		if item == nil {
			r[i] = x
			continue
		}
		c.at(i)
		r[i] = c.value(item, x)
		c.leave()
		if len(c.faults) >= MaxFaults {
			return nil
		}
	}
	if len(s.Prefix) == 0 {
		c.size(s, l)
	}
	if s.Unique && len(c.faults) == before && !unique(r) {
		c.fault(Fault{Code: NotUnique, Got: v})
	}
	return r
}

func (c *checker) size(s *Shape, l []any) bool {
	switch n := len(l); {
	case n < s.MinItems:
		c.fault(Fault{Code: TooSmall, Origin: "array", Limit: strconv.Itoa(s.MinItems), Inclusive: true, Got: l})
	case s.MaxItems >= 0 && n > s.MaxItems:
		c.fault(Fault{Code: TooBig, Origin: "array", Limit: strconv.Itoa(s.MaxItems), Inclusive: true, Got: l})
	default:
		return true
	}
	return false
}

func unique(l []any) bool {
	seen := make(map[string]bool, len(l))
	for _, v := range l {
		k := string(appendCanonical(nil, v))
		if seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

func (c *checker) object(s *Shape, v any) any {
	o, ok := c.parsed(v).(*value.Object)
	if !ok {
		return c.wrongType("object", v)
	}
	r := value.NewObject(min(len(s.Fields), o.Len()+4))
	known := 0
	for _, f := range s.Fields {
		x, has := o.Get(f.Name)
		if has {
			known++
		}
		if has && (x != nil || !f.Optional || f.Shape.TakesNull()) {
			r.Append(f.Name, c.field(f, x))
			continue
		}
		switch {
		case f.Optional:
		case f.HasDefault:
			r.Append(f.Name, value.DeepClone(f.Default))
		default:
			c.missing(f)
		}
	}
	switch {
	case known == o.Len():
	case c.out && s.Rest == nil && len(s.KeyPatterns) == 0:
		c.lost += o.Len() - known
	default:
		c.others(s, o, r)
	}
	return r
}

func (c *checker) field(f *Field, v any) any {
	c.enter(f.Name)
	if f.Secret {
		c.secret++
	}
	r := c.value(f.Shape, v)
	if f.Secret {
		c.secret--
	}
	c.leave()
	return r
}

func (c *checker) missing(f *Field) {
	c.enter(f.Name)
	if f.Secret {
		c.secret++
	}
	c.fault(f.Shape.missing())
	if f.Secret {
		c.secret--
	}
	c.leave()
}

// missing is the fault of a field of that shape that is not there.
func (s *Shape) missing() Fault {
	f := Fault{Code: InvalidType, Missing: true}
	switch s.Kind {
	case Any:
		f.Expected = "nonoptional"
	case Null:
		f.Expected = "null"
	case Bool:
		f.Expected = "boolean"
	case Int, Float:
		f.Expected = "number"
	case String:
		f.Expected = "string"
	case List:
		f.Expected = "array"
	case Struct:
		f.Expected = "object"
	case Const:
		f.Code, f.Values = InvalidValue, []any{s.Const}
	case Union:
		alts := s.notNull()
		if len(alts) == 1 {
			return alts[0].missing()
		}
		if f.Values = constants(alts); f.Values != nil {
			f.Code = InvalidValue
		} else {
			f.Code = InvalidUnion
		}
	}
	return f
}

// others looks after the fields that are not declared by name.
func (c *checker) others(s *Shape, o, r *value.Object) {
	var unknown []string
	for i := range o.Len() {
		k, v := o.At(i)
		if s.Field(k) != nil {
			continue
		}
		matched := false
		c.enter(k)
		for _, p := range s.KeyPatterns {
			if p.Re.MatchString(k) {
				matched, v = true, c.value(p.Shape, v)
			}
		}
		if !matched && s.Rest != nil {
			matched, v = true, c.value(s.Rest, v)
		}
		c.leave()
		switch {
		case matched:
			r.Set(k, v)
		case c.out:
			c.lost++
		case len(unknown) < maxKeys:
			unknown = append(unknown, k)
		}
		if len(c.faults) >= MaxFaults {
			return
		}
	}
	if len(unknown) > 0 {
		c.unknown(s, unknown)
	}
}

func (c *checker) unknown(s *Shape, keys []string) {
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.Name
	}
	near := make([]string, len(keys))
	for i, k := range keys {
		near[i] = value.Near(k, names)
	}
	c.fault(Fault{Code: UnrecognizedKey, Keys: keys, Near: near})
}
