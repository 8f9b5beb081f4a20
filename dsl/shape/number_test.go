package shape

import (
	"math"
	"math/big"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// FuzzDecimals compares the arithmetic on texts with math/big.
func FuzzDecimals(f *testing.F) {
	for _, s := range []string{"0", "-0", "0.0", "1", "-1", "10", "9", "0.1", "0.10", "-0.05", "007", "1.", ".5", "", "-", "1e3", "18446744073709551616", "123456789012345678.5", "--1"} {
		f.Add(s, "0.5")
		f.Add("3", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 500 || len(b) > 500 || !isDecimal(a) || !isDecimal(b) {
			return
		}
		x, ok1 := new(big.Rat).SetString(a)
		y, ok2 := new(big.Rat).SetString(b)
		if !ok1 || !ok2 {
			t.Fatalf("%q and %q are decimals to us only", a, b)
		}
		if got, want := compareDecimals(a, []byte(b)), x.Cmp(y); got != want {
			t.Errorf("compare %s, %s: got %d, want %d", a, b, got, want)
		}
		if got := isWhole(a); got != x.IsInt() {
			t.Errorf("isWhole(%s): %v", a, got)
		}
		want := y.Sign() != 0 && new(big.Rat).Quo(x, orOne(y)).IsInt()
		if got := isMultiple(a, b); got != want {
			t.Errorf("%s is a multiple of %s: got %v, want %v", a, b, got, want)
		}
	})
}

func orOne(r *big.Rat) *big.Rat {
	if r.Sign() == 0 {
		return big.NewRat(1, 1)
	}
	return r
}

func TestEqualByValue(t *testing.T) {
	same := [][]any{
		{int64(3), 3.0, value.Number("3"), value.Number("3.00"), 3},
		{value.Number("9223372036854776000"), 9223372036854775808.0}, // the digits that are written
		{0.1, value.Number("0.10")},
		{int64(0), math.Copysign(0, -1), value.Number("-0.0")},
		{"3"}, {true}, {false}, {nil}, {math.NaN()}, {value.Number("1e999")},
	}
	for i, a := range same {
		for j, b := range same {
			for _, x := range a {
				for _, y := range b {
					want := i == j
					if f, ok := x.(float64); ok && math.IsNaN(f) || x == value.Number("1e999") {
						want = false
					}
					if equal(x, y) != want {
						t.Errorf("equal(%v, %v) is not %v", x, y, want)
					}
				}
			}
		}
	}
}
