package presenters

import (
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// lineOf is a text at a line of a spec, so that faults have a place.
func lineOf(line int, s string) graph.Text {
	return graph.Text{S: s, At: graph.Place{File: "a.cue", Line: line, Col: 1}, Path: "presenters.P"}
}

func lineRef(line int, s string) *graph.Text { t := lineOf(line, s); return &t }

// TestCompileFaults breaks one thing at a time and compares the whole complaint.
func TestCompileFaults(t *testing.T) {
	at := graph.Place{File: "a.cue", Line: 1, Col: 1}
	masked := []*graph.Redact{{Paths: []graph.Text{txt("email"), txt("lines[*].sku")}, As: "[REDACTED]"}}
	compileFaults(t, map[string]breakage{
		"embed undeclared": {func(p *graph.Presenter, g *graph.Graph) {
			p.Embed = []*graph.Embed{{At: at, Key: "customer", Presenter: "P"}}
		}, `a.cue:1:1: presenters.P.embed.customer: the schema of P does not declare "customer", so it would be stripped before it could be embedded: declare it there`},
		"embed cycle": {func(p *graph.Presenter, g *graph.Graph) {
			p.Embed = []*graph.Embed{{Key: "lines", Presenter: "Q"}}
			g.Presenters = append(g.Presenters, &graph.Presenter{Name: "Q", Path: "presenters.Q", Embed: []*graph.Embed{{At: at, Key: "up", Presenter: "P"}}})
		}, `a.cue:1:1: presenters.Q.embed.up: presenters embed each other in a circle: P -> Q -> P`},
		"path without end": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact = []*graph.Redact{{Paths: []graph.Text{lineOf(2, "a..b")}}}
		}, `a.cue:2:1: presenters.P: "a..b" masks nothing: a name is missing`},
		"path with a digit": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact = []*graph.Redact{{Paths: []graph.Text{lineOf(2, "lines.0.sku")}}}
		}, `a.cue:2:1: presenters.P: "lines.0.sku" masks nothing: "0" is no name: write ["0"] for such a key, [0] for an element of a list`},
		"path of no field": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact = []*graph.Redact{{Paths: []graph.Text{lineOf(2, "emal")}}}
		}, `a.cue:2:1: presenters.P: "emal" masks nothing: the schema has no field "emal" (did you mean "email"?)`},
		"path below a text": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact = []*graph.Redact{{Paths: []graph.Text{lineOf(2, "email.domain")}}}
		}, `a.cue:2:1: presenters.P: "email.domain" masks nothing: there are no fields below email`},
		"only depth": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact = []*graph.Redact{{Paths: []graph.Text{lineOf(2, "**")}}}
		}, `a.cue:2:1: presenters.P: "**" masks nothing: ** needs a field behind it, as in **.email`},
		"pattern": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact = []*graph.Redact{{Patterns: []graph.Text{lineOf(2, "a(")}}}
		}, "a.cue:2:1: presenters.P: reading the pattern: error parsing regexp: missing closing ): `a(`"},
		"masked condition": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact, p.Rules = masked, []*graph.Rule{{When: lineRef(3, "data.email == ''"), Text: txt("no address")}}
		}, `a.cue:3:1: presenters.P: this reads data.email, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same`},
		"masked text": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact, p.Hints = masked, []*graph.Rule{{Text: lineOf(3, "{{ data.lines[0].sku }}")}}
		}, `a.cue:3:1: presenters.P: this reads data.lines[*].sku, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same`},
		"masked whole": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact, p.UI = masked, []*graph.Block{{Kind: "markdown", Content: &graph.Node{Kind: graph.String, Text: lineOf(3, "{{ data }}")}}}
		}, `a.cue:3:1: presenters.P: this reads all of data, of which the presenter may mask email: read only the fields that are needed, or say unmasked: true to show the hidden value all the same`},
		"masked column": {func(p *graph.Presenter, g *graph.Graph) {
			p.Redact, p.Collection.UI = masked, []*graph.Block{{Kind: "table", Columns: []graph.Column{{Title: "E", Cell: lineOf(3, "email")}}}}
		}, `a.cue:3:1: presenters.P: this reads data.email, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same`},
		"masked by the child": {func(p *graph.Presenter, g *graph.Graph) {
			g.Presenters = append(g.Presenters, &graph.Presenter{Name: "L", Redact: []*graph.Redact{{Paths: []graph.Text{txt("sku")}}}})
			p.Embed, p.Rules = []*graph.Embed{{Key: "lines", Presenter: "L"}}, []*graph.Rule{{Text: lineOf(3, "{{ map(data.lines, .sku) }}")}}
		}, `a.cue:3:1: presenters.P: this reads data.lines[*].sku, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same`},
		"one wire name": {func(p *graph.Presenter, g *graph.Graph) {
			g.Tools = append(g.Tools, &graph.Tool{Name: "p_get", At: at, Path: "tools.p_get", Params: structOf()})
		}, `a.cue:1:1: tools.p_get: p.get and p_get would both be "p_get" on the wire: rename one`},
		"invalidates": {func(p *graph.Presenter, g *graph.Graph) {
			g.Tools[0].Invalidates, g.Tools[0].At = []string{"tasks.*", "res://a/b", `a"<b>`}, at
		}, `a.cue:1:1: tools.p.get.invalidates: "a\"<b>" is neither a glob of tools, such as tasks.*, nor the URI of a resource`},
		"_select": {func(p *graph.Presenter, g *graph.Graph) {
			g.Tools[0].Select, g.Tools[0].At = true, at
			g.Tools[0].Params.Fields = []*shape.Field{{Name: "_select", Shape: anyText()}}
		}, `a.cue:1:1: tools.p.get.params._select: _select is the server's own parameter: rename yours`},
		"conflict": {func(p *graph.Presenter, g *graph.Graph) {
			g.Server.Exposition = "grouped"
			g.Tools[0].Params.Fields = []*shape.Field{{Name: "n", Shape: anyText()}}
			g.Tools = append(g.Tools, &graph.Tool{Name: "p.put", At: at, Path: "tools.p.put", Params: structOf(&shape.Field{Name: "n", Shape: int1()})})
		}, `a.cue:1:1: tools.p.put.params.n: n is integer here and string in p.get: in grouped exposition the tools of a group share their parameters, so give it one type or another name`},
		"the discriminator": {func(p *graph.Presenter, g *graph.Graph) {
			g.Server.Exposition, g.Tools[0].At = "grouped", at
			g.Tools[0].Params.Fields = []*shape.Field{{Name: "action", Shape: anyText()}}
		}, `a.cue:1:1: tools.p.get.params.action: in grouped exposition "action" is the parameter that names the operation: rename yours`},
	})
}

