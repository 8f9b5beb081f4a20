package presenters

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// primitive writes a scalar; numbers without an exponent. (§2)
func (t toon) primitive(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		if t.mustQuote(v) {
			return value.AppendString(dst, v)
		}
		return append(dst, v...)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(dst, "null"...)
		}
		if v == 0 {
			return append(dst, '0')
		}
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	case value.Number:
		return appendDecimal(dst, string(v))
	}
	return value.AppendJSON(dst, v)
}

// appendDecimal writes a number without its exponent. One of more than
// maxZeros digits is written as a text.
func appendDecimal(dst []byte, s string) []byte {
	const maxZeros = 1000
	mantissa, exponent, ok := strings.Cut(strings.ToLower(s), "e")
	if !ok {
		return append(dst, s...)
	}
	shift, err := strconv.Atoi(exponent)
	if err != nil || shift > maxZeros || shift < -maxZeros {
		return value.AppendString(dst, s)
	}
	if strings.HasPrefix(mantissa, "-") {
		dst, mantissa = append(dst, '-'), mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+shift
	if point <= 0 {
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole = strings.TrimLeft(digits[:point], "0")
	if whole == "" {
		whole = "0"
	}
	dst = append(dst, whole...)
	if fraction = strings.TrimRight(digits[point:], "0"); fraction != "" {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst
}

// key writes a key; one that is no plain name stands in quotes. (§7.3)
func (t toon) key(dst []byte, k string) []byte {
	for i := range len(k) {
		c := k[i]
		if c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && (c == '.' || c >= '0' && c <= '9') {
			continue
		}
		return value.AppendString(dst, k)
	}
	if k == "" {
		return append(dst, `""`...)
	}
	return append(dst, k...)
}

// mustQuote tells whether a text would be read as something else without
// quotes. (§7.2)
func (t toon) mustQuote(s string) bool {
	switch s {
	case "", "true", "false", "null":
		return true
	}
	if s[0] == '-' || s[0] == '#' || !utf8.ValidString(s) {
		return true
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case ':', '"', '\\', '[', ']', '{', '}':
			return true
		default:
			if c < 0x20 || c == t.delim {
				return true
			}
		}
	}
	first, _ := utf8.DecodeRuneInString(s)
	last, _ := utf8.DecodeLastRuneInString(s)
	return isSpace(first) || isSpace(last) || looksNumeric(s)
}

// isSpace tells whether a reader may trim a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

// looksNumeric tells whether a text reads as a number: +1, 05, 1e-6.
func looksNumeric(s string) bool {
	if s[0] == '+' {
		s = s[1:]
	}
	s, ok := digits(s)
	if !ok {
		return false
	}
	if strings.HasPrefix(s, ".") {
		if s, ok = digits(s[1:]); !ok {
			return false
		}
	}
	if s == "" {
		return true
	}
	if s[0]|0x20 != 'e' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	rest, ok := digits(s)
	return ok && rest == ""
}

// digits takes the digits at the start of a text, one at least.
func digits(s string) (rest string, ok bool) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[n:], n > 0
}
