package presenters

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// compiler makes the plans of one spec.
type compiler struct {
	g      *graph.Graph
	base   *expr.Scope  // ctx and env
	state  *shape.Shape // of the name state; nil: there are no machines
	names  *names
	plans  map[*graph.Presenter]*plan
	open   []*graph.Presenter // those being compiled, to find cycles
	reads  [][]string         // what the texts of the current rule or block read
	gates  mentions           // what those of the current presenter or tool mention
	faults graph.Faults
}

// Compile plans every presenter and every tool's view. ctx is the type of the
// name ctx. Faults have their places.
func Compile(g *graph.Graph, ctx *shape.Shape) (*Set, graph.Faults) {
	c := &compiler{
		g:     g,
		base:  new(expr.Scope).With("ctx", ctx).With("env", g.EnvShape()),
		state: stateShape(g),
		names: newNames(g),
		plans: make(map[*graph.Presenter]*plan),
	}
	for _, p := range g.Presenters {
		c.plan(p)
	}
	s := &Set{g: g, names: c.names, views: make(map[string]*View, len(g.Tools)),
		byWire: make(map[string]string, len(g.Tools)), byGroup: map[string]*actionGroup{}}
	for _, t := range g.Tools {
		s.views[t.Name] = c.view(t)
	}
	c.define(s)
	return s, c.faults
}

// scope is what the texts of one place see.
type scope struct {
	*expr.Scope
	masks []maskPath   // of the data that the names stand for
	row   *shape.Shape // type of an item
	// item, list: the names of an item, those of a list.
	item, list bool
}

// plan compiles a presenter, each one once.
func (c *compiler) plan(p *graph.Presenter) *plan {
	if done, ok := c.plans[p]; ok {
		return done
	}
	if slices.Contains(c.open, p) {
		return nil // the embed that closes the cycle says so
	}
	c.open = append(c.open, p)
	above := c.gates
	c.gates = mentions{}
	defer func() { c.open, c.gates = c.open[:len(c.open)-1], above }()
	out := &plan{name: p.Name, schema: c.described(p.Schema, map[*shape.Shape]*shape.Shape{}), toon: p.Format == "toon"}
	c.embeds(out, p)
	out.masks = c.masks(p)
	out.hidden = hiddenPaths(out)
	if p.AutoRules && p.Schema != nil {
		for _, f := range out.schema.Fields {
			if f.Description != "" {
				out.auto = append(out.auto, f.Name+": "+f.Description)
			}
		}
	}
	item := c.itemScope(out)
	out.rules, out.hints = c.rules(p.Rules, item), c.rules(p.Hints, item)
	out.suggest = c.suggestions(p.Suggest, item)
	out.ui = c.blocks(p.UI, item)
	items := c.listScope(out)
	out.coll.rules, out.coll.hints = c.rules(p.Collection.Rules, items), c.rules(p.Collection.Hints, items)
	out.coll.suggest = c.suggestions(p.Collection.Suggest, items)
	out.coll.ui = c.blocks(p.Collection.UI, items)
	out.limit = c.limit(p.Limit, items)
	out.gates = c.gates
	if out.embeds == nil && out.simpleMasks() {
		out.rows = &rowCache{}
	}
	c.plans[p] = out
	return out
}

func (c *compiler) itemScope(p *plan) scope {
	return scope{Scope: c.withState(c.base.With("data", p.schema)), masks: p.hidden, row: p.schema, item: true}
}

func (c *compiler) listScope(p *plan) scope {
	s := c.base.With("items", listShape(p.schema)).With("omitted", intShape).With("total", intShape)
	return scope{Scope: c.withState(s), masks: p.hidden, row: p.schema, list: true}
}

var intShape = &shape.Shape{Kind: shape.Int}

// listShape is the type of a list of items.
func listShape(item *shape.Shape) *shape.Shape {
	return &shape.Shape{Kind: shape.List, Items: item, MaxItems: -1}
}

func (c *compiler) embeds(out *plan, p *graph.Presenter) {
	for _, e := range p.Embed {
		path := p.Path + ".embed." + e.Key
		target := c.g.Presenter(e.Presenter)
		if target == nil {
			continue // the spec's own check names it
		}
		var declared *shape.Shape
		if p.Schema != nil && p.Schema.Kind == shape.Struct {
			f := p.Schema.Field(e.Key)
			if f == nil && p.Schema.Rest == nil {
				c.faults.Add(e.At, path, "the schema of %s does not declare %q, so it would be stripped before it could be embedded: declare it there", p.Name, e.Key)
				continue
			}
			if f != nil {
				declared = f.Shape
			}
		}
		if i := slices.Index(c.open, target); i >= 0 {
			var round []string
			for _, x := range c.open[i:] {
				round = append(round, x.Name)
			}
			c.faults.Add(e.At, path, "presenters embed each other in a circle: %s -> %s", strings.Join(round, " -> "), target.Name)
			continue
		}
		if child := c.plan(target); child != nil {
			c.gates.join(child.gates)
			out.embeds = append(out.embeds, embed{key: e.Key, plan: child, declared: declaredAlready(declared, child)})
		}
	}
}

// declaredAlready tells whether the parent's schema says of the key what the
// child and all that is embedded in it say.
func declaredAlready(s *shape.Shape, child *plan) bool {
	if child.schema == nil {
		return child.embeds == nil
	}
	if s != nil && s.Kind == shape.List && s.Items != nil {
		s = s.Items
	}
	if s == nil || !equalShape(s, child.schema, 0) {
		return false
	}
	for _, e := range child.embeds {
		if !e.declared {
			return false
		}
	}
	return true
}

