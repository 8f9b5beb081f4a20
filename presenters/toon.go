package presenters

import (
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// TOON, version 4.0 of the public specification: uniform lists as tables,
// uniform objects as keyed tables, everything else by indentation. Section
// numbers are those of the specification.

// toonDelimiter stands between the cells of what we send.
const toonDelimiter = '|'

// appendToon appends a value as TOON with our delimiter.
func appendToon(dst []byte, v any) []byte {
	return toon{delim: toonDelimiter, indent: 2}.root(dst, v)
}

// toon is a way to write TOON.
type toon struct {
	delim  byte // , | or tab
	indent int  // spaces a level
}

func (t toon) root(dst []byte, v any) []byte {
	switch v := plainList(v).(type) {
	case *value.Object:
		if f := t.keyed(v); f != nil {
			return t.keyedRows(dst, v, f, 0)
		}
		return t.fields(dst, v, 0, false)
	case []any:
		if len(v) == 0 {
			return append(dst, "[]"...)
		}
		return t.list(dst, v, 0, true)
	default:
		return t.primitive(dst, v)
	}
}

func plainList(v any) any {
	if r, ok := v.(*value.Rows); ok {
		return r.List()
	}
	return v
}

// line begins a new line at a level.
func (t toon) line(dst []byte, level int) []byte {
	dst = append(dst, '\n')
	for range level * t.indent {
		dst = append(dst, ' ')
	}
	return dst
}

// fields writes the fields of an object, each on a line of its own; the first
// one follows a hyphen if it does, else it begins at the start of the text or
// on a new line. (§8, §10)
func (t toon) fields(dst []byte, o *value.Object, level int, hyphen bool) []byte {
	for i := range o.Len() {
		k, v := o.At(i)
		if i > 0 || !hyphen && level > 0 {
			dst = t.line(dst, level)
		}
		dst = t.key(dst, k)
		dst = t.field(dst, plainList(v), level)
	}
	return dst
}

// field writes what follows a key.
func (t toon) field(dst []byte, v any, level int) []byte {
	switch v := v.(type) {
	case *value.Object:
		if f := t.keyed(v); f != nil {
			return t.keyedRows(dst, v, f, level)
		}
		dst = append(dst, ':')
		if v.Len() == 0 {
			return dst
		}
		return t.fields(dst, v, level+1, false)
	case []any:
		if len(v) == 0 {
			return append(dst, ": []"...)
		}
		return t.list(dst, v, level, true)
	}
	return t.primitive(append(dst, ": "...), v)
}

// list writes a list from its header on: inline, as a table or as items. One
// without a key inside another list is never a table. (§9)
func (t toon) list(dst []byte, l []any, level int, table bool) []byte {
	dst = strconv.AppendInt(append(dst, '['), int64(len(l)), 10)
	dst = t.mark(dst)
	if allPrimitive(l) {
		dst = append(dst, "]:"...)
		for i, x := range l {
			if i == 0 {
				dst = append(dst, ' ')
			} else {
				dst = append(dst, t.delim)
			}
			dst = t.primitive(dst, x)
		}
		return dst
	}
	if table {
		if f := uniform(l); f != nil {
			dst = t.header(append(dst, ']'), f)
			for _, x := range l {
				dst = t.line(dst, level+1)
				dst = t.row(dst, x.(*value.Object), f)
			}
			return dst
		}
	}
	dst = append(dst, "]:"...)
	for _, x := range l {
		dst = append(t.line(dst, level+1), '-')
		dst = t.item(dst, plainList(x), level+1)
	}
	return dst
}

// item writes what follows the hyphen of a list item. (§10)
func (t toon) item(dst []byte, v any, level int) []byte {
	switch v := v.(type) {
	case *value.Object:
		if v.Len() == 0 {
			return dst
		}
		return t.fields(append(dst, ' '), v, level+1, true)
	case []any:
		return t.list(append(dst, ' '), v, level, false)
	}
	return t.primitive(append(dst, ' '), v)
}

// mark names the delimiter in a header, unless it is a comma.
func (t toon) mark(dst []byte) []byte {
	if t.delim == ',' {
		return dst
	}
	return append(dst, t.delim)
}

// toonField is a column of a table; one with columns of its own is a group.
type toonField struct {
	name string
	sub  []toonField
}

// uniform gives the columns of a list of objects that all have the same keys
// and in each column only primitives, or objects that are uniform again; nil
// for any other list. (§9.3)
func uniform(l []any) []toonField {
	first, ok := l[0].(*value.Object)
	if !ok || first.Len() == 0 {
		return nil
	}
	for _, x := range l {
		if o, ok := x.(*value.Object); !ok || o.Len() != first.Len() {
			return nil
		}
	}
	fields := make([]toonField, first.Len())
	var column []any
	for i := range fields {
		name, v := first.At(i)
		fields[i].name = name
		if _, group := v.(*value.Object); group && column == nil {
			column = make([]any, len(l))
		}
		for k, x := range l {
			v, ok := x.(*value.Object).Get(name)
			if !ok {
				return nil
			}
			if column != nil {
				column[k] = v
			} else if !isPrimitive(v) {
				return nil
			}
		}
		if column == nil {
			continue
		}
		if fields[i].sub = uniform(column); fields[i].sub == nil && !allPrimitive(column) {
			return nil
		}
		column = nil
	}
	return fields
}

// keyed gives the columns of an object whose fields, two at least, are
// uniform objects; nil for any other. (§9.5)
func (t toon) keyed(o *value.Object) []toonField {
	if o.Len() < 2 {
		return nil
	}
	if _, v := o.At(0); isPrimitive(v) {
		return nil
	}
	values := make([]any, o.Len())
	for i := range values {
		_, values[i] = o.At(i)
	}
	return uniform(values)
}

func (t toon) keyedRows(dst []byte, o *value.Object, f []toonField, level int) []byte {
	dst = strconv.AppendInt(append(dst, '['), int64(o.Len()), 10)
	dst = append(t.mark(append(dst, ':')), ']')
	dst = t.header(dst, f)
	for i := range o.Len() {
		k, v := o.At(i)
		dst = t.key(t.line(dst, level+1), k)
		dst = t.row(append(dst, ": "...), v.(*value.Object), f)
	}
	return dst
}

// header writes the columns of a table.
func (t toon) header(dst []byte, f []toonField) []byte {
	return append(t.group(dst, f), ':')
}

func (t toon) group(dst []byte, f []toonField) []byte {
	dst = append(dst, '{')
	for i, x := range f {
		if i > 0 {
			dst = append(dst, t.delim)
		}
		dst = t.key(dst, x.name)
		if x.sub != nil {
			dst = t.group(dst, x.sub)
		}
	}
	return append(dst, '}')
}

// row writes the cells of a table's row, groups flattened.
func (t toon) row(dst []byte, o *value.Object, f []toonField) []byte {
	for i, x := range f {
		if i > 0 {
			dst = append(dst, t.delim)
		}
		v, _ := o.Get(x.name)
		if x.sub != nil {
			dst = t.row(dst, v.(*value.Object), x.sub)
		} else {
			dst = t.primitive(dst, v)
		}
	}
	return dst
}

func isPrimitive(v any) bool {
	switch v.(type) {
	case *value.Object, []any, *value.Rows:
		return false
	}
	return true
}

func allPrimitive(l []any) bool {
	for _, x := range l {
		if !isPrimitive(x) {
			return false
		}
	}
	return true
}
