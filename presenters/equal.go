package presenters

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// equalShape tells whether two shapes say the same about values; words for
// people do not count. Shapes deeper than maxEqual count as different.
func equalShape(a, b *shape.Shape, depth int) bool {
	const maxEqual = 20
	if a == b {
		return true
	}
	if a == nil || b == nil || depth > maxEqual || a.Kind != b.Kind {
		return false
	}
	if a.Const != b.Const || !equalBound(a.Min, b.Min) || !equalBound(a.Max, b.Max) || a.MultipleOf != b.MultipleOf ||
		a.MinRunes != b.MinRunes || a.MaxRunes != b.MaxRunes || a.Format != b.Format ||
		a.MinItems != b.MinItems || a.MaxItems != b.MaxItems || a.Unique != b.Unique ||
		!slices.Equal(a.Not, b.Not) {
		return false
	}
	same := func(x, y *shape.Shape) bool { return equalShape(x, y, depth+1) }
	return slices.EqualFunc(a.Patterns, b.Patterns, func(x, y shape.Pattern) bool {
		return x.Not == y.Not && x.Re.String() == y.Re.String()
	}) &&
		slices.EqualFunc(a.Fields, b.Fields, func(x, y *shape.Field) bool {
			return x.Name == y.Name && x.Optional == y.Optional && !x.HasDefault && !y.HasDefault && same(x.Shape, y.Shape)
		}) &&
		slices.EqualFunc(a.KeyPatterns, b.KeyPatterns, func(x, y shape.PatternField) bool {
			return x.Re.String() == y.Re.String() && same(x.Shape, y.Shape)
		}) &&
		same(a.Items, b.Items) && same(a.Rest, b.Rest) &&
		slices.EqualFunc(a.Prefix, b.Prefix, same) && slices.EqualFunc(a.Alts, b.Alts, same)
}

func equalBound(a, b *shape.Bound) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
