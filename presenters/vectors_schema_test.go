package presenters

import (
	"regexp"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// get gives a member of an object of a vector, nil if it has none.
func get(v any, key string) any {
	o, _ := v.(*value.Object)
	x, _ := o.Get(key)
	return x
}

func texts(v any) []string {
	l, _ := v.([]any)
	out := make([]string, 0, len(l))
	for _, x := range l {
		out = append(out, jsString(x))
	}
	return out
}

func elements(v any) []any { l, _ := v.([]any); return l }

func text1(v any) string { s, _ := v.(string); return s }

// shapeOf translates a schema of the vectors.
func shapeOf(v any) *shape.Shape {
	if v == nil {
		return nil
	}
	s := baseShape(v)
	if get(v, "nullable") == true {
		s = &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{s, {Kind: shape.Null}}}
	}
	return s
}

func baseShape(v any) *shape.Shape {
	s := &shape.Shape{MaxRunes: -1, MaxItems: -1}
	switch get(v, "type") {
	case "string":
		s.Kind = shape.String
		textShape(s, v)
	case "number", "integer":
		s.Kind = shape.Float
		if get(v, "type") == "integer" {
			s.Kind = shape.Int
		}
		numberShape(s, v)
	case "boolean":
		s.Kind = shape.Bool
	case "null":
		s.Kind = shape.Null
	case "enum":
		s.Kind = shape.Union
		for _, x := range elements(get(v, "values")) {
			s.Alts = append(s.Alts, &shape.Shape{Kind: shape.Const, Const: x})
		}
	case "literal":
		s.Kind, s.Const = shape.Const, get(v, "value")
	case "union":
		s.Kind = shape.Union
		for _, x := range elements(get(v, "anyOf")) {
			s.Alts = append(s.Alts, shapeOf(x))
		}
	case "array":
		s.Kind, s.Items = shape.List, shapeOf(get(v, "items"))
		if n, ok := get(v, "min").(int64); ok {
			s.MinItems = int(n)
		}
		if n, ok := get(v, "max").(int64); ok {
			s.MaxItems = int(n)
		}
	case "tuple":
		s.Kind = shape.List
		for _, x := range elements(get(v, "items")) {
			s.Prefix = append(s.Prefix, shapeOf(x))
		}
		s.MinItems, s.MaxItems = len(s.Prefix), len(s.Prefix)
	case "record":
		s.Kind, s.Rest = shape.Struct, shapeOf(get(v, "values"))
	case "object":
		s.Kind = shape.Struct
		for _, f := range elements(get(v, "fields")) {
			s.Fields = append(s.Fields, fieldOf(f))
		}
		if get(v, "mode") == "passthrough" {
			s.Rest = &shape.Shape{Kind: shape.Any}
		}
	}
	return s
}

func textShape(s *shape.Shape, v any) {
	if n, ok := get(v, "min").(int64); ok {
		s.MinRunes = int(n)
	}
	if n, ok := get(v, "max").(int64); ok {
		s.MaxRunes = int(n)
	}
	if n, ok := get(v, "length").(int64); ok {
		s.MinRunes, s.MaxRunes = int(n), int(n)
	}
	if p := text1(get(v, "pattern")); p != "" {
		s.Patterns = append(s.Patterns, shape.Pattern{Re: regexp.MustCompile(p)})
	}
	if p := text1(get(v, "startsWith")); p != "" {
		s.Patterns = append(s.Patterns, shape.Pattern{Re: regexp.MustCompile("^" + regexp.QuoteMeta(p))})
	}
	s.Format = text1(get(v, "format"))
	switch s.Format {
	case "url":
		s.Format = "uri"
	case "datetime":
		s.Format = "date-time"
	}
}

func numberShape(s *shape.Shape, v any) {
	bound := func(key string, exclusive bool) *shape.Bound {
		if x := get(v, key); x != nil {
			return &shape.Bound{Value: value.Number(value.AppendJSON(nil, x)), Exclusive: exclusive}
		}
		return nil
	}
	s.Min, s.Max = bound("min", false), bound("max", false)
	if b := bound("gt", true); b != nil {
		s.Min = b
	}
	if b := bound("lt", true); b != nil {
		s.Max = b
	}
	if m := get(v, "multipleOf"); m != nil {
		s.MultipleOf = value.Number(value.AppendJSON(nil, m))
	}
}

func fieldOf(v any) *shape.Field {
	f := &shape.Field{Name: text1(get(v, "name")), Shape: shapeOf(v)}
	f.Optional = get(v, "optional") == true
	f.Description = text1(get(v, "describe"))
	if d := text1(get(v, "describeOuter")); d != "" {
		f.Description = d
	}
	if o, ok := v.(*value.Object); ok {
		f.Default, f.HasDefault = o.Get("default")
	}
	return f
}

// paramsOf translates the parameters of the fluent form.
func paramsOf(v any) *shape.Shape {
	s := &shape.Shape{Kind: shape.Struct}
	for _, p := range elements(v) {
		f := fieldOf(p)
		switch get(p, "type") {
		case "array":
			f.Shape.Items = &shape.Shape{Kind: shape.String, MaxRunes: -1}
			if t := text1(get(p, "items")); t != "" {
				f.Shape.Items = shapeOf(value.Of("type", t))
			}
		case "json":
			f.Shape = &shape.Shape{Kind: shape.Struct, Rest: &shape.Shape{Kind: shape.Any}}
		}
		s.Fields = append(s.Fields, f)
	}
	return s
}

// merged puts the common parameters that are not left out before an action's own.
func merged(common, own *shape.Shape, omit []string) *shape.Shape {
	s := &shape.Shape{Kind: shape.Struct}
	if common != nil {
		for _, f := range common.Fields {
			switch {
			case contains(omit, f.Name):
			case own != nil && own.Field(f.Name) != nil:
				s.Fields = append(s.Fields, own.Field(f.Name))
			default:
				s.Fields = append(s.Fields, f)
			}
		}
	}
	if own != nil {
		s.Rest = own.Rest
		for _, f := range own.Fields {
			if s.Field(f.Name) == nil {
				s.Fields = append(s.Fields, f)
			}
		}
	}
	return s
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}

// jsNumber writes a number as JavaScript does.
func jsNumber(v any) string {
	if n, ok := v.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return string(value.AppendJSON(nil, v))
}
