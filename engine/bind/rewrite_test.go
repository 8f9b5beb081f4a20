package bind

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// rewriteFor rewrites SQL with the names that tests know.
func rewriteFor(d db.Dialect, sql string, pieces map[string]string) (*rewritten, graph.Faults) {
	texts := map[string]*graph.Text{}
	for k, v := range pieces {
		texts[k] = text(v)
	}
	w := &rewriter{
		dialect: d,
		piece:   func(name string) *graph.Text { return texts[name] },
		known:   func(name string) bool { return name == "max" || name == "id" },
		seen:    func(string, *graph.Text, int) {},
	}
	return w.statement(text(sql)), w.faults
}

func text(s string) *graph.Text {
	t := &graph.Text{S: s, At: graph.Place{File: "a.cue", Line: 1, Col: 1}, Path: "tools.t.sql.query"}
	t.Marks = []graph.Mark{{Off: 0, Line: 1, Col: 1}}
	for i, c := range []byte(s) {
		if c == '\n' {
			t.Marks = append(t.Marks, graph.Mark{Off: i + 1, Line: len(t.Marks) + 1, Col: 1})
		}
	}
	return t
}

// show gives the statement with its parameters.
func show(r *rewritten) string {
	var l []string
	for _, p := range r.params {
		l = append(l, p.name+[]string{"", "?null", "[]"}[p.mode])
	}
	return r.sql + " | " + strings.Join(l, " ")
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ sql, postgres, sqlite string }{
		{"SELECT 1", "SELECT 1 | ", "SELECT 1 | "},
		{"a = @id", "a = $1 | id", "a = ?1 | id"},
		{"a=@id AND b=@id OR c=@x", "a=$1 AND b=$1 OR c=$2 | id x", "a=?1 AND b=?1 OR c=?2 | id x"},
		{"a = @ctx.claims.sub.", "a = $1. | ctx.claims.sub", "a = ?1. | ctx.claims.sub"},
		{"(@s IS NULL OR s = @s)", "($1::bool OR s = $2) | s?null s", "(?1 OR s = ?2) | s?null s"},
		{"(s = @s OR @s is  /* c */ null)", "(s = $1 OR $2::bool) | s s?null", "(s = ?1 OR ?2) | s s?null"},
		{"WHERE @s IS NOT NULL", "WHERE (NOT $1::bool) | s?null", "WHERE (NOT ?1) | s?null"},
		{"WHERE NOT @s IS NOT NULL", "WHERE NOT (NOT $1::bool) | s?null", "WHERE NOT (NOT ?1) | s?null"},
		{"WHERE x || @s IS NULL", "WHERE x || $1 IS NULL | s", "WHERE x || ?1 IS NULL | s"},
		{"WHERE x = @s IS NULL", "WHERE x = $1 IS NULL | s", "WHERE x = ?1 IS NULL | s"},
		{"WHERE @s IS NOT DISTINCT FROM x", "WHERE $1 IS NOT DISTINCT FROM x | s", "WHERE ?1 IS NOT DISTINCT FROM x | s"},
		{"id IN (@ids)", "id = ANY($1) | ids[]", "id IN (SELECT value FROM json_each(?1)) | ids[]"},
		{"id not  in ( @ids ) x", "id <> ALL($1) x | ids[]", "id not  in (SELECT value FROM json_each(?1)) x | ids[]"},
		{"(@ids IS NULL OR id IN (@ids))", "($1::bool OR id = ANY($2)) | ids?null ids[]",
			"(?1 OR id IN (SELECT value FROM json_each(?2))) | ids?null ids[]"},
		{"id IN (@a, @b)", "id IN ($1, $2) | a b", "id IN (?1, ?2) | a b"},
		{"id IN (@a + 1)", "id IN ($1 + 1) | a", "id IN (?1 + 1) | a"},
		{"id IN(@rows.id)", "id = ANY($1) | rows.id[]", "id IN(SELECT value FROM json_each(?1)) | rows.id[]"},
		// Not parameters.
		{"'@a''@b' || @c", "'@a''@b' || $1 | c", "'@a''@b' || ?1 | c"},
		{`"@a""@b" = @c`, `"@a""@b" = $1 | c`, `"@a""@b" = ?1 | c`},
		{"-- @a ' \n@b", "-- @a ' \n$1 | b", "-- @a ' \n?1 | b"},
		{"/* @a ' */ @b", "/* @a ' */ $1 | b", "/* @a ' */ ?1 | b"},
		{"a @> @b", "a @> $1 | b", "a @> ?1 | b"},
		{"a @>@b", "a @>$1 | b", "a @>?1 | b"},
		{"a <@ @b", "a <@ $1 | b", "a <@ ?1 | b"},
		{"a <@b", "a <@b | ", "a <@b | "},
		{"@@to_tsquery(@q)", "@@to_tsquery($1) | q", "@@to_tsquery(?1) | q"},
		{"v @@ @q", "v @@ $1 | q", "v @@ ?1 | q"},
		{"@-@ p + @q", "@-@ p + $1 | q", "@-@ p + ?1 | q"},
		{"@ -5", "@ -5 | ", "@ -5 | "},
		{"n ^@ @p", "n ^@ $1 | p", "n ^@ ?1 | p"},
		{"a>=@b", "a>=$1 | b", "a>=?1 | b"},
		{"a||@b||'x'", "a||$1||'x' | b", "a||?1||'x' | b"},
		{"a->>@b", "a->>$1 | b", "a->>?1 | b"},
		{"a - --@x\n@b", "a - --@x\n$1 | b", "a - --@x\n?1 | b"},
		{"CAST(@d AS int)", "CAST($1 AS int) | d", "CAST(?1 AS int) | d"},
		{"1@x", "1 $1 | x", "1 ?1 | x"},
		{"x@y", "x $1 | y", "x ?1 | y"},
		{"@größe", "$1 | größe", "?1 | größe"},
		{"'unicode é @' || @é", "'unicode é @' || $1 | é", "'unicode é @' || ?1 | é"},
	} {
		for _, d := range dialects {
			want := c.sqlite
			if d == db.Postgres {
				want = c.postgres
			}
			r, faults := rewriteFor(d, c.sql, nil)
			if got := show(r); got != want || len(faults) > 0 {
				t.Errorf("%s, %s:\n got %s\nwant %s\n%v", d, c.sql, got, want, faults)
			}
		}
	}
}

