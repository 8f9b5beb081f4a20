package presenters

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Grouped exposition: one MCP tool a group, with a discriminator that names
// the action.

const discriminator = "action"

// actionGroup is the tools of one group that a caller sees.
type actionGroup struct {
	name    string
	decl    *graph.Group // nil: not declared
	actions []*definition
	modules bool // an action has a module: users.list
}

// groups gives the groups of the tools that keep admits, in order of declaration.
func (s *Set) groups(keep func(tool string) bool) []*actionGroup {
	var out []*actionGroup
	byName := map[string]*actionGroup{}
	for i := range s.defs {
		d := &s.defs[i]
		if !keep(d.tool.Name) {
			continue
		}
		g := byName[d.group]
		if g == nil {
			g = &actionGroup{name: d.group, decl: s.g.Group(d.group)}
			byName[d.group] = g
			out = append(out, g)
		}
		g.actions = append(g.actions, d)
		g.modules = g.modules || strings.Contains(d.action, ".")
	}
	return out
}

func (s *Set) grouped(keep func(tool string) bool) []Definition {
	out := []Definition{}
	for _, g := range s.groups(keep) {
		out = append(out, g.define(s.names))
	}
	return out
}

func (g *actionGroup) define(n *names) Definition {
	out := Definition{Name: g.name}
	for _, d := range g.actions {
		out.Tools = append(out.Tools, d.tool.Name)
	}
	head := value.AppendString([]byte(`{"name":`), g.name)
	head = value.AppendString(append(head, `,"description":`...), g.description(n))
	head = append(head, `,"inputSchema":`...)
	head = g.params().AppendSchema(head)
	head = g.appendAnnotations(append(head, `,"annotations":`...))
	out.JSON, out.Modern = g.finish(head, true), g.finish(head, false)
	return out
}

// finish appends what a group has of its only action, and an output schema
// where every action has one.
func (g *actionGroup) finish(head []byte, legacy bool) []byte {
	b := slices.Clone(head)
	var schemas [][]byte
	for _, d := range g.actions {
		if schema := d.view.appendOutputSchema(nil, legacy); d.tool.Structured && schema != nil {
			schemas = append(schemas, schema)
		}
	}
	if len(schemas) == len(g.actions) {
		b = append(b, `,"outputSchema":`...)
		if len(schemas) == 1 {
			b = append(b, schemas[0]...)
		} else {
			b = append(b, '{')
			if legacy {
				b = append(b, `"type":"object",`...)
			}
			b = append(b, `"anyOf":[`...)
			for i, schema := range schemas {
				if i > 0 {
					b = append(b, ',')
				}
				b = append(b, schema...)
			}
			b = append(b, "]}"...)
		}
	}
	if len(g.actions) == 1 {
		t := g.actions[0].tool
		b = appendIcons(member(b, "title", t.Title), t.Icons)
	}
	return append(b, '}')
}

// text is what the author says of the group; of one without words, what its
// only action says.
func (g *actionGroup) text(n *names) string {
	if g.decl != nil && g.decl.Description != "" {
		return n.words(g.decl.Description)
	}
	if len(g.actions) == 1 {
		return g.actions[0].text(n)
	}
	return ""
}

func (g *actionGroup) description(n *names) string {
	own := g.text(n)
	head := own
	if head == "" {
		head = g.name
	}
	head += ". Select operation via the `" + discriminator + "` parameter."
	several := g.modules || len(g.actions) > 1
	if g.decl != nil && g.decl.ToonDescription {
		if several {
			return head + "\n\n" + g.toonTable(n, own)
		}
		return head
	}
	head += " " + g.summary()
	if !several {
		return head
	}
	var lines []string
	for _, d := range g.actions {
		if l := d.workflow(n, own, g.decl); l != "" {
			lines = append(lines, "- '"+d.action+"': "+l)
		}
	}
	if len(lines) == 0 {
		return head
	}
	return head + "\n\nWorkflow:\n" + strings.Join(lines, "\n")
}

// summary lists the actions, those of modules by module.
func (g *actionGroup) summary() string {
	var plain, modules []string
	of := map[string][]string{}
	for _, d := range g.actions {
		module, action, ok := strings.Cut(d.action, ".")
		if !ok {
			plain = append(plain, d.action)
			continue
		}
		if of[module] == nil {
			modules = append(modules, module)
		}
		of[module] = append(of[module], action)
	}
	var parts []string
	if len(plain) > 0 {
		parts = append(parts, "Actions: "+strings.Join(plain, ", "))
	}
	if len(modules) > 0 {
		for i, m := range modules {
			modules[i] = m + " (" + strings.Join(of[m], ",") + ")"
		}
		parts = append(parts, "Modules: "+strings.Join(modules, " | "))
	}
	return strings.Join(parts, ". ")
}

// workflow is the line of an action; own is the text of the group, which
// stands in for a missing one.
func (d *definition) workflow(n *names, own string, g *graph.Group) string {
	s := d.text(n)
	if s == "" {
		s = own
	}
	if req := d.required(g); len(req) > 0 {
		if s != "" {
			s += ". "
		}
		s += "Requires: " + strings.Join(req, ", ")
	}
	if d.destroys {
		s += " [DESTRUCTIVE]"
	}
	return s
}

