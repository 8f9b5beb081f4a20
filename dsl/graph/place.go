// Package graph holds what a spec says, as plain data with source places: the
// narrow waist between the language (dsl) and the running program
// (presenters, engine). Nothing here is computed, opened or compiled; names
// are resolved, shapes are compiled, texts are still texts.
package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is a position in a spec. Line and Col count from 1, Col in bytes as
// CUE does. The zero Place is unknown.
type Place struct {
	File string // relative to the folder the program was started in, if below it
	Line int
	Col  int
}

func (p Place) String() string {
	if p.File == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// IsZero tells whether the place is unknown.
func (p Place) IsZero() bool { return p == Place{} }

// Fault is one mistake in a spec, told to its author.
type Fault struct {
	At      Place
	Path    string // field path: tools.billing.get_invoice.sql.query; names that are no identifiers quoted as CUE does
	Message string // what is wrong and what to do; no full stop at the end
	Warning bool   // does not stop the start
}

func (f Fault) String() string {
	s := ""
	if !f.At.IsZero() {
		s = f.At.String() + ": "
	}
	if f.Path != "" {
		s += f.Path + ": "
	}
	if f.Warning {
		s += "warning: "
	}
	return s + f.Message
}

// Faults is a list of mistakes.
type Faults []Fault

// Add appends a fault.
func (f *Faults) Add(at Place, path, format string, args ...any) {
	*f = append(*f, Fault{At: at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// Warn appends a warning.
func (f *Faults) Warn(at Place, path, format string, args ...any) {
	*f = append(*f, Fault{At: at, Path: path, Message: fmt.Sprintf(format, args...), Warning: true})
}

// Fatal tells whether there is a fault that is no warning.
func (f Faults) Fatal() bool {
	return slices.ContainsFunc(f, func(x Fault) bool { return !x.Warning })
}

// Sorted gives the faults by place, each once, without what must not be shown.
func (f Faults) Sorted() Faults {
	s := slices.Clone(f)
	for i := range s {
		s[i].Message, s[i].Path = Concealed(s[i].Message), Concealed(s[i].Path)
	}
	slices.SortStableFunc(s, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.At.File, b.At.File), a.At.Line-b.At.Line, a.At.Col-b.At.Col,
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(s)
}

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = x.String()
	}
	return strings.Join(lines, "\n")
}

// Text is a string of the spec that knows where each of its bytes stands in
// the source.
type Text struct {
	S     string
	At    Place // of the literal
	Path  string
	Marks []Mark // in order of Off; empty: only At is known
}

// Mark says that from byte Off of the text on, bytes stand one after the
// other from Line, Col on, until the next mark.
type Mark struct {
	Off, Line, Col int
	// File is where this part of the text stands, "" for the file of Text.At: a
	// text may be joined from parts that are written in several places.
	File string
	// Fixed says that the part was computed: all its bytes have this one place.
	Fixed bool
}

// Place gives the place of byte off of the text.
func (t *Text) Place(off int) Place {
	p := t.At
	for _, m := range t.Marks {
		if m.Off > off {
			break
		}
		p = Place{File: cmp.Or(m.File, t.At.File), Line: m.Line, Col: m.Col}
		if !m.Fixed {
			p.Col += off - m.Off
		}
	}
	return p
}

// Fault makes a fault at byte off of the text.
func (t *Text) Fault(off int, format string, args ...any) Fault {
	return Fault{At: t.Place(off), Path: t.Path, Message: fmt.Sprintf(format, args...)}
}

// File is a file named in a spec.
type File struct {
	At   Place
	Name string // as written
	Path string // where it is
}
