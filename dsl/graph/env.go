package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// EnvVar is a declared variable of the environment.
type EnvVar struct {
	Name        string
	At          Place
	Shape       *shape.Shape
	HasDefault  bool
	Default     any
	Optional    bool
	Secret      bool
	Description string
	// Value is what the program sees; nil for a secret, whose value is only
	// put in at open.
	Value any
}

// EnvShape is the type of the name env: the variables that are not secret.
func (g *Graph) EnvShape() *shape.Shape {
	s := &shape.Shape{Kind: shape.Struct}
	for _, v := range g.Env {
		if !v.Secret {
			s.Fields = append(s.Fields, &shape.Field{Name: v.Name, Shape: v.Shape, Optional: v.Optional, Description: v.Description})
		}
	}
	return s
}

// EnvValue is the value of the name env.
func (g *Graph) EnvValue() *value.Object {
	o := &value.Object{}
	for _, v := range g.Env {
		if !v.Secret {
			o.Set(v.Name, v.Value)
		}
	}
	return o
}

// Parse reads the text of an environment variable as the declared type says.
// The error says what the type takes and, unless the variable is secret, what
// was there.
func (v *EnvVar) Parse(text string) (any, error) {
	if v.Secret { // always a text, and never shown
		if _, faults := v.Shape.Check(text); len(faults) > 0 {
			return nil, errors.New("does not fit its type")
		}
		return text, nil
	}
	for _, x := range readings(text) {
		if c, faults := v.Shape.Check(x); len(faults) == 0 {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%q %s", text, misfit(v.Shape, readings(text)[0]))
}

// Lookup finds the value of the variable: that of the environment, else the
// declared default; nil where the variable is optional and not set.
func (v *EnvVar) Lookup(env func(name string) (string, bool)) (any, error) {
	if text, ok := env(v.Name); ok {
		return v.Parse(text)
	}
	switch {
	case v.HasDefault:
		return v.Default, nil
	case v.Optional:
		return nil, nil
	}
	return nil, errors.New("is not set in the environment and has no default")
}

// readings gives what a text may mean, the most special meaning first.
func readings(text string) []any {
	r := make([]any, 0, 2)
	switch t := strings.TrimSpace(text); {
	case t == "true", t == "false":
		r = append(r, t == "true")
	case t == "null":
		r = append(r, nil)
	default:
		if n, err := value.Parse([]byte(t)); err == nil {
			switch n.(type) {
			case int64, float64, value.Number:
				r = append(r, n)
			}
		}
	}
	return append(r, text)
}

// misfit says why a text is none of a type; x is its most special reading.
func misfit(s *shape.Shape, x any) string {
	_, isText := x.(string)
	switch s.Kind {
	case shape.Bool:
		return "is not true or false"
	case shape.Int:
		if _, isInt := x.(int64); !isInt {
			return "is not a whole number"
		}
	case shape.Float:
		if isText {
			return "is not a number"
		}
	case shape.Union:
		var l []string
		for _, a := range s.Alts {
			if a.Kind != shape.Const {
				return "does not fit its type"
			}
			l = append(l, string(value.AppendJSON(nil, a.Const)))
		}
		return "is not one of " + strings.Join(l, ", ")
	}
	return "does not fit its type"
}
