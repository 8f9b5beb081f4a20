package expr_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// paths writes the paths one behind the other: data.lines.*.qty data.id
func paths(reads [][]string) string {
	l := make([]string, len(reads))
	for i, p := range reads {
		l[i] = strings.Join(p, ".")
	}
	return strings.Join(l, " ")
}

func TestReads(t *testing.T) {
	for _, c := range cases(t, "testdata/reads.txt") {
		p, faults := expr.Compile(text(c.in), specScope(), expr.WantAny)
		if faults != nil {
			t.Error(faults)
			continue
		}
		if got := paths(p.Reads()); got != c.out {
			t.Errorf("%s\n got: %s\nwant: %s", c.in, got, c.out)
		}
	}
}

func TestReadsOfTexts(t *testing.T) {
	tmpl, faults := expr.CompileTemplate(text("{{ data.id }}: {{ money(data.amount_cents, data.note) }}, {{ data.id }}"), specScope())
	if faults != nil {
		t.Fatal(faults)
	}
	if got, want := paths(tmpl.Reads()), "data.amount_cents data.id data.note"; got != want {
		t.Errorf("template reads %s, want %s", got, want)
	}
	tree, faults := expr.CompileTree(&graph.Node{Kind: graph.Struct, Fields: []graph.NodeField{
		{Name: "a", Node: &graph.Node{Kind: graph.String, Text: *text("{{ data.customer }}")}},
		{Name: "b", Node: &graph.Node{Kind: graph.List, Items: []*graph.Node{{Kind: graph.String, Text: *text("{{ len(items) }}")}}}},
	}}, specScope())
	if faults != nil {
		t.Fatal(faults)
	}
	if got, want := paths(tree.Reads()), "data.customer.** items"; got != want {
		t.Errorf("tree reads %s, want %s", got, want)
	}
}

// TestNothingUnreadCounts changes in turn every place of the data that an
// expression does not report as read, puts a marker there or takes the field
// away: the result must stay the same.
func TestNothingUnreadCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	scope := randomScope()
	n, tried := 1_000, 0
	if testing.Short() {
		n = 300
	}
	for range n {
		g := &gen{r: r}
		src := g.top()
		p, faults := expr.Compile(text(src), scope, expr.WantAny)
		if faults != nil {
			continue
		}
		seed := r.Uint64()
		data := func() map[string]any { return randomData(rand.New(rand.NewPCG(seed, 5))) }
		before := outcome(p, data())
		for _, place := range places(data()) {
			if reported(p.Reads(), place) {
				continue
			}
			for _, remove := range []bool{false, true} {
				changed := data()
				change(changed, place, remove)
				tried++
				if after := outcome(p, changed); after != before {
					t.Fatalf("%s\nreads %s\nbut a change of %s changes the result\nfrom %s\nto   %s", src, paths(p.Reads()), place, before, after)
				}
			}
		}
	}
	t.Logf("%d changes", tried)
	if tried < 20*n {
		t.Errorf("only %d changes were tried", tried)
	}
}

func outcome(p *expr.Program, data map[string]any) string {
	e := expr.NewEnv()
	for k, v := range data {
		e.Set(k, v)
	}
	v, err := p.Eval(e)
	if err != nil {
		return "fails"
	}
	return string(value.AppendJSON(nil, v))
}

// places gives every place in the data: names, field names and indexes.
func places(data map[string]any) [][]string {
	var out [][]string
	var walk func(at []string, v any)
	walk = func(at []string, v any) {
		out = append(out, at)
		switch v := v.(type) {
		case *value.Object:
			for i := range v.Len() {
				k, x := v.At(i)
				walk(append(at[:len(at):len(at)], k), x)
			}
		case []any:
			for i, x := range v {
				walk(append(at[:len(at):len(at)], strconv.Itoa(i)), x)
			}
		}
	}
	for k, v := range data {
		walk([]string{k}, v)
	}
	return out
}

// reported tells whether a change at the place may change the result: it is
// read, or lies above something that is, or below a "**".
func reported(reads [][]string, place []string) bool {
	for _, r := range reads {
		below := r[len(r)-1] == "**"
		if below {
			r = r[:len(r)-1]
		}
		n := min(len(r), len(place))
		match := below || len(place) <= len(r)
		for i := range n {
			match = match && (r[i] == place[i] || r[i] == "*")
		}
		if match {
			return true
		}
	}
	return false
}

// change puts a marker at the place, or takes the field away; an element of a
// list becomes nil then.
func change(data map[string]any, place []string, remove bool) {
	const marker = "\u2042 marker"
	if len(place) == 1 {
		data[place[0]] = marker
		if remove {
			delete(data, place[0])
		}
		return
	}
	var v any = data[place[0]]
	for i, seg := range place[1:] {
		last := i == len(place)-2
		switch x := v.(type) {
		case *value.Object:
			switch {
			case last && remove:
				x.Delete(seg)
			case last:
				x.Set(seg, marker)
			}
			v, _ = x.Get(seg)
		case []any:
			k, _ := strconv.Atoi(seg)
			switch {
			case last && remove:
				x[k] = nil
			case last:
				x[k] = marker
			}
			v = x[k]
		default:
			panic(fmt.Sprint("no place ", place))
		}
	}
}
