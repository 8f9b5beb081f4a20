package expr

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// kind is what an expression can know of a value before it runs. nil is not
// part of it: any value may be nil, and operators say so when they meet it.
type kind uint8

const (
	anyKind kind = iota
	nilKind
	boolKind
	intKind
	numberKind
	textKind
	listKind
	structKind
)

var kindNames = [...]string{"anything", "nil", "true or false", "a whole number", "a number", "a text", "a list", "a struct"}

func (k kind) String() string { return kindNames[k] }

func (k kind) numeric() bool { return k == intKind || k == numberKind }

// typ is the type of an expression.
type typ struct {
	kind   kind
	elem   *typ     // list; nil: anything
	alts   []record // struct: one of these; empty: any struct
	consts []string // text: the only texts there are; nil: any text
}

// record is a struct with known fields: a declared one or a map literal.
type record struct {
	shape *shape.Shape
	names []string
	types []typ
}

const (
	maxAlts   = 32 // of a union that is still looked into
	maxUnions = 8  // unions directly inside unions
)

func list(elem typ) typ { return typ{kind: listKind, elem: &elem} }

func (t typ) element() typ {
	if t.elem == nil {
		return typ{}
	}
	return *t.elem
}

// leaf tells whether there is nothing below a value of the type.
func (t typ) leaf() bool {
	return t.kind != anyKind && t.kind != listKind && t.kind != structKind
}

func typeOf(s *shape.Shape) typ { return typeIn(s, 0) }

func typeIn(s *shape.Shape, unions int) typ {
	if s == nil || unions > maxUnions {
		return typ{}
	}
	switch s.Kind {
	case shape.Null:
		return typ{kind: nilKind}
	case shape.Bool:
		return typ{kind: boolKind}
	case shape.Int:
		return typ{kind: intKind}
	case shape.Float:
		return typ{kind: numberKind}
	case shape.String:
		return typ{kind: textKind}
	case shape.Const:
		if text, ok := s.Const.(string); ok {
			return typ{kind: textKind, consts: []string{text}}
		}
		return typ{kind: kindOf(s.Const)}
	case shape.List:
		if len(s.Prefix) > 0 {
			return typ{kind: listKind}
		}
		return list(typeIn(s.Items, unions))
	case shape.Struct:
		return typ{kind: structKind, alts: []record{{shape: s}}}
	case shape.Union:
		var t typ
		for i, a := range s.Alts {
			if i == 0 {
				t = typeIn(a, unions+1)
				continue
			}
			t = join(t, typeIn(a, unions+1))
		}
		return t
	}
	return typ{}
}

// kindOf is the kind of a value.
func kindOf(v any) kind {
	switch v := v.(type) {
	case nil:
		return nilKind
	case bool:
		return boolKind
	case int64:
		return intKind
	case float64:
		return numberKind
	case value.Number:
		if _, ok := whole(v); ok {
			return intKind
		}
		return numberKind
	case string:
		return textKind
	case []any, *value.Rows:
		return listKind
	case *value.Object, *row:
		return structKind
	}
	return anyKind
}

// join is the type of a value that is of the one or the other type.
func join(a, b typ) typ {
	switch {
	case a.kind == nilKind:
		return b
	case b.kind == nilKind:
		return a
	case a.kind.numeric() && b.kind.numeric():
		return typ{kind: max(a.kind, b.kind)}
	case a.kind != b.kind:
		return typ{}
	}
	switch a.kind {
	case listKind:
		if a.elem == nil || b.elem == nil {
			return typ{kind: listKind}
		}
		return list(join(*a.elem, *b.elem))
	case structKind:
		return joinStructs(a, b)
	case textKind:
		if a.consts == nil || b.consts == nil {
			return typ{kind: textKind}
		}
		out := slices.Clone(a.consts)
		for _, c := range b.consts {
			if !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
		return typ{kind: textKind, consts: out}
	}
	return a
}

func joinStructs(a, b typ) typ {
	if len(a.alts) == 0 || len(b.alts) == 0 {
		return typ{kind: structKind}
	}
	out := slices.Clone(a.alts)
	for _, r := range b.alts {
		if r.shape == nil || !slices.ContainsFunc(out, func(x record) bool { return x.shape == r.shape }) {
			out = append(out, r)
		}
	}
	if len(out) > maxAlts {
		return typ{kind: structKind}
	}
	return typ{kind: structKind, alts: out}
}

// field gives the type of a field of a struct and whether there can be one.
func (t typ) field(name string) (typ, bool) {
	if len(t.alts) == 0 {
		return typ{}, true
	}
	var out typ
	found := false
	for _, a := range t.alts {
		f, ok := a.field(name)
		switch {
		case !ok:
		case found:
			out = join(out, f)
		default:
			out, found = f, true
		}
	}
	return out, found
}

func (r record) field(name string) (typ, bool) {
	if r.shape == nil {
		if i := slices.Index(r.names, name); i >= 0 {
			return r.types[i], true
		}
		return typ{}, false
	}
	if f := r.shape.Field(name); f != nil {
		return typeOf(f.Shape), true
	}
	for _, p := range r.shape.KeyPatterns {
		if p.Re.MatchString(name) {
			return typeOf(p.Shape), true
		}
	}
	if r.shape.Rest != nil {
		return typeOf(r.shape.Rest), true
	}
	return typ{}, false
}

// fields gives the names of all known fields.
func (t typ) fields() []string {
	var l []string
	for _, a := range t.alts {
		l = append(l, a.names...)
		if a.shape != nil {
			for _, f := range a.shape.Fields {
				l = append(l, f.Name)
			}
		}
	}
	return l
}

// comparable tells whether values of the types can be equal.
func comparable(a, b typ) bool {
	return a.kind == b.kind || a.kind <= nilKind || b.kind <= nilKind || a.kind.numeric() && b.kind.numeric()
}
