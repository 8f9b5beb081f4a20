package db

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// errForm is a text that is not as PostgreSQL writes arrays, composites and
// multiranges.
var errForm = errors.New("not in PostgreSQL's form")

// maxNested is how deep a value may nest. An array has six dimensions at most,
// and a composite as many levels as somebody declared.
const maxNested = 100

// appendJSON appends the JSON of a value inside another one; nil is NULL.
func (t *pgType) appendJSON(dst, b []byte, depth int) ([]byte, error) {
	if b == nil {
		return append(dst, "null"...), nil
	}
	if depth > maxNested {
		return dst, errForm
	}
	switch t.form {
	case formBool:
		if len(b) == 0 {
			return dst, errForm
		}
		return append(dst, boolText(b)...), nil
	case formInt, formNumeric:
		if !isJSONNumber(b) {
			return append(dst, "null"...), nil
		}
		return append(dst, b...), nil
	case formFloat:
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return append(dst, "null"...), nil
		}
		return value.AppendFloat(dst, f), nil
	case formJSON:
		if !json.Valid(b) {
			return dst, errForm
		}
		return append(dst, b...), nil
	case formVoid:
		return append(dst, "null"...), nil
	case formArray:
		return t.appendArray(dst, b, depth)
	case formComposite, formRecord:
		return t.appendComposite(dst, b, depth)
	case formMultirange:
		return t.appendMultirange(dst, b)
	case formText:
		return value.AppendString(dst, b), nil
	}
	return value.AppendString(dst, t.appendText(nil, b)), nil
}

// isJSONNumber tells whether a number of PostgreSQL is one of JSON, which has
// neither NaN nor infinities.
func isJSONNumber(b []byte) bool { return isNumber(b) && json.Valid(b) }

// nested reads a text of PostgreSQL from left to right.
type nested struct {
	b []byte
	i int
}

func (n *nested) at() byte {
	if n.i < len(n.b) {
		return n.b[n.i]
	}
	return 0
}

func (n *nested) take(c byte) bool {
	if n.at() != c || n.i >= len(n.b) {
		return false
	}
	n.i++
	return true
}

// quoted reads a "…" that begins here: a backslash takes the next byte as it
// is, and a quote is written twice inside a composite.
func (n *nested) quoted() ([]byte, error) {
	text := []byte{}
	for n.i++; n.i < len(n.b); n.i++ {
		switch c := n.b[n.i]; {
		case c == '\\':
			if n.i++; n.i == len(n.b) {
				return nil, errForm
			}
			text = append(text, n.b[n.i])
		case c != '"':
			text = append(text, c)
		case n.i+1 < len(n.b) && n.b[n.i+1] == '"':
			n.i++
			text = append(text, '"')
		default:
			n.i++
			return text, nil
		}
	}
	return nil, errForm
}

// bare reads up to one of the ends.
func (n *nested) bare(ends string) []byte {
	start := n.i
	for n.i < len(n.b) && strings.IndexByte(ends, n.b[n.i]) < 0 {
		n.i++
	}
	return n.b[start:n.i:n.i]
}

// appendArray reads {1,NULL,"a b",{…}}, with [0:2]= before it if the places do
// not count from 1.
func (t *pgType) appendArray(dst, b []byte, depth int) ([]byte, error) {
	n := &nested{b: b}
	if n.at() == '[' {
		n.bare("=")
		n.i++
	}
	dst, err := t.appendElements(dst, n, depth+1)
	if err == nil && n.i != len(b) {
		err = errForm
	}
	return dst, err
}

func (t *pgType) appendElements(dst []byte, n *nested, depth int) ([]byte, error) {
	if !n.take('{') || depth > maxNested {
		return dst, errForm
	}
	dst = append(dst, '[')
	if n.take('}') {
		return append(dst, ']'), nil
	}
	for {
		var err error
		switch n.at() {
		case '{':
			dst, err = t.appendElements(dst, n, depth+1)
		case '"':
			var text []byte
			if text, err = n.quoted(); err == nil {
				dst, err = t.elem.appendJSON(dst, text, depth)
			}
		default:
			text := n.bare(string([]byte{t.delim, '}'}))
			if len(text) == 0 {
				return dst, errForm
			}
			if bytes.EqualFold(text, []byte("NULL")) {
				text = nil
			}
			dst, err = t.elem.appendJSON(dst, text, depth)
		}
		if err != nil {
			return dst, err
		}
		if n.take('}') {
			return append(dst, ']'), nil
		}
		if !n.take(t.delim) {
			return dst, errForm
		}
		dst = append(dst, ',')
	}
}

