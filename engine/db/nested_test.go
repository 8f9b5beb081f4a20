package db

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// nestedTypes are one type of each form that nests.
func nestedTypes() []*pgType {
	text := pgBuiltin[pgtype.TextOID]
	array := func(elem *pgType) *pgType { return &pgType{form: formArray, elem: elem, delim: ','} }
	pair := &pgType{form: formComposite, fields: []string{"a", `b"`}, types: []*pgType{pgBuiltin[pgtype.Int4OID], array(text)}}
	span := &pgType{form: formRange, elem: pgBuiltin[pgtype.TimestamptzOID]}
	return []*pgType{
		array(text), array(pgBuiltin[pgtype.NumericOID]), array(pgBuiltin[pgtype.JSONBOID]), array(pgBuiltin[pgtype.BoolOID]),
		array(pgBuiltin[pgtype.Float8OID]), pair, array(pair), pgBuiltin[pgtype.RecordOID],
		{form: formMultirange, elem: span}, array(span), array(pgBuiltin[pgtype.ByteaOID]),
	}
}

// Whatever a text is, it becomes JSON or is refused.
func FuzzNested(f *testing.F) {
	for i, s := range []string{
		`{1,NULL,"a \"b\""}`, `{1.50,NaN}`, `{"{\"a\": 1}",null}`, `{t,f}`, `{1e21,Infinity}`, `(1,"{a,""b""}")`, `{"(1,{})",NULL}`,
		`(1,,"a ""b""")`, `{["2026-03-01 09:00:00+00",infinity),(,)}`, `{"[\"2026-03-01 09:00:00+00\",)"}`, `{"\\xdead"}`,
	} {
		f.Add(uint8(i), s)
	}
	f.Add(uint8(0), `[0:1]={{1,2},{3,4}}`)
	f.Add(uint8(0), strings.Repeat("{", 200))
	f.Add(uint8(8), "empty")
	types := nestedTypes()
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		typ := types[int(which)%len(types)]
		got, err := typ.appendJSON(nil, []byte(text), 0)
		if err == nil && !json.Valid(got) {
			t.Errorf("%q becomes %q, which is no JSON", text, got)
		}
		rows := value.NewRows([]string{"v"})
		if err := typ.read(rows, []byte(text)); err == nil && rows.Len() != 1 {
			t.Errorf("%q makes %d rows", text, rows.Len())
		}
	})
}

// A list of texts that goes out as an argument is the same list when it is
// read in PostgreSQL's form, which is ours but for the quotes.
func FuzzArrayArgument(f *testing.F) {
	f.Add("a", `b"\`, "NULL", false)
	f.Add("", "{}", ",", true)
	typ := nestedTypes()[0]
	f.Fuzz(func(t *testing.T, a, b, c string, nested bool) {
		if !utf8.ValidString(a + b + c) {
			return
		}
		list := []any{a, nil, b, c}
		if nested {
			list = []any{[]any{a, b}, []any{c, nil}}
		}
		text, err := appendArg(nil, pgtype.TextArrayOID, list)
		if err != nil {
			t.Fatal(err)
		}
		got, err := typ.appendJSON(nil, text, 0)
		if want := value.AppendJSON(nil, list); err != nil || string(got) != string(want) {
			t.Errorf("%s goes out as %s and comes back as %s (%v)", want, text, got, err)
		}
	})
}

// What PostgreSQL never writes stays a text.
func TestNestedRefuses(t *testing.T) {
	types := nestedTypes()
	for text, typ := range map[string]*pgType{
		"": types[0], "{": types[0], "{1": types[0], "{1}x": types[0], `{"a`: types[0], "{a,}": types[0], `{"a\`: types[0],
		"{{1}": types[0], "{x}": types[2], "1,{}": types[5], "(1": types[5], "(1,{})x": types[5], "(1,{": types[5],
		"{[1,2)": types[8], "[1,2)": types[8], "{1,2}": types[8],
	} {
		rows := value.NewRows([]string{"v"})
		if err := typ.read(rows, []byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if k, got := rows.Cell(0, 0); k != value.Text || string(got) != text {
			t.Errorf("%q is read as %d %q", text, k, got)
		}
	}
	rows := value.NewRows([]string{"v"})
	for _, text := range []string{"(1)", "(1,{},2)"} {
		if err := types[5].read(rows, []byte(text)); err != errStaleType {
			t.Errorf("%q of a type of two fields gives %v", text, err)
		}
	}
}
