package presenters

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func mustPath(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// eachText rewrites the text of every content block, and what else is text.
func eachText(want result, f func(i int, s string) string) result {
	for i, c := range elements(get(want.value, "content")) {
		if s, ok := get(c, "text").(string); ok {
			c.(*value.Object).Set("text", f(i, s))
		}
	}
	return want
}

// rawNumbers finds the literals of a JSON text.
var rawNumbers = regexp.MustCompile(`-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?`)

func rawData(in *value.Object) string {
	if s, ok := get(in, "dataJson").(string); ok {
		return s
	}
	return string(value.AppendJSON(nil, get(in, "data")))
}

// exactPairs gives the number literals of the data that JavaScript rounds:
// what it writes, and their exact digits.
func exactPairs(in *value.Object) (pairs [][2]string) {
	for _, lit := range rawNumbers.FindAllString(rawData(in), -1) {
		digits := len(strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(lit), "0"))
		whole := !strings.ContainsAny(lit, ".eE")
		f, err := strconv.ParseFloat(lit, 64)
		overflow := err != nil && math.IsInf(f, 0)
		exact := whole && math.Abs(f) > 1<<53 || !whole && !strings.ContainsAny(lit, "eE") && digits > 17 || overflow
		if !exact {
			continue
		}
		js := "null"
		if !overflow {
			js = string(value.AppendFloat(nil, f))
		}
		if js != lit {
			pairs = append(pairs, [2]string{js, lit})
		}
	}
	return pairs
}

func hasExactNumbers(in *value.Object) bool {
	return isKind("successData", "presenter", "toonSuccess")(in) && len(exactPairs(in)) > 0
}

func exactNumbers(in *value.Object, want result) result {
	return eachText(want, func(_ int, s string) string {
		for _, p := range exactPairs(in) {
			s = strings.ReplaceAll(s, p[0], p[1])
		}
		return s
	})
}

var integerKey = regexp.MustCompile(`^(0|[1-9]\d{0,9})$`)

func hasIntegerKeys(in *value.Object) bool {
	return isKind("successData", "presenter")(in) && any1(dataOf(in), func(o *value.Object) bool {
		for _, k := range o.Keys() {
			if integerKey.MatchString(k) {
				return true
			}
		}
		return false
	})
}

// keysInPlace puts the keys of block 1 into the order of the schema or of the
// data, or of _select.
func keysInPlace(in *value.Object, want result) result {
	return eachText(want, func(i int, s string) string {
		v, err := value.Parse([]byte(s))
		if i > 0 || err != nil {
			return s
		}
		out := ordered(v, dataOf(in), get(get(in, "presenter"), "schema"))
		if o, ok := out.(*value.Object); ok && get(in, "select") != nil {
			picked := &value.Object{}
			for _, k := range texts(get(in, "select")) {
				if x, ok := o.Get(k); ok {
					picked.Set(k, x)
				}
			}
			out = picked
		}
		return string(value.AppendIndent(nil, out, 0))
	})
}

func ordered(v, data, schema any) any {
	switch v := v.(type) {
	case []any:
		l, _ := data.([]any)
		for i := range v {
			if i < len(l) {
				v[i] = ordered(v[i], l[i], schema)
			}
		}
	case *value.Object:
		from, _ := data.(*value.Object)
		keys := from.Keys()
		fields := map[string]any{}
		if get(schema, "fields") != nil {
			keys = nil
			for _, f := range elements(get(schema, "fields")) {
				keys = append(keys, text1(get(f, "name")))
				fields[text1(get(f, "name"))] = f
			}
		}
		o := &value.Object{}
		for _, k := range keys {
			if x, ok := v.Get(k); ok {
				o.Set(k, ordered(x, get(data, k), fields[k]))
			}
		}
		return o
	}
	return v
}

