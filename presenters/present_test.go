package presenters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// oneView is the view of a tool that returns the presenter.
func oneView(t *testing.T, p *graph.Presenter, more ...func(*graph.Tool)) *View {
	t.Helper()
	x := &graph.Tool{Name: "p.get", Kind: "query", Params: structOf(&shape.Field{Name: "q", Shape: anyText(), Optional: true}), Returns: p}
	for _, f := range more {
		f(x)
	}
	g := &graph.Graph{Tools: []*graph.Tool{x, {Name: "p.list", Params: structOf()}}}
	if p != nil {
		g.Presenters = []*graph.Presenter{p}
	}
	s, faults := Compile(g, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return s.View("p.get")
}

func blocksText(t *testing.T, v *View, fields map[string]string) string {
	t.Helper()
	o := &value.Object{}
	for k, x := range fields {
		o.Set(k, x)
	}
	return textOf(t, v, &Call{Env: benchEnv(), Total: -1}, o)
}

// textOf gives the texts of all blocks.
func textOf(t *testing.T, v *View, c *Call, data any) string {
	t.Helper()
	resp, err := v.Present(c, data)
	if err != nil {
		t.Fatal(err)
	}
	var l []string
	for _, b := range resp.Blocks {
		l = append(l, string(b.Text)+string(b.Data))
	}
	return strings.Join(l, "\n---\n")
}

func numbers(n int) []any {
	var l []any
	for i := range n {
		l = append(l, value.Of("id", int64(i+1)))
	}
	return l
}

// TestTruncation: what is said of rows that were left out is true.
func TestTruncation(t *testing.T) {
	p := func() *graph.Presenter {
		return &graph.Presenter{Name: "P", Schema: structOf(&shape.Field{Name: "id", Shape: int1()}), Limit: graph.Limit{Rows: 2},
			Collection: graph.Collection{Rules: []*graph.Rule{{Text: txt("{{ len(items) }} of {{ total }}, {{ omitted }} left out")}}}}
	}
	for _, x := range []struct {
		given int
		total int64
		more  bool
		want  string
	}{
		{2, -1, false, "2 of 2, 0 left out"},
		{3, -1, false, "⚠️ Dataset truncated. 2 shown, 1 hidden. Use filters to narrow results.|2 of 3, 1 left out"},
		{3, -1, true, "⚠️ Dataset truncated. 2 shown, more hidden. Use filters to narrow results.|2 of -1, -1 left out"},
		{3, 40, true, "⚠️ Dataset truncated. 2 shown, 38 hidden. Use filters to narrow results.|2 of 40, 38 left out"},
		{2, 2, true, "⚠️ Dataset truncated. 2 shown, more hidden. Use filters to narrow results.|2 of 2, -1 left out"},
		{0, 0, false, "0 of 0, 0 left out"},
	} {
		s := textOf(t, oneView(t, p()), &Call{Env: benchEnv(), Total: x.total, More: x.more}, numbers(x.given))
		var said []string
		for _, l := range strings.Split(s, "\n") {
			if _, after, ok := strings.Cut(l, summaryMark); ok {
				said = append(said, after)
			}
			if after, ok := strings.CutPrefix(l, "- "); ok {
				said = append(said, after)
			}
		}
		if got := strings.Join(said, "|"); got != x.want {
			t.Errorf("%d given of %d, more %t: got %s, want %s", x.given, x.total, x.more, got, x.want)
		}
	}
	v := oneView(t, p(), func(x *graph.Tool) { x.Limit.Rows = 50 })
	if v.RowLimit() != 51 || v.ByteLimit() != 0 {
		t.Errorf("limits %d, %d", v.RowLimit(), v.ByteLimit())
	}
}

// TestByteLimits: an answer is never larger than its limit, and never half a
// JSON document.
func TestByteLimits(t *testing.T) {
	p := &graph.Presenter{Name: "P", Schema: structOf(&shape.Field{Name: "id", Shape: int1()}), Rules: []*graph.Rule{{Text: txt("a rule")}}}
	for _, bytes := range []int64{250, 300, 333, 500, 1000} {
		v := oneView(t, p, func(x *graph.Tool) { x.Limit.Bytes = bytes })
		resp, err := v.Present(&Call{Env: benchEnv(), Total: -1}, numbers(100))
		if err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, b := range resp.Blocks {
			size += int64(len(b.Text))
		}
		l, err := value.Parse(resp.Blocks[0].Text)
		if err != nil || size > bytes {
			t.Fatalf("limit %d: %d bytes, %v", bytes, size, err)
		}
		n := len(l.([]any))
		want := fmt.Sprintf("%d shown, %d hidden.", n, 100-n)
		if n == 0 || !strings.Contains(string(resp.Blocks[1].Text), want) {
			t.Errorf("limit %d: %d rows, no %q in %s", bytes, n, want, resp.Blocks[1].Text)
		}
	}
	v := oneView(t, nil, func(x *graph.Tool) { x.Limit.Bytes = 2000 })
	got := textOf(t, v, &Call{Env: benchEnv(), Total: -1}, value.Of("a", strings.Repeat("x", 3000)))
	if want := "<tool_error code=\"TOO_LARGE\" severity=\"error\">\n<message>[p/get] The answer is larger than 2000 bytes.</message>\n<recovery>Ask for less: narrow the arguments.</recovery>\n</tool_error>"; got != want {
		t.Errorf("got %s", got)
	}
	v = oneView(t, nil, func(x *graph.Tool) { x.Limit.Tokens = 100 })
	if s := textOf(t, v, &Call{Env: benchEnv(), Total: -1}, strings.Repeat("é", 1000)); Tokens([]byte(s)) > 100 || !strings.Contains(s, "truncated at 100 tokens") {
		t.Errorf("%d tokens: %s", Tokens([]byte(s)), s)
	}
	for n, want := range map[int]int64{0: 0, 1: 1, 3: 1, 4: 2, 7: 2, 8: 3} {
		if got := Tokens([]byte(strings.Repeat("é", n))); got != want {
			t.Errorf("%d characters are %d tokens, want %d", n, got, want)
		}
	}
}

// TestToolRules: what a tool adds comes last; what reads the list is about the list.
func TestToolRules(t *testing.T) {
	p := &graph.Presenter{Name: "P", Schema: structOf(&shape.Field{Name: "id", Shape: int1()}),
		Rules: []*graph.Rule{{Text: txt("own")}}, Collection: graph.Collection{Rules: []*graph.Rule{{Text: txt("of the list")}}},
		Suggest: []*graph.Suggest{{Tool: "p.list", Reason: txt("look")}}}
	v := oneView(t, p, func(x *graph.Tool) {
		x.Rules = []*graph.Rule{{When: ptr("args.q == 'a'"), Text: txt("asked for {{ args.q }}")}, {Text: txt("{{ len(items) }} found")}, {Text: txt("own")}}
		x.Hints = []*graph.Rule{{Text: txt("first is {{ data.id }}")}}
		x.Suggest = []*graph.Suggest{{Tool: "p.get", Reason: txt("again")}}
		x.Invalidates = []string{"p.*"}
	})
	env := benchEnv()
	env.Set("args", value.Of("q", "a"))
	seen := func(tool string) bool { return tool != "p.get" }
	got := textOf(t, v, &Call{Env: env, Total: -1, Visible: seen}, numbers(2))
	want := `<cache_invalidation cause="p.get" domains="p.*" />
---
[
  {
    "id": 1
  },
  {
    "id": 2
  }
]
---
<llm_directives>
- first is 1
</llm_directives>
---
<domain_rules>
- own
- of the list
- asked for a
- 2 found
</domain_rules>
---
<action_suggestions>
- p_list: look
</action_suggestions>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = textOf(t, v, &Call{Env: env, Total: -1, Visible: seen}, numbers(1)[0])
	if strings.Contains(got, "found") || strings.Contains(got, "of the list") || !strings.Contains(got, "- asked for a") {
		t.Errorf("an item got\n%s", got)
	}
	if got := textOf(t, v, &Call{Env: env, Total: -1}, nil); got != "<cache_invalidation cause=\"p.get\" domains=\"p.*\" />\n---\nOK" {
		t.Errorf("no result got\n%s", got)
	}
}

// TestContent sends a column as an image and a text as a resource.
func TestContent(t *testing.T) {
	v := oneView(t, nil, func(x *graph.Tool) {
		x.Content = &graph.Content{Kind: "image", Source: txt("picture"), MimeType: txt("image/png")}
	})
	resp, err := v.Present(&Call{Env: benchEnv(), Total: -1}, value.Of("name", "a", "picture", "3q2+7w=="))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(resp.AppendResult(nil, true)), `{"content":[{"type":"text","text":"{\n  \"name\": \"a\"\n}"},{"type":"image","data":"3q2+7w==","mimeType":"image/png"}]}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	resp, err = v.Present(&Call{Env: benchEnv(), Total: -1}, value.Of("name", "a", "picture", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(resp.AppendResult(nil, true)), `{"content":[{"type":"text","text":"{\n  \"name\": \"a\"\n}"}]}`; got != want {
		t.Errorf("without a picture: got %s\nwant %s", got, want)
	}
	_, err = v.Present(&Call{Env: benchEnv(), Total: -1}, value.Of("name", "a"))
	if err == nil || err.Error() != `image content: the answer has no field "picture"` {
		t.Errorf("got %v", err)
	}
	_, err = v.Present(&Call{Env: benchEnv(), Total: -1}, value.Of("picture", "no base64"))
	if err == nil || err.Error() != "image content needs bytes as base64 text: illegal base64 data at input byte 2" {
		t.Errorf("got %v", err)
	}
	v = oneView(t, nil, func(x *graph.Tool) {
		x.Content = &graph.Content{Kind: "resource", Source: txt("{{ data.body }}"), MimeType: txt("text/csv")}
	})
	resp, err = v.Present(&Call{Env: benchEnv(), Total: -1}, value.Of("body", "a,b"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(resp.AppendResult(nil, true)), `{"content":[{"type":"text","text":"{\n  \"body\": \"a,b\"\n}"},{"type":"resource","resource":{"uri":"fusion://p.get","mimeType":"text/csv","text":"a,b"}}]}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestStructured: the output schema is the presenter's after masking, and what
// is sent fits it; revisions 2025-x get lists and scalars wrapped.
func TestStructured(t *testing.T) {
	child := structOf(&shape.Field{Name: "sku", Shape: anyText()}, &shape.Field{Name: "n", Shape: int1()})
	c := &graph.Presenter{Name: "C", Schema: child, Redact: []*graph.Redact{{Paths: []graph.Text{txt("n")}, As: "x"}}}
	p := &graph.Presenter{Name: "P", Schema: structOf(&shape.Field{Name: "id", Shape: int1()}, &shape.Field{Name: "age", Shape: int1()}, &shape.Field{Name: "lines", Shape: listOf1(child)}),
		Embed:  []*graph.Embed{{Key: "lines", Presenter: "C"}},
		Redact: []*graph.Redact{{Paths: []graph.Text{txt("id")}, As: "[REDACTED]"}, {Paths: []graph.Text{txt("age")}, Remove: true}}}
	tool := &graph.Tool{Name: "p.list", Kind: "query", Params: structOf(), Returns: p, Structured: true, Binding: graph.Binding{SQL: &graph.SQL{}}}
	s, faults := Compile(&graph.Graph{Presenters: []*graph.Presenter{c, p}, Tools: []*graph.Tool{tool}}, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	resp, err := s.View("p.list").Present(&Call{Env: benchEnv(), Total: -1}, []any{value.Of("id", int64(7), "age", int64(9), "lines", []any{value.Of("sku", "a", "n", int64(1))})})
	if err != nil {
		t.Fatal(err)
	}
	const list = `[{"id":"[REDACTED]","lines":[{"sku":"a","n":"x"}]}]`
	for legacy, want := range map[bool]string{true: `{"items":` + list + `}`, false: list} {
		if got := string(resp.AppendResult(nil, legacy)); !strings.HasSuffix(got, `,"structuredContent":`+want+`}`) {
			t.Errorf("legacy %t: %s", legacy, got)
		}
	}
	const item = `{"type":"object","properties":{"id":{"anyOf":[{"type":"integer"},{"type":"string"}]},"age":{"type":"integer"},"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"n":{"anyOf":[{"type":"integer"},{"type":"string"}]}},"required":["sku","n"],"additionalProperties":false}}},"required":["id","lines"],"additionalProperties":false}`
	d := s.Definitions(func(string) bool { return true })[0]
	if want := `"outputSchema":{"type":"array","items":` + item + `}}`; !strings.HasSuffix(string(d.Modern), want) {
		t.Errorf("got %s\nwant %s", d.Modern, want)
	}
	if want := `"outputSchema":{"type":"object","properties":{"items":{"type":"array","items":` + item + `}},"required":["items"],"additionalProperties":false}}`; !strings.HasSuffix(string(d.JSON), want) {
		t.Errorf("got %s\nwant %s", d.JSON, want)
	}
}

// TestEmbeds: children of a list of parents show UI for the first one only,
// equal texts once, and say for every parent that rows were cut.
func TestEmbeds(t *testing.T) {
	line := structOf(&shape.Field{Name: "sku", Shape: anyText()})
	c := &graph.Presenter{Name: "L", Schema: line, Limit: graph.Limit{Rows: 1}, Rules: []*graph.Rule{{Text: txt("a line")}, {Text: txt("first {{ data.sku }}")}},
		Collection: graph.Collection{UI: []*graph.Block{{Kind: "list", Content: leaf("{{ map(items, .sku) }}")}}}}
	p := &graph.Presenter{Name: "P", Schema: structOf(&shape.Field{Name: "lines", Shape: listOf1(line)}), Embed: []*graph.Embed{{Key: "lines", Presenter: "L"}}, Rules: []*graph.Rule{{Text: txt("the parent")}}}
	s, faults := Compile(&graph.Graph{Presenters: []*graph.Presenter{c, p}, Tools: []*graph.Tool{{Name: "p.list", Params: structOf(), Returns: p}}}, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	lines := func(skus ...string) any {
		var l []any
		for _, x := range skus {
			l = append(l, value.Of("sku", x, "by", "hidden"))
		}
		return value.Of("lines", l)
	}
	got := textOf(t, s.View("p.list"), &Call{Env: benchEnv(), Total: -1}, []any{lines("a"), lines("b", "c", "d"), lines("a")})
	want := `[
  {
    "lines": [
      {
        "sku": "a"
      }
    ]
  },
  {
    "lines": [
      {
        "sku": "b"
      }
    ]
  },
  {
    "lines": [
      {
        "sku": "a"
      }
    ]
  }
]
---
<ui_passthrough type="markdown">
- a
</ui_passthrough>
---
<domain_rules>
- a line
- first a
</domain_rules>
---
<ui_passthrough type="summary">
📊 **Summary**: ⚠️ Dataset truncated. 1 shown, 2 hidden. Use filters to narrow results.
</ui_passthrough>
---
<domain_rules>
- a line
- first b
</domain_rules>
---
<domain_rules>
- the parent
</domain_rules>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestMaskBelowEmbed: a mask of the parent below an embedded key is applied
// before the child renders, and after the child's schema saw the number.
func TestMaskBelowEmbed(t *testing.T) {
	line := structOf(&shape.Field{Name: "cents", Shape: int1()})
	c := &graph.Presenter{Name: "L", Schema: line, Collection: graph.Collection{UI: []*graph.Block{{Kind: "table", Columns: []graph.Column{{Title: "Cents", Cell: txt("cents")}}}}}}
	p := &graph.Presenter{Name: "P", Embed: []*graph.Embed{{Key: "lines", Presenter: "L"}}, Redact: []*graph.Redact{{Paths: []graph.Text{txt("lines[*].cents")}, As: "[REDACTED]"}}}
	s, faults := Compile(&graph.Graph{Presenters: []*graph.Presenter{c, p}, Tools: []*graph.Tool{{Name: "p.get", Params: structOf(), Returns: p}}}, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := textOf(t, s.View("p.get"), &Call{Env: benchEnv(), Total: -1}, value.Of("lines", []any{value.Of("cents", int64(5))}))
	want := "{\n  \"lines\": [\n    {\n      \"cents\": \"[REDACTED]\"\n    }\n  ]\n}\n---\n<ui_passthrough type=\"markdown\">\n| Cents |\n| --- |\n| [REDACTED] |\n</ui_passthrough>"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTableHeading: a pipe in an author's heading begins no column.
func TestTableHeading(t *testing.T) {
	view := oneView(t, &graph.Presenter{Name: "P", UI: []*graph.Block{{Kind: "table", Rows: ptr(`{{ [{"id": 1}] }}`), Columns: []graph.Column{{Title: `in|out \| <br>`, Cell: txt("id")}}}}})
	want := "{\n  \"id\": \"1\"\n}\n---\n<ui_passthrough type=\"markdown\">\n| in\\|out \\\\\\| <br> |\n| --- |\n| 1 |\n</ui_passthrough>"
	if got := blocksText(t, view, map[string]string{"id": "1"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
