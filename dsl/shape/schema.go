package shape

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Mask says what happens to the value at a path before it leaves.
type Mask uint8

// What masking may do to a value.
const (
	MayBeText Mask = 1 << iota // a text may stand in its place
	MayBeGone                  // it may be left out
)

// AppendSchema appends the JSON Schema 2020-12 of the shape, compact, with
// every constraint; a struct without Rest says additionalProperties: false
// and at the top always has properties. A field with a default is not
// required; shapes that hold themselves stand in $defs.
func (s *Shape) AppendSchema(dst []byte) []byte { return s.AppendMaskedSchema(dst, nil) }

// AppendMaskedSchema appends the JSON Schema of what is left of the shape's
// values after masking. mask is asked for every path: names of fields, "*"
// for the elements of a list and for fields that are not declared by name.
func (s *Shape) AppendMaskedSchema(dst []byte, mask func(path []string) Mask) []byte {
	w := schemaWriter{dst: dst, mask: mask}
	w.open('{')
	w.body(s, true)
	if len(w.defs) > 0 {
		w.inDefs = true
		if mask != nil {
			w.unroll(s)
		}
		w.key("$defs")
		w.open('{')
		for i := 0; i < len(w.defs); i++ { // writing one may find more
			w.key(w.defs[i].Name)
			w.open('{')
			w.body(w.defs[i], true)
			w.end('}')
		}
		w.end('}')
	}
	w.end('}')
	return w.dst
}

type schemaWriter struct {
	dst  []byte
	defs []*Shape // shapes with a name, in the order in which they were met

	mask   func([]string) Mask
	path   []string
	inDefs bool
	loose  map[maskKey]Mask // for $defs
}

func (w *schemaWriter) open(c byte) { w.dst = append(w.dst, c) }
func (w *schemaWriter) end(c byte)  { w.dst = append(w.dst, c) }

func (w *schemaWriter) comma() {
	if c := w.dst[len(w.dst)-1]; c != '{' && c != '[' {
		w.dst = append(w.dst, ',')
	}
}

func (w *schemaWriter) key(k string) {
	w.comma()
	w.dst = append(value.AppendString(w.dst, k), ':')
}

func (w *schemaWriter) text(k, v string) {
	w.key(k)
	w.dst = value.AppendString(w.dst, v)
}

func (w *schemaWriter) raw(k, v string) {
	w.key(k)
	w.dst = append(w.dst, v...)
}

func (w *schemaWriter) value(k string, v any) {
	w.key(k)
	w.dst = value.AppendJSON(w.dst, v)
}

// shape writes a schema of its own.
func (w *schemaWriter) shape(s *Shape, m Mask) {
	w.open('{')
	w.masked(s, m)
	w.end('}')
}

// masked writes the members of a schema whose value may have become a text.
func (w *schemaWriter) masked(s *Shape, m Mask) {
	if m&MayBeText == 0 || s.Kind == Any || s.Kind == String && s.plainText() {
		w.body(s, false)
		return
	}
	w.key("anyOf")
	w.open('[')
	w.shape(s, 0)
	w.dst = append(w.dst, `,{"type":"string"}]`...)
}

