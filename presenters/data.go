package presenters

import (
	"fmt"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// dataBlock writes block 1. Where it is larger than the limit, whole rows are
// left out; what has no rows and is too large is answered with the failure
// that it gives.
func (v *View) dataBlock(r *renderer, p *prepared, shown func() any) *Response {
	start := len(r.buf)
	v.writeData(r, p, shown)
	l := &p.plan.limit
	if l.fits(r.buf[start:]) {
		r.end(start)
		return nil
	}
	if !p.list {
		return v.tooLarge(l).Response()
	}
	lo, hi := 0, p.n-1 // as many rows as fit lie between them
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if v.writeRows(r, p, shown, start, mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	v.writeRows(r, p, shown, start, lo)
	r.end(start)
	return nil
}

// writeRows writes the block with the first n rows and tells whether it fits.
func (v *View) writeRows(r *renderer, p *prepared, shown func() any, start, n int) bool {
	p.cut(n)
	r.buf = r.buf[:start]
	v.writeData(r, p, shown)
	return p.plan.limit.fits(r.buf[start:])
}

func (v *View) writeData(r *renderer, p *prepared, shown func() any) {
	start := len(r.buf)
	var keys []string
	if v.selects {
		keys = r.call.Select
	}
	if p.rows != nil && !p.plan.toon {
		r.buf = p.rows.appendIndent(r.buf, p.n, keys)
		r.buf = defuse(r.buf, start, inJSON)
		return
	}
	x := picked(shown(), keys)
	switch s := x.(type) {
	case nil:
		r.string("OK")
	case string:
		if s == "" {
			s = "OK"
		}
		r.buf = defuse(append(r.buf, s...), start, inText)
	default:
		if p.plan.toon {
			r.buf = defuse(appendToon(r.buf, x), start, inToon)
			return
		}
		r.buf = defuse(value.AppendIndent(r.buf, x, 0), start, inJSON)
	}
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
