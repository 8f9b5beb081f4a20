package presenters

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Definition is one MCP tool of tools/list, encoded.
type Definition struct {
	Name string // exposed
	// JSON is the tool object for revisions 2025-x, Modern for 2026-07-28
	// (they differ in the output schema).
	JSON, Modern []byte
	// Tools are the dotted names behind it: one in flat exposition, all
	// actions of the group in grouped exposition.
	Tools []string
}

// definition is a tool with what its definition is written from.
type definition struct {
	tool     *graph.Tool
	view     *View
	params   *shape.Shape // descriptions with exposed names, _select among the fields
	flat     Definition
	group    string // first part of the name
	action   string // the rest, default for a one-word name
	readOnly bool
	destroys bool
	repeats  bool // idempotent
}

// define makes the definition of every tool.
func (c *compiler) define(s *Set) {
	taken := map[string]*graph.Tool{}
	for _, t := range c.g.Tools {
		d := definition{tool: t, view: s.views[t.Name], params: c.described(t.Params, map[*shape.Shape]*shape.Shape{})}
		d.group, d.action, _ = strings.Cut(t.Name, ".")
		if d.action == "" {
			d.action = "default"
		}
		a := t.Annotations
		d.readOnly = said(a.ReadOnly, t.Kind == "query")
		d.destroys = said(a.Destructive, t.Kind == "mutation")
		d.repeats = said(a.Idempotent, false)
		d.params = d.withSelect(c)
		wire := c.names.of(t.Name)
		if other := taken[wire]; other != nil && other.Name != t.Name {
			c.faults.Add(t.At, t.Path, "%s and %s would both be %q on the wire: rename one", other.Name, t.Name, wire)
		}
		taken[wire] = t
		s.byWire[wire] = t.Name
		d.flat = d.define(c, wire)
		s.defs = append(s.defs, d)
	}
	for _, g := range s.groups(func(string) bool { return true }) {
		s.byGroup[g.name] = g
	}
	c.conflicts(s)
}

func said(b *bool, otherwise bool) bool {
	if b != nil {
		return *b
	}
	return otherwise
}

// Definitions gives the MCP tools for the declared tools that keep(dotted
// name) admits, in order of declaration, in the spec's exposition.
func (s *Set) Definitions(keep func(tool string) bool) []Definition {
	if s.g.Server.Exposition == "grouped" {
		return s.grouped(keep)
	}
	out := []Definition{}
	for i := range s.defs {
		if keep(s.defs[i].tool.Name) {
			out = append(out, s.defs[i].flat)
		}
	}
	return out
}

// define writes the definition of a tool on its own.
func (d *definition) define(c *compiler, wire string) Definition {
	t := d.tool
	head := value.AppendString([]byte(`{"name":`), wire)
	head = value.AppendString(append(head, `,"description":`...), d.description(c))
	head = append(head, `,"inputSchema":`...)
	head = d.params.AppendSchema(head)
	head = d.appendAnnotations(append(head, `,"annotations":`...))
	out := Definition{Name: wire, Tools: []string{t.Name}}
	out.JSON, out.Modern = d.finish(head, true), d.finish(head, false)
	return out
}

// finish appends what differs between revisions and what follows it.
func (d *definition) finish(head []byte, legacy bool) []byte {
	b := slices.Clone(head)
	if d.tool.Structured {
		if schema := d.view.appendOutputSchema(nil, legacy); schema != nil {
			b = append(append(b, `,"outputSchema":`...), schema...)
		}
	}
	b = member(b, "title", d.tool.Title)
	b = appendIcons(b, d.tool.Icons)
	return append(b, '}')
}

func appendIcons(b []byte, icons []graph.Icon) []byte {
	if len(icons) == 0 {
		return b
	}
	b = append(b, `,"icons":[`...)
	for i, x := range icons {
		if i > 0 {
			b = append(b, ',')
		}
		b = value.AppendString(append(b, `{"src":`...), x.Src)
		b = member(b, "mimeType", x.MimeType)
		if x.Sizes != "" {
			b = append(b, `,"sizes":[`...)
			for k, size := range strings.Fields(x.Sizes) {
				if k > 0 {
					b = append(b, ',')
				}
				b = value.AppendString(b, size)
			}
			b = append(b, ']')
		}
		b = append(member(b, "theme", x.Theme), '}')
	}
	return append(b, ']')
}

