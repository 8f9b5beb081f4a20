package dsl

import (
	"fmt"
	"os"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// bindings are the fields of a tool of which it has exactly one.
var bindings = []string{"sql", "expr", "value"}

func (d *doc) tool(it *item) *graph.Tool {
	t := &graph.Tool{Name: it.name(), At: it.nameAt(), Path: it.path(), Kind: it.str("kind"), Title: it.str("title"), Description: it.str("description"),
		Instructions: it.str("instructions"), Tags: it.strings("tags"),
		Binding: graph.Binding{From: it.textOf("from"), Result: d.treeOf(it, "result"), Total: it.textOf("total")}, Errors: d.errorRules(it, "errors"),
		Rules: d.rules(it, "rules"), Hints: d.rules(it, "hints"), Suggest: d.suggests(it),
		Select: it.bool("select"), Structured: it.bool("structured"), Format: it.str("format"),
		Invalidates: it.strings("invalidates"), Limit: d.limit(it, "limit"), Timeout: it.duration("timeout")}
	for _, i := range it.list("icons") {
		t.Icons = append(t.Icons, graph.Icon{Src: i.str("src"), MimeType: i.str("mimeType"), Sizes: i.str("sizes"), Theme: i.str("theme")})
	}
	if a := it.get("annotations"); a != nil {
		t.Annotations = graph.Annotations{Destructive: a.boolean("destructive"), Idempotent: a.boolean("idempotent"), OpenWorld: a.boolean("openWorld")}
	}
	d.params(t, it)
	d.binding(t, it)
	d.content(t, it)
	if r := it.get("returns"); r != nil && r.form.kind == formStruct {
		t.Returns = d.presenter(r, t.Name)
	}
	return t
}

// params compiles the tool's own parameters; those of its group are merged in
// when names are resolved.
func (d *doc) params(t *graph.Tool, it *item) {
	t.Params = &shape.Shape{Kind: shape.Struct}
	if it.isBroken("params") {
		t.Broken = true
		return
	}
	p := it.get("params")
	if p == nil {
		return
	}
	s, faults := d.compile(p.node)
	switch {
	case s == nil || faults.Fatal():
		t.Broken = true
	case s.Kind != shape.Struct:
		d.faults.Add(p.at(), p.path(), "must be a struct: one field for each parameter")
		t.Broken = true
	case s.Rest != nil || len(s.KeyPatterns) > 0:
		d.faults.Add(p.at(), p.path(), "must name every parameter: leave out ... and [string]")
		t.Broken = true
	default:
		t.Params = s
	}
}

func (d *doc) binding(t *graph.Tool, it *item) {
	kind, ok := d.exactlyOne(it, "a tool", bindings)
	if !ok {
		t.Broken = true
		return
	}
	switch b := it.get(kind); {
	case b == nil:
		t.Broken = true
	case kind == "sql":
		t.SQL = d.sql(b)
		t.Broken = t.Broken || t.SQL == nil
	case kind == "expr":
		t.Expr = &b.text
	default:
		t.Value = d.tree(b.node)
		t.Broken = t.Broken || t.Value == nil
	}
}

// exactlyOne finds the one of several fields that a struct has; none and
// several are told.
func (d *doc) exactlyOne(it *item, what string, names []string) (string, bool) {
	var have []string
	for _, n := range names {
		if it.has(n) {
			have = append(have, n)
		}
	}
	at := it.nameAt()
	if it.name() == "" {
		at = it.at()
	}
	switch {
	case len(have) == 1:
		return have[0], true
	case len(have) > 1:
		d.faults.Add(at, it.path(), "has %s: %s has exactly one of them", join(have, "and"), what)
	case !d.misspelt(it, names):
		d.faults.Add(at, it.path(), "needs exactly one of %s", join(names, "or"))
	}
	return "", false
}

// misspelt tells whether a field that is not known looks like one of the names.
func (d *doc) misspelt(it *item, names []string) bool {
	fields, _ := it.node.fields()
	for _, f := range fields {
		if it.form.byName[f.name] == nil {
			near := didYouMean(f.name, it.form.names())
			for _, n := range names {
				if near == didYouMean(n+"?", []string{n}) {
					return true
				}
			}
		}
	}
	return false
}

// join makes "a, b and c" of names.
func join(names []string, last string) string {
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return fmt.Sprintf("%s %s %s", strings.Join(names[:n-1], ", "), last, names[n-1])
}

func (d *doc) sql(it *item) *graph.SQL {
	s := &graph.SQL{At: it.at(), Database: it.str("database"), One: it.bool("one"), Args: d.treeFields(it, "args"), Nest: d.nests(it)}
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

func (d *doc) content(t *graph.Tool, it *item) {
	c := it.get("content")
	if c == nil {
		return
	}
	kind, ok := d.exactlyOne(c, "content", []string{"image", "audio", "resource"})
	mime := c.textOf("mimeType")
	if !ok || c.get(kind) == nil || mime == nil {
		return
	}
	t.Content = &graph.Content{At: c.at(), Kind: kind, Source: c.get(kind).text, MimeType: *mime}
}
