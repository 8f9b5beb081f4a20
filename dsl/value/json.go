package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep a JSON document may nest.
const MaxDepth = 200

// Parse reads one JSON document: key order kept, numbers exact. Of a key that
// is set twice the last value counts, at the place of the first. A document
// that is not JSON, nests deeper than MaxDepth or has something behind it is
// an error.
func Parse(b []byte) (any, error) {
	if json.Valid(b) {
		w := walker{b: b}
		return w.value(0)
	}
	return nil, fault(b)
}

// fault says what is wrong with a document that is no JSON.
func fault(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	depth, whole := 0, 0
	for {
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && depth == 0 && whole > 1:
			return errors.New("there is something behind the JSON document")
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil && depth == 0 && whole > 0:
			return errors.New("there is something behind the JSON document")
		case err != nil:
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			if depth++; depth > MaxDepth {
				return errTooDeep
			}
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
		if depth == 0 {
			whole++
		}
	}
}

var errTooDeep = fmt.Errorf("nested deeper than %d levels", MaxDepth)

// walker builds the values of a document that is known to be JSON.
type walker struct {
	b []byte
	i int
}

// next steps to the next byte that is no space and gives it.
func (w *walker) next() byte {
	for {
		switch c := w.b[w.i]; c {
		case ' ', '\t', '\n', '\r', ',', ':': // where these two may stand is known to be right
			w.i++
		default:
			return c
		}
	}
}

func (w *walker) value(depth int) (any, error) {
	switch w.next() {
	case '{':
		return w.object(depth)
	case '[':
		return w.list(depth)
	case '"':
		return w.text()
	case 't':
		w.i += len("true")
		return true, nil
	case 'f':
		w.i += len("false")
		return false, nil
	case 'n':
		w.i += len("null")
		return nil, nil
	}
	from := w.i
	for w.i < len(w.b) && strings.IndexByte("+-.eE0123456789", w.b[w.i]) >= 0 {
		w.i++
	}
	return ParseNumber(string(w.b[from:w.i])), nil
}

func (w *walker) object(depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, errTooDeep
	}
	o := NewObject(4)
	for w.i++; w.next() != '}'; {
		k, err := w.text()
		if err != nil {
			return nil, err
		}
		v, err := w.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.Set(k, v)
	}
	w.i++
	return o, nil
}

