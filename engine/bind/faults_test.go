package bind

import (
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

func TestFaults(t *testing.T) {
	params := map[string]*shape.Shape{"status": str, "address": {Kind: shape.Struct, Fields: []*shape.Field{{Name: "city", Shape: str}}}}
	for _, c := range []struct{ query, want string }{
		{"SELECT 1\nWHERE @statuss = 1", `a.cue:2:7: tools.t.sql.query: @statuss: no parameter has this name (did you mean "status"?)`},
		{"SELECT @zzz", `a.cue:1:8: tools.t.sql.query: @zzz: no parameter has this name: declare it in params, or compute it in args beside the query`},
		{"SELECT @address.city", `a.cue:1:8: tools.t.sql.query: @address.city: a dotted name begins with a name in scope: write @args.address.city`},
		{"SELECT @ctc.now", `a.cue:1:8: tools.t.sql.query: @ctc.now: there is no "ctc" here (did you mean "ctx"?)`},
		{"SELECT @ctx.noww", `a.cue:1:8: tools.t.sql.query: @ctx.noww: ctx has no "noww" (did you mean "now"?)`},
		{"SELECT @ctx.claims.subb", `a.cue:1:8: tools.t.sql.query: @ctx.claims.subb: ctx.claims has no "subb" (did you mean "sub"?)`},
		{"SELECT @env.TOKEN", `a.cue:1:8: tools.t.sql.query: @env.TOKEN: a secret cannot be bound: it would reach the database's logs`},
		{"SELECT 1 WHERE 1 IN (@rows.id)", `a.cue:1:22: tools.t.sql.query: @rows.id: only the query of a nest has rows above it`},
		{"SELECT @a, @b", "a.cue:1:8: tools.t.sql.query: @a: no parameter has this name: declare it in params, or compute it in args beside the query\n" +
			"a.cue:1:12: tools.t.sql.query: @b: no parameter has this name: declare it in params, or compute it in args beside the query"},
		{"SELECT 1; SELECT 2", `a.cue:1:11: tools.t.sql.query: there are two statements in one query: give the second a tool of its own`},
		{" -- soon\n(update t SET a = 1", `a.cue:2:2: tools.t.sql.query: a query tool reads: use kind: "action" or "mutation"`},
		{"REPLACE INTO t VALUES (1)", `a.cue:1:1: tools.t.sql.query: a query tool reads: use kind: "action" or "mutation"`},
		{"SELECT 1 ORDER BY @status", `a.cue:1:19: tools.t.sql.query: ORDER BY @status would sort by one constant: list the orders in choose: status`},
	} {
		x := tool("query", c.query, params)
		_, faults := Compile(spec, x, scopeOf(x), db.Limit{})
		if got := faults.Error(); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.query, got, c.want)
		}
	}
}

