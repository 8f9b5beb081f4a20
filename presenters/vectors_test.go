package presenters

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// The recorded vectors (testdata/vectors, or the folder that FUSION_VECTORS
// names) are replayed through our engine: a driver translates the schemas,
// presenters, expressions and handlers of a vector into shapes, plans and Go
// callbacks. Where ours differs on purpose, a rule rewrites the recorded
// output into what we must send (vectors_rules_test.go).

// vectorAreas are replayed; notYet wait for what they need.
var (
	vectorAreas = []string{"data", "ui", "collections", "embeds", "directives", "select", "redact", "errors", "toon", "tools", "schema", "pipeline"}
	notYet      = []string{"prompt", "introspection"} // fsm is replayed in engine
	outOfArea   = []string{"yaml", "wire", "data-compiled", "model"}
)

// vector is one recorded pair.
type vector struct {
	Name   string
	Mode   string
	Quirk  string
	Input  json.RawMessage
	Output json.RawMessage
}

func readVectors(t testing.TB, area string) []vector {
	t.Helper()
	dir := os.Getenv("FUSION_VECTORS")
	if dir == "" {
		dir = filepath.Join("testdata", "vectors")
	}
	b, err := os.ReadFile(filepath.Join(dir, area+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatalf("%s: %v", area, err)
	}
	return file.Vectors
}

// tally counts the verdicts of an area.
type tally struct{ equal, onPurpose, outOfScope, quirk, notYet, different int }

func (c tally) line(area string) string {
	return fmt.Sprintf("%s: %d equal, %d on purpose, %d out of scope, %d quirk, %d not yet, %d different",
		area, c.equal, c.onPurpose, c.outOfScope, c.quirk, c.notYet, c.different)
}

// TestVectors replays every recorded vector and prints a line an area.
func TestVectors(t *testing.T) {
	for _, area := range vectorAreas {
		t.Run(area, func(t *testing.T) {
			var c tally
			for _, v := range readVectors(t, area) {
				replay(t, &v, &c)
			}
			fmt.Println(c.line(area))
		})
	}
	for _, area := range notYet {
		fmt.Println(tally{notYet: len(readVectors(t, area))}.line(area))
	}
	for _, area := range outOfArea {
		fmt.Println(tally{outOfScope: len(readVectors(t, area))}.line(area))
	}
}

func replay(t *testing.T, v *vector, c *tally) {
	t.Helper()
	in := parsed(t, v.Input).(*value.Object)
	if why := outOfScope(v, in); why != "" {
		c.outOfScope++
		return
	}
	want := normal(parsed(t, v.Output))
	got := drive(t, in)
	rewritten, rules := rewrite(in, want)
	switch {
	case equalOutcome(got, want):
		c.equal++
	case equalOutcome(got, rewritten) && len(rules) > 0:
		c.onPurpose++
	case v.Quirk != "":
		c.quirk++
	default:
		c.different++
		t.Errorf("%s\nrules: %s\ninput: %s\ngot:  %s\nwant: %s\nrecorded: %s", v.Name, strings.Join(rules, "; "), short(v.Input), got, rewritten, want)
	}
}

func short(b []byte) string {
	if len(b) > 1500 {
		return string(b[:1500]) + "…"
	}
	return string(b)
}

func parsed(t testing.TB, b []byte) any {
	t.Helper()
	v, err := value.Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", short(b), err)
	}
	return v
}

// result is what a vector says or what our engine did: a value, or a failure
// with its text.
type result struct {
	value  any
	failed bool
	text   string // of the failure
	// anyText: the words of the failure are ours, only that it fails counts.
	anyText bool
}

func (r result) String() string {
	if r.failed {
		return fmt.Sprintf("fails: %q (any text: %t)", r.text, r.anyText)
	}
	return string(value.AppendJSON(nil, r.value))
}

// normal reads a recorded output. Warnings are not on the wire, isFlat and
// routing are not compared.
func normal(v any) result {
	o, ok := v.(*value.Object)
	if !ok {
		return result{value: v}
	}
	if thrown, ok := o.Get("throws"); ok {
		message, _ := thrown.(*value.Object).Get("message")
		return result{failed: true, text: message.(string)}
	}
	for _, k := range []string{"warnings", "isFlat", "routing"} {
		o.Delete(k)
	}
	if b, ok := get(o, "block").(*value.Object); ok { // meta is what the caller gave
		o.Set("block", value.Of("type", get(b, "type"), "content", jsString(get(b, "content"))))
	}
	return result{value: o}
}

// equalOutcome compares what was sent; JSON Schemas and definitions as values.
func equalOutcome(got, want result) bool {
	if got.failed || want.failed {
		return got.failed == want.failed && (want.anyText || got.text == want.text)
	}
	return equalJSON(got.value, want.value)
}

// equalJSON compares values; the order of keys counts only inside texts.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case *value.Object:
		b, ok := b.(*value.Object)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			k, x := a.At(i)
			y, ok := b.Get(k)
			if !ok || !equalJSON(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return string(value.AppendJSON(nil, a)) == string(value.AppendJSON(nil, b))
}

var loneSurrogate = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}(\\ud[c-f][0-9a-f]{2})?|\\ud[c-f][0-9a-f]{2}`)

// outOfScope tells why an input is one that a spec cannot say; "" if it can.
func outOfScope(v *vector, in *value.Object) string {
	for _, m := range loneSurrogate.FindAllStringSubmatch(string(v.Input), -1) {
		if m[1] == "" {
			return "a lone surrogate"
		}
	}
	switch kind, _ := in.Get("kind"); kind {
	case "registryTools", "contractDiffRaw", "staticProfile", "aggregateProfiles", "lockfileParse", "promptDefine":
		return kind.(string)
	case "presenter":
		// Arguments are strict in every spec, presenters never.
		if strings.Contains(string(v.Input), `"mode": "strict"`) || strings.Contains(string(v.Input), `"mode":"strict"`) {
			return "a strict presenter"
		}
	}
	return unsayable(in)
}

// unsayable looks for members that no spec has, at any depth.
func unsayable(v any) string {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			if why := unsayable(x); why != "" {
				return why
			}
		}
	case *value.Object:
		for i := range v.Len() {
			k, x := v.At(i)
			if why := unsayableMember(k, x); why != "" {
				return why
			}
			if why := unsayable(x); why != "" {
				return why
			}
		}
	}
	return ""
}

func unsayableMember(k string, x any) string {
	switch k {
	case "dataJs", "returnsJs", "catch", "refine", "__proto__", "model", "fromModel", "stateSync", "interceptors", "cursorSecret", "keyFolding", "fsmCompactMode":
		return k
	case "coerce", "trim":
		if x == true {
			return k
		}
	case "kind":
		if x == "js" {
			return "a thrown value that is no Error"
		}
	case "type":
		if x == "date" {
			return "type date"
		}
	case "format":
		if x == "cuid" || x == "emoji" {
			return "format " + x.(string)
		}
	case "delimiter":
		if x != "|" && x != "," && x != nil {
			return "delimiter"
		}
	case "dataJson":
		if s, ok := x.(string); ok && strings.Contains(s, `"__proto__"`) {
			return "a __proto__ key"
		}
	}
	return ""
}
