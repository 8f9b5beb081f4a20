package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// untyped is a scope in which every name is of any type.
func untyped(names ...string) *expr.Scope {
	var s *expr.Scope
	for _, n := range names {
		s = s.With(n, nil)
	}
	return s
}

func sampleRows() *value.Rows {
	rows := value.NewRows([]string{"id", "status", "amount", "doc"})
	for _, r := range [][4]string{{"b", "paid", "1.50", `{"z":1,"a":[2]}`}, {"a", "open", "3", "null"}, {"c", "paid", "2.00", "[]"}} {
		rows.Add(value.Text, []byte(r[0]))
		rows.Add(value.Text, []byte(r[1]))
		rows.Add(value.Exact, []byte(r[2]))
		rows.Add(value.JSON, []byte(r[3]))
	}
	return rows
}

func sampleData() *value.Object {
	line := func(sku string, qty int64) *value.Object { return value.Of("sku", sku, "qty", qty) }
	return value.Of(
		"id", "INV-3", "status", "overdue", "amount_cents", int64(1250), "open", true,
		"price", value.Number("1.50"), "big", value.Number("1208925819614629174706176"),
		"rate", value.Number("0.1"), "exact", value.Number("3"), "three", 1.0,
		"lines", []any{line("x", 1), line("y", 2)},
		"customer", value.Of("name", "Ann", "tags", []any{"x", "y"}),
		"nobody", nil, "nothing", []any{}, "x-y", "dash", "pattern", "((",
	)
}

// TestValues compares results, or the error with its place, with
// testdata/values.txt. The rows of an answer and the same rows as a list of
// objects must give the same.
func TestValues(t *testing.T) {
	scope := untyped("data", "items")
	for _, c := range cases(t, "testdata/values.txt") {
		for _, items := range []any{sampleRows(), sampleRows().List()} {
			if got := valueOf(c.in, scope, items); got != c.out {
				t.Errorf("%s with items %T\n got: %s\nwant: %s", c.in, items, got, c.out)
			}
		}
	}
}

func valueOf(src string, scope *expr.Scope, items any) string {
	p, faults := expr.Compile(text(src), scope, expr.WantAny)
	if faults != nil {
		return "fault " + faults.Error()
	}
	e := expr.NewEnv()
	e.Set("data", sampleData())
	e.Set("items", items)
	v, err := p.Eval(e)
	if err != nil {
		var typed *expr.Error
		if !errors.As(err, &typed) || typed.At.IsZero() {
			return "an error without a place: " + err.Error()
		}
		return err.Error()
	}
	return string(value.AppendJSON(nil, v))
}

// TestPicksAreTheOriginal: what is only picked is the value itself, so that
// nothing of it is lost.
func TestPicksAreTheOriginal(t *testing.T) {
	data := sampleData()
	lines, _ := data.Get("lines")
	e := expr.NewEnv()
	e.Set("data", data)
	e.Set("items", lines)
	for src, want := range map[string]any{
		"data":                         data,
		"data.open ? data : nil":       data,
		"find(items, .qty == 2)":       lines.([]any)[1],
		"filter(items, .qty == 2)[0]":  lines.([]any)[1],
		"sortBy(items, -.qty)[0]":      lines.([]any)[1],
		"{a: [data]}.a[0]":             data,
		"let x = items[1]; x ?? data":  lines.([]any)[1],
		"groupBy(items, .sku)['y'][0]": lines.([]any)[1],
		"reduce(items, #)":             lines.([]any)[1],
	} {
		v, err := must(expr.Compile(text(src), untyped("data", "items"), expr.WantAny)).Eval(e)
		if err != nil || v != want {
			t.Errorf("%s gives %v (%v), not the original", src, v, err)
		}
	}
}

// TestErrorIsTyped: the place, the path and the text of a failure.
func TestErrorIsTyped(t *testing.T) {
	src := text("data.open &&\n  data.nobody.x > 1")
	src.Path = "tools.a.errors[0].when"
	e := expr.NewEnv()
	e.Set("data", sampleData())
	_, err := must(expr.Compile(src, untyped("data"), expr.WantBool)).Bool(e)
	var typed *expr.Error
	if !errors.As(err, &typed) {
		t.Fatalf("%T is no *expr.Error", err)
	}
	want := "s.cue:2:15: tools.a.errors[0].when: data.nobody is nil: where it may be missing write ?.x"
	if err.Error() != want || typed.At.Line != 2 || typed.At.Col != 15 {
		t.Errorf("got %s\nwant %s", err, want)
	}
}

// TestErrorsHoldNoValue: an error goes into the log and may not carry data.
func TestErrorsHoldNoValue(t *testing.T) {
	const secret = "s3cret"
	e := expr.NewEnv()
	e.Set("a", secret)
	e.Set("b", value.Of(secret, secret))
	for _, src := range []string{
		"a + 1", "a > 1", "a.x", "a[0]", "int(a)", "float(a)", "date(a)", "fromJSON(a)", "fromBase64(a)", "a in a",
		"b + 1", "-b", "sort([a, 1])", "sum([a])", "'x' matches (a + '(')", "filter(a, true)", "money(a, a)", "not a",
		"join([b])", "max(b)", "len(1 + int(a))", "[1][a]", "repeat(a, -1)", "sort([1], a)", "b.x.y", "fromPairs([[b, 1]])",
	} {
		p, faults := expr.Compile(text(src), untyped("a", "b"), expr.WantAny)
		if faults != nil {
			t.Error(faults)
			continue
		}
		if v, err := p.Eval(e); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s gives %v, %v", src, v, err)
		}
	}
}

// TestBool: a condition that comes out as something else is an error.
func TestBool(t *testing.T) {
	e := expr.NewEnv()
	e.Set("data", sampleData())
	for src, want := range map[string]string{
		"data.open":    "true <nil>",
		"data.nobody":  "false s.cue:1:1: must be true or false, not nil",
		"data.missing": "false s.cue:1:1: must be true or false, not nil",
		"data.id":      "false s.cue:1:1: must be true or false, not a text",
		"data.lines":   "false s.cue:1:1: must be true or false, not a list",
	} {
		ok, err := must(expr.Compile(text(src), untyped("data"), expr.WantBool)).Bool(e)
		got := map[bool]string{true: "true", false: "false"}[ok] + " <nil>"
		if err != nil {
			got = "false " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}
