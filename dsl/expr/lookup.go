package expr

import "github.com/fusion-serve/fusion-serve/dsl/shape"

// Lookup gives the type of a name of the scope, nil for an unknown type, and
// whether the scope has the name: for places that refer to names without
// being expressions, such as @ctx.now in SQL.
func (s *Scope) Lookup(n string) (typ *shape.Shape, ok bool) {
	if s == nil {
		return nil, false
	}
	for i := len(s.names) - 1; i >= 0; i-- {
		if s.names[i].name == n {
			return s.names[i].typ, true
		}
	}
	return nil, false
}

// Names gives the names of the scope, for near misses.
func (s *Scope) Names() []string {
	if s == nil {
		return nil
	}
	names := make([]string, len(s.names))
	for i, n := range s.names {
		names[i] = n.name
	}
	return names
}
