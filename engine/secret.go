package engine

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// scrub takes the values of secrets out of a text for the log: those of the
// environment and those of parameters marked @secret.
func (p *Program) scrub(c *call, s string) string {
	for _, secret := range p.secrets {
		s = strings.ReplaceAll(s, secret, "[REDACTED]")
	}
	if c == nil || c.args == nil {
		return s
	}
	for _, v := range secretArgs(nil, c.tool.graph.Params, c.args, false) {
		if text := string(value.AppendText(nil, v)); text != "" {
			s = strings.ReplaceAll(s, text, "[REDACTED]")
		}
	}
	return s
}

// SecretValues gives what must not stand in the answer to a call: the values
// of its @secret parameters and of the secret variables of the environment.
func (p *Program) SecretValues(tool string, args *value.Object) []any {
	var values []any
	for _, s := range p.secrets {
		values = append(values, s)
	}
	if t := p.tools[tool]; t != nil {
		values = secretArgs(values, t.graph.Params, args, false)
	}
	return values
}

// secretArgs appends the values of @secret fields at any depth of v, which has
// shape s; secret: it lies in such a field itself.
func secretArgs(out []any, s *shape.Shape, v any, secret bool) []any {
	switch v := v.(type) {
	case *value.Object:
		for i := range v.Len() {
			name, x := v.At(i)
			inner, hidden := fieldOf(s, name)
			out = secretArgs(out, inner, x, secret || hidden)
		}
	case []any:
		for i, x := range v {
			out = secretArgs(out, elementOf(s, i), x, secret)
		}
	default:
		if secret && v != nil {
			out = append(out, v)
		}
	}
	return out
}

// fieldOf gives the shape of a field, nil if it has none, and whether it is
// secret; in a union it is when one of the alternatives says so.
func fieldOf(s *shape.Shape, name string) (inner *shape.Shape, secret bool) {
	if s == nil {
		return nil, false
	}
	if f := s.Field(name); f != nil {
		return f.Shape, f.Secret
	}
	for _, a := range s.Alts {
		x, hidden := fieldOf(a, name)
		if hidden {
			return x, true
		}
		if inner == nil {
			inner = x
		}
	}
	if inner == nil {
		inner = s.Rest
	}
	return inner, false
}

// elementOf gives the shape of an element of a list, nil if it has none.
func elementOf(s *shape.Shape, i int) *shape.Shape {
	switch {
	case s == nil:
		return nil
	case i < len(s.Prefix):
		return s.Prefix[i]
	case s.Items != nil:
		return s.Items
	}
	for _, a := range s.Alts {
		if x := elementOf(a, i); x != nil {
			return x
		}
	}
	return nil
}
