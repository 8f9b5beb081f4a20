package presenters

import (
	"fmt"
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// structuredContent and its output schema: the presenter's schema after
// masking, with the children's in the place of what they replace.

// outcome is what a tool gives, as far as its binding tells.
type outcome uint8

const (
	anything outcome = iota // an item or a list
	oneItem
	listOfItems
)

func outcomeOf(t *graph.Tool) outcome {
	if len(t.Steps) == 0 {
		return givenBy(&t.Binding)
	}
	last := t.Steps[len(t.Steps)-1]
	switch {
	case t.From != nil:
		return anything
	case t.Result != nil && t.Result.Kind == graph.Struct:
		return oneItem // made once
	case t.Result != nil, last.When != nil, last.Optional:
		return anything
	case last.Each != nil:
		return listOfItems
	}
	return givenBy(&last.Binding)
}

func givenBy(b *graph.Binding) outcome {
	switch {
	case b.SQL == nil || b.From != nil:
		return anything
	case b.SQL.One:
		return oneItem
	}
	return listOfItems
}

// outputShape is the schema of an item with the children's schemas in place;
// nil if the presenter has none.
func outputShape(p *plan) *shape.Shape {
	s := p.schema
	if s == nil || s.Kind != shape.Struct {
		return s
	}
	var c *shape.Shape
	for _, e := range p.embeds {
		child := outputShape(e.plan)
		if child == nil {
			continue
		}
		i := slices.IndexFunc(s.Fields, func(f *shape.Field) bool { return f.Name == e.key })
		if i < 0 {
			continue
		}
		if c == nil {
			copied := *s
			copied.Fields = slices.Clone(s.Fields)
			c = &copied
		}
		f := *s.Fields[i]
		f.Shape = replaced(f.Shape, child)
		c.Fields[i] = &f
	}
	if c == nil {
		return s
	}
	return c
}

// replaced is what the parent declares of a key with the child's schema for
// the struct in it: the child itself, a list of it, or null beside it.
func replaced(s, child *shape.Shape) *shape.Shape {
	switch s.Kind {
	case shape.List:
		if s.Items == nil || len(s.Prefix) > 0 {
			return s
		}
		c := *s
		c.Items = replaced(s.Items, child)
		c.MinItems = 0 // the child's limit may leave fewer
		return &c
	case shape.Union:
		c := *s
		c.Alts = slices.Clone(s.Alts)
		for i, a := range c.Alts {
			if a.Kind == shape.Struct || a.Kind == shape.List {
				c.Alts[i] = replaced(a, child)
			}
		}
		return &c
	case shape.Struct, shape.Any:
		return child
	}
	return s
}

// maskOf tells what the masks of a plan and of its children may do at a path
// of an item.
func (p *plan) maskOf(path []string) shape.Mask {
	var out shape.Mask
	for i := range p.masks {
		m := &p.masks[i]
		does := shape.MayBeText
		if m.remove {
			does = shape.MayBeGone
		}
		if m.paths == nil {
			out |= does
		}
		for _, x := range m.paths {
			if hits(x, path, m.patterns != nil) {
				out |= does
			}
		}
	}
	for _, e := range p.embeds {
		if len(path) < 2 || path[0] != e.key {
			continue
		}
		rest := path[1:]
		if rest[0] == "*" {
			rest = rest[1:]
		}
		if len(rest) > 0 {
			out |= e.plan.maskOf(rest)
		}
	}
	return out
}

// hits tells whether a mask's path ends at a path ("*" for elements), or with
// below at or above it.
func hits(m []seg, path []string, below bool) bool {
	switch {
	case len(m) == 0:
		return len(path) == 0 || below
	case len(path) == 0:
		return false
	case m[0].kind == segDeep:
		for i := range path {
			if hits(m[1:], path[i:], below) {
				return true
			}
		}
		return false
	case m[0].kind == segKey && path[0] == "*":
		return hits(m, path[1:], below) || hits(m[1:], path[1:], below)
	case m[0].kind == segKey && path[0] != m[0].key, m[0].kind == segIndex && path[0] != "*":
		return false
	}
	return hits(m[1:], path[1:], below)
}

// maskedShape is the shape of what is left after masking: what is sent is
// compared with it. Below maxMaskDepth steps of a shape that holds itself
// everything goes.
func (p *plan) maskedShape(s *shape.Shape, path []string) *shape.Shape {
	const maxMaskDepth = 8
	if s == nil || len(p.masks) == 0 && len(p.embeds) == 0 {
		return s
	}
	if len(path) >= maxMaskDepth {
		return &shape.Shape{Kind: shape.Any}
	}
	step := func(s *shape.Shape, name string) (*shape.Shape, shape.Mask) {
		below := append(slices.Clone(path), name)
		does := p.maskOf(below)
		out := p.maskedShape(s, below)
		if does&shape.MayBeText != 0 && out != nil {
			out = &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{out, {Kind: shape.String, MaxRunes: -1}}}
		}
		return out, does
	}
	c := *s
	c.Fields = slices.Clone(s.Fields)
	for i, f := range s.Fields {
		copied := *f
		var does shape.Mask
		copied.Shape, does = step(f.Shape, f.Name)
		copied.Optional = f.Optional || does&shape.MayBeGone != 0
		c.Fields[i] = &copied
	}
	c.KeyPatterns = slices.Clone(s.KeyPatterns)
	for i := range c.KeyPatterns {
		c.KeyPatterns[i].Shape, _ = step(s.KeyPatterns[i].Shape, "*")
	}
	c.Prefix = slices.Clone(s.Prefix)
	for i := range c.Prefix {
		c.Prefix[i], _ = step(s.Prefix[i], "*")
	}
	if s.Rest != nil {
		c.Rest, _ = step(s.Rest, "*")
	}
	if s.Items != nil {
		c.Items, _ = step(s.Items, "*")
		c.Unique = false // two values may be masked alike
	}
	c.Alts = slices.Clone(s.Alts)
	for i := range c.Alts {
		c.Alts[i] = p.maskedShape(s.Alts[i], path)
	}
	return &c
}

