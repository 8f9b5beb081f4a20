package shape

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// union writes constants as enums, one a type, and the rest as they are.
func (w *schemaWriter) union(s *Shape) {
	var groups [][]any
	var others []*Shape
	null := false
	for _, a := range s.Alts {
		switch {
		case a.Kind == Null || a.Kind == Const && a.Const == nil:
			null = true
		case a.Kind == Const:
			groups = appendGroup(groups, a.Const)
		default:
			others = append(others, a)
		}
	}
	n := len(groups) + len(others)
	if n == 1 && !null && len(groups) == 1 {
		if len(groups[0]) == 1 { // an enum of one, such as the only action of a group
			w.text("type", typeName(groups[0]))
			w.value("enum", groups[0])
			return
		}
		w.constants(groups[0])
		return
	}
	w.key("anyOf")
	w.open('[')
	for _, g := range groups {
		w.comma()
		w.open('{')
		w.constants(g)
		w.end('}')
	}
	for _, o := range others {
		w.comma()
		w.shape(o, 0)
	}
	if null {
		w.comma()
		w.dst = append(w.dst, `{"type":"null"}`...)
	}
	w.end(']')
}

func appendGroup(groups [][]any, v any) [][]any {
	for i, g := range groups {
		if typeName(append(slices.Clone(g), v)) != "" {
			groups[i] = append(g, v)
			return groups
		}
	}
	return append(groups, []any{v})
}

// constants writes an enum; all values of one type have it named.
func (w *schemaWriter) constants(values []any) {
	if t := typeName(values); t != "" {
		w.text("type", t)
	}
	if len(values) == 1 {
		w.value("const", values[0])
		return
	}
	w.value("enum", values)
}

// typeName is the JSON type that all values have, "" if they differ.
func typeName(values []any) string {
	name := ""
	for _, v := range values {
		t := "null"
		switch v.(type) {
		case bool:
			t = "boolean"
		case string:
			t = "string"
		case int64, float64, value.Number:
			t = "number"
		}
		if name != "" && name != t {
			return ""
		}
		name = t
	}
	return name
}
