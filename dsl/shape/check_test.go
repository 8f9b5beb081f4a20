package shape

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Shapes for tests, by hand.
func text() *Shape { return &Shape{Kind: String, MaxRunes: -1} }

func whole1() *Shape { return &Shape{Kind: Int, Min: &Bound{Value: "1"}} }

func enumOf(values ...any) *Shape {
	s := &Shape{Kind: Union}
	for _, v := range values {
		s.Alts = append(s.Alts, &Shape{Kind: Const, Const: v})
	}
	return s
}

func orNull(s *Shape) *Shape { return &Shape{Kind: Union, Alts: []*Shape{s, {Kind: Null}}} }

func listOf(s *Shape) *Shape { return &Shape{Kind: List, Items: s, MaxItems: -1} }

func structOf(fields ...*Field) *Shape { return &Shape{Kind: Struct, Fields: fields} }

func taggedUnion() *Shape {
	return &Shape{Kind: Union, Discriminator: "kind", Alts: []*Shape{
		structOf(&Field{Name: "kind", Shape: &Shape{Kind: Const, Const: "a"}}, &Field{Name: "x", Shape: whole1()}),
		structOf(&Field{Name: "kind", Shape: &Shape{Kind: Const, Const: "b"}}, &Field{Name: "y", Shape: text()}),
	}}
}

// order is a struct with a bit of everything.
func order() *Shape {
	line := structOf(
		&Field{Name: "sku", Shape: &Shape{Kind: String, MaxRunes: -1, Patterns: []Pattern{{Re: regexp.MustCompile(`^[A-Z]+-\d+$`)}}}},
		&Field{Name: "quantity", Shape: whole1(), HasDefault: true, Default: int64(1)},
	)
	return structOf(
		&Field{Name: "id", Shape: text()},
		&Field{Name: "status", Shape: enumOf("open", "paid")},
		&Field{Name: "cents", Shape: &Shape{Kind: Int, Min: &Bound{"0", true}, Max: &Bound{Value: "1000000"}}},
		&Field{Name: "rate", Shape: &Shape{Kind: Float, MultipleOf: "0.05"}, Optional: true},
		&Field{Name: "email", Shape: &Shape{Kind: String, MinRunes: 3, MaxRunes: 40, Format: "email"}, Optional: true},
		&Field{Name: "note", Shape: orNull(text()), Optional: true},
		&Field{Name: "due", Shape: &Shape{Kind: String, MaxRunes: -1, Format: "date"}},
		&Field{Name: "paid", Shape: &Shape{Kind: Bool}, HasDefault: true, Default: false},
		&Field{Name: "token", Shape: &Shape{Kind: String, MaxRunes: 8}, Optional: true, Secret: true},
		&Field{Name: "lines", Shape: listOf(line), Optional: true},
	)
}

