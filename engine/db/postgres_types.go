package db

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// pgForm says how the text of a type becomes a value.
type pgForm uint8

const (
	formText pgForm = iota // the text itself
	formBool
	formInt
	formNumeric
	formFloat
	formTimestamp
	formTimeTZ
	formBytea
	formJSON
	formVoid
	formArray
	formComposite
	formRecord
	formRange
	formMultirange
	formBinaryDate
	formBinaryTimestamp
	formBinaryTimestamptz
)

// pgType is a type of a PostgreSQL server.
type pgType struct {
	name string
	form pgForm
	kind TypeKind
	// elem is the type of an array's elements, a range's bounds, a
	// multirange's ranges.
	elem   *pgType
	delim  byte // between the elements of an array
	fields []string
	types  []*pgType // of fields
}

// pgBuiltin are the types whose numbers never change and that are read
// without asking the server for them.
var pgBuiltin = map[uint32]*pgType{
	pgtype.BoolOID:        {name: "boolean", form: formBool, kind: BoolType},
	pgtype.Int2OID:        {name: "smallint", form: formInt, kind: IntType},
	pgtype.Int4OID:        {name: "integer", form: formInt, kind: IntType},
	pgtype.Int8OID:        {name: "bigint", form: formInt, kind: IntType},
	pgtype.OIDOID:         {name: "oid", form: formInt, kind: IntType},
	pgtype.NumericOID:     {name: "numeric", form: formNumeric, kind: ExactType},
	pgtype.Float4OID:      {name: "real", form: formFloat, kind: FloatType},
	pgtype.Float8OID:      {name: "double precision", form: formFloat, kind: FloatType},
	pgtype.TextOID:        {name: "text", kind: TextType},
	pgtype.VarcharOID:     {name: "character varying", kind: TextType},
	pgtype.BPCharOID:      {name: "character", kind: TextType},
	pgtype.NameOID:        {name: "name", kind: TextType},
	pgtype.UnknownOID:     {name: "unknown", kind: TextType},
	pgtype.UUIDOID:        {name: "uuid", kind: FormType},
	pgtype.DateOID:        {name: "date", kind: FormType},
	pgtype.TimeOID:        {name: "time without time zone", kind: FormType},
	pgtype.TimetzOID:      {name: "time with time zone", form: formTimeTZ, kind: FormType},
	pgtype.IntervalOID:    {name: "interval", kind: FormType},
	pgtype.TimestampOID:   {name: "timestamp without time zone", form: formTimestamp, kind: FormType},
	pgtype.TimestamptzOID: {name: "timestamp with time zone", form: formTimestamp, kind: FormType},
	pgtype.ByteaOID:       {name: "bytea", form: formBytea, kind: TextType},
	pgtype.JSONOID:        {name: "json", form: formJSON, kind: JSONType},
	pgtype.JSONBOID:       {name: "jsonb", form: formJSON, kind: JSONType},
	pgtype.RecordOID:      {name: "record", form: formRecord, kind: ListType},
	voidOID:               {name: "void", form: formVoid},
}

const voidOID = 2278

// pgMultiranges are the multiranges that every server has: a list argument is
// written in their way.
var pgMultiranges = map[uint32]bool{
	pgtype.Int4multirangeOID: true, pgtype.Int8multirangeOID: true, pgtype.NummultirangeOID: true,
	pgtype.DatemultirangeOID: true, pgtype.TsmultirangeOID: true, pgtype.TstzmultirangeOID: true,
}

// errStaleType is a composite value whose type was changed after it was asked
// for.
var errStaleType = errors.New("a type of the answer has changed: try again")

// pgTypes are the types of a database that are not built in, as far as they
// were met.
type pgTypes struct {
	mu    sync.RWMutex
	known map[uint32]*pgType
}

func (t *pgTypes) get(oid uint32) *pgType {
	if b := pgBuiltin[oid]; b != nil {
		return b
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.known[oid]
}

// forget drops all types: they are asked for again.
func (t *pgTypes) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
}

func (t *pgTypes) add(loaded map[uint32]*pgType) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(map[uint32]*pgType)
	}
	for oid, x := range loaded {
		t.known[oid] = x
	}
}

// cells gives the types of columns.
func (c *pgConn) cells(ctx context.Context, fields []pgField) ([]*pgType, error) {
	oids := make([]uint32, len(fields))
	for i, f := range fields {
		oids[i] = f.oid
	}
	return c.typesOf(ctx, oids)
}

// typesOf gives types by their numbers, asking the server for those that are
// new.
func (c *pgConn) typesOf(ctx context.Context, oids []uint32) ([]*pgType, error) {
	found := make([]*pgType, len(oids))
	var missing []any
	for i, oid := range oids {
		if found[i] = c.types.get(oid); found[i] == nil {
			missing = append(missing, int64(oid))
		}
	}
	if missing == nil {
		return found, nil
	}
	loaded, err := c.loadTypes(ctx, missing)
	if err != nil {
		return nil, err
	}
	for i, oid := range oids {
		if found[i] == nil {
			found[i] = loaded[oid]
		}
		if found[i] == nil { // dropped in between
			found[i] = pgBuiltin[pgtype.TextOID]
		}
	}
	return found, nil
}

