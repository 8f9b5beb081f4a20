package expr_test

import (
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func template(t *testing.T, src string) *expr.Template {
	t.Helper()
	tmpl, faults := expr.CompileTemplate(text(src), untyped("data", "items"))
	if faults != nil {
		t.Fatalf("%s: %v", src, faults)
	}
	return tmpl
}

func sampleEnv() *expr.Env {
	e := expr.NewEnv()
	e.Set("data", sampleData())
	e.Set("items", sampleRows())
	return e
}

// TestTemplates compares the value as JSON: a lone hole keeps its type,
// anything else is a text.
func TestTemplates(t *testing.T) {
	for _, c := range []pair{
		{"", `""`},
		{"plain", `"plain"`},
		{"{{ data.id }}", `"INV-3"`},
		{"{{data.amount_cents}}", `1250`},
		{" {{ data.amount_cents }}", `" 1250"`},
		{"{{ data.big }}", `1208925819614629174706176`},
		{"is {{ data.big }}", `"is 1208925819614629174706176"`},
		{"{{ data.price }}/{{ data.rate }}", `"1.50/0.1"`},
		{"{{ data.missing }}", `null`},
		{"[{{ data.missing }}]", `"[]"`},
		{"{{ data.missing }}{{ data.missing }}", `""`},
		{"{{ data.customer }}", `{"name":"Ann","tags":["x","y"]}`},
		{"c: {{ data.customer }}", `"c: {\"name\":\"Ann\",\"tags\":[\"x\",\"y\"]}"`},
		{"{{ items }}", `[{"id":"b","status":"paid","amount":1.50,"doc":{"z":1,"a":[2]}},{"id":"a","status":"open","amount":3,"doc":null},{"id":"c","status":"paid","amount":2.00,"doc":[]}]`},
		{"n: {{ map(items, .amount) }}", `"n: [1.50,3,2.00]"`},
		{"{{ data.open }} {{ not data.open }} {{ 1e21 }}", `"true false 1e+21"`},
		{"{{ '}}' }}", `"}}"`},
		{"{{ \"}}\" }}{{ `}}` }}", `"}}}}"`},
		{`{{ 'it\'s }}' }}!`, `"it's }}!"`},
		{"{{ '{{' }}x}}", `"{{x}}"`},
		{"{{ {a: {b: 1}} }}", `{"a":{"b":1}}`},
		{"{{ {a: {b: 1}}}}", `{"a":{"b":1}}`},
		{"{{{a: 1}}}", `{"a":1}`},
		{"{{ map(items, {let x = .id; x + '}'}) }}", `["b}","a}","c}"]`},
		{"}} {", `"}} {"`},
		{"{ {{ data.id }} }", `"{ INV-3 }"`},
		{"{{ /* }} */ 1 }}", ""}, // a comment does not hide a hole's end
		{"{{ data.id | lower() }}", `"inv-3"`},
		{"{{ let x = data.id; x + x }}", `"INV-3INV-3"`},
		{"ü{{ 'ö' }}", `"üö"`},
		{"\x02env.TOKEN\x03", `"\u0002env.TOKEN\u0003"`},
	} {
		tmpl, faults := expr.CompileTemplate(text(c.in), untyped("data", "items"))
		if c.out == "" {
			if faults == nil {
				t.Errorf("%s compiles", c.in)
			}
			continue
		}
		if faults != nil {
			t.Errorf("%s: %v", c.in, faults)
			continue
		}
		v, err := tmpl.Value(sampleEnv())
		if got := string(value.AppendJSON(nil, v)); got != c.out || err != nil {
			t.Errorf("%s\n got: %s (%v)\nwant: %s", c.in, got, err, c.out)
		}
	}
}

// TestAppendIsSafe: holes go through safe, whatever they hold; the author's
// text does not.
func TestAppendIsSafe(t *testing.T) {
	safe := func(dst []byte, s string) []byte {
		return append(dst, "<"+strings.ToUpper(s)+">"...)
	}
	tmpl := template(t, "a {{ data.status }} b{{ data.missing }} {{ data.price }} {{ data.customer.tags }} {{ data.open }}")
	got, err := tmpl.Append([]byte("> "), sampleEnv(), safe)
	if want := `> a <OVERDUE> b <1.50> <["X","Y"]> <TRUE>`; string(got) != want || err != nil {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

func TestTemplateKinds(t *testing.T) {
	for src, want := range map[string][2]bool{
		"":                        {true, false},
		"plain":                   {true, false},
		"{{ 1 }}":                 {false, true},
		"{{ 1 }} ":                {false, false},
		"{{ data }}{{ data.id }}": {false, false},
	} {
		tmpl := template(t, src)
		if got := [2]bool{tmpl.IsStatic(), tmpl.IsHole()}; got != want {
			t.Errorf("%q: static, hole = %v, want %v", src, got, want)
		}
	}
}

// TestTemplateError: the place is the one inside the hole.
func TestTemplateError(t *testing.T) {
	for _, f := range []func(*expr.Template) error{
		func(x *expr.Template) error { _, err := x.Value(sampleEnv()); return err },
		func(x *expr.Template) error { _, err := x.Append(nil, sampleEnv(), nil); return err },
	} {
		err := f(template(t, "größe {{ data.id }}\n{{ 'ä' + data.nobody.x }}"))
		if want := "s.cue:2:23: data.nobody is nil: where it may be missing write ?.x"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTree(t *testing.T) {
	str := func(s string) *graph.Node { return &graph.Node{Kind: graph.String, Text: *text(s)} }
	root := &graph.Node{Kind: graph.Struct, Fields: []graph.NodeField{
		{Name: "z", Node: str("{{ data.amount_cents }}")},
		{Name: "a", Node: &graph.Node{Kind: graph.List, Items: []*graph.Node{
			str("{{ data.missing }}"), str("no {{ data.missing }}"), {Kind: graph.Const, Const: value.Number("1.50")}, {Kind: graph.Const},
		}}},
		{Name: "m", Node: &graph.Node{Kind: graph.Struct, Fields: []graph.NodeField{{Name: "first", Node: str("{{ first(items) }}")}}}},
		{Name: "e", Node: &graph.Node{Kind: graph.List}},
	}}
	tree, faults := expr.CompileTree(root, untyped("data", "items"))
	if faults != nil {
		t.Fatal(faults)
	}
	v, err := tree.Value(sampleEnv())
	want := `{"z":1250,"a":[null,"no ",1.50,null],"m":{"first":{"id":"b","status":"paid","amount":1.50,"doc":{"z":1,"a":[2]}}},"e":[]}`
	if got := string(value.AppendJSON(nil, v)); got != want || err != nil {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
	again, _ := tree.Value(sampleEnv())
	if again == v {
		t.Error("two evaluations share a struct")
	}
	_, faults = expr.CompileTree(&graph.Node{Kind: graph.List, Items: []*graph.Node{str("{{ a }}"), str("{{ b"), str("ok")}}, nil)
	want = "s.cue:1:4: there is no \"a\" here\ns.cue:1:1: this {{ is not closed: write }}"
	if faults.Error() != want {
		t.Errorf("got  %s\nwant %s", faults.Error(), want)
	}
}
