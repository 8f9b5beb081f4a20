package expr

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

const open = "{{"

// piece is a stretch of a text: literal, or the inside of a hole.
type piece struct {
	from, to int
	hole     bool
}

// pieces cuts a text into its literal pieces and its holes.
func pieces(src *graph.Text) ([]piece, graph.Faults) {
	var out []piece
	at := 0
	for {
		i := strings.Index(src.S[at:], open)
		if i < 0 {
			break
		}
		if i > 0 {
			out = append(out, piece{from: at, to: at + i})
		}
		from := at + i + len(open)
		end := holeEnd(src.S, from)
		if end < 0 {
			return out, graph.Faults{src.Fault(at+i, "this {{ is not closed: write }}")}
		}
		out = append(out, piece{from: from, to: end, hole: true})
		at = end + len("}}")
	}
	if at < len(src.S) {
		out = append(out, piece{from: at, to: len(src.S)})
	}
	return out, nil
}

// holeEnd gives the byte of the }} that ends the hole which begins at from,
// or -1. Quotes and braces of the expression hide what is inside them.
func holeEnd(s string, from int) int {
	depth := 0
	for i := from; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'', '"', '`':
			i = quoteEnd(s, i)
			if i < 0 {
				return -1
			}
		case '{':
			depth++
		case '}':
			if depth > 0 {
				depth--
				continue
			}
			if strings.HasPrefix(s[i:], "}}") {
				return i
			}
		}
	}
	return -1
}

// quoteEnd gives the byte of the quote that ends the one at i, or -1. Only a
// back-quoted text has no escapes.
func quoteEnd(s string, i int) int {
	q := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && q != '`':
			i++
		case s[i] == q:
			return i
		}
	}
	return -1
}
