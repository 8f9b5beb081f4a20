package gate_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// callScope has the names of a call, of no known type.
var callScope = (*expr.Scope)(nil).With("ctx", nil).With("args", nil).With("result", nil)

func of(pairs ...any) *value.Object { return value.Of(pairs...) }

func callEnv(pairs ...any) *expr.Env {
	e := expr.NewEnv()
	for i := 0; i < len(pairs); i += 2 {
		e.Set(pairs[i].(string), pairs[i+1])
	}
	return e
}

func key(t testing.TB, template string) *gate.Key {
	t.Helper()
	k, faults := gate.CompileKey(&graph.FSM{Key: &graph.Text{S: template}}, callScope)
	if faults != nil {
		t.Fatalf("%s: %v", template, faults)
	}
	return k
}

func TestKey(t *testing.T) {
	for _, c := range []struct {
		template string
		a, b     any // args.a, args.b
		want     string
	}{
		{"all", nil, nil, "all"},
		{"{{ args.a }}", "u-1", nil, "u-1"},
		{"{{ args.a }}", "auth0|x/y z", nil, "auth0|x/y z"},
		{"{{ args.a }}", "Zoë", nil, "Zoë"},
		{"{{ args.a }}", "100%", nil, "100%25"},
		{"{{ args.a }}", "a\x00b\n", nil, "a%00b%0A"},
		{"{{ args.a }}", "a\xffb\u007f", nil, "a%FFb%7F"},
		{"{{ args.a }}", "a\u009b2Jb\u202ec", nil, "a%C2%9B2Jb%E2%80%AEc"},
		{"order {{ args.a }}", int64(17), nil, "order 17"},
		{"{{ args.a }}", true, nil, "true"},
		{"{{ args.a }}/{{ args.b }}", "acme", "u-1", "acme/u-1"},
		{"{{ args.a }}/{{ args.b }}", "a/b", "c", "a%2Fb/c"},
		{"{{ args.a }}/{{ args.b }}", "a", "b/c", "a/b/c"},
		{"{{ args.a }}{{ args.b }}", "ab", "c", "ab|c"},
		{"{{ args.a }}{{ args.b }}", "a|b", "c", "a%7Cb|c"},
		{"{{ args.a }}x{{ args.b }}!", "1x2", "3", "1x2|x3!"},
		{"{{ args.a }} – {{ args.b }}", "1 – 2", "3", "1 – 2| – 3"},
		{"{{ args.a }}→{{ args.b }}", "1→2|", "3", "1→2%7C|→3"},
		// However a number is written, it has one key.
		{"{{ args.a }}", int64(1), nil, "1"},
		{"{{ args.a }}", 1.0, nil, "1"},
		{"{{ args.a }}", value.Number("1.00000000000000000000"), nil, "1"},
		{"{{ args.a }}", value.Number("0.10000000000000000000"), nil, "0.1"},
		{"{{ args.a }}", 0.1, nil, "0.1"},
		{"{{ args.a }}", value.Number("-0.00000000000000000000"), nil, "0"},
		{"{{ args.a }}", value.Number("1000000000000000000000"), nil, "1000000000000000000000"},
		{"{{ args.a }}", 1e21, nil, "1000000000000000000000"},
		// So has an object, however its fields are ordered.
		{"{{ args.a }}", of("a", int64(1), "b", "x"), nil, `{"a":1,"b":"x"}`},
		{"{{ args.a }}", of("b", "x", "a", value.Number("1.0000000000000000000")), nil, `{"a":1,"b":"x"}`},
		{"{{ args.a }}", []any{of("b", nil, "a", 1.0), true}, nil, `[{"a":1,"b":null},true]`},
	} {
		got, ok, err := key(t, c.template).Of(callEnv("args", of("a", c.a, "b", c.b)))
		if err != nil || !ok || got != c.want {
			t.Errorf("%s of %v and %v: %q, %t, error %v; want %q", c.template, c.a, c.b, got, ok, err, c.want)
		}
	}
}

// A machine without a key has one state for all.
func TestKeyNone(t *testing.T) {
	k, faults := gate.CompileKey(&graph.FSM{}, callScope)
	if faults != nil {
		t.Fatal(faults)
	}
	if got, ok, err := k.Of(callEnv()); got != "" || !ok || err != nil || k.ByArgs() || k.BySession() {
		t.Errorf("%q, %t, error %v", got, ok, err)
	}
}