// What only one engine reads so.
func TestRewriteDialect(t *testing.T) {
	for _, c := range []struct {
		dialect   db.Dialect
		sql, want string
	}{
		{db.Postgres, `E'it\'s @a' || @b`, `E'it\'s @a' || $1 | b`},
		{db.Postgres, `'back\' || @b`, `'back\' || $1 | b`},
		{db.Postgres, "$$ @a $$ || @b", "$$ @a $$ || $1 | b"},
		{db.Postgres, "$f$ @a $$ @x $f$ || @b", "$f$ @a $$ @x $f$ || $1 | b"},
		{db.Postgres, "a$b$c = @d", "a$b$c = $1 | d"},
		{db.Postgres, "/* a /* @b */ @c */ @d", "/* a /* @b */ @c */ $1 | d"},
		{db.Postgres, "arr[@i] = @j::int", "arr[$1] = $2::int | i j"},
		{db.Postgres, "x ?| @keys", "x ?| $1 | keys"},
		{db.SQLite, "/* a /* @b */ @c", "/* a /* @b */ ?1 | c"},
		{db.SQLite, "[@a] = `@b` || @c", "[@a] = `@b` || ?1 | c"},
		{db.SQLite, `E'it\' || @b`, `E'it\' || ?1 | b`},
	} {
		r, faults := rewriteFor(c.dialect, c.sql, nil)
		if got := show(r); got != c.want || len(faults) > 0 {
			t.Errorf("%s, %s:\n got %s\nwant %s\n%v", c.dialect, c.sql, got, c.want, faults)
		}
	}
}

