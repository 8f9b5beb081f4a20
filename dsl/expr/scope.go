package expr

import (
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// Scope is the set of names that an expression of one kind of place may see,
// with their types. A Scope is not changed once it is made. The nil and the
// zero Scope have no names.
type Scope struct {
	names []name
}

type name struct {
	name string
	typ  *shape.Shape
}

// With gives a scope with one more name; a nil type is unknown (any). A name
// that is there already gets the new type.
func (s *Scope) With(n string, typ *shape.Shape) *Scope {
	out := &Scope{}
	if s != nil {
		for _, x := range s.names {
			if x.name != n {
				out.names = append(out.names, x)
			}
		}
	}
	out.names = append(out.names, name{n, typ})
	return out
}

func (s *Scope) find(n string) (*shape.Shape, bool) {
	if s != nil {
		for _, x := range s.names {
			if x.name == n {
				return x.typ, true
			}
		}
	}
	return nil, false
}

func (s *Scope) list() []string {
	var l []string
	if s != nil {
		for _, x := range s.names {
			l = append(l, x.name)
		}
	}
	return l
}
