package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// maxKey is the longest key that is kept as it is, in bytes.
const maxKey = 256

// Key is a compiled key of a machine: whose state a call is about.
type Key struct {
	parts     []keyPart
	byArgs    bool
	bySession bool
}

// keyPart is literal text, or a hole with the byte that ends it.
type keyPart struct {
	text string
	hole *expr.Program
	// end is the byte behind the hole, which its text therefore must not have;
	// 0: nothing that varies follows.
	end byte
	// ended says that no literal writes end, so that the hole does.
	ended bool
}

// CompileKey compiles the key of a machine over ctx and args. A machine
// without a key has one state for all.
func CompileKey(f *graph.FSM, scope *expr.Scope) (*Key, graph.Faults) {
	k := &Key{}
	if f.Key == nil {
		return k, nil
	}
	t, faults := expr.CompileTemplate(f.Key, scope)
	if t == nil {
		return nil, faults
	}
	for _, p := range t.Parts() {
		k.parts = append(k.parts, keyPart{text: p.Text, hole: p.Hole})
	}
	k.end()
	for _, r := range t.Reads() {
		k.byArgs = k.byArgs || r[0] == "args"
		k.bySession = k.bySession || r[0] == "ctx" && (len(r) == 1 || r[1] == "session" || r[1] == "**")
	}
	return k, faults
}

// end finds how the text of each hole ends, so that two lists of texts never
// give the same key. The byte of the literal behind it does, if it is one that
// escapes are not made of; otherwise the hole is given a byte of its own.
func (k *Key) end() {
	last := true
	for i := len(k.parts) - 1; i >= 0; i-- {
		p := &k.parts[i]
		if p.hole == nil {
			continue
		}
		if !last {
			p.end, p.ended = '|', true
			if next := k.parts[i+1]; next.hole == nil && separates(next.text[0]) {
				p.end, p.ended = next.text[0], false
			}
		}
		last = false
	}
}

// separates tells whether a byte may end a hole: ASCII, and neither of % nor
// of what stands behind it.
func separates(c byte) bool {
	return c > ' ' && c < 0x7f && c != '%' && !(c >= '0' && c <= '9') && !(c|0x20 >= 'a' && c|0x20 <= 'z')
}

// ByArgs tells whether the key depends on the arguments of the call.
func (k *Key) ByArgs() bool { return k.byArgs }

// BySession tells whether the key depends on the session of the caller.
func (k *Key) BySession() bool { return k.bySession }

// Of gives the key of a call; ok is false if a part of it is nil or empty,
// that is, if the caller has no such identity. Different parts always give
// different keys: what one value could say in the place of another is escaped
// (%2F), and so are control characters and bytes that are no UTF-8, which
// databases refuse. A number has one key however it is written. A key of more
// than 256 bytes is its beginning and its SHA-256.
func (k *Key) Of(env *expr.Env) (key string, ok bool, err error) {
	var room [96]byte // most keys need no more
	b := room[:0]
	for i := range k.parts {
		p := &k.parts[i]
		if p.hole == nil {
			if len(k.parts) == 1 {
				return short(p.text), true, nil
			}
			b = append(b, p.text...)
			continue
		}
		v, err := p.hole.Eval(env)
		if err != nil {
			return "", false, err
		}
		if len(k.parts) == 1 {
			key, ok := KeyOf(v)
			return key, ok, nil
		}
		s := keyText(v)
		if s == "" {
			return "", false, nil
		}
		b = appendEscaped(b, s, p.end)
		if p.ended {
			b = append(b, p.end)
		}
	}
	return short(string(b)), true, nil
}

// KeyOf gives the key that a machine has whose key is one hole with this value;
// ok is as Key.Of says.
func KeyOf(v any) (key string, ok bool) {
	s := keyText(v)
	switch {
	case s == "":
		return "", false
	case plain(s, 0):
		return short(s), true
	}
	return short(string(appendEscaped(nil, s, 0))), true
}

// Plain gives the text of a key that is one hole as it was before it was
// escaped and cut, which is what data know it by; key, the one that Of gives, if
// there is more to it.
func (k *Key) Plain(env *expr.Env, key string) string {
	if len(k.parts) != 1 || k.parts[0].hole == nil {
		return key
	}
	v, err := k.parts[0].hole.Eval(env)
	if err != nil {
		return key
	}
	return keyText(v)
}

// keyText gives the text of a value. Numbers that are equal have
// the same text: a caller who writes 1.00000000000000000000 for 1 must not
// find another state.
func keyText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		if v == 0 {
			return "0" // -0 too
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case value.Number:
		s := string(v)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		if s == "-0" {
			return "0"
		}
		return s
	case []any, *value.Object:
		number := func(dst []byte, v any) []byte { return append(dst, keyText(v)...) }
		return string(value.AppendSorted(nil, v, number)) // in which order a caller writes fields says nothing
	}
	return string(value.AppendText(nil, v))
}

// plain tells whether a text needs no escape.
func plain(s string, end byte) bool {
	for i := range len(s) {
		if c := s[i]; c == '%' || c < ' ' || c >= 0x7f || c == end {
			return false
		}
	}
	return true
}

func appendEscaped(b []byte, s string, end byte) []byte {
	if plain(s, end) {
		return append(b, s...)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch c := s[i]; {
		case r == utf8.RuneError && n == 1, c == '%', c == end, obeyed(r):
			for _, c := range []byte(s[i : i+n]) {
				b = append(b, '%', upperHex[c>>4], upperHex[c&15])
			}
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b
}

// obeyed tells whether a terminal does what a character says instead of showing
// it: an operator reads keys.
func obeyed(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

const upperHex = "0123456789ABCDEF"

// hashed is how much of a long key stays readable. With its hash such a key is
// longer than any that is kept as it is, so that none is taken for another.
const hashed = maxKey - 2*sha256.Size

func short(key string) string {
	if len(key) <= maxKey {
		return key
	}
	cut := hashed
	for !utf8.RuneStart(key[cut]) {
		cut++
	}
	sum := sha256.Sum256([]byte(key))
	return string(slices.Concat([]byte(key[:cut]), []byte("%#"), []byte(hex.EncodeToString(sum[:]))))
}
