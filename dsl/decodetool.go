package dsl

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

func (d *doc) tool(it *item) *graph.Tool {
	t := &graph.Tool{Name: it.name(), At: it.nameAt(), Path: it.path(), Kind: it.str("kind"), Title: it.str("title"), Description: it.str("description"),
		Instructions: it.str("instructions"), Tags: it.strings("tags"),
		Deny: d.denials(it), Errors: d.errorRules(it, "errors"),
		Rules: d.rules(it, "rules"), Hints: d.rules(it, "hints"), Suggest: d.suggests(it),
		Select: it.bool("select"), Structured: it.bool("structured"), Format: it.str("format"),
		Invalidates: it.strings("invalidates"), Limit: d.limit(it, "limit"), Timeout: it.duration("timeout")}
	for _, i := range it.list("icons") {
		t.Icons = append(t.Icons, graph.Icon{Src: i.str("src"), MimeType: i.str("mimeType"), Sizes: i.str("sizes"), Theme: i.str("theme")})
	}
	if a := it.get("annotations"); a != nil {
		t.Annotations = graph.Annotations{Destructive: a.boolean("destructive"), Idempotent: a.boolean("idempotent"), OpenWorld: a.boolean("openWorld")}
	}
	if c := it.get("concurrency"); c != nil {
		t.Concurrency = graph.Concurrency{At: c.at(), Max: int(c.int("max")), Queue: int(c.int("queue"))}
	}
	if i := it.get("idempotency"); i != nil {
		t.Idempotency = &graph.Idempotency{At: i.at(), Key: i.textOr("key"), TTL: i.duration("ttl")}
	}
	t.State = d.gate(it.get("state"))
	d.params(t, it)
	var whole bool
	t.Binding, whole = d.binding(it, "a tool", toolBindings)
	t.Broken = t.Broken || !whole
	t.Total = it.textOf("total")
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
