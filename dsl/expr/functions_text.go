package expr

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// textFunctions work on texts.
var textFunctions = []function{
	{Function: Function{Signature: "upper(s text) text", Doc: "in capitals", Example: "upper('eur')", Gives: `"EUR"`}, run: textOf(strings.ToUpper)},
	{Function: Function{Signature: "lower(s text) text", Doc: "in small letters", Example: "lower('EUR')", Gives: `"eur"`}, run: textOf(strings.ToLower)},
	{Function: Function{Signature: "trim(s text, chars? text) text", Doc: "without the characters (white space) at both ends", Example: "trim(' a ')", Gives: `"a"`}, run: trim},
	{Function: Function{Signature: "trimPrefix(s text, prefix? text) text", Doc: "without the prefix (a blank), if it is there", Example: "trimPrefix('/a/b', '/a/')", Gives: `"b"`}, run: affix(strings.TrimPrefix)},
	{Function: Function{Signature: "trimSuffix(s text, suffix? text) text", Doc: "without the suffix (a blank), if it is there", Example: "trimSuffix('a.md', '.md')", Gives: `"a"`}, run: affix(strings.TrimSuffix)},
	{Function: Function{Signature: "hasPrefix(s text, prefix text) bool", Doc: "as s startsWith prefix", Example: "hasPrefix('abc', 'ab')", Gives: "true"}, run: testOf(strings.HasPrefix)},
	{Function: Function{Signature: "hasSuffix(s text, suffix text) bool", Doc: "as s endsWith suffix", Example: "hasSuffix('abc', 'bc')", Gives: "true"}, run: testOf(strings.HasSuffix)},
	{Function: Function{Signature: "indexOf(s text, part text) int", Doc: "how many characters stand before the first such part; -1 if there is none", Example: "indexOf('naïve', 'v')", Gives: "3"}, run: indexOf(strings.Index)},
	{Function: Function{Signature: "lastIndexOf(s text, part text) int", Doc: "how many characters stand before the last such part; -1 if there is none", Example: "lastIndexOf('abab', 'b')", Gives: "3"}, run: indexOf(strings.LastIndex)},
	{Function: Function{Signature: "split(s text, separator text, most? int) list", Doc: "the parts between separators, the given number at most", Example: "split('a,b,c', ',')", Gives: `["a","b","c"]`}, run: split(strings.SplitN), typ: texts, makes: true},
	{Function: Function{Signature: "splitAfter(s text, separator text, most? int) list", Doc: "the parts with the separators that end them", Example: "splitAfter('a,b', ',')", Gives: `["a,","b"]`}, run: split(strings.SplitAfterN), typ: texts, makes: true},
	{Function: Function{Signature: "join(list list, separator? text) text", Doc: "the texts of a list, the separator between them", Example: "join(['a', 'b'], ', ')", Gives: `"a, b"`}, run: joinTexts},
	{Function: Function{Signature: "replace(s text, old text, new text, most? int) text", Doc: "with the new text for every old one, or the given number of them", Example: "replace('a-b-c', '-', '+')", Gives: `"a+b+c"`}, run: replace},
	{Function: Function{Signature: "repeat(s text, times int) text", Doc: "the text so many times", Example: "repeat('ab', 3)", Gives: `"ababab"`}, run: repeat},
	{Function: Function{Signature: "fromJSON(s text) any", Doc: "the value of a JSON document", Example: `fromJSON('{"a": [1, 2.50]}').a`, Gives: "[1,2.5]"}, run: fromJSON},
	{Function: Function{Signature: "toBase64(s text) text", Doc: "the bytes of the text in base64", Example: "toBase64('abc')", Gives: `"YWJj"`}, run: toBase64},
	{Function: Function{Signature: "fromBase64(s text) text", Doc: "the text whose bytes these are", Example: "fromBase64('YWJj')", Gives: `"abc"`}, run: fromBase64},
}

func texts([]code) typ { return list(typ{kind: textKind}) }

func textOf(f func(string) string) func(*run, int, []any) (any, error) {
	return func(r *run, off int, args []any) (any, error) {
		s := f(args[0].(string))
		return s, r.text(off, len(s))
	}
}

func testOf(f func(s, t string) bool) func(*run, int, []any) (any, error) {
	return func(_ *run, _ int, args []any) (any, error) {
		return f(args[0].(string), args[1].(string)), nil
	}
}

