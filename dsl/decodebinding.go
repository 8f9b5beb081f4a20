package dsl

import (
	"os"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// The bindings of which each place has exactly one.
var (
	toolBindings = []string{"sql", "http", "steps", "expr", "value"}
	stepBindings = []string{"sql", "http", "expr", "value"}
	undoBindings = []string{"sql", "http"}
)

// binding reads the one binding of a tool, step or undo, and what is made of
// it. It is false if a mistake took the binding away.
func (d *doc) binding(it *item, what string, kinds []string) (graph.Binding, bool) {
	b := graph.Binding{From: it.textOf("from"), Result: d.treeOf(it, "result")}
	kind, ok := d.exactlyOne(it, what, kinds)
	x := it.get(kind)
	if !ok || x == nil {
		return b, false
	}
	switch kind {
	case "sql":
		b.SQL = d.sql(x)
		return b, b.SQL != nil
	case "http":
		b.HTTP = d.request(x)
		return b, b.HTTP != nil
	case "steps":
		b.Steps, ok = d.steps(x)
		return b, ok
	case "expr":
		b.Expr = &x.text
		return b, true
	default:
		b.Value = d.tree(x.node)
		return b, b.Value != nil
	}
}

// steps reads the steps of a tool; false if one of them lost its binding.
func (d *doc) steps(it *item) ([]*graph.Step, bool) {
	if len(it.fields) == 0 {
		if len(it.node.elements()) == 0 {
			d.faults.Add(it.at(), it.path(), "has no step: give it one at least")
		}
		return nil, false
	}
	whole := true
	var l []*graph.Step
	for _, x := range it.fields {
		s := &graph.Step{Name: x.str("name"), At: x.at(), Path: x.path(), When: x.textOf("when"),
			Errors: d.errorRules(x, "errors"), Optional: x.bool("optional"), Each: x.textOf("each")}
		var ok bool
		s.Binding, ok = d.binding(x, "a step", stepBindings)
		whole = whole && ok && !x.isBroken("when") && !x.isBroken("each") && !x.isBroken("name")
		if u := x.get("undo"); u != nil {
			b, ok := d.binding(u, "an undo", undoBindings)
			s.Undo, whole = &b, whole && ok
		}
		l = append(l, s)
	}
	return l, whole && len(l) == len(it.node.elements())
}

// methods are the fields of a request of which it has exactly one.
var methods = []string{"get", "post", "put", "patch", "delete"}

func (d *doc) request(it *item) *graph.Request {
	kind, ok := d.exactlyOne(it, "a request", methods)
	if !ok || it.get(kind) == nil {
		return nil
	}
	r := &graph.Request{At: it.at(), API: it.str("api"), Method: strings.ToUpper(kind), Target: it.get(kind).text,
		Query: d.treeFields(it, "query"), Headers: textFields(it, "headers"), Body: d.treeOf(it, "body"), Form: d.treeFields(it, "form")}
	if p := it.get("pages"); p != nil {
		r.Pages = &graph.Pages{At: p.at(), Next: p.textOr("next"), Param: p.str("param"), Max: int(p.int("max"))}
	}
	return r
}

func (d *doc) sql(it *item) *graph.SQL {
	s := &graph.SQL{At: it.at(), One: it.bool("one"), Args: d.treeFields(it, "args"), Nest: d.nests(it)}
	if db := it.textOf("database"); db != nil && strings.Contains(db.S, "{{") {
		s.Choice = db
	} else if db != nil {
		s.Database = db.S
	}
	kind, ok := d.exactlyOne(it, "a statement", []string{"query", "file"})
	if !ok || it.get(kind) == nil {
		return nil
	}
	if kind == "query" {
		s.Query = it.get(kind).text
	} else if s.Query, ok = d.sqlFile(it.get(kind)); !ok {
		return nil
	}
	for _, c := range it.list("choose") {
		x := graph.Choose{Param: c.name(), At: c.nameAt()}
		for _, p := range c.fields {
			x.Pieces = append(x.Pieces, graph.Piece{Key: p.name(), SQL: p.text})
		}
		s.Choose = append(s.Choose, x)
	}
	return s
}

// sqlFile reads a statement from a file; its places are in that file.
func (d *doc) sqlFile(it *item) (graph.Text, bool) {
	path := d.filePath(it)
	b, err := os.ReadFile(path)
	if err != nil {
		d.faults.Add(it.at(), it.path(), "reading %s: %v", d.shown(path), err)
		return graph.Text{}, false
	}
	t := graph.Text{S: strings.ReplaceAll(string(b), "\r\n", "\n"), At: graph.Place{File: d.shown(path), Line: 1, Col: 1}, Path: it.path()}
	for off, line := 0, 1; ; line++ {
		t.Marks = append(t.Marks, graph.Mark{Off: off, Line: line, Col: 1})
		n := strings.IndexByte(t.S[off:], '\n')
		if n < 0 {
			return t, true
		}
		off += n + 1
	}
}

func (d *doc) nests(it *item) []*graph.Nest {
	var l []*graph.Nest
	for _, x := range it.list("nest") {
		q := x.textOf("query")
		if q == nil {
			continue
		}
		l = append(l, &graph.Nest{Key: x.name(), At: x.nameAt(), Query: *q, By: x.str("by"), One: x.bool("one"), Nest: d.nests(x)})
	}
	return l
}