// TestCompileFaultsOfBlocks does the same with what is shown beside the data.
func TestCompileFaultsOfBlocks(t *testing.T) {
	at := graph.Place{File: "a.cue", Line: 1, Col: 1}
	compileFaults(t, map[string]breakage{
		"column of no field": {func(p *graph.Presenter, g *graph.Graph) {
			p.Collection.UI = []*graph.Block{{Kind: "table", Columns: []graph.Column{{Title: "E", Cell: lineOf(3, "mail")}}}}
		}, `a.cue:3:1: presenters.P: the row has no field "mail" (did you mean "email"?)`},
		"column of rows": {func(p *graph.Presenter, g *graph.Graph) {
			rows := lineOf(2, "{{ data.lines }}")
			p.UI = []*graph.Block{{Kind: "table", Rows: &rows, Columns: []graph.Column{{Title: "A", Cell: lineOf(3, "skus")}, {Title: "B", Cell: lineOf(4, "{{ data.skus }}")},
				{Title: "C", Cell: lineOf(5, "sku.part")}, {Title: "D", Cell: txt("sku")}, {Title: "E", Cell: txt("{{ data.sku }}")}}}}
		}, `a.cue:3:1: presenters.P: the row has no field "skus" (did you mean "sku"?)
a.cue:4:1: presenters.P: data has no field "skus" (did you mean "sku"?)
a.cue:5:1: presenters.P: there are no fields below sku`},
		"column of made rows": {func(p *graph.Presenter, g *graph.Graph) {
			rows := lineOf(2, "{{ map(data.lines, ({part: .sku})) }}")
			p.UI = []*graph.Block{{Kind: "table", Rows: &rows, Columns: []graph.Column{{Title: "A", Cell: lineOf(3, "sku")}, {Title: "B", Cell: txt("part")}}}}
		}, `a.cue:3:1: presenters.P: the row has no field "sku"`},
		"rows without fields": {func(p *graph.Presenter, g *graph.Graph) {
			rows := lineOf(2, "{{ map(data.lines, .sku) }}")
			p.UI = []*graph.Block{{Kind: "table", Rows: &rows, Columns: []graph.Column{{Title: "A", Cell: lineOf(3, "sku")}, {Title: "B", Cell: txt("{{ data }}")}}}}
		}, `a.cue:3:1: presenters.P: a row has no fields here: write {{ data }} for the row itself`},
		"rows of no list": {func(p *graph.Presenter, g *graph.Graph) {
			rows := lineOf(2, "{{ data.id }}")
			p.UI = []*graph.Block{{Kind: "table", Rows: &rows, Columns: []graph.Column{{Title: "A", Cell: txt("sku")}}}}
		}, `a.cue:2:1: presenters.P: must be a list, not a text`},
		"list of no list": {func(p *graph.Presenter, g *graph.Graph) {
			text := func(line int, s string) *graph.Node {
				t := lineOf(line, s)
				return &graph.Node{At: t.At, Path: t.Path, Kind: graph.String, Text: t}
			}
			p.UI = []*graph.Block{{Kind: "list", Content: text(2, "{{ data.id }}")}, {Kind: "list", Content: text(3, "- {{ data.lines }}")},
				{Kind: "list", Content: text(4, "{{ data.lines }}")}, {Kind: "list", Content: text(5, "{{ nil }}")},
				{Kind: "list", Content: &graph.Node{Kind: graph.List, Items: []*graph.Node{text(6, "{{ data.id }}")}}}}
			p.Collection.UI = []*graph.Block{{Kind: "list", Content: text(7, "{{ len(items) }}")}}
		}, `a.cue:2:1: presenters.P: must be a list, not a text
a.cue:3:1: presenters.P: must be a list, not a text
a.cue:7:1: presenters.P: must be a list, not a whole number`},
		"content of rows": {func(p *graph.Presenter, g *graph.Graph) {
			g.Tools[0].SQL, g.Tools[0].Content = &graph.SQL{}, &graph.Content{Kind: "image", Source: lineOf(2, "id"), MimeType: txt("image/png")}
		}, `a.cue:2:1: presenters.P: image content needs one row, and the statement gives a list: write one: true beside it`},
		"content of the rows of steps": {func(p *graph.Presenter, g *graph.Graph) {
			g.Tools[0].Steps = []*graph.Step{{Binding: graph.Binding{SQL: &graph.SQL{One: true}}}, {Binding: graph.Binding{SQL: &graph.SQL{}}}}
			g.Tools[0].Content = &graph.Content{Kind: "image", Source: lineOf(2, "id"), MimeType: txt("image/png")}
		}, `a.cue:2:1: presenters.P: image content needs one row, and the statement gives a list: write one: true beside it`},
		"table without rows": {func(p *graph.Presenter, g *graph.Graph) {
			p.UI = []*graph.Block{{At: at, Path: "presenters.P.ui[0]", Kind: "table", Columns: []graph.Column{{Title: "A", Cell: txt("id")}}}}
		}, `a.cue:1:1: presenters.P.ui[0]: a table of one item needs rows: the list whose elements are its rows, as in rows: "{{ data.lines }}"`},
		"content": {func(p *graph.Presenter, g *graph.Graph) {
			g.Tools[0].Content = &graph.Content{Kind: "image", Source: lineOf(3, "ids"), MimeType: txt("image/png")}
		}, `a.cue:3:1: presenters.P: the answer has no field "ids" (did you mean "id"?)`},
	})
}

