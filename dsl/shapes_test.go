package dsl

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"
	cuejson "cuelang.org/go/encoding/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func testPlace(p token.Pos) graph.Place {
	return graph.Place{File: p.Filename(), Line: p.Line(), Col: p.Column()}
}

// jsonValues are tried on every form.
var jsonValues = []string{
	`null`, `true`, `false`,
	`0`, `1`, `2`, `3`, `5`, `7`, `8`, `10`, `11`, `20`, `50`, `51`, `100`, `101`, `127`, `128`, `255`, `256`, `-1`, `-128`, `-129`,
	`32768`, `65536`, `2147483648`, `4294967296`, `9223372036854775807`, `9223372036854775808`, `18446744073709551616`,
	`100000000000000000000`, `99999999999999999999`, `170141183460469231731687303715884105728`, `1114112`,
	`0.1`, `0.10000000000000001`, `0.3`, `1.5`, `2.5`, `-2.5`, `-2.6`, `3.5`, `3.6`, `-0.5`, `12.34`,
	`""`, `"a"`, `"b"`, `"c"`, `"x"`, `"xy"`, `"s"`, `"open"`, `"closed"`, `"lost"`, `"az"`, `"abz"`, `"ab"`, `"abc"`, `"ABC"`, `"abcd"`, `"abcde"`, `"é"`, `"ééé"`, `"éééé"`,
	`"123"`, `"ab-0"`, `"ab-12"`, `"ab-12x"`, `"2024-02-29"`, `"2023-02-29"`, `"2024-2-9"`, `"1999-12-31"`, `"15:04"`, `"25:00"`, `"5:04"`,
	`"2024-01-15T10:30:00Z"`, `"2024-01-15T10:30:00.5+02:00"`, `"2024-01-15 10:30:00Z"`, `"1.2.3.4"`, `"1.2.3.400"`, `"::1"`, `"::g"`, `"aGk="`, `"a\nb"`,
	`[]`, `[1]`, `[1,2]`, `[1,2,1]`, `[-1]`, `["a"]`, `["a","b"]`, `["b"]`, `["a",1]`, `["a",1,2]`, `["a","b","c"]`, `["a",1,"b"]`, `["open"]`, `["open","x"]`, `[null]`, `[[1],[]]`, `[["a"]]`,
	`[{"cents":1}]`, `[{"cents":-1}]`, `[{"id":1,"tags":["a"]}]`, `[{"id":1,"x":1}]`,
	`{}`, `{"a":1}`, `{"a":"t"}`, `{"a":1,"b":"t"}`, `{"a":1,"b":2}`, `{"a":1,"z":true}`, `{"b":"t"}`, `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":"t"}}}`,
	`{"k":["a"]}`, `{"k":{"n":1}}`, `{"k":{"n":1,"m":1}}`, `{"id":1}`, `{"id":1,"x-y":"t"}`, `{"id":1,"x-y":1}`, `{"id":1,"y":"t"}`,
	`{"ne":1}`, `{"ne":-1}`, `{"n":1.5}`, `{"e":-1}`, `{"num":1}`, `{"num":-1}`, `{"num":1,"nil":-1}`, `{"num":1,"m":1}`, `{"a-b":1,"c d":"t"}`, `{"a-b":"t"}`,
	`{"cents":0}`, `{"cents":5,"currency":"EUR"}`, `{"cents":5,"currency":"USD"}`, `{"cents":5,"currency":"GBP"}`, `{"cents":101}`, `{"cents":5,"note":"t"}`, `{"cents":5,"other":1}`, `{"cents":1.5}`,
	`{"kind":"a","x":1}`, `{"kind":"a","x":"t"}`, `{"kind":"b","y":"t"}`, `{"kind":"c"}`, `{"kind":"b","x":1}`, `{"id":1,"kind":"a","x":1}`, `{"id":1,"kind":"b"}`, `{"id":1,"kind":"b","x":1}`,
	`{"kind":"leaf","size":1}`, `{"kind":"branch","kids":[]}`, `{"kind":"branch","kids":[{"kind":"leaf","size":2},{"kind":"branch","kids":[]}]}`, `{"kind":"branch","kids":[{"kind":"leaf"}]}`,
	`{"name":"n"}`, `{"name":"n","kids":[{"name":"m","kids":[]}]}`, `{"name":"n","kids":[{"kids":[]}]}`, `{"name":"n","left":null,"right":{"name":"r","left":{"name":"l"}}}`, `{"name":"n","left":{"name":1}}`,
	`{"limit":5}`, `{"limit":0}`,
}

// known are the differences between a shape and CUE that are meant.
func known(name, js string, ours, cues bool) string {
	v, _ := value.Parse([]byte(js))
	switch {
	case strings.HasPrefix(name, "format"):
		return "CUE knows nothing of @format"
	case strings.HasPrefix(name, "multiple") && cues:
		if n, ok := v.(value.Number); ok && len(n) > 34 {
			return "CUE computes multiples with 34 digits"
		}
	case name == "bytesType":
		return "bytes come as base64 texts"
	case (name == "floatType" || name == "constFloat") && ours:
		return "a JSON number without a fraction is a float, too"
	case strings.HasPrefix(name, "netIP") && !ours:
		if _, ok := v.([]any); ok {
			return "CUE takes an address as a list of bytes"
		}
	case cues && !ours:
		if _, ok := v.(*value.Object); ok && absent(name, v) {
			return "a regular field that is absent"
		}
		if l, ok := v.([]any); ok && len(l) > 0 {
			if _, ok := l[0].(*value.Object); ok {
				return ""
			}
		}
	}
	return ""
}

