package presenters

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Section 3 of the wire format: nothing that comes from data may look like
// structure. The author's text goes out as written; what a hole or a value
// brings is made safe where it stands.

// vocabulary is the tags that the wire format itself uses.
var vocabulary = []string{
	"ui_passthrough", "llm_directives", "domain_rules", "action_suggestions",
	"tool_error", "validation_error", "cache_invalidation", "contract_awareness",
}

// form says how a `<` that must not be one is written.
type form uint8

const (
	inText form = iota // &lt;
	inJSON             // <, the same text to a JSON reader
	inToon             // &lt;, but line breaks inside a cell stand there escaped
)

func (f form) lt() string {
	if f == inJSON {
		return `\u003c`
	}
	return "&lt;"
}

// span is a part of a buffer.
type span struct{ start, end int }

// defuse makes every opening or closing tag of our vocabulary in buf[from:]
// harmless.
func defuse(buf []byte, from int, f form) []byte {
	return defuseHoles(buf, from, f, nil)
}

// defuseHoles does the same, but leaves a tag alone that lies wholly outside
// the holes: the author wrote it. A nil list means that everything is data.
// Tags that a hole only helps to complete are found too, because the text is
// looked at as it will be sent.
func defuseHoles(buf []byte, from int, f form, holes []span) []byte {
	var at []int
	for i := from; ; i++ {
		n := bytes.IndexByte(buf[i:], '<')
		if n < 0 {
			break
		}
		i += n
		end := tagEnd(buf[i:], f)
		if end > 0 && (holes == nil || touches(holes, i, i+end)) {
			at = append(at, i)
		}
	}
	if at == nil {
		return buf
	}
	lt, end := f.lt(), len(buf)
	for range at {
		buf = append(buf, lt[1:]...)
	}
	// From the back, so that every byte moves once.
	to := len(buf)
	for k := len(at) - 1; k >= 0; k-- {
		to -= end - at[k] - 1
		copy(buf[to:], buf[at[k]+1:end])
		to -= len(lt)
		copy(buf[to:], lt)
		end = at[k]
	}
	return buf
}

// touches tells whether a byte of [start,end) comes from a hole.
func touches(holes []span, start, end int) bool {
	for _, h := range holes {
		if h.start < end && start < h.end {
			return true
		}
	}
	return false
}

// tagEnd gives the length of the tag of our vocabulary that b, which starts
// with `<`, opens or closes: any case, any spacing, invisible characters
// ignored. The name must end there. -1: it is no such tag.
func tagEnd(b []byte, f form) int {
	i := 1
	slash := false
	for i < len(b) {
		if n := blank(b[i:], f); n > 0 {
			i += n
			continue
		}
		if b[i] != '/' || slash {
			break
		}
		slash = true
		i++
	}
	if i >= len(b) {
		return -1
	}
	switch b[i] | 0x20 {
	case 'u', 'l', 'd', 'a', 't', 'v', 'c':
	default:
		return -1
	}
	for _, name := range vocabulary {
		if n := nameLen(b[i:], name); n > 0 {
			return i + n
		}
	}
	return -1
}

