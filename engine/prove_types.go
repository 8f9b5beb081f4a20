package engine

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// mayLeave tells whether a column of a type may hold what a schema takes. It
// is only false where no value could pass.
func mayLeave(s *shape.Shape, t *db.Type) bool {
	if t.Kind == db.UnknownType || t.Kind == db.JSONType {
		return true
	}
	switch k := scalarKind(s); k {
	case shape.Any:
		return true
	case shape.Union:
		return slices.ContainsFunc(s.Alts, func(alt *shape.Shape) bool { return mayLeave(alt, t) })
	case shape.Bool:
		return t.Kind == db.BoolType
	case shape.Int, shape.Float:
		return t.Kind == db.IntType || t.Kind == db.ExactType || t.Kind == db.FloatType
	case shape.String:
		return t.Kind == db.TextType || t.Kind == db.FormType
	case shape.List:
		return t.Kind == db.ListType && (t.Elem == nil || s.Items == nil || mayLeave(s.Items, t.Elem))
	case shape.Struct:
		return t.Kind == db.ObjectType
	}
	return false
}

// scalarKind is the kind of a shape; of a constant the kind of its value.
func scalarKind(s *shape.Shape) shape.Kind {
	if s == nil {
		return shape.Any
	}
	if s.Kind != shape.Const {
		return s.Kind
	}
	switch s.Const.(type) {
	case bool:
		return shape.Bool
	case int64:
		return shape.Int
	case float64, value.Number:
		return shape.Float
	case string:
		return shape.String
	}
	return shape.Null
}

func takesNull(s *shape.Shape) bool {
	switch {
	case s == nil || s.Kind == shape.Any || s.Kind == shape.Null:
		return true
	case s.Kind == shape.Const:
		return s.Const == nil
	case s.Kind == shape.Union:
		return slices.ContainsFunc(s.Alts, takesNull)
	}
	return false
}

// forms are the types whose texts no number, bool, list or struct can be.
var forms = map[string]bool{
	"uuid": true, "date": true, "time without time zone": true, "time with time zone": true, "interval": true,
	"timestamp without time zone": true, "timestamp with time zone": true,
}

// booleans are the texts that PostgreSQL takes for true and false.
var booleans = []string{"true", "t", "yes", "y", "on", "1", "false", "f", "no", "n", "off", "0"}

// mayBind tells whether an argument of a declared type may be a parameter of
// a server's type. Arguments go over as texts, which the server reads, so that
// it is only false where it would refuse all of them, or any that is not said
// to be fit.
func mayBind(s *shape.Shape, t *db.Type) bool {
	k := scalarKind(s)
	if k == shape.Any || k == shape.Null {
		return true
	}
	if k == shape.Union {
		return slices.ContainsFunc(s.Alts, func(alt *shape.Shape) bool {
			return scalarKind(alt) != shape.Null && mayBind(alt, t)
		}) || !slices.ContainsFunc(s.Alts, func(alt *shape.Shape) bool { return scalarKind(alt) != shape.Null })
	}
	switch {
	case t.Kind == db.IntType || t.Kind == db.ExactType || t.Kind == db.FloatType:
		return k == shape.Int || k == shape.Float || k == shape.String && readsAs(s, isNumber)
	case t.Kind == db.BoolType:
		return k == shape.Bool || k == shape.String && readsAs(s, isBoolean)
	case forms[t.Name]:
		return k == shape.String
	case t.Kind == db.ListType:
		return k == shape.String || k == shape.Struct || k == shape.List && (t.Elem == nil || s.Items == nil || mayBind(s.Items, t.Elem))
	}
	return true
}

// readsAs tells whether a text may be said to be fit: a constant that is, or
// any text with a pattern or a format.
func readsAs(s *shape.Shape, fit func(string) bool) bool {
	if text, ok := s.Const.(string); ok && s.Kind == shape.Const {
		return fit(text)
	}
	return len(s.Patterns) > 0 || s.Format != ""
}

func isNumber(text string) bool {
	_, err := value.Parse([]byte(text))
	return err == nil && strings.Trim(text, "+-.0123456789eE") == ""
}

func isBoolean(text string) bool { return slices.Contains(booleans, strings.ToLower(text)) }

// kindOf names a type for its author, in CUE's words.
func kindOf(s *shape.Shape) string {
	switch k := scalarKind(s); k {
	case shape.Bool:
		return "a bool"
	case shape.Int:
		return "an int"
	case shape.Float:
		return "a number"
	case shape.String:
		return "a string"
	case shape.List:
		return "a list"
	case shape.Struct:
		return "a struct"
	case shape.Null:
		return "null"
	case shape.Union:
		var kinds []string
		for _, alt := range s.Alts {
			if w := kindOf(alt); !slices.Contains(kinds, w) {
				kinds = append(kinds, w)
			}
		}
		return strings.Join(kinds, " or ")
	}
	return "anything"
}
