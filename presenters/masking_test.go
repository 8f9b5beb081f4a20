package presenters

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// maze is a random spec and data in which every field holds a marker of its own.
type maze struct {
	r      *rand.Rand
	n      int
	hidden []string // markers that must not leave
	shown  []string // markers that must
	redact []string // paths that are masked
}

func (m *maze) marker(hide bool) string {
	m.n++
	s := fmt.Sprintf("marker-%04d-x", m.n)
	if hide {
		m.hidden = append(m.hidden, s)
	} else {
		m.shown = append(m.shown, s)
	}
	return s
}

// struct1 makes a struct shape with data: fields that are shown, masked by an
// exact path, hidden because a parent is, or not declared. path is where it
// stands, hide that all below is hidden already.
func (m *maze) struct1(path string, depth int, hide bool) (*shape.Shape, *value.Object) {
	s, o := structOf(), &value.Object{}
	for i := range 3 + m.r.IntN(4) {
		name := fmt.Sprintf("f%d", i)
		at := strings.TrimPrefix(path+"."+name, ".")
		masked := !hide && m.r.IntN(4) == 0
		if masked {
			m.redact = append(m.redact, at)
		}
		f := &shape.Field{Name: name}
		var v any
		switch kind := m.r.IntN(6); {
		case kind == 0 && depth > 0:
			f.Shape, v = m.struct2(at, depth-1, hide || masked)
		case kind == 1 && depth > 0:
			var l []any
			item := at + "[*]"
			redacted := len(m.redact)
			sub, x := m.struct2(item, depth-1, hide || masked)
			l = append(l, x)
			if len(m.redact) == redacted && !hide && !masked {
				l = append(l, x)
			}
			f.Shape, v = listOf1(sub), l
		case kind == 2:
			f.Shape = listOf1(anyText())
			v = []any{m.marker(hide || masked), m.marker(hide || masked)}
		default:
			f.Shape, v = anyText(), m.marker(hide || masked)
		}
		if m.r.IntN(5) == 0 && !masked {
			// Not declared: neither it nor what is masked in it leaves.
			strs(v, func(s string) { m.move(s) })
			o.Set("undeclared"+name, v)
			m.unredact(at)
			continue
		}
		s.Fields = append(s.Fields, f)
		o.Set(name, v)
	}
	return s, o
}

func (m *maze) struct2(path string, depth int, hide bool) (*shape.Shape, any) {
	s, o := m.struct1(path, depth, hide)
	return s, o
}

// move takes a marker from those that are shown to those that are hidden.
func (m *maze) move(s string) {
	for i, x := range m.shown {
		if x == s {
			m.shown = append(m.shown[:i], m.shown[i+1:]...)
			m.hidden = append(m.hidden, s)
			return
		}
	}
}

func (m *maze) unredact(at string) {
	var left []string
	for _, p := range m.redact {
		if p != at && !strings.HasPrefix(p, at+".") && !strings.HasPrefix(p, at+"[") {
			left = append(left, p)
		}
	}
	m.redact = left
}

// spec is a presenter of the maze that shows all that it may: the whole item,
// in UI blocks of every kind and in rules.
func (m *maze) spec(s *shape.Shape) *graph.Graph {
	p := &graph.Presenter{Name: "Maze", Schema: s,
		UI: []*graph.Block{
			{Kind: "json", Content: leaf("{{ data }}"), Title: ptr("{{ data }}")},
			{Kind: "markdown", Content: leaf("{{ data }}")},
			{Kind: "list", Content: leaf("{{ [data] }}")},
			{Kind: "table", Rows: ptr("{{ [data] }}"), Columns: []graph.Column{{Title: "All", Cell: txt("{{ data }}")}}},
		},
		Rules: []*graph.Rule{{Text: txt("all of it: {{ data }}")}},
		Collection: graph.Collection{
			Rules: []*graph.Rule{{Text: txt("all of them: {{ items }}")}},
			UI:    []*graph.Block{{Kind: "json", Content: leaf("{{ items }}")}},
		},
	}
	for i, path := range m.redact {
		r := &graph.Redact{Paths: []graph.Text{txt(path)}, As: "[REDACTED]"}
		switch i % 4 {
		case 1:
			r.Remove = true
		case 2: // fails to evaluate: it masks
			r.When = ptr("args.nothing.here.at.all == 'x'")
		case 3:
			r.When = ptr("true")
		}
		p.Redact = append(p.Redact, r)
	}
	params := structOf(&shape.Field{Name: "token", Shape: anyText(), Secret: true})
	return &graph.Graph{Presenters: []*graph.Presenter{p}, Tools: []*graph.Tool{
		{Name: "maze.json", Kind: "query", Params: params, Returns: p, Structured: true},
		{Name: "maze.toon", Kind: "query", Params: params, Returns: p, Format: "toon"},
	}}
}