// structuredContent is the data as compact JSON, compared with what the
// output schema promises.
func (v *View) structuredContent(p *prepared) ([]byte, error) {
	if v.out != nil {
		for i := range p.n {
			if _, faults := v.out.Check(p.item(i, false)); len(faults) > 0 {
				row := -1
				if p.list {
					row = i
				}
				return nil, fmt.Errorf("structuredContent does not fit its output schema: %w", &RowError{Presenter: p.plan.name, Row: row, Faults: faults})
			}
		}
	}
	return value.AppendJSON(nil, p.whole()), nil
}

// appendOutputSchema appends the outputSchema of a tool; legacy for revisions
// 2025-x, which allow only objects at the top.
func (v *View) appendOutputSchema(dst []byte, legacy bool) []byte {
	base := v.plan
	item := outputShape(base)
	if item == nil {
		return nil
	}
	one := item.AppendMaskedSchema(nil, base.maskOf)
	many := append(append([]byte(`{"type":"array","items":`), one...), '}')
	isObject := item.Kind == shape.Struct
	if legacy {
		many = append(append([]byte(`{"type":"object","properties":{"items":`), many...), `},"required":["items"],"additionalProperties":false}`...)
		if !isObject {
			one = append(append([]byte(`{"type":"object","properties":{"value":`), one...), `},"required":["value"],"additionalProperties":false}`...)
		}
	}
	switch v.shape {
	case oneItem:
		return append(dst, one...)
	case listOfItems:
		return append(dst, many...)
	}
	dst = append(dst, '{')
	if legacy {
		dst = append(dst, `"type":"object",`...)
	}
	dst = append(append(append(append(dst, `"anyOf":[`...), one...), ','), many...)
	return append(dst, "]}"...)
}
