package db_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// described writes a description on one line: parameters, then columns with a
// ? behind those that may be NULL.
func described(x *db.Description) string {
	var said []string
	for _, p := range x.Params {
		said = append(said, fmt.Sprintf("%s/%d", p.Name, p.Kind))
	}
	said = append(said, "->")
	for _, c := range x.Columns {
		text := fmt.Sprintf("%s %s/%d", c.Name, c.Type.Name, c.Type.Kind)
		if e := c.Type.Elem; e != nil {
			text += fmt.Sprintf(" of %s/%d", e.Name, e.Kind)
		}
		if c.Nullable {
			text += "?"
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

func TestDescribe(t *testing.T) {
	const (
		unknown, boolean, integer, exact, float, text, form, json, list, object = db.UnknownType, db.BoolType, db.IntType,
			db.ExactType, db.FloatType, db.TextType, db.FormType, db.JSONType, db.ListType, db.ObjectType
	)
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, `CREATE TABLE o (id integer PRIMARY KEY, b boolean NOT NULL, n numeric(10,2), f double precision, s text, d date, j json)`)
		columns := fmt.Sprintf("id integer/%d, b boolean/%d, n numeric%%s/%d?, f double precision/%d?, s text/%d?, d date/%%d?, j json/%d?",
			integer, boolean, exact, float, text, json)
		all := fmt.Sprintf(columns, "(10,2)", unknown) // SQLite does not say what is in a date
		param := fmt.Sprintf("/%d", unknown)
		expressions := fmt.Sprintf("x /%d, y /%d", unknown, unknown)
		if d.Dialect() == db.Postgres {
			script(t, d, `CREATE TYPE pair AS (a int, b text); CREATE DOMAIN code AS text NOT NULL;
				CREATE TABLE more (a text[] NOT NULL, p pair, r int4range, m int4multirange, c code, v varchar(3), e uuid[])`)
			all = fmt.Sprintf(columns, "", form)
			param = fmt.Sprintf("integer/%d", integer)
			expressions = fmt.Sprintf("x integer/%d, y text/%d", integer, text)
		}
		for sql, want := range map[string]string{
			"SELECT * FROM o":                                      "->, " + all,
			"SELECT id + 1 AS x, 'é' AS y FROM o":                  "->, " + expressions,
			"DELETE FROM o WHERE id = $1":                          param + ", ->",
			"INSERT INTO o (id, b) VALUES ($1, true) RETURNING id": param + ", ->, id integer/" + fmt.Sprint(integer),
		} {
			x, err := d.Describe(t.Context(), stmt(d, sql))
			if err != nil {
				t.Errorf("%s: %v", sql, err)
			} else if got := described(x); got != want {
				t.Errorf("%s gives\n%s\nwant\n%s", sql, got, want)
			}
		}
		if d.Dialect() == db.Postgres {
			x, err := d.Describe(t.Context(), stmt(d, "SELECT * FROM more WHERE a = $1"))
			want := fmt.Sprintf("text[]/%d, ->, a text[]/%d of text/%d, p pair/%d?, r int4range/%d?, m int4multirange/%d of int4range/%d?, c text/%d, v character varying/%d?, e uuid[]/%d of uuid/%d?",
				list, list, text, object, form, list, form, text, text, list, form)
			if err != nil || described(x) != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, described(x), want)
			}
		}
	})
}

func TestDescribeRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE orders (id int)")
		sql := "SELECT 'éé', idd FROM orders"
		words, hint := "no such column: idd", ""
		if d.Dialect() == db.Postgres {
			words, hint = `column "idd" does not exist`, `Perhaps you meant to reference the column "orders.id".`
		}
		for _, c := range []struct {
			sql, words, hint string
			off              int
		}{
			{sql, words, hint, strings.Index(sql, "idd")},
			{"SELECT id, id FROM orders", `two columns of the answer are named "id": rename one with AS`, "", -1},
		} {
			_, err := d.Describe(t.Context(), stmt(d, c.sql))
			var refused *db.Refusal
			if !errors.As(err, &refused) || err.Error() != c.words || refused.Hint != c.hint || refused.Offset != c.off {
				t.Errorf("%s gives %+v (%v)", c.sql, refused, err)
			}
		}
	})
}

func TestColumnOffset(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT a, b.c FROM t":                                   "b.c FROM t",
		"SELECT a,\n  f(x, y) AS c, d FROM t":                    "f(x, y) AS c, d FROM t",
		`WITH x AS (SELECT c FROM y) SELECT a, 1 "C", c2 FROM x`: `1 "C", c2 FROM x`,
		"INSERT INTO t SELECT a, b FROM u RETURNING a, c":        "c",
		"SELECT * FROM t":                                        "* FROM t",
		"SELECT a /* c */, b FROM t":                             "a /* c */, b FROM t",
		"UPDATE t SET c = 1":                                     "UPDATE t SET c = 1",
		"SELECT":                                                 "SELECT",
		"":                                                       "",
	} {
		for _, d := range []db.Dialect{db.SQLite, db.Postgres} {
			if got := sql[db.ColumnOffset(d, sql, "c"):]; got != want {
				t.Errorf("%s: %q gives %q, want %q", d, sql, got, want)
			}
		}
	}
}
