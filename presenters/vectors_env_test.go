package presenters

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	exprlang "github.com/expr-lang/expr"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// The expressions of the vectors see the item's fields at the top level,
// without types: they run in expr-lang itself, not in package expr.

// callback is a {js, expr} of a vector.
type callback struct{ src string }

// asCallback reads a {js, expr} object.
func asCallback(v any) (*callback, bool) {
	o, ok := v.(*value.Object)
	if !ok || o.Len() != 2 {
		return nil, false
	}
	src, ok := o.Get("expr")
	if _, js := o.Get("js"); !ok || !js {
		return nil, false
	}
	return &callback{src.(string)}, true
}

// run evaluates over the names that the engine set: the item, the items, ctx.
func (c *callback) run(e *expr.Env) (any, error) {
	w := &world{objects: map[uintptr]*value.Object{}}
	env := map[string]any{
		"str": func(args ...any) (any, error) { return jsString(args[0]), nil },
		"ctx": w.plain(e.Get("ctx")), "omitted": w.plain(e.Get("omitted")), "value": w.plain(e.Get("value")),
	}
	if items, ok := e.Get("items").([]any); ok {
		env["items"] = w.plain(items)
	}
	data := e.Get("data")
	if o, ok := data.(*value.Object); ok {
		for i := range o.Len() {
			k, v := o.At(i)
			env[k] = w.plain(v)
		}
	}
	env["data"] = w.plain(data)
	p, err := exprlang.Compile(c.src, exprlang.AllowUndefinedVariables())
	if err != nil {
		return nil, fmt.Errorf("compiling %s: %w", c.src, err)
	}
	out, err := exprlang.Run(p, env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.src, err)
	}
	return w.back(out), nil
}

// world turns values into what expr-lang knows and back, keeping the key order
// of structs that only pass through.
type world struct{ objects map[uintptr]*value.Object }

func (w *world) plain(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case *value.Object:
		if v == nil {
			return nil
		}
		m := make(map[string]any, v.Len())
		for i := range v.Len() {
			k, x := v.At(i)
			m[k] = w.plain(x)
		}
		w.objects[reflect.ValueOf(m).Pointer()] = v
		return m
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = w.plain(x)
		}
		return l
	}
	return v
}

func (w *world) back(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case map[string]any:
		if o := w.objects[reflect.ValueOf(v).Pointer()]; o != nil {
			return o
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		o := value.NewObject(len(keys))
		for _, k := range keys {
			o.Set(k, w.back(v[k]))
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = w.back(x)
		}
		return l
	}
	return v
}

// jsString is String(x) of JavaScript.
func jsString(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case map[string]any, *value.Object:
		return "[object Object]"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			if x != nil {
				parts[i] = jsString(x)
			}
		}
		return strings.Join(parts, ",")
	case int:
		return fmt.Sprint(v)
	}
	return string(value.AppendJSON(nil, v))
}

// jsCond holds where the callback gives a true value; jsSaid where it gives
// anything but nil.
type (
	jsCond struct{ *callback }
	jsSaid struct{ *callback }
)

func (c jsCond) Bool(e *expr.Env) (bool, error) {
	v, err := c.run(e)
	return err == nil && v != nil && v != false && v != "" && v != int64(0), err
}

func (c jsSaid) Bool(e *expr.Env) (bool, error) {
	v, err := c.run(e)
	return err == nil && v != nil, err
}

// yes always holds: the condition of a text in a list of dynamic rules, which
// is not asked for an empty list.
type yes struct{}

func (yes) Bool(*expr.Env) (bool, error) { return true, nil }

// jsTree is a tree of a vector: callbacks at its leaves, everything else data.
type jsTree struct{ v any }

func (t jsTree) Value(e *expr.Env) (any, error) {
	if c, ok := asCallback(t.v); ok {
		return c.run(e)
	}
	switch v := t.v.(type) {
	case *value.Object:
		o := value.NewObject(v.Len())
		for i := range v.Len() {
			k, x := v.At(i)
			y, err := jsTree{x}.Value(e)
			if err != nil {
				return nil, err
			}
			o.Set(k, y)
		}
		return o, nil
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			y, err := jsTree{x}.Value(e)
			if err != nil {
				return nil, err
			}
			l[i] = y
		}
		return l, nil
	}
	return t.v, nil
}

// jsText is a text of a vector that is data: an argument of a helper or the
// result of a callback.
type jsText struct{ v any }

func (t jsText) Append(dst []byte, e *expr.Env, safe func([]byte, string) []byte) ([]byte, error) {
	v, err := jsTree(t).Value(e)
	if err != nil {
		return dst, err
	}
	s := jsString(v)
	if safe == nil {
		return append(dst, s...), nil
	}
	return safe(dst, s), nil
}
