package expr_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// spec is the scope of most tests: every kind of type once.
func specScope() *expr.Scope {
	nullable := func(s *shape.Shape) *shape.Shape {
		return &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{{Kind: shape.Null}, s}}
	}
	boolShape := &shape.Shape{Kind: shape.Bool}
	number := &shape.Shape{Kind: shape.Float}
	line := structOf(field("sku", textShape), field("qty", intShape), field("price", number))
	card := structOf(field("type", enum("card")), field("number", textShape))
	bank := structOf(field("type", enum("bank")), field("iban", textShape))
	optional := func(name string, s *shape.Shape) *shape.Field {
		return &shape.Field{Name: name, Shape: s, Optional: true}
	}
	data := structOf(
		field("id", textShape), field("amount_cents", intShape), field("price", number),
		field("status", enum("draft", "approved", "paid", "overdue")), field("open", boolShape),
		optional("note", textShape), field("due", nullable(textShape)),
		field("lines", listOf(line)), field("tags", listOf(textShape)), field("scores", listOf(number)),
		optional("customer", structOf(field("name", textShape), field("email", nullable(textShape)))),
		field("pay", &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{card, bank}}),
		field("extra", &shape.Shape{Kind: shape.Struct, Rest: intShape}), field("raw", nil),
	)
	return (&expr.Scope{}).With("data", data).With("items", listOf(data)).
		With("args", structOf(field("id", textShape), optional("limit", intShape))).
		With("item", nil).With("omitted", intShape)
}

// TestFaults compares whole messages. testdata/faults.txt has an expression
// (`when:` a condition, `text:` a text with holes; ␤ is a line break), below
// it its faults; none if it compiles.
func TestFaults(t *testing.T) {
	for _, c := range cases(t, "testdata/faults.txt") {
		if got := faultsOf(c.in); got != c.out {
			t.Errorf("%s\n got: %s\nwant: %s", c.in, got, c.out)
		}
	}
}

func faultsOf(in string) string {
	in = strings.ReplaceAll(in, "␤", "\n")
	var faults graph.Faults
	if when, ok := strings.CutPrefix(in, "when: "); ok {
		_, faults = expr.Compile(text(when), specScope(), expr.WantBool)
	} else if s, ok := strings.CutPrefix(in, "text: "); ok {
		_, faults = expr.CompileTemplate(text(s), specScope())
	} else {
		_, faults = expr.Compile(text(in), specScope(), expr.WantAny)
	}
	return faults.Error()
}

// pair is a line of a table and the lines below it that are indented.
type pair struct{ in, out string }

func cases(t testing.TB, file string) []pair {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var l []pair
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		switch under, ok := strings.CutPrefix(line, "\t"); {
		case line == "" || strings.HasPrefix(line, "// "):
		case !ok:
			l = append(l, pair{in: line})
		case l[len(l)-1].out == "":
			l[len(l)-1].out = under
		default:
			l[len(l)-1].out += "\n" + under
		}
	}
	if len(l) == 0 {
		t.Fatal(file + " holds no case")
	}
	return l
}