// body writes the members of a schema into an open object.
func (w *schemaWriter) body(s *Shape, top bool) {
	if s.Name != "" && !top {
		if !slices.Contains(w.defs, s) {
			w.defs = append(w.defs, s)
		}
		w.text("$ref", "#/$defs/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(s.Name))
		return
	}
	switch s.Kind {
	case Null:
		w.text("type", "null")
	case Bool:
		w.text("type", "boolean")
	case Int:
		w.text("type", "integer")
		w.number(s)
	case Float:
		w.text("type", "number")
		w.number(s)
	case String:
		w.text("type", "string")
		w.string(s)
	case Const:
		w.constants([]any{s.Const})
	case List:
		w.list(s)
	case Struct:
		w.object(s, top)
	case Union:
		w.union(s)
	}
}

func (w *schemaWriter) number(s *Shape) {
	bound := func(b *Bound, key, exclusive string) {
		switch {
		case b == nil:
		case b.Exclusive:
			w.raw(exclusive, string(b.Value))
		default:
			w.raw(key, string(b.Value))
		}
	}
	bound(s.Min, "minimum", "exclusiveMinimum")
	bound(s.Max, "maximum", "exclusiveMaximum")
	if s.MultipleOf != "" {
		w.raw("multipleOf", string(s.MultipleOf))
	}
	if len(s.Not) > 0 {
		w.raw("not", string(appendNot(nil, s.Not)))
	}
}

func appendNot(dst []byte, values []any) []byte {
	if len(values) == 1 {
		return append(value.AppendJSON(append(dst, `{"const":`...), values[0]), '}')
	}
	return append(value.AppendJSON(append(dst, `{"enum":`...), values), '}')
}

func (w *schemaWriter) string(s *Shape) {
	if s.MinRunes > 0 {
		w.raw("minLength", strconv.Itoa(s.MinRunes))
	}
	if s.MaxRunes >= 0 {
		w.raw("maxLength", strconv.Itoa(s.MaxRunes))
	}
	w.format(s.Format)
	var nots, all [][]byte
	if len(s.Not) > 0 {
		nots = append(nots, appendNot(nil, s.Not))
	}
	plain := 0
	for _, p := range s.Patterns {
		b := value.AppendString([]byte(`{"pattern":`), schemaPattern(p.Re))
		b = append(b, '}')
		switch {
		case p.Not:
			nots = append(nots, b)
		case plain == 0:
			plain++
			w.text("pattern", schemaPattern(p.Re))
		default:
			all = append(all, b)
		}
	}
	for i, n := range nots {
		if i == 0 {
			w.raw("not", string(n))
			continue
		}
		all = append(all, append(append([]byte(`{"not":`), n...), '}'))
	}
	if len(all) == 0 {
		return
	}
	w.key("allOf")
	w.open('[')
	for _, b := range all {
		w.comma()
		w.dst = append(w.dst, b...)
	}
	w.end(']')
}

func (w *schemaWriter) format(format string) {
	layout, isLayout := Layout(format)
	switch {
	case format == "":
	case format == "base64":
		w.text("contentEncoding", "base64")
	case format == "ip":
		w.raw("anyOf", `[{"format":"ipv4"},{"format":"ipv6"}]`)
	case isLayout:
		if p := layoutPattern(layout); p != "" {
			w.raw("allOf", string(append(value.AppendString([]byte(`[{"pattern":`), p), "}]"...)))
		}
	default:
		w.text("format", format)
	}
}

func (w *schemaWriter) list(s *Shape) {
	w.text("type", "array")
	if len(s.Prefix) > 0 {
		w.key("prefixItems")
		w.open('[')
		for _, p := range s.Prefix {
			w.comma()
			w.below(p, "*")
		}
		w.end(']')
	}
	switch {
	case s.Items != nil:
		w.key("items")
		w.below(s.Items, "*")
	case len(s.Prefix) > 0 && s.MaxItems == len(s.Prefix):
		w.raw("items", "false")
	}
	if s.MinItems > 0 {
		w.raw("minItems", strconv.Itoa(s.MinItems))
	}
	if s.MaxItems >= 0 {
		w.raw("maxItems", strconv.Itoa(s.MaxItems))
	}
	if s.Unique {
		w.raw("uniqueItems", "true")
	}
}

// below writes the schema of what stands below, by that step.
func (w *schemaWriter) below(s *Shape, step string) {
	m := w.enter(s, step)
	w.shape(s, m&MayBeText)
	w.leave()
}

func (w *schemaWriter) object(s *Shape, top bool) {
	w.text("type", "object")
	if isMap := len(s.Fields) == 0 && s.Rest != nil && !top; isMap {
		w.raw("propertyNames", `{"type":"string"}`)
	} else {
		w.properties(s)
	}
	if len(s.KeyPatterns) > 0 {
		w.key("patternProperties")
		w.open('{')
		for _, p := range s.KeyPatterns {
			w.key(schemaPattern(p.Re))
			w.below(p.Shape, "*")
		}
		w.end('}')
	}
	if s.Rest == nil {
		w.raw("additionalProperties", "false")
		return
	}
	w.key("additionalProperties")
	w.below(s.Rest, "*")
}

func (w *schemaWriter) properties(s *Shape) {
	var required []any
	w.key("properties")
	w.open('{')
	for _, f := range s.Fields {
		w.key(f.Name)
		m := w.enter(f.Shape, f.Name)
		w.open('{')
		w.masked(f.Shape, m)
		w.notes(f)
		w.end('}')
		w.leave()
		if !f.Optional && !f.HasDefault && m&MayBeGone == 0 {
			required = append(required, f.Name)
		}
	}
	w.end('}')
	if required != nil {
		w.value("required", required)
	}
}

// notes writes what a field says of itself beside its type.
func (w *schemaWriter) notes(f *Field) {
	if f.Title != "" {
		w.text("title", f.Title)
	}
	if f.Description != "" {
		w.text("description", f.Description)
	}
	if f.HasDefault {
		w.value("default", f.Default)
	}
	if len(f.Examples) > 0 {
		w.value("examples", f.ExampleValues())
	}
}

// ExampleValues gives the examples as values of the field's type: text where
// it takes text, else what the JSON says.
func (f *Field) ExampleValues() []any {
	l := make([]any, len(f.Examples))
	for i, e := range f.Examples {
		l[i] = e
		if _, faults := f.Shape.Check(e); len(faults) == 0 {
			continue
		}
		if v, err := value.Parse([]byte(e)); err == nil {
			l[i] = v
		}
	}
	return l
}