// childShapes sends what is embedded in block 1 through the children: their
// schemas, limits and masks.
func childShapes(in *value.Object, want result) result {
	p := get(in, "presenter")
	if get(p, "embeds") == nil || want.failed {
		return want
	}
	return eachText(want, func(i int, s string) string {
		v, err := value.Parse([]byte(s))
		if i > 0 || err != nil {
			return s
		}
		return string(value.AppendIndent(nil, shapedItems(v, p), 0))
	})
}

func shapedItems(v, p any) any {
	if l, ok := v.([]any); ok {
		for i := range l {
			l[i] = shapedChildren(l[i], p)
		}
		return l
	}
	return shapedChildren(v, p)
}

func shapedChildren(v, p any) any {
	o, ok := v.(*value.Object)
	if !ok {
		return v
	}
	for _, e := range elements(get(p, "embeds")) {
		key, child := text1(get(e, "key")), get(e, "presenter")
		x, ok := o.Get(key)
		if !ok || x == nil {
			continue
		}
		l, isList := x.([]any)
		if !isList {
			o.Set(key, shapedBy(x, child))
			continue
		}
		if n, ok := get(child, "limit").(int64); ok && int(n) < len(l) {
			l = l[:n]
		}
		for i := range l {
			l[i] = shapedBy(l[i], child)
		}
		o.Set(key, l)
	}
	return o
}

func shapedBy(v, child any) any {
	if s := shapeOf(get(child, "schema")); s != nil {
		v, _ = s.Strip(v)
	}
	if o, ok := v.(*value.Object); ok {
		for _, path := range elements(get(get(child, "redact"), "paths")) {
			if _, ok := o.Get(path.(string)); ok {
				o.Set(path.(string), "[REDACTED]")
			}
		}
	}
	return shapedItems(v, child)
}

// masksNull is about exact paths of one name that meet null.
func masksNull(in *value.Object) bool { return len(nullPaths(in)) > 0 }

