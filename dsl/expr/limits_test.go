package expr_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// bombEnv holds data that a hostile caller may send.
func bombEnv() *expr.Env {
	e := expr.NewEnv()
	big := make([]any, 20_000)
	for i := range big {
		big[i] = int64(i)
	}
	e.Set("list", big)
	e.Set("text", strings.Repeat("a", 900_000))
	e.Set("n", int64(1_000_000_000))
	e.Set("rows", invoices(2_000))
	nested := any(int64(1))
	for range 150 {
		nested = []any{nested}
	}
	e.Set("nested", nested)
	return e
}

// TestBombs: every attack on time or memory ends at once in an error that
// says which bound it met. The limit on time is wide for a loaded machine;
// without the bounds most cases take minutes, or all memory.
func TestBombs(t *testing.T) {
	scope := untyped("list", "text", "n", "rows", "nested")
	steps, room := "stopped after 100000 steps", "the lists made here have more than 1000000 elements"
	for _, c := range []struct{ src, want string }{
		{"all(list, all(list, true))", steps},
		{"count(list, any(list, # == -1)) > 0", steps},
		{"map(list, list)", "the result is larger than 67108864 bytes"},
		{"map(list, map(list, 1))", steps},
		{"map(list, text)", "the result is larger than 67108864 bytes"},
		{"1..n", room},
		{"-9223372036854775807..9223372036854775807", room},
		{"map(1..100, 1..100000)", room},
		{"reduce(1..30, #acc + #acc, 'aa')", "the text is longer than 1048576 bytes"},
		{"reduce(1..1000, #acc + text[:100000], '')", "the text is longer than 1048576 bytes"},
		{"reduce(1..1000, concat(#acc, #acc), [1])", steps},
		{"reduce(1..60, [#acc, #acc], 1)", "the result is larger than 67108864 bytes"},
		{"reduce(1..60, ({a: #acc, b: #acc}), 1)", "the result is larger than 67108864 bytes"},
		{"json(reduce(1..60, [#acc, #acc], 1))", "the value is too large for a text of 1048576 bytes"},
		{"str(reduce(1..60, [#acc, #acc], 1))", "the value is too large for a text of 1048576 bytes"},
		{"groupBy([1], reduce(1..60, [#acc, #acc], 1))", "the value is too large for a text of 1048576 bytes"},
		{"flatten(reduce(1..60, [#acc, #acc], 1))", steps},
		{"max(reduce(1..60, [#acc, #acc], 1))", steps},
		{"let a = reduce(1..60, [#acc, #acc], 1); let b = reduce(1..60, [#acc, #acc], 1); a == b", steps},
		{"let a = reduce(1..60, [#acc, #acc], 1); [reduce(1..60, [#acc, #acc], 1)] | uniq() | concat([a]) | uniq()", steps},
		{"let a = reduce(1..60, [#acc, #acc], 1); reduce(1..60, [#acc, #acc], 1) in [a]", steps},
		{"reduce(1..300, [#acc], 1)", "the result nests deeper than 200 levels"},
		{"flatten(reduce(1..300, [#acc], 1))", "the list nests deeper than 200 levels"},
		{"reduce(1..99000, [#acc], 1)", "the result nests deeper than 200 levels"},
		{"str(reduce(1..99000, [#acc], 1))", "the value is too large for a text of 1048576 bytes"},
		{"max(reduce(1..49000, [#acc], 1))", ""},
		{"reduce(1..24000, [#acc], 1) == reduce(1..24000, [#acc], 1)", ""},
		{"repeat('ab', n)", "the text is longer than 1048576 bytes"},
		{"repeat(text, 2)", "the text is longer than 1048576 bytes"},
		{"repeat('', n)", ""},
		{"text + text", "the text is longer than 1048576 bytes"},
		{"map(1..100, text + 'b')", "the texts made here are longer than 8388608 bytes"},
		{"join(map(1..20, text))", "the text is longer than 1048576 bytes"},
		{"join(map(1..n, ''), text)", room},
		{"join(map(1..3, ''), text)", "the text is longer than 1048576 bytes"},
		{"replace(text, 'a', text)", "the text is longer than 1048576 bytes"},
		{"replace(text, '', 'bb')", "the text is longer than 1048576 bytes"},
		{"toBase64(text)", "the text is longer than 1048576 bytes"},
		{"split(text, '')", steps},
		{"map(1..100, split(text, 'a'))", steps},
		{"json(map(1..20, text))", "the value is too large for a text of 1048576 bytes"},
		{"all(1..50000, text contains 'b' or true)", steps},
		{"all(1..50000, text matches 'b' or true)", steps},
		{"all(1..50000, upper(text) == '')", ""},
		{"all(1..50000, upper(text) != '')", "the texts made here are longer than 8388608 bytes"},
		{"all(1..50000, len(text) > 0)", steps},
		{"all(1..50000, text[0:1] == 'a')", steps},
		{"all(1..50000, # in list)", steps},
		{"map(1..50000, reverse(list))", steps},
		{"all(1..50000, len(sort(list)) > 0)", steps},
		{"all(1..50000, len(sortBy(list, -#)) > 0)", steps},
		{"uniq(map(list, [#]))", steps},
		{"all(1..50000, list == list)", steps},
		{"all(1..20000, len(list[1:]) > 0)", ""},
		{"all(1..50000, len(rows[1:]) > 0)", room},
		{"all(1..50000, len(keys(rows[0])) > 0)", steps},
		{"'a' matches (text + 'b')", "the regular expression is longer than 256 bytes"},
		{"text matches repeat('a{1000}', 36)", "the text is too long to be matched with this regular expression"},
		{"text matches 'a{100}b'", "the text is too long to be matched with this regular expression"},
		{"text matches 'a{10}b'", ""},
		{"all(1..50000, 'a' matches (repeat('a{900}', 30) + str(#)) or true)", steps},
		{"date(0, text)", ""},
		{"date(0, repeat('January', 140000))", ""},
		{"n * n * n", "the result does not fit a whole number of 64 bits"},
		{"2.0 ** n", "the result is not a finite number"},
		{"reduce(list, #acc * 2, 1)", "the result does not fit a whole number of 64 bits"},
		{"reduce(1..3000, #acc * 10, 1.5)", "the result is not a finite number"},
		{"len(nested) + max(nested)", ""},
		{"fromJSON(repeat('[', 100000))", "s of fromJSON is not a JSON document"},
	} {
		p, faults := expr.Compile(text(c.src), scope, expr.WantAny)
		if faults != nil {
			t.Error(c.src, faults)
			continue
		}
		start := time.Now()
		_, err := p.Eval(bombEnv())
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", c.src, took)
		}
		got := ""
		var typed *expr.Error
		if errors.As(err, &typed) {
			got = typed.Message
		}
		if got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.src, got, c.want)
		}
	}
}