func parse(t testing.TB, s string) any {
	t.Helper()
	v, err := value.Parse([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

// line is a fault on one line, with all that it says.
func (f Fault) line() string {
	var b strings.Builder
	for i, p := range f.Path {
		if i > 0 {
			b.WriteByte('.')
		}
		fmt.Fprint(&b, p)
	}
	fmt.Fprintf(&b, ": %s", f.Code)
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		x := v.Field(i)
		null := name == "Got" && !f.Missing && f.Keys == nil && f.Code != TooDeep
		if (!x.IsZero() || null) && name != "Path" && name != "Code" && name != "Alts" {
			fmt.Fprintf(&b, " %s=%s", name, value.AppendJSON(nil, plain(x.Interface())))
		}
	}
	for _, a := range f.Alts {
		b.WriteString(" (" + lines(a, " / ") + ")")
	}
	return b.String()
}

func plain(v any) any {
	if l, ok := v.([]string); ok {
		b, _ := json.Marshal(l)
		v, _ = value.Parse(b)
	}
	return v
}

func lines(l []Fault, sep string) string {
	s := make([]string, len(l))
	for i, f := range l {
		s[i] = f.line()
	}
	return strings.Join(s, sep)
}

// outcome is the value, or the faults, a line each.
func outcome(v any, faults []Fault) string {
	if len(faults) > 0 {
		return lines(faults, "\n")
	}
	return string(value.AppendJSON(nil, v))
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		s              *Shape
	}{
		{"defaults are filled, order is the shape's", `{"due":"2026-02-28","cents":7.0,"lines":[{"sku":"A-1"}],"status":"open","id":"x"}`,
			`{"id":"x","status":"open","cents":7,"due":"2026-02-28","paid":false,"lines":[{"sku":"A-1","quantity":1}]}`, order()},
		{"null of an optional field counts as left out, unless it takes null", `{"id":"x","status":"open","cents":1,"due":"2026-02-28","rate":null,"note":null}`,
			`{"id":"x","status":"open","cents":1,"note":null,"due":"2026-02-28","paid":false}`, order()},
		{"all faults", `{"id":5,"status":"x","cents":0,"rate":0.12,"email":"me","note":1,"due":"2026-02-29","paid":null,"token":"0123456789","lines":[{"sku":"a","quantity":0},7],"statsu":1,"other":2}`,
			`id: invalid_type Expected="string" Got=5
status: invalid_value Values=["open","paid"] Got="x"
cents: too_small Origin="number" Limit="0" Got=0
rate: not_multiple_of Limit="0.05" Got=0.12
email: too_small Origin="string" Limit="3" Inclusive=true Got="me"
email: invalid_format Format="email" Got="me"
note: invalid_type Expected="string" Got=1
due: invalid_format Format="date" Got="2026-02-29"
paid: invalid_type Expected="boolean" Got=null
token: too_big Origin="string" Limit="8" Inclusive=true Got="0123456789" Secret=true
lines.0.sku: invalid_format Format="regex" Pattern="^[A-Z]+-\\d+$" Got="a"
lines.0.quantity: too_small Origin="number" Limit="1" Inclusive=true Got=0
lines.1: invalid_type Expected="object" Got=7
: unrecognized_keys Keys=["statsu","other"] Near=["status",""]`, order()},
		{"missing", `{}`, `id: invalid_type Expected="string" Missing=true
status: invalid_value Missing=true Values=["open","paid"]
cents: invalid_type Expected="number" Missing=true
due: invalid_type Expected="string" Missing=true`, order()},
		{"a number that is not whole", `1.5`, `: invalid_type Expected="int" Got=1.5`, whole1()},
		{"a number out of all range", `1e999`, `: invalid_type Expected="number" Got=1e999`, whole1()},
		{"exact", `9223372036854775808`, `9223372036854775808`, whole1()},
		{"exact bound", `0.1`, `: too_big Origin="number" Limit="0.1" Got=0.1`, &Shape{Kind: Float, Max: &Bound{"0.1", true}}},
		{"not", `3.0`, `: forbidden_value Values=[1,3] Got=3`, &Shape{Kind: Int, Not: []any{int64(1), int64(3)}}},
		{"not, pattern not", `"ab"`, `: invalid_format Format="not_regex" Pattern="b$" Got="ab"
: forbidden_value Values=["ab"] Got="ab"`,
			&Shape{Kind: String, MaxRunes: -1, Not: []any{"ab"}, Patterns: []Pattern{{regexp.MustCompile("b$"), true}}}},
		{"layout", `"25:00"`, `: invalid_format Format="layout" Pattern="15:04" Got="25:00"`, &Shape{Kind: String, MaxRunes: -1, Format: LayoutFormat("15:04")}},
		{"tagged", `{"kind":"b","y":1}`, `y: invalid_type Expected="string" Got=1`, taggedUnion()},
		{"unknown tag", `{"kind":"c"}`, `kind: invalid_value Values=["a","b"] Got="c"`, taggedUnion()},
		{"no tag", `{}`, `kind: invalid_value Missing=true Values=["a","b"]`, taggedUnion()},
		{"no struct", `"a"`, `: invalid_type Expected="object" Got="a"`, taggedUnion()},
		{"union, nothing fits", `true`, `: invalid_union Got=true (: invalid_type Expected="number" Got=true) (: invalid_type Expected="string" Got=true)`,
			&Shape{Kind: Union, Alts: []*Shape{whole1(), text()}}},
		{"union, one only just does not", `0`, `: too_small Origin="number" Limit="1" Inclusive=true Got=0`,
			&Shape{Kind: Union, Alts: []*Shape{whole1(), text()}}},
		{"tuple too short", `["a"]`, `: too_small Origin="array" Limit="2" Inclusive=true Got=["a"]`,
			&Shape{Kind: List, Prefix: []*Shape{text(), whole1()}, MinItems: 2, MaxItems: 2}},
		{"tuple", `["a",0]`, `1: too_small Origin="number" Limit="1" Inclusive=true Got=0`,
			&Shape{Kind: List, Prefix: []*Shape{text(), whole1()}, MinItems: 2, MaxItems: 2}},
		{"unique", `[1,2,1.0]`, `: not_unique Got=[1,2,1]`, &Shape{Kind: List, MaxItems: -1, Unique: true}},
		{"patterns and rest", `{"x-a":1,"b":"t"}`, `x-a: invalid_type Expected="string" Got=1
b: invalid_type Expected="number" Got="t"`,
			&Shape{Kind: Struct, KeyPatterns: []PatternField{{regexp.MustCompile("^x-"), text()}}, Rest: whole1()}},
		{"0 is no bool on the way in", `0`, `: invalid_type Expected="boolean" Got=0`, &Shape{Kind: Bool}},
		{"text is no struct on the way in", `"{}"`, `: invalid_type Expected="object" Got="{}"`, structOf()},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := parse(t, c.in)
			if got := outcome(c.s.Check(in)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if after := string(value.AppendJSON(nil, in)); after != string(value.AppendJSON(nil, parse(t, c.in))) {
				t.Errorf("Check changed its argument to %s", after)
			}
		})
	}
}

