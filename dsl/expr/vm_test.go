package expr_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	exprlang "github.com/expr-lang/expr"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// TestSameAsExprLang runs random expressions through expr-lang's own machine
// and through this package, over the same data. Both give the same result, or
// both fail; what differs on purpose is named in differs.
func TestSameAsExprLang(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	scope := randomScope()
	n := 10_000
	if testing.Short() {
		n = 5_000
	}
	var equal, failed, purpose int
	for range n {
		g := &gen{r: r, plain: true}
		src := g.top()
		if len(src) > 4000 {
			continue
		}
		p, faults := expr.Compile(text(src), scope, expr.WantAny)
		if faults != nil {
			if strings.Contains(faults.Error(), "never") || strings.Contains(faults.Error(), "more than 500 parts") {
				continue // stricter: texts that can never be equal, size
			}
			t.Fatalf("%s\ndoes not compile: %v", src, faults)
		}
		data := randomData(r)
		env, plainEnv := expr.NewEnv(), map[string]any{}
		for k, v := range data {
			env.Set(k, v)
			plainEnv[k] = plain(v)
		}
		prog, err := exprlang.Compile(src, exprlang.Optimize(false))
		if err != nil {
			t.Fatalf("%s\nexpr-lang does not compile it: %v", src, err)
		}
		want, wantErr := exprlang.Run(prog, plainEnv)
		got, gotErr := p.Eval(env)
		switch {
		case differs(want, wantErr, gotErr):
			purpose++
		case (wantErr != nil) != (gotErr != nil):
			t.Fatalf("%s\ndata: %s\nexpr-lang: %v, %v\nours:      %v, %v", src, value.AppendJSON(nil, data["data"]), want, wantErr, plain(got), gotErr)
		case wantErr != nil:
			failed++
		case !same(want, plain(got)):
			t.Fatalf("%s\ndata: %s\nitems: %s\nraw: %s\nexpr-lang: %v\nours:      %v", src, value.AppendJSON(nil, data["data"]),
				value.AppendJSON(nil, data["items"]), value.AppendJSON(nil, data["raw"]), want, plain(got))
		default:
			equal++
		}
	}
	t.Logf("%d equal, %d fail in both, %d on purpose", equal, failed, purpose)
	if equal < n/2 {
		t.Errorf("only %d of %d expressions were compared: the generator writes too many that fail", equal, n)
	}
}

// differs says where ours fails on purpose.
func differs(want any, wantErr, gotErr error) bool {
	if gotErr == nil {
		return false
	}
	for _, s := range []string{"division by zero", "not a finite number", "does not fit"} {
		if strings.Contains(gotErr.Error(), s) {
			return true
		}
	}
	return false
}

// plain turns a value into what expr-lang works on.
func plain(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case *value.Object:
		m := make(map[string]any, v.Len())
		for i := range v.Len() {
			k, x := v.At(i)
			m[k] = plain(x)
		}
		return m
	case *value.Rows:
		return plain(v.List())
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = plain(v[i])
		}
		return l
	}
	return v
}

// same compares results; whole floats are equal to ints, and groups have text keys.
func same(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && (x == y || math.Abs(x-y) <= 1e-12*math.Abs(x))
	}
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !va.IsValid() || !vb.IsValid() {
		return va.IsValid() == vb.IsValid()
	}
	switch {
	case va.Kind() == reflect.Slice && vb.Kind() == reflect.Slice:
		if va.Len() != vb.Len() {
			return false
		}
		for i := range va.Len() {
			if !same(va.Index(i).Interface(), vb.Index(i).Interface()) {
				return false
			}
		}
		return true
	case va.Kind() == reflect.Map && vb.Kind() == reflect.Map:
		if va.Len() != vb.Len() {
			return false
		}
		for _, k := range va.MapKeys() {
			key := fmt.Sprint(k.Interface())
			if k.Interface() == nil {
				key = "null"
			}
			x := vb.MapIndex(reflect.ValueOf(key))
			if !x.IsValid() || !same(va.MapIndex(k).Interface(), x.Interface()) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
