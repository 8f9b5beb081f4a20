package presenters

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// In grouped exposition the actions of a group share one input schema, so a
// parameter of one name must be of one type in all of them.

// conflicts finds parameters that two actions of a group declare differently.
func (c *compiler) conflicts(s *Set) {
	if c.g.Server.Exposition != "grouped" {
		return
	}
	type first struct {
		field *shape.Field
		tool  *graph.Tool
	}
	for _, g := range s.groups(func(string) bool { return true }) {
		seen := map[string]first{}
		for _, d := range g.actions {
			for _, f := range d.tool.Params.Fields {
				path := d.tool.Path + ".params." + f.Name
				if f.Name == discriminator {
					c.faults.Add(d.tool.At, path, "in grouped exposition %q is the parameter that names the operation: rename yours", discriminator)
					continue
				}
				other, ok := seen[f.Name]
				if !ok {
					seen[f.Name] = first{f, d.tool}
					continue
				}
				was, null := baseType(other.field.Shape)
				is, nullToo := baseType(f.Shape)
				switch {
				case was != is && !(numeric(was) && numeric(is)):
					c.faults.Add(d.tool.At, path, "%s is %s here and %s in %s: in grouped exposition the tools of a group share their parameters, so give it one type or another name", f.Name, is, was, other.tool.Name)
				case null != nullToo:
					c.faults.Add(d.tool.At, path, "%s takes null here or in %s, but not in both: in grouped exposition the tools of a group share their parameters", f.Name, other.tool.Name)
				}
			}
		}
	}
}

func numeric(t string) bool { return t == "number" || t == "integer" }

// baseType is the JSON type of a shape, any for several, and whether it takes
// null too.
func baseType(s *shape.Shape) (t string, null bool) {
	switch s.Kind {
	case shape.Null:
		return "null", true
	case shape.Bool:
		return "boolean", false
	case shape.Int:
		return "integer", false
	case shape.Float:
		return "number", false
	case shape.String:
		return "string", false
	case shape.List:
		return "array", false
	case shape.Struct:
		return "object", false
	case shape.Const:
		return jsonType(s.Const), s.Const == nil
	case shape.Union:
		for _, a := range s.Alts {
			is, takesNull := baseType(a)
			switch {
			case takesNull:
				null = true
			case t == "":
				t = is
			case t != is:
				t = "any"
			}
		}
		return t, null
	}
	return "any", false
}

func jsonType(v any) string {
	if _, ok := v.(int64); ok {
		return "integer"
	}
	return kindOf(v)
}

// widened is what two actions say of a parameter together: it allows what
// either does. The first description counts, unless the second one's type is
// the wider.
func widened(a, b *shape.Field) (*shape.Shape, string) {
	desc := a.Description
	if desc == "" {
		desc = b.Description
	}
	if equalShape(a.Shape, b.Shape, 0) {
		return a.Shape, desc
	}
	was, _ := baseType(a.Shape)
	is, _ := baseType(b.Shape)
	if was != is && numeric(was) && numeric(is) {
		return a.Shape, desc
	}
	ea, eb := constants(a.Shape), constants(b.Shape)
	switch {
	case ea != nil && eb != nil:
		out := &shape.Shape{Kind: shape.Union, Alts: append([]*shape.Shape(nil), ea...)}
		for _, x := range eb {
			if !holds(ea, x) {
				out.Alts = append(out.Alts, x)
			}
		}
		return out, desc
	case ea != nil:
		if b.Description != "" {
			desc = b.Description
		}
		return b.Shape, desc
	case eb != nil:
		return a.Shape, desc
	}
	out := &shape.Shape{Kind: shape.Union, Alts: []*shape.Shape{a.Shape, b.Shape}}
	if a.Shape.Kind == shape.String && b.Shape.Kind == shape.String {
		out = &shape.Shape{Kind: shape.String, MaxRunes: -1}
	}
	return out, desc
}

// constants gives the alternatives of an enum; nil for any other shape.
func constants(s *shape.Shape) []*shape.Shape {
	switch s.Kind {
	case shape.Const:
		return []*shape.Shape{s}
	case shape.Union:
		for _, a := range s.Alts {
			if a.Kind != shape.Const && a.Kind != shape.Null {
				return nil
			}
		}
		return s.Alts
	}
	return nil
}

func holds(l []*shape.Shape, x *shape.Shape) bool {
	for _, y := range l {
		if y.Kind == x.Kind && y.Const == x.Const {
			return true
		}
	}
	return false
}