func TestRewriteFaults(t *testing.T) {
	const at = "a.cue:1:%d: tools.t.sql.query: %s"
	for _, c := range []struct {
		sql     string
		col     int
		message string
	}{
		{"", 1, "there is no statement"},
		{" -- only this", 1, "there is no statement"},
		{"SELECT 1; SELECT 2", 11, "there are two statements in one query: give the second a tool of its own"},
		{"SELECT 'a", 8, "a text that begins here has no closing '"},
		{`SELECT "a`, 8, `a name that begins here has no closing "`},
		{"SELECT /* a", 8, "a comment that begins here has no closing */"},
		{"SELECT $1", 8, "$1 is a parameter of the engine: write @name"},
		{"SELECT ?1", 8, "?1 is a parameter of the engine: write @name"},
		{"SELECT a ORDER BY @x", 19, "ORDER BY @x would sort by one constant: list the orders in choose: x"},
		{"SELECT a ORDER BY a DESC, @x DESC LIMIT @l", 27, "ORDER BY @x would sort by one constant: list the orders in choose: x"},
		{"SELECT row_number() OVER (ORDER BY @x)", 36, "ORDER BY @x would sort by one constant: list the orders in choose: x"},
		{"SELECT a WHERE n <@max", 18, "<@max is the operator <@ and the name max: write < @max for the parameter, <@ max for the operator"},
		{"SELECT a WHERE id = @rows.id", 21, "@rows.id is a list: write IN (@rows.id)"},
	} {
		for _, d := range dialects {
			_, faults := rewriteFor(d, c.sql, nil)
			want := fmt.Sprintf(at, c.col, c.message)
			if got := faults.Error(); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", d, c.sql, got, want)
			}
		}
	}
	for _, fine := range []string{
		"SELECT 1;", "SELECT 1 ; -- end", "SELECT a ORDER BY a LIMIT @x", "SELECT a ORDER BY abs(a - @x), b",
		"SELECT a ORDER BY a = @x DESC", "SELECT a ORDER BY CASE WHEN b THEN @x END, c", "SELECT a ORDER BY a LIMIT @x OFFSET @y",
		"SELECT a FROM (SELECT b ORDER BY c) WHERE d = @x", "SELECT a ORDER BY f(a, @x)",
	} {
		for _, d := range dialects {
			if _, faults := rewriteFor(d, fine, nil); len(faults) > 0 {
				t.Errorf("%s, %s: %v", d, fine, faults)
			}
		}
	}
}