// absent tells whether the value leaves out a regular field, which CUE fills
// by itself if it is a constant or has defaults only.
func absent(name string, v any) bool {
	s := theForms.Field(name).Shape
	_, faults := s.Check(v)
	return !slices.ContainsFunc(faults, func(f shape.Fault) bool { return !f.Missing })
}

var theForms *shape.Shape

func compileForms(t testing.TB) (cue.Value, *shape.Shape) {
	t.Helper()
	src, err := os.ReadFile("shape/testdata/forms.cue")
	if err != nil {
		t.Fatal(err)
	}
	v := cuecontext.New().CompileBytes(src, cue.Filename("forms.cue"))
	forms := v.LookupPath(cue.ParsePath("#Forms"))
	if err := forms.Err(); err != nil {
		t.Fatal(err)
	}
	s, faults := compileShape(forms, testPlace, "")
	if len(faults) > 0 {
		t.Fatalf("faults:\n%v", faults)
	}
	return forms, s
}

func TestFormsAgreeWithCUE(t *testing.T) {
	forms, s := compileForms(t)
	theForms = s
	ctx := cuecontext.New()
	differences := map[string]int{}
	n := 0
	taken := map[string]int{}
	for _, f := range s.Fields {
		sel := cue.Str(f.Name)
		if f.Optional {
			sel = sel.Optional()
		}
		form := forms.LookupPath(cue.MakePath(sel))
		for _, js := range jsonValues {
			v, err := value.Parse([]byte(js))
			if err != nil {
				t.Fatalf("%s: %v", js, err)
			}
			e, err := cuejson.Extract("v", []byte(js))
			if err != nil {
				t.Fatalf("%s: %v", js, err)
			}
			unified := form.Unify(ctx.BuildExpr(e))
			cueErr := unified.Validate(cue.Concrete(true), cue.Final())
			checked, faults := f.Shape.Check(v)
			n++
			if len(faults) == 0 {
				taken[f.Name]++
			}
			ours, cues := len(faults) == 0, cueErr == nil
			if ours && cues {
				sameValue(t, f.Name+", "+js, checked, unified)
			}
			if ours == cues {
				continue
			}
			if why := known(f.Name, js, ours, cues); why != "" {
				differences[why]++
				continue
			}
			t.Errorf("%s, %s: shape %v, CUE %v\n\t%v\n\t%v", f.Name, js, ours, cues, faults, cueErr)
		}
	}
	for _, f := range s.Fields {
		if n := taken[f.Name]; n == 0 || n == len(jsonValues) && f.Name != "top" {
			t.Errorf("%s takes %d of the %d values: it tells nothing", f.Name, n, len(jsonValues))
		}
	}
	t.Logf("%d verdicts on %d forms; meant to differ: %v", n, len(s.Fields), differences)
}

// sameValue compares what Check made of a value, defaults filled in, with
// what CUE did.
func sameValue(t *testing.T, what string, ours any, cues cue.Value) {
	t.Helper()
	b, err := cues.MarshalJSON()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	var x, y any
	if err := errors.Join(json.Unmarshal(value.AppendJSON(nil, ours), &x), json.Unmarshal(b, &y)); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if !reflect.DeepEqual(x, y) {
		t.Errorf("%s: Check gives %s, CUE %s", what, value.AppendJSON(nil, ours), b)
	}
}

func TestDefaultsAgreeWithCUE(t *testing.T) {
	forms, s := compileForms(t)
	n := 0
	for _, f := range s.Fields {
		if !f.HasDefault {
			continue
		}
		n++
		sameValue(t, f.Name, f.Default, forms.LookupPath(cue.MakePath(cue.Str(f.Name))))
		if _, faults := f.Shape.Check(f.Default); len(faults) > 0 {
			t.Errorf("%s: the default does not fit: %v", f.Name, faults)
		}
	}
	if n != 12 {
		t.Errorf("%d fields have a default, want 12", n)
	}
}

func TestFormsAgreeWithJSONSchema(t *testing.T) {
	_, s := compileForms(t)
	n := 0
	for _, f := range s.Fields {
		text := f.Shape.AppendSchema(nil)
		schema := compileSchema(t, text)
		for _, js := range jsonValues {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(js))
			if err != nil {
				t.Fatal(err)
			}
			schemaErr := schema.Validate(v)
			in, _ := value.Parse([]byte(js))
			_, faults := f.Shape.Check(in)
			n++
			if f.Name == "timeLayout" && schemaErr == nil {
				continue // a pattern cannot say which hours there are
			}
			if (schemaErr == nil) != (len(faults) == 0) {
				t.Errorf("%s, %s: shape %v, schema %v\n%s", f.Name, js, faults, schemaErr, text)
			}
		}
	}
	t.Logf("%d verdicts on %d forms", n, len(s.Fields))
}

func compileSchema(t testing.TB, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("s.json")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return schema
}