// A caller without a part of the key has no state.
func TestKeyMissing(t *testing.T) {
	for _, template := range []string{"{{ args.a }}", "{{ args.a }}{{ args.b }}", "x {{ args.b }}/{{ args.a }}"} {
		for _, missing := range []any{nil, ""} {
			if got, ok, err := key(t, template).Of(callEnv("args", of("a", missing, "b", "there"))); ok || err != nil || got != "" {
				t.Errorf("%s of %#v: %q, %t, error %v", template, missing, got, ok, err)
			}
		}
	}
	if _, ok, err := key(t, "{{ args.a + 1 }}").Of(callEnv("args", of("a", "text"))); err == nil || ok {
		t.Errorf("a hole that cannot be answered gives a key, error %v", err)
	}
}

func TestKeyReads(t *testing.T) {
	for _, c := range []struct {
		template          string
		byArgs, bySession bool
	}{
		{"all", false, false},
		{"{{ ctx.claims.sub }}", false, false},
		{"{{ ctx.session }}", false, true},
		{"{{ ctx.claims.sub }}/{{ args.order }}", true, false},
		{"{{ ctx.session }}/{{ args.order }}", true, true},
		{"{{ ctx.session ?? ctx.claims.sub }}", false, true},
		{"{{ ctx }}", false, true},
		{"{{ args }}", true, false},
	} {
		if k := key(t, c.template); k.ByArgs() != c.byArgs || k.BySession() != c.bySession {
			t.Errorf("%s: by args %t, by session %t", c.template, k.ByArgs(), k.BySession())
		}
	}
	_, faults := gate.CompileKey(&graph.FSM{Key: &graph.Text{S: "{{ arg.order }}"}}, callScope)
	if !faults.Fatal() {
		t.Error("an unknown name is no fault")
	}
}

// A long key stays readable at its beginning and differs by its end; none is
// that of a short one.
func TestKeyLong(t *testing.T) {
	k := key(t, "{{ args.a }}")
	of := func(s string) string {
		got, ok, err := k.Of(callEnv("args", of("a", s)))
		if err != nil || !ok || !utf8.ValidString(got) {
			t.Fatalf("%q: %q, %t, error %v", s, got, ok, err)
		}
		return got
	}
	long := strings.Repeat("k", 256)
	if got := of(long); got != long {
		t.Errorf("a key of 256 bytes became %q", got)
	}
	for _, s := range []string{long + "a", long + "b", strings.Repeat("ü", 2000), "x" + strings.Repeat("ü", 2000), strings.Repeat("→", 2000), strings.Repeat("🙂", 300)} {
		got := of(s)
		if len(got) <= 256 || len(got) > 261 || !strings.HasPrefix(s, got[:190]) {
			t.Errorf("%q: %d bytes, %q", s[:20], len(got), got)
		}
		// What it became, sent as an argument, leads elsewhere.
		if again := of(got); again == got {
			t.Errorf("%q is its own key", got)
		}
	}
	if of(long+"a") == of(long+"b") {
		t.Error("two long keys are one")
	}
}

// Different parts never give the same key, whatever is between them.
func TestKeysDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	letters := []string{"a", "/", "|", "%", "2", "F", "7", "C", " ", "→", "\x00", "\xe2", "-", "x", "5"}
	word := func() string {
		var s string
		for range 1 + rng.IntN(4) {
			s += letters[rng.IntN(len(letters))]
		}
		return s
	}
	for _, between := range []string{"", "/", "|", "%", "2F", "-x-", "→", "x", " ", "a/", "%2F"} {
		k := key(t, "{{ args.a }}"+between+"{{ args.b }}"+between+"{{ args.c }}")
		seen := map[string][3]string{}
		for range 20_000 {
			parts := [3]string{word(), word(), word()}
			got, ok, err := k.Of(callEnv("args", of("a", parts[0], "b", parts[1], "c", parts[2])))
			if err != nil || !ok {
				t.Fatalf("%q: %t, error %v", parts, ok, err)
			}
			if other, found := seen[got]; found && other != parts {
				t.Fatalf("between %q: %q and %q are both %q", between, parts, other, got)
			}
			seen[got] = parts
		}
	}
}

func BenchmarkKey(b *testing.B) {
	for name, template := range map[string]string{"one": "{{ ctx.claims.sub }}", "two": "{{ ctx.claims.tenant }}/{{ ctx.claims.sub }}"} {
		b.Run(name, func(b *testing.B) {
			k := key(b, template)
			env := callEnv("ctx", of("claims", of("sub", "customer-000017", "tenant", "acme")))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, err := k.Of(env); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