// TestMasking puts a marker of its own into every field of random data and
// asserts that no byte of a block, a structured value, the side door or an
// error holds one of a field that is not declared, masked or secret, and that
// every other one is in block 1.
func TestMasking(t *testing.T) {
	for seed := range uint64(300) {
		m := &maze{r: rand.New(rand.NewPCG(seed, 7))}
		s, o := m.struct1("", 3, false)
		set, faults := Compile(m.spec(s), nil)
		for _, f := range faults { // the spec reads everything, which a start would refuse
			if len(m.redact) == 0 || !strings.HasPrefix(f.Message, "this reads all of ") {
				t.Fatalf("seed %d: %v", seed, f)
			}
		}
		before := string(value.AppendJSON(nil, o))
		for _, tool := range []string{"maze.json", "maze.toon"} {
			for _, data := range []any{o, []any{o, o}} {
				m.check(t, seed, set, tool, data)
			}
		}
		if after := string(value.AppendJSON(nil, o)); after != before {
			t.Fatalf("seed %d: masking changed what the binding gave\n%s\n%s", seed, before, after)
		}
		m.checkFaults(t, seed, set, s, o)
	}
}

func (m *maze) check(t *testing.T, seed uint64, set *Set, tool string, data any) {
	t.Helper()
	e := expr.NewEnv()
	e.Set("args", value.Of("token", m.marker(true)))
	withheld := map[string]bool{}
	resp, err := set.View(tool).Present(&Call{Env: e, Total: -1, Withheld: func(v any) {
		strs(v, func(s string) { withheld[s] = true })
	}}, data)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	all := string(resp.AppendResult(nil, true)) + string(value.AppendJSON(nil, resp.Side().Value()))
	for _, b := range resp.Blocks {
		all += string(b.Text)
	}
	for _, s := range m.hidden {
		if strings.Contains(all, s) {
			t.Fatalf("seed %d, %s: %s leaves; masked are %q\n%s", seed, tool, s, m.redact, all)
		}
	}
	for _, s := range m.shown {
		if !strings.Contains(string(resp.Blocks[0].Text), s) {
			t.Fatalf("seed %d, %s: %s is missing in\n%s", seed, tool, s, resp.Blocks[0].Text)
		}
		if withheld[s] {
			t.Fatalf("seed %d: %s is shown and said to be withheld", seed, s)
		}
	}
}

// checkFaults breaks a field and looks at the words of the failure, and sends
// the token to a tool that does not take it.
func (m *maze) checkFaults(t *testing.T, seed uint64, set *Set, s *shape.Shape, o *value.Object) {
	t.Helper()
	if len(s.Fields) == 0 {
		return
	}
	broken := o.Clone()
	broken.Set(s.Fields[0].Name, int64(5))
	_, err := set.View("maze.json").Present(&Call{Env: expr.NewEnv(), Total: -1}, []any{o, broken})
	if err == nil {
		t.Fatalf("seed %d: a broken row passes", seed)
	}
	if strings.Contains(err.Error(), "marker-") {
		t.Fatalf("seed %d: the failure shows a value: %v", seed, err)
	}
	token := m.marker(true)
	params := structOf(
		&shape.Field{Name: "token", Shape: &shape.Shape{Kind: shape.Int}, Secret: true},
		&shape.Field{Name: "auth", Shape: structOf(&shape.Field{Name: "key", Shape: &shape.Shape{Kind: shape.Int}, Secret: true})})
	for _, args := range []*value.Object{
		value.Of("token", token, "auth", value.Of("key", token)),
		value.Of("token", value.Of("a", token), "auth", token),
		value.Of("token", []any{token}, "auth", value.Of("key", []any{token}, "other", token)),
	} {
		_, faults := params.Check(args)
		if text := string(Invalid("a/b", params, faults).Blocks[0].Text); strings.Contains(text, token) {
			t.Fatalf("a secret argument is echoed: %s", text)
		}
	}
}