// fieldEnds are what stands behind a bare field of a composite.
const fieldEnds = ",)"

// appendComposite reads (1,,"a ""b"""): an object, or a list of texts where
// the names are not known.
func (t *pgType) appendComposite(dst, b []byte, depth int) ([]byte, error) {
	n := &nested{b: b}
	if !n.take('(') {
		return dst, errForm
	}
	open, end := byte('{'), byte('}')
	if t.form == formRecord {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	count := 0
	if len(t.fields) == 0 && n.take(')') { // a type without fields, or ROW()
		return t.endComposite(append(dst, end), n, 0)
	}
	for more := true; more; count++ {
		text, err := n.field()
		if err != nil {
			return dst, err
		}
		if count > 0 {
			dst = append(dst, ',')
		}
		if dst, err = t.appendField(dst, text, count, depth); err != nil {
			return dst, err
		}
		if more = n.take(','); !more && !n.take(')') {
			return dst, errForm
		}
	}
	return t.endComposite(append(dst, end), n, count)
}

func (t *pgType) endComposite(dst []byte, n *nested, count int) ([]byte, error) {
	switch {
	case n.i != len(n.b):
		return dst, errForm
	case t.form == formComposite && count != len(t.fields):
		return dst, errStaleType
	}
	return dst, nil
}

// field reads one field of a composite; nil is NULL. Quoted and bare parts may
// follow each other.
func (n *nested) field() ([]byte, error) {
	var text []byte
	for n.i < len(n.b) && n.at() != ',' && n.at() != ')' {
		part := n.bare(fieldEnds + `"`)
		if n.at() == '"' {
			quoted, err := n.quoted()
			if err != nil {
				return nil, err
			}
			part = append(part, quoted...)
		}
		if text == nil {
			text = []byte{}
		}
		text = append(text, part...)
	}
	return text, nil
}

func (t *pgType) appendField(dst, text []byte, i, depth int) ([]byte, error) {
	if t.form == formRecord {
		return pgText.appendJSON(dst, text, depth+1)
	}
	if i >= len(t.fields) {
		return dst, errStaleType
	}
	dst = value.AppendString(dst, t.fields[i])
	return t.types[i].appendJSON(append(dst, ':'), text, depth+1)
}

var pgText = &pgType{form: formText}

// appendRange writes the times of a range as times are written elsewhere, and
// any other range as it is.
func (t *pgType) appendRange(dst, b []byte) []byte {
	if t.elem.form != formTimestamp || len(b) < len("(,)") {
		return append(dst, b...)
	}
	n := &nested{b: b[1 : len(b)-1]}
	low, err := n.bound()
	if err != nil || !n.take(',') {
		return append(dst, b...)
	}
	high, err := n.bound()
	if err != nil || n.i != len(n.b) {
		return append(dst, b...)
	}
	dst = appendTimestamp(append(dst, b[0]), low)
	dst = appendTimestamp(append(dst, ','), high)
	return append(dst, b[len(b)-1])
}

func (n *nested) bound() ([]byte, error) {
	if n.at() == '"' {
		return n.quoted()
	}
	return n.bare(","), nil
}

// appendMultirange reads {[1,3),[5,7)}: a list of ranges.
func (t *pgType) appendMultirange(dst, b []byte) ([]byte, error) {
	n := &nested{b: b}
	if !n.take('{') {
		return dst, errForm
	}
	dst = append(dst, '[')
	for first := true; !n.take('}'); first = false {
		if !first {
			if !n.take(',') {
				return dst, errForm
			}
			dst = append(dst, ',')
		}
		text, err := n.rangeText()
		if err != nil {
			return dst, err
		}
		dst = value.AppendString(dst, t.elem.appendRange(nil, text))
	}
	if n.i != len(b) {
		return dst, errForm
	}
	return append(dst, ']'), nil
}

// rangeText reads over one range.
func (n *nested) rangeText() ([]byte, error) {
	start := n.i
	if c := n.at(); c != '[' && c != '(' {
		return nil, errForm
	}
	for n.i++; n.i < len(n.b); {
		switch n.b[n.i] {
		case '"':
			if _, err := n.quoted(); err != nil {
				return nil, err
			}
		case ']', ')':
			n.i++
			return n.b[start:n.i], nil
		default:
			n.i++
		}
	}
	return nil, errForm
}
