package presenters

import (
	"fmt"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// fit makes an answer that is larger than its limit small enough: whole rows
// are left out of a list, a text is cut and says so, anything else is answered
// with a failure, because half a JSON document is none.
func (v *View) fit(r *renderer, p *prepared, shown func() any) (*Failure, error) {
	l := &p.plan.limit
	switch {
	case p.list:
		lo, hi := 0, p.n-1 // as many rows as fit lie between them
		for lo < hi {
			mid := (lo + hi + 1) / 2
			p.cut(mid)
			if err := v.write(r, p, shown); err != nil {
				return nil, err
			}
			if l.fits(r.buf) {
				lo = mid
			} else {
				hi = mid - 1
			}
		}
		p.cut(lo)
		if err := v.write(r, p, shown); err != nil {
			return nil, err
		}
	case kindOf(shown()) == "string":
		if r.capText(l) {
			return nil, nil
		}
	}
	if l.fits(r.buf) {
		return nil, nil
	}
	return v.tooLarge(l), nil
}

// capText cuts the data block, a text, to what the other blocks leave of the
// limit; false: they leave no room.
func (r *renderer) capText(l *limit) bool {
	data := r.blocks[r.data]
	rest := append(append([]byte(nil), r.buf[:data.start]...), r.buf[data.end:]...)
	text, ok := l.cutText(r.buf[data.start:data.end], rest)
	if !ok {
		return false
	}
	moved := len(text) - (data.end - data.start)
	tail := append([]byte(nil), r.buf[data.end:]...)
	r.buf = append(append(r.buf[:data.start], text...), tail...)
	r.blocks[r.data].end += moved
	for i := r.data + 1; i < len(r.blocks); i++ {
		r.blocks[i].start += moved
		r.blocks[i].end += moved
	}
	r.side.move(data.end, moved)
	return true
}

// leastText is the smallest limit of bytes for a text: the notice needs room.
const leastText = 1024

// cutText cuts a text so that it, a notice and the rest are within the limit;
// not ok: there is no room for the notice.
func (l *limit) cutText(text, rest []byte) ([]byte, bool) {
	bytes, runes := int64(len(text)), int64(utf8.RuneCount(text))
	what := ""
	if l.bytes > 0 {
		most := max(l.bytes, leastText)
		bytes = most - int64(len(rest))
		what = fmt.Sprintf("%dKB", (most+512)/1024)
	}
	if l.tokens > 0 {
		runes = l.tokens*7/2 - int64(utf8.RuneCount(rest))
		if what == "" {
			what = fmt.Sprintf("%d tokens", l.tokens)
		}
	}
	if int64(len(text)) <= bytes && int64(utf8.RuneCount(text)) <= runes {
		return text, true
	}
	notice := "\n\n[SYSTEM INTERVENTION: Payload truncated at " + what + " to prevent memory crash. " +
		"You MUST use pagination (limit/offset) or filters to retrieve smaller result sets.]"
	if l.bytes > 0 {
		bytes -= int64(len(notice))
	}
	if l.tokens > 0 {
		runes -= int64(len(notice))
	}
	if bytes < 0 || runes < 0 {
		return nil, false
	}
	end, n := 0, int64(0)
	for end < len(text) {
		_, size := utf8.DecodeRune(text[end:])
		if n++; int64(end+size) > bytes || n > runes {
			break
		}
		end += size
	}
	return append(append([]byte(nil), text[:end]...), notice...), true
}

// keys are the fields that the caller asked for; none: all.
func (v *View) keys(c *Call) []string {
	if v.selects {
		return c.Select
	}
	return nil
}

// writeData writes block 1.
func (v *View) writeData(r *renderer, p *prepared, shown func() any) error {
	start := len(r.buf)
	keys := v.keys(r.call)
	if p.rows != nil && !p.plan.toon {
		var err error
		if r.buf, err = p.rows.appendIndent(r.buf, p.n, keys); err != nil {
			return err
		}
		r.buf = defuse(r.buf, start, inJSON)
		r.end(start)
		return nil
	}
	if p.rows != nil {
		if err := p.rows.checkAll(p.n); err != nil {
			return err
		}
	}
	x := picked(shown(), keys)
	if v.structured && !p.plan.toon { // JSON, a text too
		r.buf = defuse(value.AppendIndent(r.buf, x, 0), start, inJSON)
		r.end(start)
		return nil
	}
	switch x := x.(type) {
	case nil:
		r.string("OK")
	case string:
		if x == "" {
			x = "OK"
		}
		r.buf = defuse(append(r.buf, x...), start, inText)
	default:
		if p.plan.toon {
			r.buf = defuse(appendToon(r.buf, x), start, inToon)
		} else {
			r.buf = defuse(value.AppendIndent(r.buf, x, 0), start, inJSON)
		}
	}
	r.end(start)
	return nil
}

// fits tells whether a text is within the limits of bytes and tokens.
func (l *limit) fits(text []byte) bool {
	if l.bytes > 0 && int64(len(text)) > l.bytes {
		return false
	}
	return l.tokens == 0 || Tokens(text) <= l.tokens
}

// Tokens estimates the tokens of a text: ceil(characters / 3.5).
func Tokens(text []byte) int64 {
	return (int64(utf8.RuneCount(text))*2 + 6) / 7
}

func (v *View) tooLarge(l *limit) *Failure {
	bound := fmt.Sprintf("%d bytes", l.bytes)
	if l.bytes == 0 {
		bound = fmt.Sprintf("%d tokens", l.tokens)
	}
	return &Failure{
		Code:       "TOO_LARGE",
		Message:    fmt.Sprintf("[%s] The answer is larger than %s.", v.action, bound),
		Suggestion: "Ask for less: narrow the arguments.",
		Severity:   "error",
	}
}