// nameLen gives the length of name at the start of b, -1 if it is not there
// or goes on.
func nameLen(b []byte, name string) int {
	i, k := 0, 0
	for k < len(name) {
		if i >= len(b) {
			return -1
		}
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c == name[k] {
			i++
			k++
			continue
		}
		n := invisible(b[i:])
		if n == 0 {
			return -1
		}
		i += n
	}
	if i < len(b) && isWord(b[i]) {
		return -1
	}
	return i
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// invisible gives the length of a control or format character (zero width,
// bidi) at the start of b, 0 if there is none.
func invisible(b []byte) int {
	if b[0] < utf8.RuneSelf {
		if b[0] < 0x20 || b[0] == 0x7f {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRune(b)
	if unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Variation_Selector, r) || r == '\u034f' || r == utf8.RuneError {
		return n
	}
	return 0
}

// blank gives the length of spacing at the start of b: white space, invisible
// characters and, where text stands escaped, the escapes of control
// characters.
func blank(b []byte, f form) int {
	if b[0] == ' ' {
		return 1
	}
	if n := invisible(b); n > 0 {
		return n
	}
	if b[0] >= utf8.RuneSelf {
		if r, n := utf8.DecodeRune(b); unicode.IsSpace(r) {
			return n
		}
		return 0
	}
	if f == inText || b[0] != '\\' || len(b) < 2 {
		return 0
	}
	switch b[1] {
	case 'n', 'r', 't', 'f', 'b':
		return 2
	case 'u':
		if len(b) >= 6 && b[2] == '0' && b[3] == '0' && (b[4] == '0' || b[4] == '1' || b[4] == '7' && b[5]|0x20 == 'f') {
			return 6
		}
	}
	return 0
}

// lineBreak gives the length of a line break at the start of s, 0 if there is
// none. \r\n is one.
func lineBreak[T string | []byte](s T) int {
	switch s[0] {
	case '\n', '\v', '\f':
		return 1
	case '\r':
		if len(s) > 1 && s[1] == '\n' {
			return 2
		}
		return 1
	case 0xc2:
		if len(s) > 1 && s[1] == 0x85 { // U+0085
			return 2
		}
	case 0xe2:
		if len(s) > 2 && s[1] == 0x80 && s[2]&^1 == 0xa8 { // U+2028, U+2029
			return 3
		}
	}
	return 0
}

func indexByte[T string | []byte](s T, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// appendBroken appends s with every line break written as br.
func appendBroken[T string | []byte](dst []byte, s T, br string) []byte {
	start := 0
	for i := 0; i < len(s); {
		n := 0
		if c := s[i]; c < 0x20 || c == 0xc2 || c == 0xe2 {
			n = lineBreak(s[i:])
		}
		if n == 0 {
			i++
			continue
		}
		dst = append(append(dst, s[start:i]...), br...)
		i += n
		start = i
	}
	return append(dst, s[start:]...)
}

// appendBullet appends data that stands in a bullet: one value is one bullet.
func appendBullet(dst []byte, s string) []byte { return appendBroken(dst, s, "\n  ") }

// appendCell appends data that stands in a table cell. A backslash before a
// pipe is doubled, or it would take the escape away.
func appendCell[T string | []byte](dst []byte, s T) []byte {
	if isPlainCell(s) {
		return append(dst, s...)
	}
	for {
		i := indexByte(s, '|')
		if i < 0 {
			return appendBroken(dst, s, "<br>")
		}
		dst = appendBroken(dst, s[:i], "<br>")
		for k := len(dst); k > 0 && dst[k-1] == '\\'; k-- {
			dst = append(dst, '\\')
		}
		dst = append(dst, '\\', '|')
		s = s[i+1:]
	}
}

// isPlainCell tells whether nothing of a cell needs another form.
func isPlainCell[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '|' || c == 0xc2 || c == 0xe2 {
			return false
		}
	}
	return true
}

// appendPlain appends data as it is; tags are dealt with in the whole text.
func appendPlain(dst []byte, s string) []byte { return append(dst, s...) }

// appendAttr appends an attribute value: all five escaped, on one line.
func appendAttr(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		n := 0
		if c := s[i]; c < 0x20 || c == 0xc2 || c == 0xe2 {
			n = lineBreak(s[i:])
		}
		if n > 0 {
			dst = append(dst, ' ')
			i += n
			continue
		}
		switch c := s[i]; c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '"':
			dst = append(dst, "&quot;"...)
		case '\'':
			dst = append(dst, "&apos;"...)
		default:
			dst = append(dst, c)
		}
		i++
	}
	return dst
}

// appendElement appends the text of an element: & and < escaped.
func appendElement(dst []byte, s string) []byte {
	start := 0
	for i := range len(s) {
		esc := ""
		switch s[i] {
		case '&':
			esc = "&amp;"
		case '<':
			esc = "&lt;"
		default:
			continue
		}
		dst = append(append(dst, s[start:i]...), esc...)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// fence gives backticks that are more than any run of them in body, three at
// least.
func fence(body []byte) string {
	longest, run := 0, 0
	for _, c := range body {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	if longest < 3 {
		return "```"
	}
	return strings.Repeat("`", longest+1)
}