// text is what the author says of a tool, its instructions first.
func (d *definition) text(n *names) string {
	s := n.words(d.tool.Description)
	if d.tool.Instructions == "" {
		return s
	}
	i := "[INSTRUCTIONS] " + n.words(d.tool.Instructions)
	if s == "" {
		return i
	}
	return i + "\n\n" + s
}

func (d *definition) description(c *compiler) string {
	s := d.text(c.names)
	if g := c.g.Group(d.group); s == "" && g != nil {
		s = c.names.words(g.Description)
	}
	if s == "" {
		s = d.group + " → " + d.action
	}
	if d.destroys {
		s += " [DESTRUCTIVE]"
	}
	if d.readOnly {
		s += " [READ-ONLY]"
	}
	return s
}

func (d *definition) appendAnnotations(b []byte) []byte {
	b = append(b, '{')
	flag := func(name string, v bool) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
		b = value.AppendJSON(b, v)
	}
	if d.readOnly || d.tool.Annotations.ReadOnly != nil {
		flag("readOnlyHint", d.readOnly)
	}
	flag("destructiveHint", d.destroys)
	if d.repeats || d.tool.Annotations.Idempotent != nil {
		flag("idempotentHint", d.repeats)
	}
	if o := d.tool.Annotations.OpenWorld; o != nil {
		flag("openWorldHint", *o)
	}
	return append(b, '}')
}

const selectName = "_select"

const selectText = "⚡ Context optimization: select only the response fields you need. Omit to receive all fields."

// selectKeys are the fields that an agent may ask for, sorted.
func (d *definition) selectKeys() []string {
	if !d.tool.Select || d.view == nil || d.view.plan.schema == nil {
		return nil
	}
	var keys []string
	for _, f := range d.view.plan.schema.Fields {
		keys = append(keys, f.Name)
	}
	slices.Sort(keys)
	return keys
}

// withSelect is the parameters and, last, _select.
func (d *definition) withSelect(c *compiler) *shape.Shape {
	if d.params.Field(selectName) != nil {
		c.faults.Add(d.tool.At, d.tool.Path+".params."+selectName, "%s is the server's own parameter: rename yours", selectName)
		return d.params
	}
	keys := d.selectKeys()
	if keys == nil {
		return d.params
	}
	p := *d.params
	p.Fields = append(slices.Clone(p.Fields), selectField(keys))
	return &p
}

func selectField(keys []string) *shape.Field {
	s := &shape.Shape{Kind: shape.Union}
	for _, k := range keys {
		s.Alts = append(s.Alts, &shape.Shape{Kind: shape.Const, Const: k})
	}
	return &shape.Field{Name: selectName, Optional: true, Description: selectText,
		Shape: &shape.Shape{Kind: shape.List, Items: s, MaxItems: -1}}
}

// described is a shape whose descriptions name tools as they are exposed.
func (c *compiler) described(s *shape.Shape, done map[*shape.Shape]*shape.Shape) *shape.Shape {
	if s == nil || len(c.names.tools) == 0 {
		return s
	}
	if out, ok := done[s]; ok {
		return out
	}
	out := *s
	done[s] = &out
	out.Fields = make([]*shape.Field, len(s.Fields))
	for i, f := range s.Fields {
		copied := *f
		copied.Description = c.names.words(f.Description)
		copied.Shape = c.described(f.Shape, done)
		out.Fields[i] = &copied
	}
	out.Items, out.Rest = c.described(s.Items, done), c.described(s.Rest, done)
	out.Prefix, out.Alts = c.describedAll(s.Prefix, done), c.describedAll(s.Alts, done)
	out.KeyPatterns = slices.Clone(s.KeyPatterns)
	for i := range out.KeyPatterns {
		out.KeyPatterns[i].Shape = c.described(s.KeyPatterns[i].Shape, done)
	}
	return &out
}

func (c *compiler) describedAll(l []*shape.Shape, done map[*shape.Shape]*shape.Shape) []*shape.Shape {
	if l == nil {
		return nil
	}
	out := make([]*shape.Shape, len(l))
	for i, s := range l {
		out[i] = c.described(s, done)
	}
	return out
}
