package dsl

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// union compiles alternatives.
func (c *shapeCompiler) union(v cue.Value, args []cue.Value) *shape.Shape {
	u := newShape(shape.Union)
	var arms []*shape.Shape
	for _, a := range args {
		arms = append(arms, c.compile(a))
	}
	arms = dropDefaultArm(v, args, arms)
	for _, a := range arms {
		if c.isAny(a) {
			return a
		}
		if a.Kind == shape.Union && a.Name == "" {
			for _, x := range a.Alts {
				u.Alts = addAlt(u.Alts, x)
			}
			continue
		}
		u.Alts = addAlt(u.Alts, a)
	}
	u.Alts = joinBools(u.Alts)
	if len(u.Alts) == 1 {
		return u.Alts[0]
	}
	return u
}

// isAny tells whether a shape takes everything, and is not just one that is
// still being compiled.
func (c *shapeCompiler) isAny(s *shape.Shape) bool { return s.Kind == shape.Any && !c.pending[s] }

func addAlt(alts []*shape.Shape, a *shape.Shape) []*shape.Shape {
	same := func(x *shape.Shape) bool {
		return x == a || x.Kind == a.Kind && (a.Kind == shape.Null || a.Kind == shape.Const && x.Const == a.Const)
	}
	if slices.ContainsFunc(alts, same) {
		return alts
	}
	return append(alts, a)
}

// flat appends alternatives, those of unions among them in their place, each
// union once: a type that is an alternative of itself says nothing more.
func flat(dst, alts []*shape.Shape, seen map[*shape.Shape]bool) []*shape.Shape {
	for _, a := range alts {
		switch {
		case seen[a]:
		case a.Kind == shape.Union:
			seen[a] = true
			dst = flat(dst, a.Alts, seen)
		default:
			dst = addAlt(dst, a)
		}
	}
	return dst
}

// joinBools makes true | false a bool.
func joinBools(alts []*shape.Shape) []*shape.Shape {
	isBool := func(b bool) func(*shape.Shape) bool {
		return func(a *shape.Shape) bool { return a.Kind == shape.Const && a.Const == b }
	}
	t, f := slices.IndexFunc(alts, isBool(true)), slices.IndexFunc(alts, isBool(false))
	if t < 0 || f < 0 {
		return alts
	}
	alts[min(t, f)] = newShape(shape.Bool)
	return slices.Delete(alts, max(t, f), max(t, f)+1)
}

// dropDefaultArm takes a list or struct that is only there as the default out
// of the alternatives: *["a"] | [...#E] is a list of #E.
func dropDefaultArm(v cue.Value, args []cue.Value, arms []*shape.Shape) []*shape.Shape {
	d, ok := v.Default()
	if !ok || !hasDefault(v) || d.Kind()&(cue.ListKind|cue.StructKind) == 0 {
		return arms
	}
	x, err := concrete(d)
	if err != nil {
		return arms
	}
	for i, a := range args {
		if !a.Equals(d) {
			continue
		}
		rest := slices.Delete(slices.Clone(arms), i, i+1)
		for _, r := range rest {
			if _, faults := r.Check(x); len(faults) == 0 {
				return rest
			}
		}
	}
	return arms
}

// finishUnions finds the field that tells the structs of a union apart, when
// everything is compiled.
func finishUnions(s *shape.Shape, seen map[*shape.Shape]bool) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	for _, f := range s.Fields {
		finishUnions(f.Shape, seen)
	}
	for _, p := range s.KeyPatterns {
		finishUnions(p.Shape, seen)
	}
	for _, l := range [][]*shape.Shape{s.Prefix, s.Alts, {s.Items, s.Rest}} {
		for _, x := range l {
			finishUnions(x, seen)
		}
	}
	if s.Kind == shape.Union {
		s.Discriminator = discriminator(s.Alts)
	}
}

// discriminator is the field that is a constant of its own in every struct of
// the alternatives, which besides null are only structs.
func discriminator(alts []*shape.Shape) string {
	var structs []*shape.Shape
	for _, a := range alts {
		switch a.Kind {
		case shape.Null:
		case shape.Struct:
			structs = append(structs, a)
		default:
			return ""
		}
	}
	if len(structs) < 2 {
		return ""
	}
	for _, f := range structs[0].Fields {
		var values []any
		for _, s := range structs {
			x := s.Field(f.Name)
			if x == nil || x.Optional || x.HasDefault || x.Shape.Kind != shape.Const || slices.Contains(values, x.Shape.Const) {
				break
			}
			values = append(values, x.Shape.Const)
		}
		if len(values) == len(structs) {
			return f.Name
		}
	}
	return ""
}