func TestChooseAndNestFaults(t *testing.T) {
	params := map[string]*shape.Shape{"sort": str, "id": num}
	one := []graph.Piece{{Key: "a", SQL: *text("a")}}
	for _, c := range []struct {
		choose []graph.Choose
		nest   []*graph.Nest
		want   string
	}{
		{choose: []graph.Choose{{Param: "sort", Pieces: one}},
			want: "tools.t.sql.choose.sort: the parameter sort may be left out: give it a default"},
		{choose: []graph.Choose{{Param: "other", Pieces: one}},
			want: "tools.t.sql.choose.other: @other does not stand in the query\n" +
				"a.cue:1:19: tools.t.sql.query: ORDER BY @sort would sort by one constant: list the orders in choose: sort"},
		{nest: []*graph.Nest{{Key: "n", By: "b", Query: *text("SELECT b FROM t")}},
			want: "a.cue:1:19: tools.t.sql.query: ORDER BY @sort would sort by one constant: list the orders in choose: sort"},
	} {
		x := tool("query", "SELECT a ORDER BY @sort", params)
		x.SQL.Choose, x.SQL.Nest = c.choose, c.nest
		_, faults := Compile(spec, x, scopeOf(x), db.Limit{})
		if got := faults.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	for query, want := range map[string]string{
		"SELECT b FROM t": "a.cue:1:1: tools.t.sql.query: nothing ties this query to the rows above: write WHERE b IN (@rows.COLUMN)",
		"SELECT b FROM t WHERE x IN (@rows.x) AND y IN (@rows.y)":               "a.cue:1:1: tools.t.sql.query: the query takes several columns of the rows above: write b IN (@rows.COLUMN) for the one that by holds",
		"SELECT b FROM t WHERE x IN (@rows.x) AND t.b IN (@rows.y)":             "",
		"SELECT b FROM t WHERE x IN (@rows.a.b)":                                `a.cue:1:29: tools.t.sql.query: @rows.a.b: rows are flat: write @rows.COLUMN`,
		"SELECT b FROM t WHERE x = @rows.x":                                     "a.cue:1:27: tools.t.sql.query: @rows.x is a list: write IN (@rows.x)",
		"SELECT b FROM t WHERE b = ANY(@rows.x) AND c <> @ctx.now AND @id <> 1": "",
	} {
		x := tool("query", "SELECT 1", params)
		x.SQL.Nest = []*graph.Nest{{Key: "n", By: "b", Query: *text(query)}}
		_, faults := Compile(spec, x, scopeOf(x), db.Limit{})
		if got := faults.Error(); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
	many := tool("query", "SELECT a ORDER BY @a, @b", map[string]*shape.Shape{})
	pieces := make([]graph.Piece, 17)
	for i := range pieces {
		pieces[i] = graph.Piece{Key: strings.Repeat("x", i+1), SQL: *text("a")}
	}
	many.SQL.Choose = []graph.Choose{{Param: "a", Pieces: pieces}, {Param: "b", Pieces: pieces}}
	_, faults := Compile(spec, many, scopeOf(many), db.Limit{})
	if got, want := faults.Error(), "a.cue:1:1: tools.t.sql.query: the choices of choose make 289 statements: 256 are the most"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// Only the engine of the database has to understand the query.
func TestFaultsOfOneEngine(t *testing.T) {
	onlyPostgres := `SELECT E'it\'s' AS a`
	for url, want := range map[string]string{
		"postgres://a/b": "", graph.Marker("URL"): "",
		"sqlite::memory:": "a.cue:1:15: tools.t.sql.query: a text that begins here has no closing '",
	} {
		g := &graph.Graph{Databases: []*graph.Database{{Name: "main", URL: graph.Text{S: url}}}}
		x := tool("query", onlyPostgres, nil)
		b, faults := Compile(&Spec{Graph: g}, x, scopeOf(x), db.Limit{})
		if got := faults.Error(); got != want {
			t.Errorf("%q: got %s, want %s", url, got, want)
		}
		for _, s := range b.Statements() {
			if s.Stmt[db.SQLite].SQL != onlyPostgres || s.Stmt[db.Postgres].SQL != onlyPostgres {
				t.Errorf("statements %+v", s)
			}
		}
	}
}

func TestPlaces(t *testing.T) {
	x := tool("query", "SELECT id\nFROM orders WHERE id IN (@ids)\nORDER BY @sort, nope", map[string]*shape.Shape{"ids": list, "sort": str})
	for _, f := range x.Params.Fields {
		f.Optional = false
	}
	x.SQL.Choose = []graph.Choose{{Param: "sort", Pieces: []graph.Piece{{Key: "a", SQL: graph.Text{S: "nix", At: graph.Place{File: "b.cue", Line: 7, Col: 3}, Marks: []graph.Mark{{Line: 7, Col: 4}}}}}}}
	s := compile(t, x).Statements()[0]
	for _, d := range dialects {
		sql := s.Stmt[d].SQL
		if got := s.Place(d, strings.Index(sql, "nope")).String(); got != "a.cue:3:17" {
			t.Errorf("%s: nope stands at %s", d, got)
		}
		if got := s.Offset(d, strings.Index(sql, "nope")); got != strings.Index(x.SQL.Query.S, "nope") {
			t.Errorf("%s: nope is byte %d", d, got)
		}
		if got := s.Place(d, strings.Index(sql, "nix")+1).String(); got != "b.cue:7:5" {
			t.Errorf("%s: the piece stands at %s", d, got)
		}
	}
}
