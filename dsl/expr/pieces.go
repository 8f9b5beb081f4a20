package expr

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Piece is a stretch of a text: literal, or the expression of a hole.
type Piece struct {
	Text string
	Hole bool
}

// Pieces cuts a text into its literal stretches and its holes, for places
// that look at how a text is made. What stands behind a hole that is not
// closed is left out: CompileTemplate tells of it.
func Pieces(src *graph.Text) []Piece {
	cut, _ := pieces(src)
	out := make([]Piece, len(cut))
	for i, p := range cut {
		out[i] = Piece{Text: src.S[p.from:p.to], Hole: p.hole}
		if p.hole {
			out[i].Text = strings.TrimSpace(out[i].Text)
		}
	}
	return out
}

// Part is a part of a compiled text: literal, or the program of a hole.
type Part struct {
	Text string
	Hole *Program // nil: Text
}

// Parts gives the parts of the text in order, for places that put what comes
// from holes together in their own way.
func (t *Template) Parts() []Part {
	out := make([]Part, len(t.parts))
	for i, p := range t.parts {
		out[i] = Part{Text: p.text, Hole: p.hole}
	}
	return out
}
