package presenters

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// SecretReads gives a fault for every read of an @secret() parameter in a text
// whose words leave: the author would send what the caller was promised that
// nothing shows. scope has the type of args; advice ends the fault.
func SecretReads(t *graph.Text, reads [][]string, scope *expr.Scope, advice string) graph.Faults {
	params, ok := scope.Lookup("args")
	if !ok || params == nil {
		return nil
	}
	var out graph.Faults
	for _, read := range reads {
		if len(read) > 0 && read[0] == "args" && readsSecret(params, read[1:]) {
			read = slices.DeleteFunc(slices.Clone(read), func(s string) bool { return s == "**" })
			out = append(out, t.Fault(0, "this would send %s, which is secret or holds a secret: %s", readText(read), advice))
		}
	}
	return out
}

// The advice of SecretReads: where the author may insist, and where not.
const (
	LeaveOut         = "leave it out"
	LeaveOutOrInsist = "leave it out, or say unmasked: true to show it all the same"
)

// readsSecret tells whether a read ends at, above or below a secret field.
func readsSecret(s *shape.Shape, read []string) bool {
	if s == nil {
		return false
	}
	if len(read) == 0 || read[0] == "**" {
		return len(read) > 0 && hasSecret(s, 0)
	}
	for _, a := range s.Alts {
		if readsSecret(a, read) {
			return true
		}
	}
	if read[0] == "*" {
		for _, x := range append(slices.Clone(s.Prefix), s.Items, s.Rest) {
			if readsSecret(x, read[1:]) {
				return true
			}
		}
		return slices.ContainsFunc(s.Fields, func(f *shape.Field) bool { return f.Secret || readsSecret(f.Shape, read[1:]) })
	}
	if f := s.Field(read[0]); f != nil {
		return f.Secret || readsSecret(f.Shape, read[1:])
	}
	for _, p := range s.KeyPatterns {
		if readsSecret(p.Shape, read[1:]) {
			return true
		}
	}
	return readsSecret(s.Rest, read[1:])
}
