package expr

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Template is a compiled text with holes. It may be used by many goroutines,
// each with its own Env.
type Template struct {
	parts []part
	reads [][]string
}

// part is a piece of literal text, or a hole.
type part struct {
	text string
	hole *Program
}

// CompileTemplate compiles a text with holes {{ expr }}. A hole ends at the
// }} that stands outside quotes and braces; `{{ "{{" }}` writes two braces.
// A text without a hole that is nothing but a dotted name in scope is a
// fault: its braces were forgotten.
func CompileTemplate(src *graph.Text, scope *Scope) (*Template, graph.Faults) {
	cut, faults := pieces(src)
	t := &Template{}
	var reads [][][]string
	for _, p := range cut {
		if !p.hole {
			t.parts = append(t.parts, part{text: src.S[p.from:p.to]})
			continue
		}
		s := source{src: src, text: src.S[p.from:p.to], base: p.from}
		if strings.TrimSpace(s.text) == "" {
			faults = append(faults, s.fault(p.from-len(open), "an empty hole: write {{ name }}"))
			continue
		}
		prog, f := compile(s, scope, WantAny)
		faults = append(faults, f...)
		if prog != nil {
			t.parts = append(t.parts, part{hole: prog})
			reads = append(reads, prog.reads)
		}
	}
	if len(cut) == 1 && !cut[0].hole && forgotten(src.S, scope) {
		faults = append(faults, src.Fault(0, "this is a text, not a value: write {{ %s }}", src.S))
	}
	if faults.Fatal() {
		return nil, faults
	}
	t.reads = joinReads(reads...)
	return t, faults
}

// forgotten tells whether the text is a dotted name in scope.
func forgotten(s string, scope *Scope) bool {
	segs := strings.Split(s, ".")
	if _, ok := scope.find(segs[0]); !ok || len(segs) < 2 {
		return false
	}
	for _, seg := range segs {
		if seg == "" || strings.ContainsFunc(seg, func(r rune) bool {
			return r != '_' && r != '$' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return false
		}
	}
	return true
}

// IsStatic tells whether the text has no hole; Append then gives the text.
func (t *Template) IsStatic() bool {
	for _, p := range t.parts {
		if p.hole != nil {
			return false
		}
	}
	return true
}

// IsHole tells whether the text is exactly one hole: Value may then give
// something else than a text.
func (t *Template) IsHole() bool { return len(t.parts) == 1 && t.parts[0].hole != nil }

// Value is the value of a text that is exactly one hole, with its type; of any
// other text the string. The error is an *Error.
func (t *Template) Value(e *Env) (any, error) {
	switch {
	case t.IsHole():
		return t.parts[0].hole.Eval(e)
	case len(t.parts) == 0:
		return "", nil
	case len(t.parts) == 1:
		return t.parts[0].text, nil
	}
	b, err := t.Append(nil, e, nil)
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// Append appends the text. What comes from a hole goes through safe (nil: as
// it is), which appends the hole's text to dst in the form that is safe there.
// nil is empty, lists and structs are compact JSON. After an error, which is
// an *Error, dst may hold a part of the text.
func (t *Template) Append(dst []byte, e *Env, safe func(dst []byte, s string) []byte) ([]byte, error) {
	for _, p := range t.parts {
		if p.hole == nil {
			dst = append(dst, p.text...)
			continue
		}
		v, err := p.hole.Eval(e)
		if err != nil {
			return dst, err
		}
		switch s, isText := v.(string); {
		case v == nil:
		case safe == nil:
			dst = value.AppendText(dst, v)
		case isText:
			dst = safe(dst, s)
		default:
			e.run.buf = value.AppendText(e.run.buf[:0], v)
			dst = safe(dst, string(e.run.buf))
		}
	}
	return dst, nil
}

// Reads gives the paths that all holes read, as Program.Reads does.
func (t *Template) Reads() [][]string { return t.reads }
