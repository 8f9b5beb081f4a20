package dsl

import (
	"strings"
	"unicode/utf8"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// run is a piece of a text with the places of its bytes: the marks' offsets
// count from the piece's own start.
type run struct {
	s     string
	marks []graph.Mark
}

// literalRun decodes a string literal, remembering where each byte stands.
func (p *places) literalRun(lit *ast.BasicLit) (run, bool) {
	if lit.Kind != token.STRING {
		return run{}, false
	}
	info, start, _, err := literal.ParseQuotes(lit.Value, lit.Value)
	if err != nil {
		return run{}, false
	}
	return p.literalPart(lit, info, start, hashes(lit.Value))
}

// literalPart decodes a string literal, or a part of one that stands between
// interpolations, from byte start on.
func (p *places) literalPart(lit *ast.BasicLit, info literal.QuoteInfo, start, hashes int) (run, bool) {
	if len(lit.Value) < start {
		return run{}, false
	}
	at := p.at(lit.Pos())
	// Most literals are plain: the text is what stands between the quotes.
	if q := len(lit.Value) - 1; hashes == 0 && !info.IsMulti() && start == 1 && lit.Value[q] == '"' && q > 0 && !strings.ContainsAny(lit.Value, "\\\r\n") {
		return run{lit.Value[1:q], []graph.Mark{{Line: at.Line, Col: at.Col + 1, File: at.File}}}, true
	}
	want, err := info.Unquote(lit.Value[start:])
	if err != nil {
		return run{}, false
	}
	for _, keepCR := range []bool{false, true} { // CUE keeps one in some literals, and drops it in most
		d := decoder{src: lit.Value, hashes: hashes, multi: info.IsMulti(), indent: info.Whitespace(), keepCR: keepCR,
			place: graph.Mark{Line: at.Line, Col: at.Col, File: at.File}}
		d.skip(start)
		d.decode(len(want))
		if string(d.out) == want {
			return run{want, d.marks}, true
		}
	}
	// Never seen: a wrong place is worse than a coarse one.
	return run{want, []graph.Mark{{Line: at.Line, Col: at.Col, File: at.File, Fixed: true}}}, true
}

// hashes counts the # around a literal; its escapes have as many.
func hashes(lit string) int { return len(lit) - len(strings.TrimLeft(lit, "#")) }

// decoder walks a literal as CUE's own decoder does and notes the places.
type decoder struct {
	src    string
	i      int
	hashes int
	multi  bool
	indent string
	keepCR bool
	place  graph.Mark // of src[i]
	out    []byte
	marks  []graph.Mark
	next   graph.Mark // place that the byte after out has if the run goes on
}

// skip moves over n bytes of the source.
func (d *decoder) skip(n int) {
	for range n {
		if d.src[d.i] == '\n' {
			d.place.Line, d.place.Col = d.place.Line+1, 1
		} else {
			d.place.Col++
		}
		d.i++
	}
}

// emit appends decoded bytes that stand at the place of src[i].
func (d *decoder) emit(b ...byte) {
	if len(d.marks) == 0 || d.place.Line != d.next.Line || d.place.Col != d.next.Col {
		m := d.place
		m.Off = len(d.out)
		d.marks = append(d.marks, m)
		d.next = d.place
	}
	d.out = append(d.out, b...)
	d.next.Col += len(b)
}

// decode goes on until n bytes are decoded.
func (d *decoder) decode(n int) {
	escape := `\` + strings.Repeat("#", d.hashes)
	for len(d.out) < n && d.i < len(d.src) {
		rest := d.src[d.i:]
		switch {
		case rest[0] == '\r' && !d.keepCR:
			d.skip(1)
		case rest[0] == '\n':
			d.emit('\n')
			d.skip(1)
			d.afterNewline()
		case strings.HasPrefix(rest, escape):
			if !d.escape(rest[len(escape):], len(escape)) {
				return
			}
		default:
			d.emit(rest[0])
			d.skip(1)
		}
	}
	if len(d.marks) == 0 {
		d.marks = append(d.marks, d.place)
	}
}

func (d *decoder) afterNewline() {
	if d.multi && strings.HasPrefix(d.src[d.i:], d.indent) {
		d.skip(len(d.indent))
	}
}

// escape decodes what follows the escape of width bytes.
func (d *decoder) escape(rest string, width int) bool {
	if rest == "" {
		return false
	}
	switch c := rest[0]; c {
	case '\n', '\r':
		d.skip(width)
		d.skip(strings.IndexByte(rest, '\n') + 1)
		d.afterNewline()
		return true
	case '(':
		return false
	case 'u', 'U':
		return d.unicode(rest, width)
	default:
		i := strings.IndexByte(`abfnrtv/"'\`, c)
		if i < 0 {
			return false
		}
		d.emit("\a\b\f\n\r\t\v/\"'\\"[i])
		d.skip(width + 1)
		return true
	}
}

// unicode decodes \uXXXX, \UXXXXXXXX and surrogate pairs of the former.
func (d *decoder) unicode(rest string, width int) bool {
	size := width + 5
	if rest[0] == 'U' {
		size = width + 9
	}
	if d.i+size > len(d.src) {
		return false
	}
	text := d.src[d.i : d.i+size]
	plain := `"\` + text[width:] + `"`
	s, err := literal.Unquote(plain)
	if err != nil { // half of a pair
		more := d.src[d.i+size:]
		if len(more) < size {
			return false
		}
		s, err = literal.Unquote(`"\` + text[width:] + `\` + more[width:size] + `"`)
		if err != nil || !utf8.ValidString(s) {
			return false
		}
		size *= 2
	}
	d.emit([]byte(s)...)
	d.skip(size)
	return true
}
