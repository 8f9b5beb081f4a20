package value_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func TestParseKeepsOrderAndDigits(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":{"z":true,"y":null}}`:    `{"b":1,"a":{"z":true,"y":null}}`,
		`{"a":1,"b":2,"a":3}`:                `{"a":3,"b":2}`,
		`[1208925819614629174706176]`:        `[1208925819614629174706176]`,
		`[9007199254740993]`:                 `[9007199254740993]`,
		`[0.12345678901234567890]`:           `[0.12345678901234567890]`,
		`[1.0, 1e21, 1e-7, -0, 1e3, 0.1]`:    `[1,1e+21,1e-7,0,1000,0.1]`,
		`["\u0041\u00e9\ud83d\ude00\u0001"]`: `["Aé😀\u0001"]`,
		`"</x> & \u2028"`:                    "\"</x> & \u2028\"",
		` [ ] `:                              `[]`,
		`{}`:                                 `{}`,
	} {
		v, err := value.Parse([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(value.AppendJSON(nil, v)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:        "unexpected EOF",
		`{"a":1`:  "unexpected EOF",
		`[1] [2]`: "there is something behind the JSON document",
		strings.Repeat("[", value.MaxDepth+1) + strings.Repeat("]", value.MaxDepth+1): "nested deeper than 200 levels",
	} {
		if _, err := value.Parse([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%.20q: got %v, want %s", in, err, want)
		}
	}
}

func TestIndent(t *testing.T) {
	v := value.Of("a", []any{int64(1), value.Of(), []any{}, value.Of("b", nil)}, "c", "x\"y")
	want := "{\n  \"a\": [\n    1,\n    {},\n    [],\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": \"x\\\"y\"\n}"
	if got := string(value.AppendIndent(nil, v, 0)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAppendFloat(t *testing.T) {
	for f, want := range map[float64]string{
		1: "1", -0.5: "-0.5", 1e21: "1e+21", 1e20: "100000000000000000000", 1e-6: "0.000001", 1e-7: "1e-7",
		1.5e-10: "1.5e-10", 1e100: "1e+100", math.Copysign(0, -1): "0", math.Inf(1): "null",
	} {
		if got := string(value.AppendFloat(nil, f)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestObject(t *testing.T) {
	o := value.NewObject(0)
	for _, k := range strings.Split("m a k e t h i s l o n g e n o u w p", " ") {
		o.Set(k, k+"!")
	}
	n := o.Len()
	if v, ok := o.Get("w"); !ok || v != "w!" {
		t.Errorf("w is %v, %t", v, ok)
	}
	c := o.Clone()
	c.Delete("w")
	c.Delete("nobody")
	if _, ok := c.Get("w"); ok || c.Len() != n-1 {
		t.Error("w was not deleted")
	}
	if v, ok := c.Get("p"); !ok || v != "p!" {
		t.Errorf("after a deletion p is %v, %t", v, ok)
	}
	if v, _ := o.Get("w"); v != "w!" {
		t.Error("the copy changed the original")
	}
	var none *value.Object
	if _, ok := none.Get("a"); ok || none.Len() != 0 {
		t.Error("a nil object has keys")
	}
}

func TestRows(t *testing.T) {
	r := value.NewRows([]string{"id", "name", "sum", "at", "doc", "ok", "x"})
	for range 2 {
		r.Add(value.Int, []byte("7"))
		r.Add(value.Text, []byte(`a"b`))
		r.Add(value.Exact, []byte("1.50"))
		r.Add(value.Null, nil)
		r.Add(value.JSON, []byte(`{"b":1,"a":[]}`))
		r.AddFunc(value.Bool, func(b []byte) []byte { return append(b, "true"...) })
		r.Add(value.Float, []byte("0.5"))
	}
	want := `{"id":7,"name":"a\"b","sum":1.50,"at":null,"doc":{"b":1,"a":[]},"ok":true,"x":0.5}`
	if got := string(value.AppendJSON(nil, r)); got != "["+want+","+want+"]" {
		t.Errorf("got %s", got)
	}
	if k, text := r.Cell(1, 1); k != value.Text || string(text) != `a"b` {
		t.Errorf("cell is %d %s", k, text)
	}
	r.Cut(1)
	if r.Len() != 1 || r.Col("doc") != 4 || r.Col("none") != -1 {
		t.Errorf("after the cut: %d rows", r.Len())
	}
	r.Cut(0)
	if r.Len() != 0 || r.Size() != 0 {
		t.Errorf("after the cut: %d rows, %d bytes", r.Len(), r.Size())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\n"]}`, `[1e999]`, `"\ud800"`, `{"a":1,"a":2}`, `[[[]]]`, "\xff", `-0`, ` [ true , false , null , { } ] `, `{"\u0061": "\\\""}`, "\"\xff\"", `1.` + strings.Repeat("0", 40)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := value.Parse(in)
		if (err == nil) != json.Valid(in) && !strings.Contains(string(in), strings.Repeat("[", 20)) && depth(in) < value.MaxDepth {
			t.Fatalf("Parse says %v, encoding/json says valid=%t", err, json.Valid(in))
		}
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(in))
		d.UseNumber()
		var reference any
		if err := d.Decode(&reference); err != nil || !same(v, reference) {
			t.Fatalf("%q is %s, encoding/json reads %v (%v)", in, value.AppendJSON(nil, v), reference, err)
		}
		for _, out := range [][]byte{value.AppendJSON(nil, v), value.AppendIndent(nil, v, 0)} {
			again, err := value.Parse(out)
			if err != nil {
				t.Fatalf("%q does not parse again: %v", out, err)
			}
			if !bytes.Equal(value.AppendJSON(nil, again), value.AppendJSON(nil, v)) {
				t.Fatalf("%q reads back as %q", value.AppendJSON(nil, v), value.AppendJSON(nil, again))
			}
		}
	})
}

// same compares a value with what encoding/json makes of the same document.
func same(v, reference any) bool {
	switch r := reference.(type) {
	case map[string]any:
		o, ok := v.(*value.Object)
		if !ok || o.Len() != len(r) {
			return false
		}
		for k, x := range r {
			if got, has := o.Get(k); !has || !same(got, x) {
				return false
			}
		}
		return true
	case []any:
		l, ok := v.([]any)
		if !ok || len(l) != len(r) {
			return false
		}
		for i := range r {
			if !same(l[i], r[i]) {
				return false
			}
		}
		return true
	case json.Number:
		return v == value.ParseNumber(r.String())
	}
	return v == reference
}

func depth(b []byte) int {
	return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{"))
}

func TestAppendSorted(t *testing.T) {
	v, err := value.Parse([]byte(`{"b":[1.50,{"d":null,"c":"x"}],"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(value.AppendSorted(nil, v, nil)), `{"a":2,"b":[1.5,{"c":"x","d":null}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	number := func(dst []byte, v any) []byte { return append(value.AppendJSON(append(dst, '<'), v), '>') }
	if got, want := string(value.AppendSorted(nil, v, number)), `{"a":<2>,"b":[<1.5>,{"c":"x","d":null}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
