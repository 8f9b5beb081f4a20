package presenters

import (
	"fmt"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// What may be masked, known at start: an expression that reads it would state
// the mask as a fact, or with `unmasked: true` the hidden value itself.

// maskPath is a path of an item that a mask hides.
type maskPath []seg

// hiddenPaths gives what the plan's masks hide, and those of the children
// below their keys. Patterns are left out: they change texts, they do not
// hide fields.
func hiddenPaths(p *plan) []maskPath {
	var out []maskPath
	for _, m := range p.masks {
		if m.patterns != nil {
			continue
		}
		for _, path := range m.paths {
			out = append(out, path)
		}
	}
	for _, e := range p.embeds {
		for _, h := range e.plan.hidden {
			// A key step goes through a list by itself.
			out = append(out, append(maskPath{{kind: segKey, key: e.key}}, h...))
		}
	}
	return out
}

// maskedReads gives a fault for every read of a hidden path. reads start with
// the name of the item (data, result, item) or of the list (items).
func maskedReads(t *graph.Text, reads [][]string, masks []maskPath) graph.Faults {
	var out graph.Faults
	for _, read := range reads {
		if len(read) == 0 {
			continue
		}
		switch read[0] {
		case "data", "items", "item", "result":
		default:
			continue
		}
		for _, m := range masks {
			if !meets(read[1:], m) {
				continue
			}
			if last := len(read) - 1; read[last] == "**" {
				out = append(out, t.Fault(0, "this reads all of %s, of which the presenter may mask %s: read only the fields that are needed, or say unmasked: true to show the hidden value all the same", readText(read[:last]), pathOf(m)))
			} else {
				out = append(out, t.Fault(0, "this reads %s, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same", readText(read)))
			}
			break
		}
	}
	return out
}

// meets tells whether a read ends at or below what a mask hides. A step into a
// list is "*" in a read; a mask may leave it out.
func meets(read []string, m maskPath) bool {
	if len(m) == 0 {
		return true
	}
	if len(read) == 0 {
		return false // the whole is read, with the mask in it
	}
	switch {
	case read[0] == "**":
		return true
	case m[0].kind == segDeep:
		for i := range read {
			if meets(read[i:], m[1:]) {
				return true
			}
		}
		return false
	case m[0].kind == segAny:
		return meets(read[1:], m[1:])
	case read[0] == "*":
		if m[0].kind == segIndex {
			return meets(read[1:], m[1:])
		}
		return meets(read[1:], m) // an element; or any field of a struct
	case m[0].kind == segKey && read[0] == m[0].key:
		return meets(read[1:], m[1:])
	}
	return false
}

func readText(read []string) string {
	var s string
	for i, r := range read {
		switch {
		case i == 0:
			s = r
		case r == "*":
			s += "[*]"
		default:
			s += "." + r
		}
	}
	return s
}

// declaredPath tells why a path can hide nothing of a schema; nil if it can.
func declaredPath(path []seg, s *shape.Shape) error {
	for i, x := range path {
		if s == nil || s.Kind == shape.Any || s.Kind == shape.Union || x.kind == segDeep {
			return nil
		}
		if s.Kind == shape.List && x.kind == segKey {
			s = s.Items // a key goes through a list by itself
			if s == nil {
				return nil
			}
		}
		switch {
		case s.Kind == shape.List && x.kind == segIndex && x.index < len(s.Prefix):
			s = s.Prefix[x.index]
		case s.Kind == shape.List:
			s = s.Items
		case s.Kind != shape.Struct:
			return fmt.Errorf("there are no fields below %s", pathOf(path[:i]))
		case x.kind == segIndex:
			return fmt.Errorf("%s is no list", pathOf(path[:i]))
		case x.kind == segAny:
			return nil
		default:
			f := s.Field(x.key)
			if f == nil {
				if s.Rest != nil || len(s.KeyPatterns) > 0 {
					return nil
				}
				return fmt.Errorf("the schema has no field %q%s", pathOf(path[:i+1]), didYouMean(x.key, s))
			}
			s = f.Shape
		}
	}
	return nil
}

func pathOf(path []seg) string {
	if len(path) == 0 {
		return "the item"
	}
	var s string
	for _, x := range path {
		switch x.kind {
		case segIndex:
			s += fmt.Sprintf("[%d]", x.index)
			continue
		case segAny:
			s += "[*]"
			continue
		}
		if x.kind == segKey && !isName(x.key) {
			s += "[" + strconv.Quote(x.key) + "]"
			continue
		}
		if s != "" {
			s += "."
		}
		if x.kind == segDeep {
			s += "**"
		} else {
			s += x.key
		}
	}
	return s
}
