package db

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// read appends a cell; nil is NULL.
func (t *pgType) read(rows *value.Rows, b []byte) error {
	if b == nil {
		rows.Add(value.Null, nil)
		return nil
	}
	switch t.form {
	case formText:
		rows.Add(value.Text, b)
	case formInt:
		rows.Add(value.Int, b)
	case formBool:
		rows.Add(value.Bool, boolText(b))
	case formNumeric:
		if isNumber(b) {
			rows.Add(value.Exact, b)
		} else {
			rows.Add(value.Null, nil)
		}
	case formFloat:
		readFloat(rows, b)
	case formTimestamp, formTimeTZ, formBytea, formRange:
		rows.AddFunc(value.Text, func(dst []byte) []byte { return t.appendText(dst, b) })
	case formJSON:
		rows.Add(value.JSON, b)
	case formVoid:
		rows.Add(value.Null, nil)
	case formBinaryDate, formBinaryTimestamp, formBinaryTimestamptz:
		if !t.readBinary(rows, b) {
			return errors.New("a date or time is not in PostgreSQL's binary form")
		}
	default:
		return t.readNested(rows, b)
	}
	return nil
}

// readNested reads what becomes a list or an object. A text that is not as
// PostgreSQL writes it stays a text.
func (t *pgType) readNested(rows *value.Rows, b []byte) error {
	text, err := t.appendJSON(make([]byte, 0, 2*len(b)), b, 0)
	switch {
	case err == nil:
		rows.Add(value.JSON, text)
	case errors.Is(err, errStaleType):
		return err
	default:
		rows.Add(value.Text, b)
	}
	return nil
}

func boolText(b []byte) []byte {
	if b[0] == 't' {
		return trueText
	}
	return falseText
}

var trueText, falseText = []byte("true"), []byte("false")

// isNumber tells a number from NaN, Infinity and -Infinity, which JSON cannot
// say.
func isNumber(b []byte) bool { return len(b) > 0 && isDigit(b[len(b)-1]) }

// readFloat reads a float. PostgreSQL writes the shortest digits that read
// back, as we do; only exponents and -0 have another form.
func readFloat(rows *value.Rows, b []byte) {
	switch {
	case !isNumber(b):
		rows.Add(value.Null, nil)
		return
	case bytes.IndexByte(b, 'e') < 0 && string(b) != "-0":
		rows.Add(value.Float, b)
		return
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		rows.Add(value.Exact, b)
		return
	}
	rows.AddFunc(value.Float, func(dst []byte) []byte { return value.AppendFloat(dst, f) })
}

// appendText appends the text that a scalar type is read as.
func (t *pgType) appendText(dst, b []byte) []byte {
	switch t.form {
	case formTimestamp:
		return appendTimestamp(dst, b)
	case formTimeTZ:
		return appendTimeTZ(dst, b)
	case formBytea:
		return appendBytea(dst, b)
	case formRange:
		return t.appendRange(dst, b)
	}
	return append(dst, b...)
}

// appendTimestamp turns `2026-03-01 09:00:00.5+00` into
// `2026-03-01T09:00:00.5Z`, without +00 there is no Z. What has no such form
// (infinity, years before Christ) stays as it is.
func appendTimestamp(dst, b []byte) []byte {
	const date = len("2026-03-01")
	if len(b) <= date || b[len(b)-1] == 'C' {
		return append(dst, b...)
	}
	space := date
	for space < len(b) && b[space] != ' ' { // a year of five digits
		space++
	}
	if space == len(b) {
		return append(dst, b...)
	}
	dst = append(dst, b[:space]...)
	dst = append(dst, 'T')
	rest := b[space+1:]
	if n := len(rest) - len("+00"); n > 0 && string(rest[n:]) == "+00" {
		dst = append(dst, rest[:n]...)
		return append(dst, 'Z')
	}
	return append(dst, rest...)
}

// appendTimeTZ turns the zone of `09:30:00+00` into Z and that of
// `09:30:00-02` into -02:00.
func appendTimeTZ(dst, b []byte) []byte {
	n := len(b) - len("+00")
	if n <= 0 || b[n] != '+' && b[n] != '-' {
		return append(dst, b...)
	}
	if string(b[n:]) == "+00" {
		return append(append(dst, b[:n]...), 'Z')
	}
	return append(append(dst, b...), ":00"...)
}

// appendBytea turns \x… into base64.
func appendBytea(dst, b []byte) []byte {
	raw := make([]byte, hex.DecodedLen(max(0, len(b)-2)))
	if len(b) < 2 || b[0] != '\\' || b[1] != 'x' {
		return append(dst, b...)
	}
	if _, err := hex.Decode(raw, b[2:]); err != nil {
		return append(dst, b...)
	}
	return base64.StdEncoding.AppendEncode(dst, raw)
}