func trim(_ *run, _ int, args []any) (any, error) {
	if len(args) == 2 {
		return strings.Trim(args[0].(string), args[1].(string)), nil
	}
	return strings.TrimSpace(args[0].(string)), nil
}

func affix(f func(s, t string) string) func(*run, int, []any) (any, error) {
	return func(_ *run, _ int, args []any) (any, error) {
		if len(args) == 2 {
			return f(args[0].(string), args[1].(string)), nil
		}
		return f(args[0].(string), " "), nil
	}
}

func indexOf(f func(s, t string) int) func(*run, int, []any) (any, error) {
	return func(_ *run, _ int, args []any) (any, error) {
		s := args[0].(string)
		i := f(s, args[1].(string))
		if i < 0 {
			return int64(-1), nil
		}
		return int64(utf8.RuneCountInString(s[:i])), nil
	}
}

func split(f func(s, sep string, n int) []string) func(*run, int, []any) (any, error) {
	return func(r *run, off int, args []any) (any, error) {
		s, sep, most := args[0].(string), args[1].(string), int64(-1)
		if len(args) == 3 {
			most, _ = asInt(args[2])
		}
		n := strings.Count(s, sep) + 1
		if most >= 0 {
			n = min(n, int(min(most, MaxCells)))
		}
		if err := r.room(off, n); err != nil {
			return nil, err
		}
		if err := r.tick(off, n); err != nil {
			return nil, err
		}
		parts := f(s, sep, int(min(max(most, -1), MaxCells)))
		out := make([]any, len(parts))
		for i, p := range parts {
			out[i] = p
		}
		return out, nil
	}
}

func joinTexts(r *run, off int, args []any) (any, error) {
	l, _ := seqOf(args[0])
	sep := ""
	if len(args) == 2 {
		sep = args[1].(string)
	}
	if err := r.tick(off, l.len()); err != nil {
		return nil, err
	}
	size := max(0, l.len()-1) * len(sep)
	for i := range l.len() {
		s, ok := l.at(i).(string)
		if !ok {
			return nil, r.fail(off, "join is for a list of texts, not one with %s: write map(…, str(#))", kindOf(l.at(i)))
		}
		if size += len(s); size > MaxText {
			break
		}
	}
	if err := r.text(off, size); err != nil {
		return nil, err
	}
	out := make([]byte, 0, size)
	for i := range l.len() {
		if i > 0 {
			out = append(out, sep...)
		}
		out = append(out, l.at(i).(string)...)
	}
	return string(out), nil
}

func replace(r *run, off int, args []any) (any, error) {
	s, from, to, most := args[0].(string), args[1].(string), args[2].(string), int64(-1)
	if len(args) == 4 {
		most, _ = asInt(args[3])
	}
	n := strings.Count(s, from)
	if most >= 0 {
		n = min(n, int(min(most, MaxText)))
	}
	if err := r.text(off, max(len(s), len(s)+n*(len(to)-len(from)))); err != nil {
		return nil, err
	}
	return strings.Replace(s, from, to, n), nil
}

func repeat(r *run, off int, args []any) (any, error) {
	s := args[0].(string)
	n, _ := asInt(args[1])
	if n < 0 {
		return nil, r.fail(off, "times of repeat must not be negative")
	}
	if s == "" {
		return "", nil
	}
	if err := r.text(off, int(min(n, MaxText+1))*len(s)); err != nil {
		return nil, err
	}
	return strings.Repeat(s, int(n)), nil
}

func fromJSON(r *run, off int, args []any) (any, error) {
	s := args[0].(string)
	if err := r.text(off, len(s)); err != nil {
		return nil, err
	}
	v, err := value.Parse([]byte(s))
	if err != nil {
		return nil, r.fail(off, "s of fromJSON is not a JSON document")
	}
	return v, nil
}

func toBase64(r *run, off int, args []any) (any, error) {
	s := args[0].(string)
	if err := r.text(off, base64.StdEncoding.EncodedLen(len(s))); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

func fromBase64(r *run, off int, args []any) (any, error) {
	s := args[0].(string)
	if err := r.text(off, len(s)); err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, r.fail(off, "s of fromBase64 is not base64")
	}
	if !utf8.Valid(b) {
		return nil, r.fail(off, "s of fromBase64 is not the base64 of a text")
	}
	return string(b), nil
}