func TestRewriteChoose(t *testing.T) {
	r, faults := rewriteFor(db.Postgres, "SELECT a ORDER BY @sort, id LIMIT @limit", map[string]string{"sort": "abs(a - @id) DESC"})
	if got, want := show(r), "SELECT a ORDER BY abs(a - $1) DESC, id LIMIT $2 | id limit"; got != want || len(faults) > 0 {
		t.Errorf("got %s\nwant %s\n%v", got, want, faults)
	}
	_, faults = rewriteFor(db.Postgres, "SELECT a ORDER BY @sort", map[string]string{"sort": "a; DROP TABLE b"})
	if got, want := faults.Error(), "a.cue:1:2: tools.t.sql.query: a piece of choose cannot end the statement: take the ; out"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	_, faults = rewriteFor(db.Postgres, "SELECT a ORDER BY @sort", map[string]string{"sort": "@sort"})
	if got, want := faults.Error(), "a.cue:1:1: tools.t.sql.query: a piece of choose cannot hold another: @sort"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Every byte of the statement knows where it comes from.
func TestOrigin(t *testing.T) {
	src := "SELECT @a, b IN (@ids), c FROM t WHERE @a IS NULL ORDER BY @sort, zz"
	for _, d := range dialects {
		r, faults := rewriteFor(d, src, map[string]string{"sort": "qq DESC"})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		for _, word := range []string{"SELECT", "b", "c", "FROM", "ORDER", "zz"} {
			off := strings.LastIndex(r.sql, " "+word) + 1
			if word == "SELECT" {
				off = 0
			}
			_, at := r.origin(off)
			if !strings.HasPrefix(src[at:], word) {
				t.Errorf("%s: %s at %d of %q is mapped to %q", d, word, off, r.sql, src[at:])
			}
		}
		if text, at := r.origin(strings.Index(r.sql, "DESC")); text.S != "qq DESC" || at != 3 {
			t.Errorf("%s: DESC is mapped to byte %d of %q", d, at, text.S)
		}
		if _, at := r.origin(strings.Index(r.sql, "1")); !strings.HasPrefix(src[at:], "@a") {
			t.Errorf("%s: the first parameter is mapped to %q", d, src[at:])
		}
	}
}

// FuzzRewrite: the numbers of the parameters are those of the list, what is no
// parameter stays, and a rewritten text has nothing left to rewrite.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{
		"SELECT a FROM t WHERE (@s IS NULL OR s = @s) AND id IN (@ids) AND x NOT IN (@y) ORDER BY a",
		"a <@b @@to_tsquery(@q) @-@ p", "E'it\\'s @a' || $f$ @b $f$ || @c", "/* /* @a */ */ -- @b\n@c::int", "[@a]`@b`\"@c\"'@d'",
		"é@é.é", "1@x?1$1", "@a IS NOT", "NOT IN (@", "IN(@a IN (@b))", "a@b.c.d.@e", "(@a)IS NULL,@b IS NULL;",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, d := range dialects {
			tokens, problem := db.Lex(d, sql)
			r, faults := rewriteFor(d, sql, nil)
			if problem != nil {
				if len(faults) == 0 {
					t.Fatalf("%s: %q has %v and no fault", d, sql, problem)
				}
				continue
			}
			checkWhole(t, sql, tokens)
			if len(faults) > 0 {
				continue
			}
			checkRewritten(t, d, sql, tokens, r)
		}
	})
}

func checkWhole(t *testing.T, sql string, tokens []db.Token) {
	end := 0
	for _, tok := range tokens {
		if tok.Start != end || tok.End <= tok.Start {
			t.Fatalf("%q: token %v does not follow byte %d", sql, tok, end)
		}
		end = tok.End
	}
	if end != len(sql) {
		t.Fatalf("%q: the tokens end at %d", sql, end)
	}
}

func checkRewritten(t *testing.T, d db.Dialect, sql string, tokens []db.Token, r *rewritten) {
	out, problem := db.Lex(d, r.sql)
	if problem != nil {
		t.Fatalf("%s: %q became %q: %v", d, sql, r.sql, problem)
	}
	numbers := map[string]bool{}
	var kept []string
	for _, tok := range out {
		switch s := r.sql[tok.Start:tok.End]; tok.Kind {
		case db.Param:
			t.Fatalf("%s: %q became %q, which has a parameter", d, sql, r.sql)
		case db.Native:
			numbers[s] = true
		case db.Literal, db.Quoted, db.Numeral:
			kept = append(kept, s)
		}
	}
	if len(numbers) != len(r.params) {
		t.Fatalf("%s: %q became %q with parameters %v", d, sql, r.sql, r.params)
	}
	var had []string
	for _, tok := range tokens {
		switch tok.Kind {
		case db.Literal, db.Quoted, db.Numeral:
			had = append(had, sql[tok.Start:tok.End])
		}
	}
	if !slices.Equal(had, kept) {
		t.Fatalf("%s: %q became %q: %q are now %q", d, sql, r.sql, had, kept)
	}
	for i := range r.sql {
		if _, at := r.origin(i); at < 0 || at >= len(sql) {
			t.Fatalf("%s: byte %d of %q is mapped to %d of %q", d, i, r.sql, at, sql)
		}
	}
}
