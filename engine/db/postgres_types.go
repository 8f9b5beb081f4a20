package db

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// pgCell says how the text form of a type becomes a cell. What is not in
// pgCells (text, uuid, date, time, enums, and types that are not declared yet)
// is the text itself.
type pgCell uint8

const (
	cellText pgCell = iota
	cellBool
	cellInt
	cellNumeric
	cellFloat
	cellTimestamp
	cellTimestamptz
	cellBytea
	cellJSON
)

var pgCells = map[uint32]pgCell{
	pgtype.BoolOID:        cellBool,
	pgtype.Int2OID:        cellInt,
	pgtype.Int4OID:        cellInt,
	pgtype.Int8OID:        cellInt,
	pgtype.NumericOID:     cellNumeric,
	pgtype.Float4OID:      cellFloat,
	pgtype.Float8OID:      cellFloat,
	pgtype.TimestampOID:   cellTimestamp,
	pgtype.TimestamptzOID: cellTimestamptz,
	pgtype.ByteaOID:       cellBytea,
	pgtype.JSONOID:        cellJSON,
	pgtype.JSONBOID:       cellJSON,
}

// read appends a cell; nil is NULL.
func (c pgCell) read(rows *value.Rows, b []byte) {
	if b == nil {
		rows.Add(value.Null, nil)
		return
	}
	switch c {
	case cellBool:
		rows.AddFunc(value.Bool, func(dst []byte) []byte { return strconv.AppendBool(dst, b[0] == 't') })
	case cellInt:
		rows.Add(value.Int, b)
	case cellNumeric:
		readDecimal(rows, value.Exact, b)
	case cellFloat:
		readDecimal(rows, value.Float, b)
	case cellTimestamp, cellTimestamptz:
		rows.AddFunc(value.Text, func(dst []byte) []byte { return appendTimestamp(dst, b) })
	case cellBytea:
		rows.AddFunc(value.Text, func(dst []byte) []byte { return appendBytea(dst, b) })
	case cellJSON:
		rows.Add(value.JSON, b)
	default:
		rows.Add(value.Text, b)
	}
}

// readDecimal reads numeric and floats; NaN and the infinities, which JSON
// cannot say, are null.
func readDecimal(rows *value.Rows, k value.Kind, b []byte) {
	if last := b[len(b)-1]; !isDigit(last) { // NaN, Infinity, -Infinity
		rows.Add(value.Null, nil)
		return
	}
	if k == value.Exact {
		rows.Add(k, b)
		return
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		rows.Add(value.Exact, b)
		return
	}
	rows.AddFunc(k, func(dst []byte) []byte { return value.AppendFloat(dst, f) })
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

// documents are the types for which a list is one value: JSON, or text that
// holds it. For every other type a list is an array.
var documents = map[uint32]bool{
	pgtype.JSONOID: true, pgtype.JSONBOID: true, pgtype.TextOID: true, pgtype.VarcharOID: true, pgtype.BPCharOID: true,
}

// appendArg appends an argument in the text form of its parameter's type. The
// server refuses what does not fit.
func appendArg(dst []byte, oid uint32, v any) ([]byte, error) {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return value.AppendFloat(dst, v), nil
	case value.Number:
		return append(dst, v...), nil
	case string:
		if oid == pgtype.ByteaOID { // the text's bytes, not an escape form
			dst = append(dst, '\\', 'x')
			return hex.AppendEncode(dst, []byte(v)), nil
		}
		return append(dst, v...), nil
	case []any:
		if documents[oid] {
			return value.AppendJSON(dst, v), nil
		}
		return appendArray(dst, v)
	case *value.Rows:
		return appendArg(dst, oid, v.List())
	case *value.Object:
		return value.AppendJSON(dst, v), nil
	}
	return dst, fmt.Errorf("a %T cannot be an argument", v)
}

// appendArray appends an array literal: {1,NULL,"a\"b",{2,3}}.
func appendArray(dst []byte, list []any) ([]byte, error) {
	dst = append(dst, '{')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v := v.(type) {
		case nil:
			dst = append(dst, "NULL"...)
		case []any:
			var err error
			if dst, err = appendArray(dst, v); err != nil {
				return dst, err
			}
		case string:
			dst = appendElement(dst, []byte(v))
		case bool, int64, int, float64, value.Number, *value.Object:
			text, err := appendArg(nil, 0, v)
			if err != nil {
				return dst, err
			}
			dst = appendElement(dst, text)
		default:
			return dst, fmt.Errorf("a %T cannot be an element of a list argument", v)
		}
	}
	return append(dst, '}'), nil
}

func appendElement(dst, text []byte) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}
