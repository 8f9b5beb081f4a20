package db

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// pgArgs are encoded arguments, kept to be used again.
type pgArgs struct {
	params [][]byte
	ends   []int
	buf    []byte
}

// encode writes the arguments in text form into params.
func (a *pgArgs) encode(st *pgStmt, args []any) error {
	a.buf, a.ends, a.params = a.buf[:0], a.ends[:0], a.params[:0]
	for i, v := range args {
		if v != nil {
			var err error
			if a.buf, err = appendArg(a.buf, st.params[i], v); err != nil {
				return err
			}
		}
		a.ends = append(a.ends, len(a.buf))
	}
	start := 0
	for i, end := range a.ends {
		var text []byte // nil is NULL
		if args[i] != nil {
			text = a.buf[start:end:end]
			if text == nil {
				text = []byte{}
			}
		}
		a.params = append(a.params, text)
		start = end
	}
	return nil
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
		switch {
		case documents[oid]:
			return value.AppendJSON(dst, v), nil
		case pgMultiranges[oid]:
			return appendMultirange(dst, v)
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

// appendMultirange appends a multirange literal: {[1,3),[5,7)}. The ranges are
// texts as PostgreSQL writes them, which it takes apart itself.
func appendMultirange(dst []byte, list []any) ([]byte, error) {
	dst = append(dst, '{')
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return dst, fmt.Errorf("a %T cannot be a range of a multirange: write a text such as [1,3)", v)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, text...)
	}
	return append(dst, '}'), nil
}
