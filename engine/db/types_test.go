package db_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// typeRow is a row of a table of docs/types.md.
type typeRow struct{ typ, value, postgres, sqlite string }

// side gives what stands before or behind the slash that divides the engines.
func side(cell string, d db.Dialect) string {
	left, right, both := strings.Cut(cell, " / ")
	if both && d == db.SQLite {
		return right
	}
	return left
}

// typeRows reads the rows that are declared as `| type | value | … |`.
func typeRows(t *testing.T) []typeRow {
	t.Helper()
	page, err := os.ReadFile("../../docs/types.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []typeRow
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i, c := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(c), "`")
		}
		r := typeRow{typ: cells[0], value: cells[1], postgres: cells[2]}
		if len(cells) == 4 {
			if r.sqlite = cells[3]; r.sqlite == "same" {
				r.sqlite = r.postgres
			}
		}
		rows = append(rows, r)
	}
	if len(rows) < 60 {
		t.Fatalf("docs/types.md has %d rows", len(rows))
	}
	return rows
}

func TestTypes(t *testing.T) {
	rows := typeRows(t)
	onBoth(t, func(t *testing.T, d *db.DB) {
		if d.Dialect() == db.Postgres {
			script(t, d, `CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE DOMAIN zip AS text;
				CREATE TYPE address AS (street text, zip text, since date)`)
		}
		for _, r := range rows {
			want := r.postgres
			if d.Dialect() == db.SQLite {
				want = r.sqlite
			}
			if want == "" { // not declared for this engine
				continue
			}
			script(t, d, "DROP TABLE IF EXISTS t; CREATE TABLE t (v "+side(r.typ, d.Dialect())+");"+
				"INSERT INTO t VALUES ("+side(r.value, d.Dialect())+")")
			a := query(t, d, stmt(d, "SELECT v FROM t"))
			if got := string(value.AppendJSON(nil, a.Rows.Value(0, 0))); got != want {
				t.Errorf("%s %s gives %s, docs/types.md says %s", r.typ, r.value, got, want)
			}
		}
	})
}

// The same value comes back when it goes in as an argument and when it comes
// out of RETURNING.
func TestArgumentsComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, `CREATE TABLE t (b boolean, i integer, l bigint, n numeric(30,4), f double precision, s text, d date, z timestamptz, j json, u uuid)`)
		in := stmt(d, "INSERT INTO t VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10) RETURNING *")
		in.Args = 10
		args := []any{
			true, int64(-5), int64(9007199254740993), value.Number("12.3400"), 0.1, "a'b\"c\\d\n", "2026-03-01",
			"2026-03-01T09:00:00Z", value.Of("k", []any{int64(1), nil, "x"}), "7f9c24e8-3b12-4fef-91e0-0a4c7ad3f6c5",
		}
		want := `[{"b":true,"i":-5,"l":9007199254740993,"n":12.3400,"f":0.1,"s":"a'b\"c\\d\n","d":"2026-03-01",` +
			`"z":"2026-03-01T09:00:00Z","j":{"k":[1,null,"x"]},"u":"7f9c24e8-3b12-4fef-91e0-0a4c7ad3f6c5"}]`
		nulls := make([]any, 10)
		write(t, d, func(q *db.Tx) error {
			a := query(t, q, in, args...)
			if got := asJSON(a); got != want || a.Affected != 1 {
				t.Errorf("RETURNING gives %d, %s\nwant 1, %s", a.Affected, got, want)
			}
			query(t, q, in, nulls...)
			return nil
		})
		if got := asJSON(query(t, d, stmt(d, "SELECT * FROM t WHERE i = $1"), int64(-5))); got != want {
			t.Errorf("SELECT gives\n%s\nwant\n%s", got, want)
		}
		null := `[{"b":null,"i":null,"l":null,"n":null,"f":null,"s":null,"d":null,"z":null,"j":null,"u":null}]`
		if got := asJSON(query(t, d, stmt(d, "SELECT * FROM t WHERE i IS NULL"))); got != null {
			t.Errorf("SELECT gives\n%s\nwant\n%s", got, null)
		}
	})
}

func write(t testing.TB, d *db.DB, f func(q *db.Tx) error) {
	t.Helper()
	if err := d.Tx(context.Background(), db.TxOptions{}, f); err != nil {
		t.Fatal(err)
	}
}

