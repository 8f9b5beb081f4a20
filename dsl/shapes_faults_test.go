package dsl

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// compileFields compiles the struct at params of a CUE text.
func compileFields(t testing.TB, src string) (*shape.Shape, string) {
	t.Helper()
	v := cuecontext.New().CompileString(src, cue.Filename("x.cue"))
	params := v.LookupPath(cue.ParsePath("params"))
	if !params.Exists() {
		t.Fatalf("no params: %v", v.Err())
	}
	s, faults := compileShape(params, testPlace, "params")
	return s, faults.Sorted().Error()
}

func TestWhatDoesNotCompile(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`params: a: >="a"`,
			"x.cue:1:12: params.a: texts cannot be bounded by order: use =~ with a pattern, or strings.MinRunes and strings.MaxRunes"},
		{`params: a: matchN(1, [string, int])`,
			"x.cue:1:12: params.a: matchN cannot be checked in a call: write the alternatives with |"},
		{"import \"time\"\nparams: a: time.Duration",
			`x.cue:2:12: params.a: time.Duration cannot be checked in a call: write a pattern such as =~"^[0-9]+(ms|s|m|h)$", or string @format(duration) for ISO 8601`},
		{"import \"net\"\nparams: a: net.AbsURL",
			"x.cue:2:12: params.a: net.AbsURL cannot be checked in a call: write string @format(uri)"},
		{"import \"struct\"\nparams: a: struct.MinFields(1)",
			"x.cue:2:12: params.a: struct.MinFields cannot be checked in a call"},
		{"import \"list\"\nparams: a: [...string] & list.Contains(\"a\")",
			`x.cue:2:26: params.a: is no type that is known at the start: invalid value [] (does not satisfy list.Contains("a"))`},
		{"import \"list\"\nparams: a: [...int] & list.IsSortedStrings",
			"x.cue:2:12: params.a: list.IsSortedStrings cannot be checked in a call"},
		{`params: {min: int, max: >=min}`,
			"x.cue:1:27: params.max: is no type that is known at the start: non-concrete value min for bound >="},
		{`params: {a: string, b: "x\(a)"}`,
			"x.cue:1:24: params.b: is no type that is known at the start: invalid interpolation"},
		{`params: {a: int, b: a + 1}`,
			"x.cue:1:21: params.b: is no type that is known at the start: non-concrete value int in operand to +"},
		{`params: {a: bool, if a {b: int}}`,
			"x.cue:1:13: params: is no type that is known at the start: incomplete bool: bool"},
		{`params: a: [...string] & [...int]`,
			"x.cue:1:16: params.a[]: is no type that is known at the start: conflicting values string and int (mismatched types string and int)"},
		{`params: a: string @fromat(date)`,
			`x.cue:1:19: params.a: unknown attribute @fromat (did you mean "format"?)`},
		{`params: a: string @mask()`,
			`x.cue:1:19: params.a: unknown attribute @mask (there are format, title, example, secret)`},
		{`params: a: string @format(dat)`,
			`x.cue:1:19: params.a: unknown format "dat" (did you mean "date"?)`},
		{`params: a: int @format(date)`,
			"x.cue:1:16: params.a: @format is for texts, and the field takes none that are free"},
		{`params: a: string @format()`,
			`x.cue:1:19: params.a: @format takes one text: write @format("…")`},
		{`params: a: string @secret(yes)`,
			"x.cue:1:19: params.a: @secret takes nothing: write @secret()"},
		{`params: a: int & >3 @example("2")`,
			`x.cue:1:12: params.a: the example "2" does not fit the type`},
		{"#D: string @format(dat)\nparams: {a: #D, b?: #D | null}",
			`x.cue:1:12: params.a: unknown format "dat" (did you mean "date"?)`},
		{`params: {[!~"^x"]: int}`,
			`x.cue:1:20: params[!~"^x"]: fields can be declared by name, as [string] or as [=~"…"], not as [!~"^x"]`},
		{`params: a?: int | *5`,
			"x.cue:1:13: params.a: warning: the default is never used: a field with ? stays away when it is left out; take the ? away"},
		{"#L: int | *5\nparams: a?: #L", ""},
		{"#N: {x?: int, n?: #N & {x: >0}}\nparams: a: #N & {x: <9}",
			"x.cue:1:19: params.a.n.n.n: is no type that is known at the start: structural cycle"},
		{"import \"struct\"\nparams: a: {struct.MaxFields(1), b?: int}",
			"x.cue:2:13: params.a: struct.MaxFields cannot be checked in a call"},
		{"import \"struct\"\n#A: {b?: int} & struct.MaxFields(1)\nparams: a: #A",
			"x.cue:2:17: params.a: struct.MaxFields cannot be checked in a call"},
		{"import \"math\"\nparams: a: math.MultipleOf(0)",
			"x.cue:2:12: params.a: math.MultipleOf takes a number that is known at the start and not 0, not 0"},
		{"import \"math\"\nparams: a: math.MultipleOf(2) & math.MultipleOf(3)",
			"x.cue:2:12: params.a: math.MultipleOf may stand once only: write their common multiple"},
	} {
		t.Run(c.src, func(t *testing.T) {
			if _, got := compileFields(t, c.src); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	s, faults := compileFields(t, `
// The day
// it is due
#Date: string @format(date) @example("2026-03-01")
#Due: #Date
// In cents
#Money: int & >=0 @title("Amount")
#Line: {
	// How many
	quantity: int & >=1
	// Internal number
	sku: string @secret()
}
// A
#A: {kind: "a"}
// B
#B: {kind: "b"}
// A comment apart is a remark

params: {
	// Own comment
	own: #Date @example("2026-01-01")
	// A remark apart

	alias: #Due // a remark behind
	maybe?: #Date | null
	joined: #Date & =~"^2026"
	narrowed: #Money & <=100
	plain: int
	line: #Line
	less: #Line & {quantity: <=9}
	more: {#Line, note?: string}
	either: #A | #B
	listed: [...#Date]
	preset: #Money | *5
	examples: [...int] @example("[1,2]") @example("[]")
}
`)
	if faults != "" {
		t.Fatal(faults)
	}
	var b strings.Builder
	describe(&b, "", s)
	want := `own: doc="Own comment" examples="2026-01-01" format=date
alias: doc="The day it is due" examples="2026-03-01" format=date
maybe: doc="The day it is due" examples="2026-03-01" format=date
joined: doc="The day it is due" examples="2026-03-01" format=date
narrowed: doc="In cents" title="Amount"
plain:
line:
line.quantity: doc="How many"
line.sku: doc="Internal number" secret
less:
less.quantity: doc="How many"
less.sku: doc="Internal number" secret
more:
more.quantity: doc="How many"
more.sku: doc="Internal number" secret
more.note:
either:
listed:
preset: doc="In cents" title="Amount" default=5
examples: examples="[1,2]","[]"
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func describe(b *strings.Builder, prefix string, s *shape.Shape) {
	for _, f := range s.Fields {
		b.WriteString(prefix + f.Name + ":")
		if f.Description != "" {
			b.WriteString(` doc="` + f.Description + `"`)
		}
		if f.Title != "" {
			b.WriteString(` title="` + f.Title + `"`)
		}
		for i, e := range f.Examples {
			b.WriteString([]string{` examples="`, `,"`}[min(i, 1)] + e + `"`)
		}
		if f.Secret {
			b.WriteString(" secret")
		}
		if f.HasDefault {
			b.WriteString(" default=" + string(value.AppendJSON(nil, f.Default)))
		}
		for _, x := range append([]*shape.Shape{f.Shape}, f.Shape.Alts...) {
			if x.Format != "" {
				b.WriteString(" format=" + x.Format)
			}
		}
		b.WriteString("\n")
		describe(b, prefix+f.Name+".", f.Shape)
	}
}

