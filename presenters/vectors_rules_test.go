package presenters

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// onPurpose is one way in which ours differs from what was recorded: the
// clause of the wire format that it rests on, the inputs that it is about, and
// what becomes of the recorded output. Rules apply one after the other.
type onPurpose struct {
	clause  string
	about   func(in *value.Object) bool
	rewrite func(in *value.Object, want result) result
}

// rewrite gives what we must send for an input, and the clauses it rests on.
func rewrite(in *value.Object, want result) (result, []string) {
	want.value = value.DeepClone(want.value)
	var clauses []string
	for _, r := range purposes {
		if r.about(in) {
			want = r.rewrite(in, want)
			clauses = append(clauses, r.clause)
		}
	}
	return want, clauses
}

var purposes = []onPurpose{
	{"8: start-up errors have our words", loadFails, anyFailure},
	{"8: undeclared embed keys are load errors", hasUndeclaredEmbed, failure},
	{"2.3: an invalid path is an error at load", hasInvalidPath, failure},
	{"8: an expression that fails is an error result", expressionFails, anyFailure},
	{"8: a failed presenter names the row", isKind("presenter"), nameRow},
	{"1: no result is OK", noResult, saysOK},
	{"1: exact numbers", hasExactNumbers, exactNumbers},
	{"8: integer-like keys keep their place", hasIntegerKeys, keysInPlace},
	{"2.4: the child shapes the parent's data", isKind("presenter"), childShapes},
	{"2.3: masks take null too", masksNull, nullMasked},
	{"2.5, 2.7: rules and suggestions of a list, equal ones once, over masked data", rulesDiffer, restateRules},
	{"3: nothing from data looks like structure", isHostile, madeSafe},
	{"5: TOON 4.0", isToon, toonFour},
	{"5: the destructive column is always there", isToonTable, destructiveColumn},
	{"4: unexpected failure", failsInside, internalError},
	{"8: handlers do not see the discriminator", echoes, withoutDiscriminator},
	{"6: the discriminator is action", hasOwnDiscriminator, discriminatorIsAction},
	{"4: near names", hasNearName, nearName},
	{"6: definitions", isDefinition, ourDefinition},
	{"8: format patterns are left out, no artificial bounds", isKind("jsonSchema"), ourSchema},
	{"6: flat tools share no parameters", hasFlatConflict, flatDefinitions},
	{"6: three-part names are allowed", hasThreeParts, threeParts},
	{"8: a byte cap bounds block 1 and cuts nothing behind it", capsBlocks, blockOneCapped},
	{"language 2: NULL in an optional field is left out", hasOptionalNull, optionalNull},
}

func isKind(kinds ...string) func(*value.Object) bool {
	return func(in *value.Object) bool { return contains(kinds, text1(get(in, "kind"))) }
}

func failure(_ *value.Object, _ result) result { return result{failed: true, anyText: true} }

// anyFailure: of a recorded failure only that there is one counts.
func anyFailure(_ *value.Object, want result) result {
	if want.failed {
		want.anyText = true
	}
	return want
}

// loadFails is about inputs that are tools: what is recorded as thrown there
// was thrown while they were built.
func loadFails(in *value.Object) bool {
	return isKind("toolDef", "exposition", "toolsList", "call", "serverCall", "helper")(in)
}

// walk calls f for every object in a value.
func walk(v any, f func(*value.Object)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walk(x, f)
		}
	case *value.Object:
		f(v)
		for i := range v.Len() {
			_, x := v.At(i)
			walk(x, f)
		}
	}
}

func any1(v any, holds func(*value.Object) bool) bool {
	found := false
	walk(v, func(o *value.Object) { found = found || holds(o) })
	return found
}

func hasUndeclaredEmbed(in *value.Object) bool {
	return any1(in, func(o *value.Object) bool {
		schema := get(o, "schema")
		if get(schema, "type") != "object" || get(schema, "mode") == "passthrough" {
			return false
		}
		for _, e := range elements(get(o, "embeds")) {
			declared := false
			for _, f := range elements(get(schema, "fields")) {
				declared = declared || get(f, "name") == get(e, "key")
			}
			if !declared {
				return true
			}
		}
		return false
	})
}