// A value that does not fit its place is refused by PostgreSQL, never made to
// fit.
func TestPostgresRefuses(t *testing.T) {
	d := postgres(t, 0)
	script(t, d, `CREATE TABLE t (i integer, b boolean, d date, j json, a int[], x bytea)`)
	for _, c := range []struct {
		column string
		arg    any
		state  string
	}{
		{"i", "seven", "22P02"}, {"i", "", "22P02"}, {"i", 1.5, "22P02"}, {"i", int64(1) << 40, "22003"}, {"i", true, "22P02"},
		{"b", "perhaps", "22P02"}, {"b", int64(7), "22P02"}, {"d", "2026-13-01", "22008"}, {"j", "{", "22P02"},
		{"a", []any{"x"}, "22P02"}, {"i", []any{int64(1)}, "22P02"}, {"i", value.Of("a", nil), "22P02"},
	} {
		err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			_, err := q.Query(t.Context(), stmt(d, "INSERT INTO t ("+c.column+") VALUES ($1)"), []any{c.arg}, db.Limit{})
			return err
		})
		if got := state(err); got != c.state {
			t.Errorf("%v for %s gives %q (%v), want %s", c.arg, c.column, got, err, c.state)
		}
	}
	write(t, d, func(q *db.Tx) error {
		// A text is its bytes, not PostgreSQL's escape form.
		a := query(t, q, stmt(d, "INSERT INTO t (x, a) VALUES ($1, $2) RETURNING x, a"), `\001é`, []any{int64(1), nil})
		if got, want := asJSON(a), `[{"x":"XDAwMcOp","a":[1,null]}]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
	if got := asJSON(query(t, d, stmt(d, "SELECT i FROM t WHERE i IS NOT NULL"))); got != "[]" {
		t.Errorf("something was stored: %s", got)
	}
}

// Nested types that the page does not show, and what an argument makes of them.
func TestPostgresNested(t *testing.T) {
	d := postgres(t, 0)
	script(t, d, `CREATE TYPE pair AS (a int, b numeric[]); CREATE TYPE deep AS (p pair, r tstzrange, list pair[]);
		CREATE DOMAIN even AS int CHECK (value % 2 = 0); CREATE DOMAIN evens AS even[]; CREATE TABLE t (id int, p pair)`)
	for sql, want := range map[string]string{
		`ROW(ROW(1, '{1.5,NaN}')::pair, '["2026-03-01 09:00:00+00",infinity)', ARRAY[ROW(2, NULL)::pair])::deep`: `{"p":{"a":1,"b":[1.5,null]},"r":"[2026-03-01T09:00:00Z,infinity)","list":[{"a":2,"b":null}]}`,
		`ROW(1, 'a "b" \c', NULL, '')`:                        `["1","a \"b\" \\c",null,""]`,
		`'{2,4}'::evens`:                                      `[2,4]`,
		`ARRAY['[1,2)'::int4range, NULL]`:                     `["[1,2)",null]`,
		`'{}'::int4multirange`:                                `[]`,
		`'("a,(b",c]'::textrange`:                             `"(\"a,(b\",c]"`,
		`ARRAY[box '(1,2),(3,4)', box '(5,6),(7,8)']`:         `["(3,4),(1,2)","(7,8),(5,6)"]`,
		`'1 2 3'::int2vector`:                                 `"1 2 3"`,
		`ARRAY[E'a\nb', E'\t', '{', '}', ',', '\', 'null']`:   `["a\nb","\t","{","}",",","\\","null"]`,
		`pg_notify('x', 'y')`:                                 `null`,
		`'infinity'::timestamptz`:                             `"infinity"`,
		`(SELECT t FROM (SELECT 7 AS id, NULL::pair AS p) t)`: `["7",null]`,
	} {
		if strings.Contains(sql, "textrange") {
			script(t, d, "CREATE TYPE textrange AS RANGE (subtype = text)")
		}
		a := query(t, d, stmt(d, "SELECT "+sql+" AS v"))
		if got := string(value.AppendJSON(nil, a.Rows.Value(0, 0))); got != want {
			t.Errorf("%s gives %s, want %s", sql, got, want)
		}
	}
	for sql, arg := range map[string]any{
		"SELECT $1::int4multirange AS v": []any{"[1,3)", "[5,7)"},
		"SELECT $1::text[] AS v":         []any{"a", nil, `b"\`, "", "NULL"},
		"SELECT $1::int[] AS v":          []any{[]any{int64(1), int64(2)}, []any{int64(3), int64(4)}},
		"SELECT $1::interval AS v":       "P1DT2H",
		"SELECT $1::tstzrange AS v":      "[2026-03-01T09:00:00Z,)",
		"SELECT $1::timetz AS v":         "09:30:00-02:00",
	} {
		a := query(t, d, stmt(d, sql), arg)
		if got, want := string(value.AppendJSON(nil, a.Rows.Value(0, 0))), string(value.AppendJSON(nil, arg)); got != want {
			t.Errorf("%s: %s comes back as %s", sql, want, got)
		}
	}
}

// A composite type that was changed is read as it is now.
func TestPostgresTypeChanges(t *testing.T) {
	d := open(t, db.Config{URL: servers.Postgres(t), Pool: db.Pool{Max: 1}})
	script(t, d, `CREATE TYPE pair AS (a int); CREATE TABLE t (p pair); INSERT INTO t VALUES (ROW(1))`)
	read := stmt(d, "SELECT p FROM t")
	if got := asJSON(query(t, d, read)); got != `[{"p":{"a":1}}]` {
		t.Error(got)
	}
	script(t, d, "ALTER TYPE pair ADD ATTRIBUTE b text")
	if got := asJSON(query(t, d, read)); got != `[{"p":{"a":1,"b":null}}]` {
		t.Error(got)
	}
	script(t, d, "ALTER TYPE pair ADD ATTRIBUTE c text")
	write(t, d, func(q *db.Tx) error {
		if got := asJSON(query(t, q, read)); got != `[{"p":{"a":1,"b":null,"c":null}}]` {
			t.Error(got)
		}
		return nil
	})
}

// Times come in binary form; what they become is what their text becomes.
func TestPostgresTimes(t *testing.T) {
	d := postgres(t, 0)
	a := query(t, d, stmt(d, `
		WITH z AS (
			SELECT timestamptz '4713-01-01 00:00:00+00 BC' + random() * (timestamptz '9999-12-31' - timestamptz '4713-01-02 BC') AS z FROM generate_series(1, 4000)
			UNION ALL SELECT timestamptz '1995-01-01' + n * interval '1 day 1.000001 seconds' FROM generate_series(1, 4000) n
			UNION ALL SELECT unnest(ARRAY['infinity', '-infinity', '0001-01-01 00:00:00+00', '0001-12-31 23:59:59.999999+00 BC', '0004-02-29 12:00:00+00',
				'0005-02-28 23:00:00+00 BC', '2000-02-29 00:00:00.5+00', '1900-03-01 00:00:00+00', '10000-01-01 00:00:00.10+00', '294276-12-31 23:59:59+00',
				'4713-01-01 00:00:00+00 BC', '1999-12-31 23:59:59.999999+00']::timestamptz[]))
		SELECT z, z::text AS zt, z::timestamp AS s, z::timestamp::text AS st, z::date AS d, z::date::text AS dt FROM z`))
	texts := strings.NewReplacer(" ", "T", "+00", "Z")
	for i := range a.Rows.Len() {
		for col := 0; col < 6; col += 2 {
			got, want := a.Rows.Value(i, col).(string), a.Rows.Value(i, col+1).(string)
			if !strings.HasSuffix(want, "BC") {
				want = texts.Replace(want)
			}
			if got != want {
				t.Errorf("%v is read as %s, want %s", a.Rows.Value(i, 1), got, want)
			}
		}
	}
	if n := a.Rows.Len(); n != 8012 {
		t.Errorf("%d rows", n)
	}
	a = query(t, d, stmt(d, "SELECT f, f::text AS t FROM (SELECT (random() - 0.5) * 10 ^ (random() * 40 - 20) AS f FROM generate_series(1, 4000)) x"))
	for i := range a.Rows.Len() {
		f, err := strconv.ParseFloat(a.Rows.Value(i, 1).(string), 64)
		_, got := a.Rows.Cell(i, 0)
		if want := value.AppendFloat(nil, f); err != nil || string(got) != string(want) {
			t.Errorf("%v is read as %s, want %s", a.Rows.Value(i, 1), got, want)
		}
	}
}