func TestFieldOrder(t *testing.T) {
	s, faults := compileFields(t, `
#Base: {b1: int, b2?: int}
params: {
	z: int
	#Base
	a?: string
	{kind: "x", n: int} | {kind: "y"}
	last: int
}`)
	if faults != "" {
		t.Fatal(faults)
	}
	got := string(s.AppendSchema(nil))
	want := `{"anyOf":[` +
		`{"type":"object","properties":{"z":{"type":"integer"},"b1":{"type":"integer"},"b2":{"type":"integer"},"a":{"type":"string"},"kind":{"type":"string","const":"x"},"n":{"type":"integer"},"last":{"type":"integer"}},"required":["z","b1","kind","n","last"],"additionalProperties":false},` +
		`{"type":"object","properties":{"z":{"type":"integer"},"b1":{"type":"integer"},"b2":{"type":"integer"},"a":{"type":"string"},"kind":{"type":"string","const":"y"},"last":{"type":"integer"}},"required":["z","b1","kind","last"],"additionalProperties":false}]}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s.Discriminator != "kind" {
		t.Errorf("discriminator %q, want kind", s.Discriminator)
	}
}

func TestRecursionIsNamed(t *testing.T) {
	s, faults := compileFields(t, `
#Node: {name: string, kids?: [...#Node], up?: #Node | null}
params: {root: #Node, other?: #Node}`)
	if faults != "" {
		t.Fatal(faults)
	}
	got := string(s.AppendSchema(nil))
	want := `{"type":"object","properties":{"root":{"$ref":"#/$defs/Node"},"other":{"$ref":"#/$defs/Node"}},"required":["root"],"additionalProperties":false,` +
		`"$defs":{"Node":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}},"up":{"anyOf":[{"$ref":"#/$defs/Node"},{"type":"null"}]}},"required":["name"],"additionalProperties":false}}}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func BenchmarkCompileShape(b *testing.B) {
	v := cuecontext.New().CompileString(`
#Status: "draft" | "approved" | "paid"
params: {a: string, b?: int & >=1, c: #Status, d: #Status | null, e: int | *20, f: =~"^a", g: [...string], h: {x: int, y?: bool}, i: number, j: bool | *false}`)
	params := v.LookupPath(cue.ParsePath("params"))
	b.ReportAllocs()
	for b.Loop() {
		if _, faults := compileShape(params, testPlace, "params"); len(faults) > 0 {
			b.Fatal(faults)
		}
	}
}
