package shape

import (
	"regexp"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// fuzzShape has every kind and a knot.
func fuzzShape() *Shape {
	node := structOf(&Field{Name: "name", Shape: text()})
	node.Name = "Node"
	node.Fields = append(node.Fields, &Field{Name: "kids", Shape: listOf(node), Optional: true})
	s := order()
	s.Fields = append(s.Fields,
		&Field{Name: "node", Shape: orNull(node), Optional: true},
		&Field{Name: "tagged", Shape: taggedUnion(), Optional: true},
		&Field{Name: "untagged", Optional: true, Shape: &Shape{Kind: Union, Alts: []*Shape{
			structOf(&Field{Name: "a", Shape: whole1()}), structOf(&Field{Name: "b", Shape: node}), listOf(whole1()), text()}}},
		&Field{Name: "tuple", Optional: true, Shape: &Shape{Kind: List, Prefix: []*Shape{text(), {}}, MinItems: 1, MaxItems: 3, Unique: true}},
		&Field{Name: "keys", Optional: true, Shape: &Shape{Kind: Struct, KeyPatterns: []PatternField{{regexp.MustCompile("^x"), text()}}}},
		&Field{Name: "map", Optional: true, Shape: &Shape{Kind: Struct, Rest: &Shape{Kind: Float, MultipleOf: "0.5", Not: []any{int64(3)}}}},
		&Field{Name: "any", Optional: true, Shape: &Shape{}},
	)
	return s
}

// FuzzCheckAndStrip: neither panics; what Check takes, Strip takes, too; what
// either gives passes Check unchanged, so that Strip never lets an undeclared
// key through.
func FuzzCheckAndStrip(f *testing.F) {
	for _, s := range []string{
		`{"due":"2026-02-28","cents":7.0,"lines":[{"sku":"A-1"}],"status":"open","id":"x"}`,
		`{"id":"x","status":"paid","cents":1,"due":"2026-01-01","password":"p","paid":1,"node":{"name":"a","secret":1,"kids":[{"name":"b"}]},"tagged":{"kind":"a","x":2,"y":3}}`,
		`{"id":"x","status":"paid","cents":1,"due":"2026-01-01","untagged":{"b":{"name":"n","s":1},"c":2},"tuple":["a",{"k":1}],"keys":{"x1":"t","y":1},"map":{"a":1.5,"b":3},"any":{"z":[null]}}`,
		`{"id":"x","status":"paid","cents":1,"due":"2026-01-01","lines":"[{\"sku\":\"A-1\",\"secret\":1}]","untagged":"{\"a\":1,\"s\":2}"}`,
		`[]`, `null`, `1e999`, `{"id":"x","id":5}`, `{"cents":123456789012345678901234567890.5}`,
	} {
		f.Add(s)
	}
	s := fuzzShape()
	f.Fuzz(func(t *testing.T, doc string) {
		v, err := value.Parse([]byte(doc))
		if err != nil {
			return
		}
		before := string(value.AppendJSON(nil, v))
		checked, faults := s.Check(v)
		stripped, stripFaults := s.Strip(v)
		if after := string(value.AppendJSON(nil, v)); after != before {
			t.Fatalf("the value was changed to %s", after)
		}
		if len(faults) == 0 {
			again(t, s, "Check", checked)
			if len(stripFaults) > 0 {
				t.Errorf("Check takes %s, Strip does not: %s", doc, lines(stripFaults, "\n"))
			} else if a, b := outcome(checked, nil), outcome(stripped, nil); a != b {
				t.Errorf("Check gives %s, Strip %s", a, b)
			}
		}
		if len(stripFaults) == 0 {
			again(t, s, "Strip", stripped)
		}
	})
}

func again(t *testing.T, s *Shape, what string, v any) {
	t.Helper()
	twice, faults := s.Check(v)
	if len(faults) > 0 {
		t.Errorf("%s gives %s, which does not fit: %s", what, value.AppendJSON(nil, v), lines(faults, "\n"))
		return
	}
	if a, b := outcome(v, nil), outcome(twice, nil); a != b {
		t.Errorf("%s gives %s, checked again %s", what, a, b)
	}
}

func BenchmarkCheck(b *testing.B) {
	s := order()
	v := parse(b, `{"id":"x","status":"paid","cents":129900,"rate":0.25,"email":"ada@example.com","note":"soon","due":"2026-03-01","paid":true,"token":"t","lines":[]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, faults := s.Check(v); len(faults) > 0 {
			b.Fatal(lines(faults, "\n"))
		}
	}
}
