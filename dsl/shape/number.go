package shape

import (
	"bytes"
	"math"
	"math/big"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Numbers are compared by their decimal text: exact, without allocation, and
// the same for a value in memory and the cell of a row.

// maxFloatDigits is room for every float64 in plain decimal form.
const maxFloatDigits = 352

// maxDigits bounds the exact arithmetic of multiples: a longer number is none.
const maxDigits = 1000

// decimal appends a number in plain decimal form. Not numbers, NaN, the
// infinities and texts that are no plain decimal (1e999) are not ok.
func decimal(dst []byte, v any) (d []byte, ok bool) {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst, false
		}
		return strconv.AppendFloat(dst, v, 'f', -1, 64), true
	case value.Number:
		return append(dst, v...), isDecimal(v)
	}
	return dst, false
}

// isDecimal tells whether the text is -?digits(.digits)?
func isDecimal[T ~string | ~[]byte](s T) bool {
	i := 0
	if len(s) > 0 && s[0] == '-' {
		i = 1
	}
	digits, dot := 0, false
	for ; i < len(s); i++ {
		switch {
		case isDigit(s[i]):
			digits++
		case s[i] == '.' && !dot && digits > 0:
			dot, digits = true, 0
		default:
			return false
		}
	}
	return digits > 0
}

// parts splits a decimal into its sign, its whole digits without leading and
// its fraction without trailing zeros. Zero has no sign.
func parts[T ~string | ~[]byte](d T) (negative bool, whole, fraction T) {
	if len(d) > 0 && d[0] == '-' {
		negative, d = true, d[1:]
	}
	dot := len(d)
	for i := range len(d) {
		if d[i] == '.' {
			dot = i
			break
		}
	}
	whole, fraction = d[:dot], d[min(dot+1, len(d)):]
	for len(whole) > 0 && whole[0] == '0' {
		whole = whole[1:]
	}
	for len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return negative && len(whole)+len(fraction) > 0, whole, fraction
}

// compareDecimals gives -1, 0 or 1.
func compareDecimals[A, B ~string | ~[]byte](a A, b B) int {
	an, aw, af := parts(a)
	bn, bw, bf := parts(b)
	sign := 1
	switch {
	case an != bn && an:
		return -1
	case an != bn:
		return 1
	case an:
		sign = -1
	}
	if len(aw) != len(bw) {
		if len(aw) < len(bw) {
			return -sign
		}
		return sign
	}
	if n := compareDigits(aw, bw); n != 0 {
		return n * sign
	}
	return compareDigits(af, bf) * sign
}

func compareDigits[A, B ~string | ~[]byte](a A, b B) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	return min(max(len(a)-len(b), -1), 1)
}

func isWhole[T ~string | ~[]byte](d T) bool {
	_, _, fraction := parts(d)
	return len(fraction) == 0
}

// whole gives a whole number its plain form: 3.0 is 3.
func whole(v any, d []byte) any {
	if n, ok := v.(int64); ok {
		return n
	}
	if i := bytes.IndexByte(d, '.'); i >= 0 {
		d = d[:i]
	}
	if n, err := strconv.ParseInt(string(d), 10, 64); err == nil {
		return n
	}
	if f, ok := v.(float64); ok {
		return f
	}
	return value.Number(d)
}

func isMultiple[A, B ~string | ~[]byte](d A, of B) bool {
	if len(d) > maxDigits || len(of) > maxDigits {
		return false
	}
	_, dw, df := parts(d)
	_, ow, mf := parts(of)
	scale := max(len(df), len(mf))
	if scale+max(len(dw), len(ow)) <= 18 { // within int64
		n, m := smallInt(dw, df, scale), smallInt(ow, mf, scale)
		return m != 0 && n%m == 0
	}
	n, m := scaled(string(dw), string(df), scale), scaled(string(ow), string(mf), scale)
	return m.Sign() != 0 && new(big.Int).Rem(n, m).Sign() == 0
}

// smallInt is the number without its point, scale digits behind it.
func smallInt[T ~string | ~[]byte](whole, fraction T, scale int) int64 {
	n := int64(0)
	for i := range len(whole) {
		n = n*10 + int64(whole[i]-'0')
	}
	for i := range scale {
		n *= 10
		if i < len(fraction) {
			n += int64(fraction[i] - '0')
		}
	}
	return n
}

func scaled(whole, fraction string, scale int) *big.Int {
	b := append([]byte(whole), fraction...)
	for range scale - len(fraction) {
		b = append(b, '0')
	}
	n, _ := new(big.Int).SetString("0"+string(b), 10)
	return n
}

// equal compares scalars, numbers by value. Lists and structs are never equal.
func equal(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	}
	switch b.(type) {
	case int64, int, float64, value.Number:
	default:
		return false
	}
	var ab, bb [maxFloatDigits]byte
	ad, ok1 := decimal(ab[:0], a)
	bd, ok2 := decimal(bb[:0], b)
	return ok1 && ok2 && compareDecimals(ad, bd) == 0
}

// appendCanonical writes values so that equal ones are equal texts: numbers
// by value, keys sorted.
func appendCanonical(dst []byte, v any) []byte { return value.AppendSorted(dst, v, appendByValue) }

func appendByValue(dst []byte, v any) []byte {
	var buf [maxFloatDigits]byte
	d, ok := decimal(buf[:0], v)
	if !ok {
		return value.AppendJSON(dst, v)
	}
	negative, whole, fraction := parts(d)
	if negative {
		dst = append(dst, '-')
	}
	dst = append(append(dst, whole...), '.')
	return append(dst, fraction...)
}