func (c *compiler) rules(l []*graph.Rule, s scope) []rule {
	var out []rule
	for _, r := range l {
		out = append(out, c.rule(r.When, &r.Text, r.Unmasked, s))
	}
	return out
}

// rule compiles a condition and a text.
func (c *compiler) rule(when, text *graph.Text, unmasked bool, s scope) rule {
	out := rule{unmasked: unmasked, list: s.list}
	c.reads = nil
	if when != nil {
		if p := c.cond(when, unmasked, s); p != nil {
			out.when = p
		}
	}
	if t := c.text(text, unmasked, s); t != nil {
		if t.IsStatic() {
			b, _ := t.Append(nil, nil, nil)
			out.static = string(b)
		} else {
			out.text = t
		}
	}
	out.perItem, out.whole = readsName(c.reads, "data"), readsWhole(c.reads)
	out.always = when == nil && !out.perItem
	if s.item && s.list { // a tool's own
		out.list = readsName(c.reads, "items", "omitted", "total")
	}
	return out
}

func (c *compiler) suggestions(l []*graph.Suggest, s scope) []suggestion {
	var out []suggestion
	for _, x := range l {
		r := c.rule(x.When, &x.Reason, x.Unmasked, s)
		r.always = false // never for an empty list
		out = append(out, suggestion{rule: r, tool: x.Tool, exposed: c.names.of(x.Tool)})
		c.gates.tools = append(c.gates.tools, x.Tool)
	}
	return out
}

func (c *compiler) cond(t *graph.Text, unmasked bool, s scope) *expr.Program {
	p, f := expr.Compile(t, s.Scope, expr.WantBool)
	c.faults = append(c.faults, f...)
	if p != nil {
		c.note(t, p.Reads(), unmasked, s)
	}
	return p
}

// note collects what a text reads, and complains about what may be masked.
func (c *compiler) note(t *graph.Text, reads [][]string, unmasked bool, s scope) {
	c.reads = append(c.reads, reads...)
	c.gates.note(reads)
	if !unmasked {
		c.faults = append(c.faults, maskedReads(t, reads, s.masks)...)
	}
}

// noteSent is note for words that leave; a condition may read a secret.
func (c *compiler) noteSent(t *graph.Text, reads [][]string, unmasked bool, s scope) {
	c.note(t, reads, unmasked, s)
	if !unmasked {
		c.faults = append(c.faults, SecretReads(t, reads, s.Scope, LeaveOutOrInsist)...)
	}
}

func (c *compiler) text(t *graph.Text, unmasked bool, s scope) *expr.Template {
	p, f := expr.CompileTemplate(c.names.template(t), s.Scope)
	c.faults = append(c.faults, f...)
	if p != nil {
		c.noteSent(t, p.Reads(), unmasked, s)
	}
	return p
}

func (c *compiler) tree(n *graph.Node, unmasked bool, s scope) *expr.Tree {
	p, f := expr.CompileTree(n, s.Scope)
	c.noteTree(n, p, f, unmasked, s)
	return p
}

// listTree compiles a tree that must give a list and tells the type of its
// elements, nil if it is not known.
func (c *compiler) listTree(n *graph.Node, unmasked bool, s scope) (*expr.Tree, *shape.Shape) {
	p, elem, f := expr.CompileList(n, s.Scope)
	c.noteTree(n, p, f, unmasked, s)
	return p, elem
}

func (c *compiler) noteTree(n *graph.Node, p *expr.Tree, f graph.Faults, unmasked bool, s scope) {
	c.faults = append(c.faults, f...)
	if p != nil {
		c.noteSent(&graph.Text{At: n.At, Path: n.Path}, p.Reads(), unmasked, s)
	}
}

func readsName(reads [][]string, names ...string) bool {
	for _, r := range reads {
		if len(r) > 0 && slices.Contains(names, r[0]) {
			return true
		}
	}
	return false
}

// readsWhole tells whether all of an item or of an element is read.
func readsWhole(reads [][]string) bool {
	for _, r := range reads {
		if len(r) > 0 && (r[0] == "data" || r[0] == "items") && (r[len(r)-1] == "**" || r[0] == "data" && len(r) == 1) {
			return true
		}
	}
	return false
}

func (c *compiler) limit(l graph.Limit, s scope) limit {
	out := limit{rows: l.Rows, bytes: l.Bytes, tokens: l.Tokens}
	if l.Text != nil {
		c.reads = nil
		out.block = &block{kind: summary, body: c.fixedOr(c.text(l.Text, false, s))}
		out.block.whole = readsWhole(c.reads)
	}
	return out
}

func (c *compiler) masks(p *graph.Presenter) []mask {
	var out []mask
	sees := scope{Scope: c.base.With("data", p.Schema)}
	for _, r := range p.Redact {
		m := mask{as: fixed(r.As), remove: r.Remove}
		for i := range r.Paths {
			t := &r.Paths[i]
			path, err := parsePath(t.S)
			if err == nil {
				err = declaredPath(path, p.Schema)
			}
			if err != nil {
				c.faults = append(c.faults, t.Fault(0, "%q masks nothing: %v", t.S, err))
				continue
			}
			m.paths = append(m.paths, path)
		}
		for i := range r.Patterns {
			t := &r.Patterns[i]
			re, err := regexp.Compile(t.S)
			if err != nil {
				c.faults = append(c.faults, t.Fault(0, "reading the pattern: %v", err))
				continue
			}
			m.patterns = append(m.patterns, re)
		}
		if r.When != nil {
			// A tool's arguments are there when a tool presents; their types
			// differ from tool to tool.
			if p := c.cond(r.When, true, scope{Scope: sees.With("args", nil)}); p != nil {
				m.when = p
			}
		}
		out = append(out, m)
	}
	return out
}
