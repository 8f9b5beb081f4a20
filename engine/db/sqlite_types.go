package db

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// sqliteClass says how a column's declared type changes what its values are.
// A value that does not fit the class is read as what it is.
type sqliteClass uint8

const (
	asStored  sqliteClass = iota
	asBool                // integers are false and true
	asJSON                // text is a JSON document
	asNumeric             // numbers are exact decimals
	asBinary              // text is bytes too
)

// sqliteCol is one column of an answer.
type sqliteCol struct {
	class sqliteClass
	scale int // asNumeric: digits after the point, as PostgreSQL pads them
}

// sqliteClasses are the declared types that say more than SQLite stores.
var sqliteClasses = map[string]sqliteClass{
	"bool": asBool, "boolean": asBool,
	"json": asJSON, "jsonb": asJSON,
	"numeric": asNumeric, "decimal": asNumeric, "dec": asNumeric,
	"blob": asBinary, "bytea": asBinary,
}

// sqliteColumn reads a declared type: "numeric(10, 2)", "" for a computed column.
func sqliteColumn(declared string) sqliteCol {
	name, mods, _ := strings.Cut(strings.ToLower(declared), "(")
	c := sqliteCol{class: sqliteClasses[strings.TrimSpace(name)]}
	if c.class == asNumeric {
		_, scale, _ := strings.Cut(strings.TrimRight(mods, ") "), ",")
		if n, err := strconv.Atoi(strings.TrimSpace(scale)); err == nil && n > 0 && n <= 1000 {
			c.scale = n
		}
	}
	return c
}

// read appends the cell of the current row.
func (c *sqliteCol) read(rows *value.Rows, st *sqlite3.Stmt, i int) {
	switch st.ColumnType(i) {
	case sqlite3.INTEGER:
		c.readInt(rows, st.ColumnInt64(i))
	case sqlite3.FLOAT:
		c.readFloat(rows, st.ColumnFloat(i))
	case sqlite3.TEXT:
		c.readText(rows, st.ColumnRawText(i))
	case sqlite3.BLOB:
		addBase64(rows, st.ColumnRawBlob(i))
	default:
		rows.Add(value.Null, nil)
	}
}

func (c *sqliteCol) readInt(rows *value.Rows, n int64) {
	switch c.class {
	case asBool:
		rows.AddFunc(value.Bool, func(dst []byte) []byte { return strconv.AppendBool(dst, n != 0) })
	case asNumeric:
		rows.AddFunc(value.Exact, func(dst []byte) []byte {
			dst = strconv.AppendInt(dst, n, 10)
			return padScale(dst, 0, c.scale)
		})
	default:
		rows.AddFunc(value.Int, func(dst []byte) []byte { return strconv.AppendInt(dst, n, 10) })
	}
}

func (c *sqliteCol) readFloat(rows *value.Rows, f float64) {
	switch {
	case f-f != 0: // an infinity; SQLite has no NaN
		rows.Add(value.Null, nil)
	case c.class == asNumeric:
		rows.AddFunc(value.Exact, func(dst []byte) []byte {
			start := len(dst)
			dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
			digits := 0
			for i := len(dst) - 1; i >= start; i-- {
				if dst[i] == '.' {
					digits = len(dst) - 1 - i
				}
			}
			return padScale(dst, digits, c.scale)
		})
	default:
		rows.AddFunc(value.Float, func(dst []byte) []byte { return value.AppendFloat(dst, f) })
	}
}

// padScale pads a decimal that has some digits after its point with zeros.
func padScale(dst []byte, has, want int) []byte {
	if has >= want {
		return dst
	}
	if has == 0 {
		dst = append(dst, '.')
	}
	for range want - has {
		dst = append(dst, '0')
	}
	return dst
}

func (c *sqliteCol) readText(rows *value.Rows, text []byte) {
	switch {
	case c.class == asJSON && json.Valid(text):
		rows.Add(value.JSON, text)
	case c.class == asBinary:
		addBase64(rows, text)
	default:
		rows.Add(value.Text, text)
	}
}

func addBase64(rows *value.Rows, b []byte) {
	rows.AddFunc(value.Text, func(dst []byte) []byte { return base64.StdEncoding.AppendEncode(dst, b) })
}