// pathGrammar is section 2.3's: a, a.b, a[*].b, a.*.b, a[0].b, ["x-y"], *, **.b.
var pathGrammar = mustPath(`^(?:\*\*?|[A-Za-z_$][\w$]*|\[(?:\*|\d+|"[^"]*")\])(?:\.(?:\*\*?|[A-Za-z_$][\w$]*)|\[(?:\*|\d+|"[^"]*")\])*$`)

func hasInvalidPath(in *value.Object) bool {
	return any1(in, func(o *value.Object) bool {
		for _, p := range elements(get(get(o, "redact"), "paths")) {
			if !pathGrammar.MatchString(p.(string)) {
				return true
			}
		}
		return false
	})
}

// expressionFails is about callbacks that read a field of nothing: a.b where
// there is no a.
func expressionFails(in *value.Object) bool {
	return isKind("presenter")(in) && any1(in, func(o *value.Object) bool {
		cb, ok := asCallback(o)
		return ok && strings.HasPrefix(cb.src, "a.b")
	})
}

// nameRow puts the row before each field of a failed list.
func nameRow(in *value.Object, want result) result {
	l, ok := dataOf(in).([]any)
	if !ok || !want.failed || !strings.Contains(want.text, "Presenter] Validation failed:") {
		return want
	}
	s := shapeOf(get(get(in, "presenter"), "schema"))
	for i, x := range l {
		if _, faults := s.Strip(x); len(faults) > 0 {
			want.text = strings.ReplaceAll(want.text, "\n  • ", "\n  • row "+jsNumber(int64(i+1))+" ")
			break
		}
	}
	return want
}

// given is what the handler of a call, a helper or a presenter was given.
func given(in *value.Object) (data any, ok bool) {
	switch text1(get(in, "kind")) {
	case "successData", "presenter", "toonSuccess":
		return dataOf(in), true
	case "helper":
		if get(in, "helper") == "success" {
			return elements(get(in, "args"))[0], true
		}
	case "call", "serverCall":
		if h := handlerOf(in); h != nil && (h.Len() == 0 || get(h, "returns") != nil) {
			return get(h, "returns"), true
		} else if _, null := h.Get("returns"); null {
			return nil, true
		}
	}
	return nil, false
}

func noResult(in *value.Object) bool {
	data, ok := given(in)
	return ok && !hasOwnDiscriminator(in) && (data == nil || data == "")
}

// saysOK is what a handler without a result sends; what was recorded as an
// error of routing stays.
func saysOK(in *value.Object, want result) result {
	if o := want.value; strings.Contains(firstText(o), "DISCRIMINATOR") || strings.Contains(firstText(o), "UNKNOWN_") || strings.Contains(firstText(o), "<validation_error") {
		return want
	}
	if want.failed && isKind("call", "serverCall")(in) {
		return want
	}
	if content := elements(get(want.value, "content")); len(content) > 0 && get(want.value, "isError") == nil && text1(get(content[0], "text")) != "null" && text1(get(content[0], "text")) != `""` {
		return want
	}
	return result{value: value.Of("content", []any{textBlock("OK")})}
}

func textBlock(s string) *value.Object { return value.Of("type", "text", "text", s) }

func firstText(v any) string {
	content := elements(get(v, "content"))
	if len(content) == 0 {
		return ""
	}
	return text1(get(content[0], "text"))
}

// handlerOf finds the handler that a call means.
func handlerOf(in *value.Object) *value.Object {
	a := actionOf(in)
	h, _ := get(a, "handler").(*value.Object)
	return h
}

// actionOf finds the action, or the fluent tool, that a call means.
func actionOf(in *value.Object) *value.Object {
	name, action := text1(get(in, "name")), text1(get(get(in, "args"), "action"))
	for _, t := range elements(get(in, "tools")) {
		own := text1(get(t, "name"))
		if get(t, "api") == "fluent" {
			group, act, ok := strings.Cut(own, ".")
			if !ok {
				act = "default"
			}
			if name == own || name == strings.ReplaceAll(own, ".", "_") || name == group && action == act {
				return t.(*value.Object)
			}
			continue
		}
		for _, a := range elements(get(t, "actions")) {
			if name == own && action == get(a, "name") || name == own+"_"+text1(get(a, "name")) {
				return a.(*value.Object)
			}
		}
		for _, g := range elements(get(t, "groups")) {
			for _, a := range elements(get(g, "actions")) {
				if name == own && action == text1(get(g, "name"))+"."+text1(get(a, "name")) {
					return a.(*value.Object)
				}
			}
		}
	}
	return nil
}
