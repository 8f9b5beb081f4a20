package expr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// FuzzEval compiles and runs anything: no panic, no long run, every failure
// typed and placed inside the text.
func FuzzEval(f *testing.F) {
	for _, name := range []string{"testdata/values.txt", "testdata/faults.txt", "testdata/reads.txt"} {
		for _, c := range cases(f, name) {
			f.Add(c.in)
		}
	}
	f.Add("reduce(1..60, [#acc, #acc], 1)")
	scope := specScope()
	loose := untyped("data", "items", "args", "item", "omitted")
	f.Fuzz(func(t *testing.T, src string) {
		start := time.Now()
		for _, s := range []*expr.Scope{scope, loose} {
			p, faults := expr.Compile(text(src), s, expr.WantAny)
			for _, x := range faults {
				if x.At.Line < 1 || x.At.Col < 1 || x.Message == "" || strings.Contains(x.Message, "\n") && !strings.Contains(src, "\n") {
					t.Errorf("%q: fault %v", src, x)
				}
			}
			if (p == nil) != faults.Fatal() {
				t.Fatalf("%q: program %v, faults %v", src, p, faults)
			}
			if p == nil {
				continue
			}
			e := sampleEnv()
			v, err := p.Eval(e)
			var typed *expr.Error
			if err != nil && (!errors.As(err, &typed) || typed.At.IsZero()) {
				t.Errorf("%q: error %v", src, err)
			}
			if strings.Contains(typedMessage(typed), "mistake in the expression's functions") {
				t.Errorf("%q: %v", src, err)
			}
			if err == nil {
				check(t, src, v)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q took %v", src, took)
		}
	})
}

func typedMessage(e *expr.Error) string {
	if e == nil {
		return ""
	}
	return e.Message
}

// check demands that a result is made of the types of package value alone.
func check(t *testing.T, src string, v any) {
	switch v := v.(type) {
	case nil, bool, int64, float64, value.Number, string, *value.Rows:
	case []any:
		for _, x := range v {
			check(t, src, x)
		}
	case *value.Object:
		for i := range v.Len() {
			_, x := v.At(i)
			check(t, src, x)
		}
	default:
		t.Errorf("%q gives a %T", src, v)
	}
}

// FuzzTemplate: whatever the text, its literal parts come out as they are and
// in their order, and holes only through safe.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "a {{ data.id }} b", "{{ {a: {b: 1}}}}", "{{ '}}' }}{{ \"{{\" }}", "{{", "}}", "{{}}", "{{ data.id", "{{ `", "\xff{{ 1 }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, faults := expr.CompileTemplate(text(src), untyped("data", "items"))
		if (tmpl == nil) != faults.Fatal() {
			t.Fatalf("%q: template %v, faults %v", src, tmpl, faults)
		}
		if tmpl == nil {
			return
		}
		if tmpl.IsStatic() != !strings.Contains(src, "{{") {
			t.Errorf("%q: static is %v", src, tmpl.IsStatic())
		}
		const hole = "\x00\x01hole\x01\x00"
		if strings.Contains(src, hole) {
			return
		}
		out, err := tmpl.Append(nil, sampleEnv(), func(dst []byte, _ string) []byte { return append(dst, hole...) })
		if err != nil {
			return
		}
		if tmpl.IsStatic() && string(out) != src {
			t.Errorf("%q came out as %q", src, out)
		}
		rest := src
		for _, c := range []byte(strings.ReplaceAll(string(out), hole, "")) { // bytes: halves of a character may meet around a hole
			i := strings.IndexByte(rest, c)
			if i < 0 {
				t.Fatalf("%q: %q of %q is not the author's text", src, c, out)
			}
			rest = rest[i+1:]
		}
	})
}