// TestContextStops: an evaluation looks at its context, over evaluations too.
func TestContextStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e := bombEnv()
	e.SetContext(ctx)
	p := must(expr.Compile(text("count(list, # > 0)"), untyped("list"), expr.WantAny))
	if v, err := p.Eval(e); v != int64(19_999) || err != nil {
		t.Fatal(v, err)
	}
	cancel()
	_, err := p.Eval(e)
	if !errors.Is(err, context.Canceled) || err.Error() != "s.cue:1:1: stopped: context canceled" {
		t.Errorf("after cancel: %v", err)
	}
	small := must(expr.Compile(text("1 > 0"), nil, expr.WantBool))
	f := e.Fork()
	for range 5000 {
		if _, err = small.Bool(f); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Error("many small evaluations never looked at the context")
	}
}

// TestSizeOfSource: expressions are bounded before they run.
func TestSizeOfSource(t *testing.T) {
	nested := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for src, want := range map[string]string{
		strings.Repeat("1+", 400) + "1":    "the expression has more than 500 parts",
		nested("(", "1", ")", 9000):        "the expression is longer than 16384 bytes",
		nested("(", "1", ")", 8000):        "",
		nested("[", "1", "]", 8000):        "the expression has more than 500 parts",
		strings.Repeat("-", 16000) + "1":   "the expression has more than 500 parts",
		strings.Repeat("not ", 400) + "x":  "there is no \"x\" here",
		strings.Repeat("(", 16000):         "the expression ends too early",
		strings.Repeat("[1,", 5000):        "the expression has more than 500 parts",
		strings.Repeat("{a:", 5000):        "the expression has more than 500 parts",
		strings.Repeat("any([],", 2000):    "the expression has more than 500 parts",
		"'" + strings.Repeat("x", 20000):   "the expression is longer than 16384 bytes",
		strings.Repeat("true ? 1 : ", 900): "the expression has more than 500 parts",
		"\xff":                             "the expression is not UTF-8",
	} {
		_, faults := expr.Compile(text(src), nil, expr.WantAny)
		got := ""
		if len(faults) > 0 {
			got = faults[0].Message
		}
		if got != want {
			t.Errorf("%.40s… (%d bytes): %q, want %q", src, len(src), got, want)
		}
	}
}

// TestLargeOrigins: following where values come from stays bounded too.
func TestLargeOrigins(t *testing.T) {
	var b strings.Builder
	b.WriteString("let a0 = data; ")
	for i := range 40 {
		fmt.Fprintf(&b, "let a%d = {x: a%d, y: a%d}; ", i+1, i, i)
	}
	b.WriteString("(true ? a40 : a39).x")
	start := time.Now()
	p, faults := expr.Compile(text(b.String()), untyped("data"), expr.WantAny)
	if faults != nil {
		t.Fatal(faults)
	}
	if got := paths(p.Reads()); got != "data.**" {
		t.Errorf("reads %s", got)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("compiling took %v", took)
	}
	e := expr.NewEnv()
	e.Set("data", value.Of("a", int64(1)))
	if _, err := p.Eval(e); err == nil || err.Error() != "s.cue:1:5: the result is larger than 67108864 bytes" {
		t.Errorf("a result of 2^39 copies gives %v", err)
	}
}