// typeQuery gives types and all that they are made of. Multiranges came with
// PostgreSQL 14.
var typeQuery = &Stmt{Args: 1, SQL: `
WITH RECURSIVE need(oid) AS (
	SELECT unnest($1::oid[])
	UNION
	SELECT part.oid FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid CROSS JOIN LATERAL (
		SELECT t.typelem WHERE t.typinput = 'pg_catalog.array_in'::regproc
		UNION ALL SELECT t.typbasetype WHERE t.typbasetype <> 0
		UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
			WHERE t.typrelid <> 0 AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
		UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid
		UNION ALL SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE to_jsonb(r)->>'rngmultitypid' = t.oid::text
	) part(oid)
)
SELECT t.oid::int8 AS oid, pg_catalog.format_type(t.oid, NULL) AS name, t.typtype::text AS typtype, t.typcategory::text AS category,
	CASE WHEN t.typinput = 'pg_catalog.array_in'::regproc THEN t.typelem ELSE 0 END::int8 AS elem, t.typdelim::text AS delim,
	t.typbasetype::int8 AS base,
	coalesce((SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid), 0)::int8 AS bound,
	coalesce((SELECT r.rngtypid FROM pg_catalog.pg_range r WHERE to_jsonb(r)->>'rngmultitypid' = t.oid::text), 0)::int8 AS range,
	(SELECT json_agg(json_build_array(a.attname, a.atttypid::int8) ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
		WHERE t.typrelid <> 0 AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) AS fields
FROM need JOIN pg_catalog.pg_type t ON t.oid = need.oid`}

func (c *pgConn) loadTypes(ctx context.Context, oids []any) (map[uint32]*pgType, error) {
	st, err := c.compile(ctx, "", typeQuery)
	if err != nil {
		return nil, err
	}
	if err := c.args.encode(st, []any{oids}); err != nil {
		return nil, err
	}
	done := c.careful()
	a, alive, err := c.converse(ctx, flight{inTx: true}, st, Limit{})
	if alive {
		done()
	}
	if err != nil {
		return nil, postgresError(ctx, err)
	}
	loaded := buildTypes(a.Rows)
	c.types.add(loaded)
	return loaded, nil
}

// buildTypes makes types of the rows of typeQuery.
func buildTypes(rows *value.Rows) map[uint32]*pgType {
	loaded := make(map[uint32]*pgType, rows.Len())
	list := make([]*value.Object, rows.Len())
	for i := range list {
		list[i] = rows.Object(i)
		loaded[oidOf(list[i], "oid")] = &pgType{}
	}
	at := func(oid uint32) *pgType {
		if b := pgBuiltin[oid]; b != nil {
			return b
		}
		if t := loaded[oid]; t != nil {
			return t
		}
		return pgBuiltin[pgtype.TextOID]
	}
	var domains []*value.Object
	for _, row := range list {
		loaded[oidOf(row, "oid")].fill(row, at)
		if oidOf(row, "base") != 0 {
			domains = append(domains, row)
		}
	}
	for range domains { // a domain over a domain over …
		for _, row := range domains {
			t := loaded[oidOf(row, "oid")]
			name := t.name
			*t = *at(oidOf(row, "base"))
			t.name = name
		}
	}
	return loaded
}

// fill sets a type from a row of typeQuery.
func (t *pgType) fill(row *value.Object, at func(oid uint32) *pgType) {
	text := func(name string) string { v, _ := row.Get(name); s, _ := v.(string); return s }
	t.name, t.kind = text("name"), FormType
	elem, bound, ranges := oidOf(row, "elem"), oidOf(row, "bound"), oidOf(row, "range")
	fields, _ := row.Get("fields")
	switch {
	case elem != 0:
		t.form, t.kind, t.elem, t.delim = formArray, ListType, at(elem), text("delim")[0]
	case bound != 0:
		t.form, t.elem = formRange, at(bound)
	case ranges != 0:
		t.form, t.kind, t.elem = formMultirange, ListType, at(ranges)
	case fields != nil:
		t.form, t.kind = formComposite, ObjectType
		list, _ := fields.([]any)
		for _, f := range list {
			pair := f.([]any)
			t.fields = append(t.fields, pair[0].(string))
			t.types = append(t.types, at(uint32(pair[1].(int64))))
		}
	case text("category") == "S":
		t.kind = TextType
	}
	if b := pgBuiltin[oidOf(row, "oid")]; b != nil {
		*t = *b
	}
}

func oidOf(row *value.Object, name string) uint32 {
	v, _ := row.Get(name)
	n, _ := v.(int64)
	return uint32(n)
}

// described gives the type as others see it.
func (t *pgType) described() Type {
	d := Type{Name: t.name, Kind: t.kind}
	if t.elem != nil && t.kind == ListType {
		elem := t.elem.described()
		d.Elem = &elem
	}
	return d
}