func nullPaths(in *value.Object) (paths []string) {
	o, _ := dataOf(in).(*value.Object)
	for _, p := range texts(get(get(get(in, "presenter"), "redact"), "paths")) {
		if v, ok := o.Get(p); ok && v == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

func nullMasked(in *value.Object, want result) result {
	return eachText(want, func(_ int, s string) string {
		for _, p := range nullPaths(in) {
			s = strings.ReplaceAll(s, `"`+p+`": null`, `"`+p+`": "[REDACTED]"`)
		}
		return s
	})
}

// rulesDiffer is about presenters whose rules, suggestions or UI are restated:
// those of a list, equal ones, fields whose documentation the recorded system
// missed, and what reads a masked field.
func rulesDiffer(in *value.Object) bool {
	p := get(in, "presenter")
	return isKind("presenter")(in) && (get(p, "rules") != nil || get(p, "suggest") != nil || get(p, "collectionRules") != nil || get(p, "api") == "definePresenter") && get(p, "embeds") == nil
}

// restateRules states rules and suggestions anew over the data that was sent
// (block 1 as it was recorded: stripped, cut and masked).
func restateRules(in *value.Object, want result) result {
	if want.failed || get(in, "select") != nil {
		return want
	}
	data, err := value.Parse([]byte(firstText(want.value)))
	if err != nil {
		return want
	}
	r := restated{p: get(in, "presenter"), ctx: get(in, "ctx"), data: data}
	r.items, r.list = data.([]any)
	if !r.list {
		r.items = []any{data}
	}
	var kept []any
	for _, c := range elements(get(want.value, "content")) {
		s := text1(get(c, "text"))
		if !strings.HasPrefix(s, "<domain_rules>") && !strings.HasPrefix(s, "<action_suggestions>") {
			kept = append(kept, c)
		}
	}
	if get(r.p, "redact") != nil {
		kept = kept[:1]
		for _, b := range blocksOf(get(r.p, "ui")) {
			kept = append(kept, textBlock(r.block(b)))
		}
		if get(r.p, "ui") == nil {
			kept = append(kept, elements(get(want.value, "content"))[1:1+r.uiCount(want)]...)
		}
	}
	for _, b := range []struct {
		tag   string
		lines []string
	}{{"domain_rules", r.rules()}, {"action_suggestions", r.suggestions()}} {
		if len(b.lines) > 0 {
			kept = append(kept, textBlock("<"+b.tag+">\n- "+strings.Join(b.lines, "\n- ")+"\n</"+b.tag+">"))
		}
	}
	want.value.(*value.Object).Set("content", kept)
	return want
}

// restated evaluates the callbacks of a presenter as section 2 says.
type restated struct {
	p, ctx, data any
	items        []any
	list         bool
}

func (r *restated) uiCount(want result) int {
	n := 0
	for _, c := range elements(get(want.value, "content")) {
		if strings.HasPrefix(text1(get(c, "text")), "<ui_passthrough") {
			n++
		}
	}
	return n
}

func (r *restated) env(item any) *expr.Env {
	e := expr.NewEnv()
	e.Set("ctx", r.ctx)
	e.Set("data", item)
	if r.list {
		e.Set("items", r.items)
	}
	return e
}

func (r *restated) block(b block) string {
	rr := &renderer{env: r.env(r.data), holes: []span{}}
	rr.plain, rr.bullet, rr.cell = rr.marking(appendPlain), rr.marking(appendBullet), rr.marking(appendCell[string])
	_ = rr.uiBlock(&b, &prepared{plan: &plan{}})
	return string(rr.buf)
}

func (r *restated) rules() (lines []string) {
	add := func(s string) {
		s = strings.ReplaceAll(s, "\n", "\n  ")
		if !contains(lines, s) {
			lines = append(lines, s)
		}
	}
	if get(r.p, "api") == "definePresenter" && get(r.p, "autoRules") != false {
		for _, f := range elements(get(get(r.p, "schema"), "fields")) {
			for _, key := range []string{"describeOuter", "describe"} {
				if d := text1(get(f, key)); d != "" {
					add(text1(get(f, "name")) + ": " + d)
					break
				}
			}
		}
	}
	for _, x := range elements(get(r.p, "rules")) {
		add(jsString(x))
	}
	for _, x := range elements(get(get(r.p, "rules"), "dynamic")) {
		cb, ok := asCallback(x)
		for _, item := range r.items {
			if !ok {
				if x != nil {
					add(jsString(x))
				}
				break
			}
			if s, err := cb.run(r.env(item)); err == nil && s != nil {
				add(jsString(s))
				break
			}
		}
	}
	if !r.list {
		return lines
	}
	for _, x := range elements(get(r.p, "collectionRules")) {
		add(jsString(x))
	}
	for _, x := range elements(get(get(r.p, "collectionRules"), "dynamic")) {
		if cb, ok := asCallback(x); ok {
			if s, err := cb.run(r.env(nil)); err == nil && s != nil {
				add(jsString(s))
			}
		} else if x != nil {
			add(jsString(x))
		}
	}
	return lines
}

func (r *restated) suggestions() (lines []string) {
	l, items := get(r.p, "suggest"), r.items
	if c := get(r.p, "collectionSuggest"); r.list && c != nil {
		l, items = c, []any{nil}
	}
	for _, x := range elements(l) {
		for _, item := range items {
			if x == nil {
				continue
			}
			e := r.env(item)
			if cb, ok := asCallback(get(x, "when")); ok {
				if holds, err := (jsCond{cb}).Bool(e); err != nil || !holds {
					continue
				}
			}
			reason, _ := jsText{get(x, "reason")}.Append(nil, e, nil)
			s := text1(get(x, "tool")) + ": " + strings.ReplaceAll(string(reason), "\n", "\n  ")
			if !contains(lines, s) {
				lines = append(lines, s)
			}
			break
		}
	}
	return lines
}
