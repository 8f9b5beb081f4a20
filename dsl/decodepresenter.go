package dsl

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

func (d *doc) presenter(it *item, name string) *graph.Presenter {
	p := &graph.Presenter{Name: name, At: it.nameAt(), Path: it.path(), Schema: d.shape(it, "schema"),
		Rules: d.rules(it, "rules"), Hints: d.rules(it, "hints"), Suggest: d.suggests(it), UI: d.blocks(it),
		Limit: d.limit(it, "limit"), Redact: d.redacts(it), Format: it.str("format"), AutoRules: it.bool("autoRules")}
	if p.Schema == nil {
		p.Schema = &shape.Shape{Kind: shape.Any}
	}
	if c := it.get("collection"); c != nil {
		p.Collection = graph.Collection{Rules: d.rules(c, "rules"), Hints: d.rules(c, "hints"), Suggest: d.suggests(c), UI: d.blocks(c)}
	}
	for _, e := range it.list("embed") {
		p.Embed = append(p.Embed, &graph.Embed{At: e.at(), Key: e.name(), Presenter: e.text.S})
	}
	return p
}

func (d *doc) rules(it *item, name string) []*graph.Rule {
	var l []*graph.Rule
	for _, x := range it.list(name) {
		r := &graph.Rule{At: x.at()}
		if x.form.kind == formString {
			r.Text = x.text
		} else {
			t := x.textOf("text")
			if t == nil || x.isBroken("when") {
				continue
			}
			r.When, r.Text, r.Unmasked = x.textOf("when"), *t, x.bool("unmasked")
		}
		l = append(l, r)
	}
	return l
}

func (d *doc) suggests(it *item) []*graph.Suggest {
	var l []*graph.Suggest
	for _, x := range it.list("suggest") {
		reason := x.textOf("reason")
		if reason == nil || x.isBroken("when") || x.isBroken("tool") {
			continue
		}
		l = append(l, &graph.Suggest{At: x.at(), When: x.textOf("when"), Tool: x.str("tool"), Reason: *reason, Unmasked: x.bool("unmasked")})
	}
	return l
}

// blockKinds are the fields of a block of which it has exactly one.
var blockKinds = []string{"echarts", "json", "mermaid", "markdown", "summary", "codeBlock", "list", "table"}

func (d *doc) blocks(it *item) []*graph.Block {
	var l []*graph.Block
	for _, x := range it.list("ui") {
		kind, ok := d.exactlyOne(x, "a block", blockKinds)
		if !ok || x.isBroken("when") {
			continue
		}
		b := &graph.Block{At: x.at(), Path: x.path(), Kind: kind, Title: x.textOf("title"), Width: x.str("width"), When: x.textOf("when"), Unmasked: x.bool("unmasked")}
		if p := x.get("priority"); p != nil {
			b.Priority = &p.num
		}
		if d.blockContent(b, x.get(kind)) {
			l = append(l, b)
		}
	}
	return l
}

// blockContent decodes what a block shows; false if that is broken.
func (d *doc) blockContent(b *graph.Block, it *item) bool {
	if it == nil {
		return false
	}
	switch b.Kind {
	case "table":
		for _, c := range it.list("columns") {
			b.Columns = append(b.Columns, graph.Column{Title: c.name(), Cell: c.text})
		}
		b.Rows = it.textOf("rows")
		return len(b.Columns) > 0
	case "codeBlock":
		text := it.textOf("text")
		b.Lang = it.textOf("lang")
		if text == nil || b.Lang == nil {
			return false
		}
		b.Content = &graph.Node{At: text.At, Path: text.Path, Kind: graph.String, Text: *text}
		return true
	}
	b.Content = d.tree(it.node)
	return b.Content != nil
}

func (d *doc) redacts(it *item) []*graph.Redact {
	var l []*graph.Redact
	for _, x := range it.list("redact") {
		r := &graph.Redact{At: x.at(), As: "[REDACTED]"}
		if x.form.kind == formString {
			r.Paths = []graph.Text{x.text}
			l = append(l, r)
			continue
		}
		for _, p := range x.list("paths") {
			r.Paths = append(r.Paths, p.text)
		}
		for _, p := range x.list("patterns") {
			r.Patterns = append(r.Patterns, p.text)
		}
		if !x.has("paths") && !x.has("patterns") {
			d.faults.Add(x.at(), x.path(), "masks nothing: give it paths, patterns or both")
			continue
		}
		r.When = x.textOf("when")
		if as := x.get("as"); as != nil {
			r.As, r.Remove = as.text.S, as.form.kind == formNull
		}
		l = append(l, r)
	}
	return l
}