// breakage breaks one thing of a presenter or graph.
type breakage struct {
	set  func(p *graph.Presenter, g *graph.Graph)
	want string
}

func compileFaults(t *testing.T, cases map[string]breakage) {
	t.Helper()
	for name, x := range cases {
		schema := structOf(&shape.Field{Name: "id", Shape: anyText()}, &shape.Field{Name: "email", Shape: anyText()},
			&shape.Field{Name: "lines", Shape: listOf1(structOf(&shape.Field{Name: "sku", Shape: anyText()}))})
		p := &graph.Presenter{Name: "P", Path: "presenters.P", Schema: schema}
		g := &graph.Graph{Presenters: []*graph.Presenter{p}, Tools: []*graph.Tool{{Name: "p.get", Path: "tools.p.get", Kind: "query", Params: structOf(), Returns: p}}}
		x.set(p, g)
		_, faults := Compile(g, nil)
		var got []string
		for _, f := range faults {
			got = append(got, f.String())
		}
		if strings.Join(got, "\n") != x.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, "\n     "), x.want)
		}
	}
}

// TestUnmasked: a rule that says so sees the hidden value, the others do not.
func TestUnmasked(t *testing.T) {
	p := &graph.Presenter{Name: "P", Schema: structOf(&shape.Field{Name: "email", Shape: anyText()}),
		Redact: []*graph.Redact{{Paths: []graph.Text{txt("email")}, As: "***"}},
		Rules:  []*graph.Rule{{When: ptr("data.email endsWith '@example.com'"), Text: txt("{{ data.email }} is ours"), Unmasked: true}}}
	view := oneView(t, p)
	got := blocksText(t, view, map[string]string{"email": "a@example.com"})
	want := "{\n  \"email\": \"***\"\n}\n---\n<domain_rules>\n- a@example.com is ours\n</domain_rules>"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWords(t *testing.T) {
	g := &graph.Graph{Tools: []*graph.Tool{{Name: "billing.refund", Params: structOf()}, {Name: "billing.refund.all", Params: structOf()}, {Name: "ping", Params: structOf()}}}
	s, _ := Compile(g, nil)
	for in, want := range map[string]string{
		"Use billing.refund.":                       "Use billing_refund.",
		"billing.refund.all, then billing.refund":   "billing_refund_all, then billing_refund",
		"my.billing.refund or billing.refunds":      "my.billing.refund or billing.refunds",
		"{{ billing.refund }} and (billing.refund)": "{{ billing.refund }} and (billing_refund)",
		`{{ "}} billing.refund" }} billing.refund`:  `{{ "}} billing.refund" }} billing_refund`,
		"/billing.refund billing.refund-x ping":     "/billing.refund billing.refund-x ping",
	} {
		if got := s.Words(&graph.Text{S: in}).S; got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	g.Server.Separator = "."
	if s, _ := Compile(g, nil); s.Words(ptr("billing.refund")).S != "billing.refund" || s.Exposed("billing.refund") != "billing.refund" {
		t.Error("a dot is no separator")
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "a.b", "a[*].b", "a.*.b", "a[0].b", `["x-y"]`, "*", "a.*", "**.b", "a..b", "a[", "[*].a", `a["\""].b`, "[00]", "**"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		path, err := parsePath(s)
		if err != nil {
			return
		}
		again, err := parsePath(pathOf(path))
		if err != nil {
			t.Fatalf("%q is written as %q: %v", s, pathOf(path), err)
		}
		if len(again) != len(path) {
			t.Fatalf("%q is written as %q", s, pathOf(path))
		}
		for i := range path {
			if path[i] != again[i] {
				t.Fatalf("%q is written as %q", s, pathOf(path))
			}
		}
	})
}
