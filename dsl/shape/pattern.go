package shape

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// CUE's expressions are RE2, those of JSON Schema are ECMA 262. Most say the
// same in both; one that uses what only RE2 knows is written anew.

// onlyRE2 finds the pieces of an expression that ECMA 262 does not know or reads
// otherwise.
var onlyRE2 = regexp.MustCompile(`\(\?[^:]|\\[AzQEaCx]|\\[pP][A-Z]|\[\[:`)

// schemaPattern gives the expression as JSON Schema writes it.
func schemaPattern(re *regexp.Regexp) string {
	src := re.String()
	if !onlyRE2.MatchString(src) {
		return src
	}
	p, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return src
	}
	var b strings.Builder
	writePattern(&b, p)
	return b.String()
}

func writePattern(b *strings.Builder, p *syntax.Regexp) {
	switch p.Op {
	case syntax.OpNoMatch:
		b.WriteString(`[^\s\S]`)
	case syntax.OpEmptyMatch:
		b.WriteString(`(?:)`)
	case syntax.OpLiteral:
		for _, r := range p.Rune {
			writeLiteral(b, r, p.Flags&syntax.FoldCase != 0)
		}
	case syntax.OpCharClass:
		writeClass(b, p.Rune)
	case syntax.OpAnyCharNotNL:
		b.WriteString(`[^\n]`)
	case syntax.OpAnyChar:
		b.WriteString(`[\s\S]`)
	case syntax.OpBeginText:
		b.WriteByte('^')
	case syntax.OpEndText:
		b.WriteByte('$')
	case syntax.OpBeginLine:
		b.WriteString(`(?:^|(?<=\n))`)
	case syntax.OpEndLine:
		b.WriteString(`(?=\n|$)`)
	case syntax.OpWordBoundary:
		b.WriteString(`\b`)
	case syntax.OpNoWordBoundary:
		b.WriteString(`\B`)
	case syntax.OpCapture:
		writeGroup(b, p.Sub[0])
	case syntax.OpConcat:
		for _, s := range p.Sub {
			if s.Op == syntax.OpAlternate {
				writeGroup(b, s)
				continue
			}
			writePattern(b, s)
		}
	case syntax.OpAlternate:
		for i, s := range p.Sub {
			if i > 0 {
				b.WriteByte('|')
			}
			writePattern(b, s)
		}
	default:
		writeRepeat(b, p)
	}
}

func writeGroup(b *strings.Builder, p *syntax.Regexp) {
	b.WriteString("(?:")
	writePattern(b, p)
	b.WriteByte(')')
}

func writeRepeat(b *strings.Builder, p *syntax.Regexp) {
	writeGroup(b, p.Sub[0])
	switch p.Op {
	case syntax.OpStar:
		b.WriteByte('*')
	case syntax.OpPlus:
		b.WriteByte('+')
	case syntax.OpQuest:
		b.WriteByte('?')
	case syntax.OpRepeat:
		switch {
		case p.Max < 0:
			fmt.Fprintf(b, "{%d,}", p.Min)
		case p.Max == p.Min:
			fmt.Fprintf(b, "{%d}", p.Min)
		default:
			fmt.Fprintf(b, "{%d,%d}", p.Min, p.Max)
		}
	}
	if p.Flags&syntax.NonGreedy != 0 {
		b.WriteByte('?')
	}
}

func writeLiteral(b *strings.Builder, r rune, fold bool) {
	if !fold || unicode.SimpleFold(r) == r {
		b.WriteString(escapeRune(r))
		return
	}
	b.WriteByte('[')
	b.WriteString(escapeInClass(r))
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		b.WriteString(escapeInClass(f))
	}
	b.WriteByte(']')
}

// writeClass writes ranges of runes. The last range may go to the end of
// Unicode, which only the u flag could write: then the class is negated.
func writeClass(b *strings.Builder, ranges []rune) {
	if len(ranges) == 0 {
		b.WriteString(`[^\s\S]`)
		return
	}
	b.WriteByte('[')
	if ranges[len(ranges)-1] == unicode.MaxRune && ranges[0] == 0 {
		b.WriteByte('^')
		ranges = gaps(ranges)
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		b.WriteString(escapeInClass(ranges[i]))
		if ranges[i+1] > ranges[i] {
			b.WriteByte('-')
			b.WriteString(escapeInClass(ranges[i+1]))
		}
	}
	b.WriteByte(']')
}

// gaps are the runes between the ranges.
func gaps(ranges []rune) []rune {
	var g []rune
	for i := 1; i+1 < len(ranges); i += 2 {
		g = append(g, ranges[i]+1, ranges[i+1]-1)
	}
	return g
}

func escapeInClass(r rune) string {
	if r == '-' {
		return `\-`
	}
	return escapeRune(r)
}

func escapeRune(r rune) string {
	switch {
	case strings.ContainsRune(`\^$.*+?()[]{}|/`, r):
		return `\` + string(r)
	case r < 0x20 || r == 0x7f:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// layoutPattern is the pattern of texts in a layout that is made of numbers
// of fixed width and punctuation, "" for another one.
func layoutPattern(layout string) string {
	var b strings.Builder
	b.WriteByte('^')
	for rest := layout; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "2006"):
			b.WriteString("[0-9]{4}")
			rest = rest[4:]
		case strings.HasPrefix(rest, "15"): // Go reads one digit, too
			b.WriteString("[0-9]{1,2}")
			rest = rest[2:]
		case len(rest) >= 2 && strings.Contains(" 01 02 03 04 05 06 ", " "+rest[:2]+" "):
			b.WriteString("[0-9]{2}")
			if rest[:2] == "05" { // Go reads a fraction that the layout does not name
				b.WriteString(`([.,][0-9]+)?`)
			}
			rest = rest[2:]
		case strings.HasPrefix(rest, ".0"), strings.HasPrefix(rest, ".9"), rest[0] == '_', isDigit(rest[0]), isLetter(rest[0]) && rest[0] != 'T':
			return ""
		default:
			b.WriteString(escapeRune(rune(rest[0])))
			rest = rest[1:]
		}
	}
	b.WriteByte('$')
	return b.String()
}