// required names the parameters of its own that a caller must send.
func (d *definition) required(g *graph.Group) []string {
	var out []string
	for _, f := range d.tool.Params.Fields {
		if isRequired(f) && !isCommon(g, f) {
			out = append(out, f.Name)
		}
	}
	return out
}

// isCommon tells whether a parameter is one that the group declares for all.
func isCommon(g *graph.Group, f *shape.Field) bool {
	if g == nil || g.Params == nil {
		return false
	}
	c := g.Params.Field(f.Name)
	return c != nil && (c == f || c.Description == f.Description && equalShape(c.Shape, f.Shape, 0))
}

func isRequired(f *shape.Field) bool { return !f.Optional && !f.HasDefault }

// toonTable lists the actions as TOON, those of modules in a table each.
func (g *actionGroup) toonTable(n *names, own string) string {
	var rows []any
	tables := &value.Object{}
	for _, d := range g.actions {
		desc := d.text(n)
		if desc == "" {
			desc = own
		}
		module, action, ok := strings.Cut(d.action, ".")
		if !ok {
			module, action = "", d.action
		}
		row := value.Of("action", action, "desc", desc, "required", strings.Join(d.required(g.decl), ", "), "destructive", d.destroys)
		if !ok {
			rows = append(rows, row)
			continue
		}
		l, _ := tables.Get(module)
		list, _ := l.([]any)
		tables.Set(module, append(list, row))
	}
	var b []byte
	if len(rows) > 0 {
		b = appendToon(b, rows)
	}
	if tables.Len() > 0 {
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = appendToon(b, tables)
	}
	return string(b)
}

// appendAnnotations says of the group what holds for all its actions, and of
// destruction what holds for any.
func (g *actionGroup) appendAnnotations(b []byte) []byte {
	read, destroys, repeats := true, false, true
	var open *bool
	for _, d := range g.actions {
		read, repeats = read && d.readOnly, repeats && d.repeats
		destroys = destroys || d.destroys
		if o := d.tool.Annotations.OpenWorld; o != nil && (open == nil || *o) {
			open = o
		}
	}
	b = append(b, '{')
	if open != nil {
		b = append(value.AppendJSON(append(b, `"openWorldHint":`...), *open), ',')
	}
	b = value.AppendJSON(append(b, `"readOnlyHint":`...), read)
	b = value.AppendJSON(append(b, `,"destructiveHint":`...), destroys)
	b = value.AppendJSON(append(b, `,"idempotentHint":`...), repeats)
	return append(b, '}')
}

// params merges the parameters of the actions, each field with a note of the
// actions that take it.
func (g *actionGroup) params() *shape.Shape {
	out := &shape.Shape{Kind: shape.Struct, Fields: []*shape.Field{g.discriminator()}}
	type uses struct{ required, optional []string }
	seen := map[string]*uses{}
	var keys []string
	add := func(f *shape.Field) {
		copied := *f
		seen[f.Name] = &uses{}
		out.Fields = append(out.Fields, &copied)
	}
	g.common(add)
	for _, d := range g.actions {
		for _, f := range d.params.Fields {
			if f.Name == selectName && d.selectKeys() != nil {
				keys = append(keys, d.selectKeys()...)
				continue
			}
			if u := seen[f.Name]; u == nil {
				add(f)
			} else if len(u.required)+len(u.optional) > 0 {
				merged := out.Field(f.Name)
				merged.Shape, merged.Description = widened(merged, f)
			} else {
				*out.Field(f.Name) = *f
			}
			u := seen[f.Name]
			if isRequired(f) {
				u.required = append(u.required, d.action)
			} else {
				u.optional = append(u.optional, d.action)
			}
		}
	}
	for _, f := range out.Fields[1:] {
		u := seen[f.Name]
		var notes []string
		if f.Description != "" {
			notes = append(notes, f.Description)
		}
		common := g.decl != nil && g.decl.Params != nil && g.decl.Params.Field(f.Name) != nil
		switch {
		case common && len(u.required) == len(g.actions):
			notes = append(notes, "(always required)")
		default:
			f.Optional = true
			if u.required != nil {
				notes = append(notes, "Required for: "+strings.Join(u.required, ", "))
			}
			if u.optional != nil {
				notes = append(notes, "For: "+strings.Join(u.optional, ", "))
			}
		}
		f.Description = strings.Join(notes, ". ")
	}
	if keys != nil {
		slices.Sort(keys)
		out.Fields = append(out.Fields, selectField(slices.Compact(keys)))
	}
	return out
}

// common calls f for the parameters that the group declares and an action has.
func (g *actionGroup) common(f func(*shape.Field)) {
	if g.decl == nil || g.decl.Params == nil {
		return
	}
	for _, c := range g.decl.Params.Fields {
		if slices.ContainsFunc(g.actions, func(d *definition) bool { return d.tool.Params.Field(c.Name) != nil }) {
			f(c)
		}
	}
}

func (g *actionGroup) discriminator() *shape.Field {
	s := &shape.Shape{Kind: shape.Union}
	for _, d := range g.actions {
		s.Alts = append(s.Alts, &shape.Shape{Kind: shape.Const, Const: d.action})
	}
	text := "Which operation to perform"
	if g.modules {
		text = "Module and operation (module.action format)"
	}
	return &shape.Field{Name: discriminator, Shape: s, Description: text}
}
