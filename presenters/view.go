package presenters

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// Set is the compiled presenters and tool views of one spec.
type Set struct {
	g     *graph.Graph
	names *names
	views map[string]*View
	defs  []definition // in order of declaration

	byWire  map[string]string       // exposed name to dotted name, flat exposition
	byGroup map[string]*actionGroup // all actions of a group
}

// Exposed gives the name under which a tool is on the wire; a name that is no
// tool comes back as it is.
func (s *Set) Exposed(tool string) string { return s.names.of(tool) }

// Words gives the author's text with the exposed name for every declared
// tool's dotted name that stands as a word in it (section 6); holes are left
// alone.
func (s *Set) Words(t *graph.Text) *graph.Text { return s.names.template(t) }

// View gives what is needed to present the answers of a tool; nil for an unknown one.
func (s *Set) View(tool string) *View { return s.views[tool] }

// View is how one tool's answers leave: its presenter with the tool's own
// rules, hints and suggestions, its format and limits.
type View struct {
	plan       *plan
	action     string
	cache      []byte       // the cache_invalidation block, nil: none
	selects    bool         // _select is offered
	structured bool         // structuredContent is sent
	out        *shape.Shape // what structuredContent holds; nil: not known
	shape      outcome
	content    *content
	size       sizeHint
}

// content sends a value as another kind of content.
type content struct {
	tool   string // dotted: the URI of a resource is made from it
	kind   string
	column string // of the data, or
	source tree
	mime   text
}

// view compiles what a tool adds to its presenter.
func (c *compiler) view(t *graph.Tool) *View {
	c.gates = mentions{}
	base := &plan{name: t.Name, rows: &rowCache{}}
	if t.Returns != nil {
		if p := c.plan(t.Returns); p != nil {
			base = p
		}
	}
	own := *base
	if base.rows != nil {
		own.rows = &rowCache{} // its statements have columns of their own
	}
	s := c.toolScope(t, base)
	own.extra = c.extra(t, s)
	own.limit = overlay(base.limit, c.limit(t.Limit, scope{Scope: s.Scope, masks: s.masks, row: s.row, list: true}))
	switch t.Format {
	case "toon":
		own.toon = true
	case "json":
		own.toon = false
	}
	v := &View{plan: &own, action: ActionName(t.Name), selects: t.Select, structured: t.Structured, shape: outcomeOf(t)}
	if t.Structured {
		v.out = base.maskedShape(outputShape(base), nil)
	}
	v.cache = c.cacheBlock(t)
	v.content = c.content(t, s)
	v.plan.gates.join(c.gates)
	return v
}

// toolScope is what the rules of a tool see: the arguments and the names of
// its presenter, of an item and of a list.
func (c *compiler) toolScope(t *graph.Tool, p *plan) scope {
	s := c.base.With("args", t.Params).With("data", p.schema).
		With("items", listShape(p.schema)).With("omitted", intShape).With("total", intShape)
	return scope{Scope: c.withState(s), masks: p.hidden, row: p.schema, item: true, list: true}
}

func (c *compiler) extra(t *graph.Tool, s scope) extra {
	x := extra{rules: c.rules(t.Rules, s), hints: c.rules(t.Hints, s)}
	for _, one := range c.suggestions(t.Suggest, s) {
		if one.list {
			x.coll = append(x.coll, one)
		} else {
			x.suggest = append(x.suggest, one)
		}
	}
	return x
}

// overlay puts the limits of a tool over those of its presenter.
func overlay(p, t limit) limit {
	if t.rows > 0 {
		p.rows = t.rows
	}
	if t.bytes > 0 {
		p.bytes = t.bytes
	}
	if t.tokens > 0 {
		p.tokens = t.tokens
	}
	if t.block != nil {
		p.block = t.block
	}
	return p
}

// cacheBlock tells the client what a success makes stale: names of the spec
// and globs, the one exception to exposed names.
func (c *compiler) cacheBlock(t *graph.Tool) []byte {
	if len(t.Invalidates) == 0 {
		return nil
	}
	b := appendAttr([]byte(`<cache_invalidation cause="`), t.Name)
	b = append(b, `" domains="`...)
	for i, d := range t.Invalidates {
		if !isDomain(d) {
			c.faults.Add(t.At, t.Path+".invalidates", "%q is neither a glob of tools, such as tasks.*, nor the URI of a resource", d)
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendAttr(b, d)
	}
	return append(b, `" />`...)
}

// isDomain tells whether a text is a glob of dotted names or a URI.
func isDomain(s string) bool {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return isName(scheme) && rest != "" && !strings.ContainsAny(rest, " \t\n\"<>")
	}
	for _, part := range strings.Split(s, ".") {
		for i := range len(part) {
			if c := part[i]; !isWord(c) && c != '-' && c != '*' {
				return false
			}
		}
		if part == "" {
			return false
		}
	}
	return true
}

func (c *compiler) content(t *graph.Tool, s scope) *content {
	if t.Content == nil {
		return nil
	}
	out := &content{tool: t.Name, kind: t.Content.Kind, mime: c.fixedOr(c.text(&t.Content.MimeType, false, s))}
	src := &t.Content.Source
	if givesRows(&t.Binding) {
		c.faults = append(c.faults, src.Fault(0, "%s content needs one row, and the statement gives a list: write one: true beside it", out.kind))
	}
	if path, ok := plainPath(src.S); ok && len(path) == 1 {
		out.column = path[0]
		if s.row != nil && s.row.Kind == shape.Struct && s.row.Rest == nil && s.row.Field(path[0]) == nil {
			c.faults = append(c.faults, src.Fault(0, "the answer has no field %q%s", path[0], didYouMean(path[0], s.row)))
		}
		c.faults = append(c.faults, maskedReads(src, [][]string{{"data", path[0]}}, s.masks)...)
		return out
	}
	if tree := c.tree(&graph.Node{At: src.At, Path: src.Path, Kind: graph.String, Text: *src}, false, s); tree != nil {
		out.source = tree
	}
	return out
}

// givesRows tells whether the answer is the list of a statement's rows.
func givesRows(b *graph.Binding) bool {
	if n := len(b.Steps); n > 0 && b.From == nil && b.Result == nil {
		b = &b.Steps[n-1].Binding
	}
	return b.SQL != nil && !b.SQL.One && b.From == nil
}

// RowLimit is how many rows the binding needs to read at most, one more than
// is shown so that truncation is known; 0: all.
func (v *View) RowLimit() int {
	if v.plan.limit.rows == 0 {
		return 0
	}
	return v.plan.limit.rows + 1
}

// ByteLimit is how many bytes of rows the binding may read; 0: all. Columns
// that do not leave count too: it bounds memory, the answer is cut exactly.
func (v *View) ByteLimit() int64 {
	l := v.plan.limit
	tokens := l.tokens * 14 // 3.5 characters of up to four bytes each
	switch {
	case l.bytes == 0:
		return tokens
	case tokens == 0:
		return l.bytes
	}
	return min(l.bytes, tokens)
}

// MaskedReads gives a fault for each path in reads (of a text of an error
// rule, which sees the names result and item before masking) that the
// presenter may mask. A nil View masks nothing.
func (v *View) MaskedReads(t *graph.Text, reads [][]string) graph.Faults {
	if v == nil {
		return nil
	}
	return maskedReads(t, reads, v.plan.hidden)
}