func (w *walker) list(depth int) (any, error) {
	if depth >= MaxDepth {
		return nil, errTooDeep
	}
	l := []any{}
	for w.i++; w.next() != ']'; {
		v, err := w.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	w.i++
	return l, nil
}

// text reads a string. One with escapes, or with bytes that are no UTF-8, is
// left to encoding/json.
func (w *walker) text() (string, error) {
	from := w.i
	plain := true
	for w.i++; w.b[w.i] != '"'; w.i++ {
		switch c := w.b[w.i]; {
		case c == '\\':
			w.i++
			plain = false
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	w.i++
	raw := w.b[from:w.i]
	if inner := raw[1 : len(raw)-1]; plain || bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// ParseNumber reads a JSON number: a whole number within int64 is int64, a
// larger one or a literal of more than 17 digits a Number, everything else a
// float64. The literal must be valid JSON.
func ParseNumber(s string) any {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		return Number(s)
	}
	digits := 0
	for i := 0; i < len(s) && s[i] != 'e' && s[i] != 'E'; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			digits++
		}
	}
	if digits > 17 && !strings.ContainsAny(s, "eE") {
		return Number(s)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil { // out of range
		return Number(s)
	}
	return f
}

// AppendFloat appends the wire form of a float64: the shortest form that
// reads back, an exponent only for |x| >= 1e21 or < 1e-6, -0 as 0. NaN and the
// infinities, which JSON cannot say, are null.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == 0 {
		return append(dst, '0')
	}
	a := math.Abs(f)
	if a >= 1e21 || a < 1e-6 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// 1e-07 becomes 1e-7
		if n := len(dst); n-start >= 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

const hexDigits = "0123456789abcdef"

// AppendString appends a JSON string: `"`, `\` and C0 controls escaped,
// everything else raw; bytes that are no UTF-8 become U+FFFD.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			n, ok := runeLen(s[i:])
			if ok {
				i += n
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func runeLen[T string | []byte](s T) (int, bool) {
	n := min(len(s), utf8.UTFMax)
	var b [utf8.UTFMax]byte
	copy(b[:], s[:n])
	r, size := utf8.DecodeRune(b[:n])
	return size, r != utf8.RuneError || size > 1
}

// AppendJSON appends a value as compact JSON.
func AppendJSON(dst []byte, v any) []byte { return appendValue(dst, v, -1) }

// AppendIndent appends a value as JSON with two spaces a level, `{}` and `[]`
// for empty; depth is the level it stands on, 0 at the top.
func AppendIndent(dst []byte, v any, depth int) []byte { return appendValue(dst, v, depth) }

// appendValue writes compact JSON for depth < 0, else indented JSON.
func appendValue(dst []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case float64:
		return AppendFloat(dst, v)
	case Number:
		return append(dst, v...)
	case string:
		return AppendString(dst, v)
	case *Object:
		return appendObject(dst, v, depth)
	case []any:
		return appendList(dst, v, depth)
	case *Rows:
		return appendList(dst, v.List(), depth)
	}
	return AppendString(dst, fmt.Sprint(v))
}

func appendObject(dst []byte, o *Object, depth int) []byte {
	if o.Len() == 0 {
		return append(dst, '{', '}')
	}
	dst = append(dst, '{')
	inner := deeper(depth)
	for i, k := range o.keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = Newline(dst, inner)
		dst = AppendString(dst, k)
		if depth >= 0 {
			dst = append(dst, ':', ' ')
		} else {
			dst = append(dst, ':')
		}
		dst = appendValue(dst, o.vals[i], inner)
	}
	return append(Newline(dst, depth), '}')
}

func appendList(dst []byte, l []any, depth int) []byte {
	if len(l) == 0 {
		return append(dst, '[', ']')
	}
	dst = append(dst, '[')
	inner := deeper(depth)
	for i, v := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(Newline(dst, inner), v, inner)
	}
	return append(Newline(dst, depth), ']')
}

func deeper(depth int) int {
	if depth < 0 {
		return depth
	}
	return depth + 1
}

// Newline appends a line break and the indentation of a level; nothing for depth < 0.
func Newline(dst []byte, depth int) []byte {
	if depth < 0 {
		return dst
	}
	dst = append(dst, '\n')
	for ; depth > len(spaces)/2; depth -= len(spaces) / 2 {
		dst = append(dst, spaces...)
	}
	return append(dst, spaces[:2*depth]...)
}

const spaces = "                                "

// AppendText appends a value as it stands inside a longer text: nil is empty,
// strings and numbers as they are, lists and structs compact JSON.
func AppendText(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return dst
	case string:
		return append(dst, v...)
	}
	return AppendJSON(dst, v)
}

// AppendSorted appends a value as JSON whose keys are sorted, so that the order
// of keys makes no difference. number writes numbers (int64, int, float64,
// Number); nil: as AppendJSON does.
func AppendSorted(dst []byte, v any, number func(dst []byte, v any) []byte) []byte {
	switch v := v.(type) {
	case int64, int, float64, Number:
		if number != nil {
			return number(dst, v)
		}
	case *Object:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(slices.Values(v.Keys())) {
			if i > 0 {
				dst = append(dst, ',')
			}
			x, _ := v.Get(k)
			dst = AppendSorted(append(AppendString(dst, k), ':'), x, number)
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, x := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendSorted(dst, x, number)
		}
		return append(dst, ']')
	}
	return AppendJSON(dst, v)
}
