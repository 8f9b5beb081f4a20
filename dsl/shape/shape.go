// Package shape holds compiled types: what a CUE struct of a spec (params, a
// presenter's schema, claims) says about values, as plain data. One shape
// checks values, fills defaults, strips what is not declared and writes JSON
// Schema 2020-12. There is no CUE inside; package dsl compiles CUE into
// shapes. A shape is not changed once it is built and may be used by many
// goroutines.
package shape

import (
	"regexp"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Kind is the kind of values a shape takes.
type Kind uint8

// The kinds of shapes.
const (
	Any    Kind = iota // every value
	Null               // null only
	Bool               // true, false
	Int                // a whole number; 3.0 is one
	Float              // any number
	String             // text
	Const              // exactly Shape.Const (a scalar)
	List               // a list of Items, or Prefix for a tuple
	Struct             // Fields, Patterns, Rest
	Union              // one of Alts; an enum is a Union of Consts
)

// Shape is one compiled type. Only the members that its kind names count.
type Shape struct {
	Kind Kind

	Const any // Const

	Min, Max   *Bound       // Int, Float
	MultipleOf value.Number // Int, Float; "" for none
	Not        []any        // Int, Float, String: values that are not allowed (CUE's !=)

	Patterns           []Pattern // String: all must hold
	MinRunes, MaxRunes int       // String; MaxRunes < 0: no bound
	Format             string    // String: one of Formats or a LayoutFormat; from @format or CUE's own

	Items              *Shape   // List: the element; nil: any
	Prefix             []*Shape // List: a tuple, one shape a place; what follows is Items, nothing if MaxItems says so
	MinItems, MaxItems int      // List; MaxItems < 0: no bound
	Unique             bool     // List

	Fields      []*Field       // Struct, in order of declaration
	KeyPatterns []PatternField // Struct
	Rest        *Shape         // Struct: what other fields must be; nil: there are none

	Alts []*Shape // Union
	// Discriminator is the constant field that tells the alternatives of a
	// union of structs apart, "" if there is none.
	Discriminator string

	// Name is set where the shape is referred to from inside itself: it
	// becomes a $defs entry.
	Name string
}

// Bound is an end of a range of numbers.
type Bound struct {
	Value     value.Number
	Exclusive bool
}

// Pattern is a regular expression that a text must match, or with Not must not.
type Pattern struct {
	Re  *regexp.Regexp
	Not bool
}

// Field is a declared field of a struct.
type Field struct {
	Name     string
	Shape    *Shape
	Optional bool // written with ?
	// Default is what an absent field becomes, if HasDefault.
	Default    any
	HasDefault bool

	Description string   // the comment above the field
	Title       string   // @title
	Examples    []string // @example, in order
	Secret      bool     // @secret: a sent value is never echoed
}

// PatternField is what every field whose name matches must be (CUE's [=~"…"]: T).
type PatternField struct {
	Re    *regexp.Regexp
	Shape *Shape
}

// Field gives a declared field of a struct shape, or nil.
func (s *Shape) Field(name string) *Field {
	if s == nil {
		return nil
	}
	for _, f := range s.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// The codes of a Fault, those of the recorded validator.
const (
	InvalidType     = "invalid_type"      // Expected
	TooSmall        = "too_small"         // Origin, Limit, Inclusive
	TooBig          = "too_big"           // Origin, Limit, Inclusive
	NotMultipleOf   = "not_multiple_of"   // Limit
	InvalidFormat   = "invalid_format"    // Format; Pattern for regex, not_regex, layout
	InvalidValue    = "invalid_value"     // Values
	InvalidUnion    = "invalid_union"     // Alts
	UnrecognizedKey = "unrecognized_keys" // Keys, Near
	NotUnique       = "not_unique"        // list elements
	Forbidden       = "forbidden_value"   // Values: CUE's !=
	TooDeep         = "nested_too_deeply" // a recursive shape met too deep a value
)

// Fault is one thing that is wrong with a value.
type Fault struct {
	Path      []any // field names (string) and list places (int) from the top
	Code      string
	Expected  string // InvalidType: string, number, int (a number that is not whole was sent), boolean, array, object, null; nonoptional for a missing field of any type
	Missing   bool   // InvalidType, InvalidValue, InvalidUnion: the field is not there
	Origin    string // TooSmall, TooBig: string, number, array
	Limit     string // the bound as it was written
	Inclusive bool   // TooSmall, TooBig
	Format    string // InvalidFormat: one of Formats; regex, not_regex: Pattern must, must not match; layout: Pattern is Go's time layout
	Pattern   string
	Values    []any // InvalidValue: what is allowed; Forbidden: what is not
	Keys      []string
	Near      []string  // beside Keys: the known name that is near, or ""
	Alts      [][]Fault // InvalidUnion: what each alternative finds wrong; nil inside another union
	Got       any       // what was sent
	Secret    bool      // Got must not be shown
}
