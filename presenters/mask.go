package presenters

import (
	"regexp"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// mask hides what must not leave. It copies what it changes, so that the
// answer of the binding stays whole.
type mask struct {
	paths    [][]seg // none: every text of the answer, only with patterns
	patterns []*regexp.Regexp
	when     cond
	as       censor
	remove   bool
}

// censor gives what stands in the place of a hidden value.
type censor interface {
	Replace(v any) any
}

// fixed is the same text for every value.
type fixed string

func (f fixed) Replace(any) any { return string(f) }

// removed is what a mask gives for a field that is to go.
type removedValue struct{}

var removed any = removedValue{}

// applyMasks hides what the masks name in one item. A condition that fails to
// evaluate masks.
func applyMasks(masks []mask, v any, e *expr.Env, withheld func(any)) any {
	whole := v
	for i := range masks {
		m := &masks[i]
		if m.when != nil {
			e.Set("data", whole)
			if holds, err := m.when.Bool(e); err == nil && !holds {
				continue
			}
		}
		v = m.apply(v, withheld)
	}
	return v
}

func (m *mask) apply(v any, withheld func(any)) any {
	if m.paths == nil {
		out, _ := m.search(v, withheld)
		if out == removed {
			return nil
		}
		return out
	}
	for _, p := range m.paths {
		out, changed := m.walk(v, p, withheld)
		if changed && out != removed {
			v = out
		}
	}
	return v
}

// walk follows the rest of a path. It gives the value to stand in the place
// of v and whether it is another one.
func (m *mask) walk(v any, path []seg, withheld func(any)) (any, bool) {
	if len(path) == 0 {
		if m.patterns != nil {
			return m.search(v, withheld)
		}
		return m.hide(v, withheld), true
	}
	if r, ok := v.(*value.Rows); ok {
		v = r.List()
	}
	s := path[0]
	switch v := v.(type) {
	case *value.Object:
		switch s.kind {
		case segKey:
			x, ok := v.Get(s.key)
			if !ok {
				return v, false
			}
			x, changed := m.walk(x, path[1:], withheld)
			if !changed {
				return v, false
			}
			return with(v.Clone(), s.key, x), true
		case segAny:
			return eachField(v, func(x any) (any, bool) { return m.walk(x, path[1:], withheld) })
		case segDeep:
			return m.deep(v, path, withheld)
		}
	case []any:
		switch s.kind {
		case segKey:
			return eachElement(v, func(x any) (any, bool) { return m.walk(x, path, withheld) })
		case segAny:
			return eachElement(v, func(x any) (any, bool) { return m.walk(x, path[1:], withheld) })
		case segDeep:
			return m.deep(v, path, withheld)
		case segIndex:
			if s.index >= len(v) {
				return v, false
			}
			x, changed := m.walk(v[s.index], path[1:], withheld)
			if !changed {
				return v, false
			}
			c := append([]any(nil), v...)
			if c[s.index] = x; x == removed {
				c = append(c[:s.index], c[s.index+1:]...)
			}
			return c, true
		}
	}
	return v, false
}

// deep applies the path behind ** to the value itself and to all below it.
func (m *mask) deep(v any, path []seg, withheld func(any)) (any, bool) {
	out, changed := m.walk(v, path[1:], withheld)
	var below bool
	down := func(x any) (any, bool) {
		switch x.(type) {
		case *value.Object, []any, *value.Rows:
			return m.walk(x, path, withheld)
		}
		return x, false
	}
	switch o := out.(type) {
	case *value.Object:
		out, below = eachField(o, down)
	case []any:
		out, below = eachElement(o, down)
	}
	return out, changed || below
}

func (m *mask) hide(v any, withheld func(any)) any {
	if withheld != nil {
		withheld(v)
	}
	if m.remove {
		return removed
	}
	return m.as.Replace(v)
}

// search hides what matches a pattern in every text of a value.
func (m *mask) search(v any, withheld func(any)) (any, bool) {
	switch v := v.(type) {
	case *value.Object:
		return eachField(v, func(x any) (any, bool) { return m.search(x, withheld) })
	case *value.Rows:
		return eachElement(v.List(), func(x any) (any, bool) { return m.search(x, withheld) })
	case []any:
		return eachElement(v, func(x any) (any, bool) { return m.search(x, withheld) })
	case nil, bool:
		return v, false
	}
	s := string(value.AppendText(nil, v))
	out := s
	for _, re := range m.patterns {
		if !re.MatchString(out) {
			continue
		}
		if withheld != nil {
			for _, hit := range re.FindAllString(out, -1) {
				withheld(hit)
			}
		}
		if m.remove {
			return removed, true
		}
		out = re.ReplaceAllStringFunc(out, func(hit string) string {
			return string(value.AppendText(nil, m.as.Replace(hit)))
		})
	}
	if out == s {
		return v, false
	}
	return out, true
}

func with(o *value.Object, key string, v any) *value.Object {
	if v == removed {
		o.Delete(key)
	} else {
		o.Set(key, v)
	}
	return o
}

// eachField gives the object with f of every field; the object itself if
// nothing changed.
func eachField(o *value.Object, f func(any) (any, bool)) (any, bool) {
	var c *value.Object
	for i := range o.Len() {
		k, x := o.At(i)
		y, changed := f(x)
		if !changed {
			continue
		}
		if c == nil {
			c = o.Clone()
		}
		with(c, k, y)
	}
	if c == nil {
		return o, false
	}
	return c, true
}

// eachElement gives the list with f of every element; the list itself if
// nothing changed.
func eachElement(l []any, f func(any) (any, bool)) (any, bool) {
	var c []any
	for i, x := range l {
		y, changed := f(x)
		if changed && c == nil {
			c = append(make([]any, 0, len(l)), l[:i]...)
		}
		if c != nil && y != removed {
			c = append(c, y)
		}
	}
	if c == nil {
		return l, false
	}
	return c, true
}
