package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// helpers are the functions that make texts for people. They know no
// language and no time zone but UTC: the same value gives the same text
// everywhere.
var helpers = []function{
	{Function: Function{Helper: true, Signature: "money(cents int|nil, currency text) text|nil", Doc: "an amount in the smallest unit of a currency (ISO 4217) as units, with as many places as the currency has, and the currency's code; nil stays nil", Example: "money(1250, 'EUR')", Gives: `"12.50 EUR"`}, run: money},
	{Function: Function{Helper: true, Signature: "date(when any, layout? text) text|nil", Doc: "the day of a time in UTC: an RFC 3339 text, a date, or seconds since 1970; layout is Go's, of 2 January 2006 15:04:05; nil stays nil", Example: "date('2026-03-01T23:30:00-02:00')", Gives: `"2026-03-02"`}, run: date},
	{Function: Function{Helper: true, Signature: "unix(when any) int|nil", Doc: "seconds since 1970 of a time as date takes it; nil stays nil", Example: "unix('2026-03-01T09:00:00Z')", Gives: "1772355600"}, run: unix},
	{Function: Function{Helper: true, Signature: "plural(n number, one text, many? text) text", Doc: "the number and its noun; the many are one with an s unless they are given", Example: "plural(2, 'child', 'children')", Gives: `"2 children"`}, run: plural},
	{Function: Function{Helper: true, Signature: "round(x number, places? int) number", Doc: "rounded to so many places behind the point (none), a half away from zero", Example: "round(2.345, 1)", Gives: "2.3"}, run: round, typ: roundType},
	{Function: Function{Helper: true, Signature: "json(x any) text", Doc: "compact JSON, keys in their order", Example: "json({b: 1, a: [true, nil]})", Gives: `"{\"b\":1,\"a\":[true,null]}"`}, run: toJSON},
	{Function: Function{Helper: true, Signature: "str(x any) text", Doc: "a value as a text, as String(x) of JavaScript: a list has commas, a struct is [object Object]", Example: "str([1, 2.50, nil, 'a'])", Gives: `"1,2.5,,a"`}, run: str},
	{Function: Function{Helper: true, Signature: "default(x any, other any) any", Doc: "other where x is nil or an empty text, else x; ?? looks at nil alone", Example: "default('', 'none')", Gives: `"none"`}, run: fallback, typ: fallbackType, flow: flowCompare},
}

// minorUnits are the currencies that do not have two places (ISO 4217).
var minorUnits = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0,
	"PYG": 0, "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4, "UYW": 4,
}

func money(r *run, off int, args []any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	cents, _ := asInt(args[0])
	currency := args[1].(string)
	places, ok := minorUnits[strings.ToUpper(currency)]
	if !ok {
		places = 2
	}
	digits := strconv.FormatInt(cents, 10)
	digits, negative := strings.CutPrefix(digits, "-")
	if missing := places + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	var b strings.Builder
	if negative {
		b.WriteByte('-')
	}
	b.WriteString(digits[:len(digits)-places])
	if places > 0 {
		b.WriteByte('.')
		b.WriteString(digits[len(digits)-places:])
	}
	if currency != "" {
		b.WriteByte(' ')
		b.WriteString(currency)
	}
	return b.String(), r.text(off, b.Len())
}

// layouts are the forms of a time that date and unix take; without a zone it
// is UTC.
var layouts = []string{
	time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "2006-01-02T15:04",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07",
}

func (r *run) when(off int, name string, v any) (time.Time, error) {
	if s, ok := v.(string); ok {
		for _, l := range layouts {
			if t, err := time.Parse(l, s); err == nil {
				return t.UTC(), nil
			}
		}
		return time.Time{}, r.fail(off, "when of %s is a text that is no time: RFC 3339 or 2006-01-02 is one", name)
	}
	n, ok := asNum(v)
	if !ok {
		return time.Time{}, r.fail(off, "when of %s must be a text or seconds since 1970, not %s", name, kindOf(v))
	}
	seconds, ok := floatToInt(math.Floor(n.float()))
	if !ok || seconds < -62135596800 || seconds > 253402300799 {
		return time.Time{}, r.fail(off, "when of %s is not between the years 1 and 9999", name)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func date(r *run, off int, args []any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	layout := time.DateOnly
	if len(args) == 2 {
		s, ok := args[1].(string)
		if !ok {
			return nil, r.fail(off, "layout of date must be a text, not %s", kindOf(args[1]))
		}
		layout = s
	}
	t, err := r.when(off, "date", args[0])
	if err != nil {
		return nil, err
	}
	s := t.Format(layout)
	return s, r.text(off, len(s))
}

func unix(r *run, off int, args []any) (any, error) {
	if args[0] == nil {
		return nil, nil
	}
	t, err := r.when(off, "unix", args[0])
	if err != nil {
		return nil, err
	}
	return t.Unix(), nil
}

func plural(r *run, off int, args []any) (any, error) {
	one := args[1].(string)
	noun := one + "s"
	if len(args) == 3 {
		noun = args[2].(string)
	}
	if order, _ := compareNumbers(args[0], int64(1)); order == 0 {
		noun = one
	}
	s := string(value.AppendText(nil, args[0])) + " " + noun
	return s, r.text(off, len(s))
}

func roundType(args []code) typ {
	if len(args) == 1 {
		return typ{kind: intKind}
	}
	return typ{kind: numberKind}
}

// round works on the shortest decimal form of the number, which is what
// people see: 1.005 to two places is 1.01.
func round(r *run, off int, args []any) (any, error) {
	places := int64(0)
	if len(args) == 2 {
		if places, _ = asInt(args[1]); places < 0 || places > 15 {
			return nil, r.fail(off, "places of round must be from 0 to 15")
		}
	}
	n, _ := asNum(args[0])
	if n.isInt {
		return n.i, nil
	}
	x, ok := new(big.Rat).SetString(strconv.FormatFloat(n.f, 'g', -1, 64))
	if !ok {
		return nil, r.fail(off, "x of round is not a finite number")
	}
	f, err := strconv.ParseFloat(x.FloatString(int(places)), 64)
	if err != nil {
		return nil, r.fail(off, "x of round is not a finite number")
	}
	if places == 0 {
		return wholeIfFits(f), nil
	}
	return f, nil
}

func toJSON(r *run, off int, args []any) (any, error) {
	if err := r.weigh(off, args[0]); err != nil {
		return nil, err
	}
	v, err := r.settle(off, args[0])
	if err != nil {
		return nil, err
	}
	s := string(value.AppendJSON(nil, v))
	return s, r.text(off, len(s))
}

func str(r *run, off int, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return s, nil
	}
	if err := r.weigh(off, args[0]); err != nil {
		return nil, err
	}
	s := string(appendStr(nil, args[0]))
	return s, r.text(off, len(s))
}

func fallbackType(args []code) typ { return join(args[0].typ, args[1].typ) }

func fallback(_ *run, _ int, args []any) (any, error) {
	if args[0] == nil || args[0] == "" {
		return args[1], nil
	}
	return args[0], nil
}