func TestStrip(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		s              *Shape
	}{
		{"undeclared fields are dropped, at every depth", `{"password":"p","id":"x","status":"paid","cents":1,"due":"2026-01-01","lines":[{"cost":3,"sku":"A-1","quantity":2}]}`,
			`{"id":"x","status":"paid","cents":1,"due":"2026-01-01","paid":false,"lines":[{"sku":"A-1","quantity":2}]}`, order()},
		{"NULL: left out where ?, shown where null", `{"id":"x","status":"paid","cents":1,"rate":null,"note":null,"due":"2026-01-01"}`,
			`{"id":"x","status":"paid","cents":1,"note":null,"due":"2026-01-01","paid":false}`, order()},
		{"NULL elsewhere", `{"id":null,"status":null,"cents":null,"due":"2026-01-01","paid":null}`,
			"id: invalid_type Expected=\"string\" Got=null\nstatus: invalid_value Values=[\"open\",\"paid\"] Got=null\ncents: invalid_type Expected=\"number\" Got=null\npaid: invalid_type Expected=\"boolean\" Got=null", order()},
		{"0 and 1 of SQLite", `[0,1,true]`, `[false,true,true]`, listOf(&Shape{Kind: Bool})},
		{"but not 2", `2`, `: invalid_type Expected="boolean" Got=2`, &Shape{Kind: Bool}},
		{"1 for a constant", `{"on":1}`, `{"on":true}`, structOf(&Field{Name: "on", Shape: &Shape{Kind: Const, Const: true}})},
		{"a union takes 1 as a number before it is a bool", `1`, `1`, &Shape{Kind: Union, Alts: []*Shape{{Kind: Bool}, {Kind: Int}}}},
		{"and as a bool if nothing else fits", `1`, `true`, &Shape{Kind: Union, Alts: []*Shape{{Kind: Bool}, text()}}},
		{"JSON text of SQLite", `{"l":"[\"a\",\"b\"]","o":"{\"id\":1,\"secret\":2}"}`, `{"l":["a","b"],"o":{"id":1}}`,
			structOf(&Field{Name: "l", Shape: listOf(text())}, &Field{Name: "o", Shape: orNull(structOf(&Field{Name: "id", Shape: whole1()}))})},
		{"JSON text of a tagged union", `"{\"kind\":\"b\",\"y\":\"t\",\"z\":1}"`, `{"kind":"b","y":"t"}`, taggedUnion()},
		{"text that is no JSON", `"{"`, `: invalid_type Expected="object" Got="{"`, structOf()},
		{"the alternative that loses least", `{"a":1,"b":"t"}`, `{"a":1,"b":"t"}`, &Shape{Kind: Union, Alts: []*Shape{
			structOf(&Field{Name: "a", Shape: whole1()}),
			structOf(&Field{Name: "a", Shape: whole1()}, &Field{Name: "b", Shape: text()})}}},
		{"an open struct keeps the rest behind", `{"x":1,"id":"a"}`, `{"id":"a","x":1}`, &Shape{Kind: Struct, Rest: &Shape{}, Fields: []*Field{{Name: "id", Shape: text()}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outcome(c.s.Strip(parse(t, c.in))); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestDepthAndSize(t *testing.T) {
	node := structOf(&Field{Name: "name", Shape: text(), Optional: true})
	node.Name = "Node"
	node.Fields = append(node.Fields, &Field{Name: "kids", Shape: listOf(node), Optional: true})
	var deep any = value.Of()
	for range maxDepth {
		deep = value.Of("kids", []any{deep})
	}
	_, faults := node.Check(deep)
	if len(faults) != 1 || faults[0].Code != TooDeep || len(faults[0].Path) != maxDepth {
		t.Errorf("a value nested too deeply: %s", lines(faults, "\n"))
	}

	// Each level is tried in every alternative: the budget ends it.
	var knot Shape
	knot = Shape{Kind: Union, Alts: []*Shape{
		structOf(&Field{Name: "l", Shape: &knot, Optional: true}, &Field{Name: "x", Shape: text()}),
		structOf(&Field{Name: "l", Shape: &knot, Optional: true}, &Field{Name: "y", Shape: text()}),
	}}
	deep = value.Of()
	for range 100 {
		deep = value.Of("l", deep)
	}
	if _, faults = knot.Check(deep); len(faults) == 0 {
		t.Error("a value that fits no alternative was taken")
	}

	many := make([]any, 100_000)
	if _, faults = listOf(text()).Check(many); len(faults) != MaxFaults {
		t.Errorf("%d faults of a list without end, want %d", len(faults), MaxFaults)
	}
}
