package presenters

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Section 3, said a second time: what it makes of recorded texts.

var (
	ownTag    = regexp.MustCompile(`(?i)<(\s*/?\s*(?:ui_passthrough|llm_directives|domain_rules|action_suggestions|tool_error|validation_error|cache_invalidation|contract_awareness)\b)`)
	bulletTag = regexp.MustCompile(`(?s)^<(llm_directives|domain_rules|action_suggestions)>\n(.*)\n</(?:llm_directives|domain_rules|action_suggestions)>$`)
	uiTag     = regexp.MustCompile(`(?s)^(<ui_passthrough[^>]*>\n)(.*)(\n</ui_passthrough>)$`)
)

// isHostile is about inputs whose data would be read as structure.
func isHostile(in *value.Object) bool {
	if !isKind("successData", "presenter", "builder", "ui", "toonSuccess", "call", "serverCall")(in) {
		return false
	}
	hostile := false
	strs(in, func(s string) {
		hostile = hostile || ownTag.MatchString(s) || strings.ContainsAny(s, "\n\"<>&'") || strings.Contains(s, "```") || strings.Contains(s, "|")
	})
	return hostile
}

func strs(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, x := range v {
			strs(x, f)
		}
	case *value.Object:
		for i := range v.Len() {
			k, x := v.At(i)
			if k != "js" && k != "dataJson" {
				strs(x, f)
			}
		}
	}
}

func madeSafe(in *value.Object, want result) result {
	if isKind("ui")(in) {
		return safeUI(in, want)
	}
	var bullets []string
	calls := elements(get(in, "calls"))
	for _, c := range calls {
		if l := elements(c); len(l) > 1 && (l[0] == "llmHint" || l[0] == "systemRules" || l[0] == "systemHint") {
			strs(l[1], func(s string) { bullets = append(bullets, s) })
		}
	}
	return eachText(want, func(i int, s string) string {
		if m := bulletTag.FindStringSubmatch(s); m != nil {
			body := m[2]
			for _, b := range bullets {
				body = strings.ReplaceAll(body, b, strings.ReplaceAll(b, "\n", "\n  "))
			}
			if isKind("builder")(in) || dynamicOnly(in) {
				body = ownTag.ReplaceAllString(body, "&lt;$1")
			}
			return "<" + m[1] + ">\n" + body + "\n</" + m[1] + ">"
		}
		if m := uiTag.FindStringSubmatch(s); m != nil && i > 0 {
			return m[1] + safeBody(m[2]) + m[3]
		}
		if i > 0 || get(want.value, "isError") != nil {
			return s
		}
		if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
			if _, err := value.Parse([]byte(s)); err == nil {
				return ownTag.ReplaceAllString(s, `\u003c$1`)
			}
		}
		return ownTag.ReplaceAllString(s, "&lt;$1")
	})
}

// dynamicOnly tells whether all rules of the embedded presenters and of the
// presenter come from callbacks: then all of their text is data.
func dynamicOnly(in *value.Object) bool {
	return !any1(get(in, "presenter"), func(o *value.Object) bool {
		static := false
		strs(get(o, "rules"), func(s string) { static = static || ownTag.MatchString(s) && !strings.Contains(s, `"`) })
		return static
	})
}

// safeBody makes the body of a UI block safe: JSON between fences keeps its
// value, the fence grows over the backticks in it.
func safeBody(body string) string {
	if strings.HasPrefix(body, "```json\n") || strings.HasPrefix(body, "```echarts\n") {
		return ownTag.ReplaceAllString(body, `\u003c$1`)
	}
	return ownTag.ReplaceAllString(body, "&lt;$1")
}

var attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

// safeUI builds the text of one block again from its parts.
func safeUI(in *value.Object, want result) result {
	made := get(want.value, "block")
	kind, body := text1(get(made, "type")), text1(get(made, "content"))
	b := get(in, "block")
	args := elements(get(b, "args"))
	switch get(b, "helper") {
	case "mermaid", "codeBlock":
		lang, code := "mermaid", text1(args[0])
		if len(args) > 1 {
			lang, code = text1(args[0]), text1(args[1])
		}
		f := "```"
		for strings.Contains(code, f) {
			f += "`"
		}
		body = f + lang + "\n" + ownTag.ReplaceAllString(code, "&lt;$1") + "\n" + f
	case "table":
		body = safeTable(args)
	case "list":
		var lines []string
		for _, x := range elements(args[0]) {
			lines = append(lines, "- "+strings.ReplaceAll(ownTag.ReplaceAllString(jsString(x), "&lt;$1"), "\n", "\n  "))
		}
		body = strings.Join(lines, "\n")
	default:
		body = safeBody(body)
	}
	meta := get(b, "meta")
	if raw := get(b, "raw"); raw != nil {
		meta = get(raw, "meta")
	}
	s := `<ui_passthrough type="` + attrEscaper.Replace(kind) + `"`
	for _, key := range []string{"title", "width", "priority"} {
		if o, ok := meta.(*value.Object); ok {
			if v, ok := o.Get(key); ok && v != "" {
				s += " " + key + `="` + attrEscaper.Replace(jsString(v)) + `"`
			}
		}
	}
	s += ">\n" + body + "\n</ui_passthrough>"
	return result{value: value.Of("block", value.Of("type", kind, "content", body), "rendered", s)}
}

func safeTable(args []any) string {
	cell := func(v any) string {
		s := strings.ReplaceAll(strings.ReplaceAll(jsString(v), "|", `\|`), "\n", "<br>")
		return ownTag.ReplaceAllString(s, "&lt;$1")
	}
	line := func(l []any) string {
		var cells []string
		for _, x := range l {
			cells = append(cells, cell(x))
		}
		return "| " + strings.Join(cells, " | ") + " |"
	}
	head := elements(args[0])
	lines := []string{line(head), "|" + strings.Repeat(" --- |", len(head))}
	for _, row := range elements(args[1]) {
		lines = append(lines, line(elements(row)))
	}
	return strings.Join(lines, "\n")
}

// isToon is about what the specification 4.0 writes in another way than the
// recorded library: nested groups, empty lists, #, control characters,
// exponents.
func isToon(in *value.Object) bool { return isKind("toonSuccess")(in) }

var (
	toonHash    = regexp.MustCompile(`(^|[|\n] *)(#[^|\n]*)`)
	toonEmpty   = regexp.MustCompile(`(?m)^(\s*(?:- )?[^\n\[]+)\[0\|?\]:$`)
	toonExp     = regexp.MustCompile(`(^|[|\n: ])(-?\d+(?:\.\d+)?e[+-]\d+)`)
	toonControl = regexp.MustCompile("(^|[|\\n] *)([^|\\n]*[\x00-\x08\x0b\x0c\x0e-\x1f][^|\\n]*)")
)

func toonFour(in *value.Object, want result) result {
	if rows, ok := nestedRows(dataOf(in)); ok && get(in, "options") == nil {
		return eachText(want, func(int, string) string { return rows })
	}
	return eachText(want, func(_ int, s string) string {
		s = toonHash.ReplaceAllString(s, `$1"$2"`)
		s = toonEmpty.ReplaceAllString(s, "$1: []")
		s = toonControl.ReplaceAllStringFunc(s, func(m string) string {
			lead := m[:len(m)-len(strings.TrimLeft(m, "|\n "))]
			cell := strings.TrimSuffix(strings.TrimPrefix(m[len(lead):], `"`), `"`)
			cell = strings.ReplaceAll(cell, `\"`, `"`)
			return lead + string(value.AppendString(nil, cell))
		})
		return toonExp.ReplaceAllStringFunc(s, func(m string) string {
			lead := ""
			if m[0] != '-' && (m[0] < '0' || m[0] > '9') {
				lead, m = m[:1], m[1:]
			}
			f, _ := strconv.ParseFloat(m, 64)
			return lead + strconv.FormatFloat(f, 'f', -1, 64)
		})
	})
}

// nestedRows writes a list of objects whose fields are numbers, or objects of
// numbers that are alike: the table with nested groups.
func nestedRows(v any) (string, bool) {
	l, ok := v.([]any)
	if !ok || len(l) == 0 {
		return "", false
	}
	head, nested := "", false
	var lines []string
	for i, x := range l {
		o, ok := x.(*value.Object)
		if !ok {
			return "", false
		}
		var names, cells []string
		for k := range o.Len() {
			name, v := o.At(k)
			if sub, ok := v.(*value.Object); ok && sub.Len() > 0 {
				nested = true
				var inner []string
				for j := range sub.Len() {
					n, y := sub.At(j)
					if _, whole := y.(int64); !whole {
						return "", false
					}
					inner, cells = append(inner, n), append(cells, jsString(y))
				}
				names = append(names, name+"{"+strings.Join(inner, "|")+"}")
				continue
			}
			if _, whole := v.(int64); !whole {
				return "", false
			}
			names, cells = append(names, name), append(cells, jsString(v))
		}
		h := strings.Join(names, "|")
		if i > 0 && h != head {
			return "", false
		}
		head = h
		lines = append(lines, "  "+strings.Join(cells, "|"))
	}
	return "[" + strconv.Itoa(len(l)) + "|]{" + head + "}:\n" + strings.Join(lines, "\n"), nested
}

func isToonTable(in *value.Object) bool {
	return isKind("toolDef")(in) && get(get(in, "tool"), "toon") == true
}

var (
	toonHead = regexp.MustCompile(`(?m)(\[\d+\|\]\{action\|desc\|required)(\|destructive)?\}:`)
	toonItem = regexp.MustCompile(`(?m)^  - action: (.*)\n    desc: (.*)\n    required: (.*)(?:\n    destructive: (true))?$`)
)

// destructiveColumn gives every table of actions its fourth column.
func destructiveColumn(_ *value.Object, want result) result {
	s := text1(get(want.value, "description"))
	if toonItem.MatchString(s) {
		rows := toonItem.FindAllStringSubmatch(s, -1)
		head, _, _ := strings.Cut(s, "\n\n")
		s = head + "\n\n[" + strconv.Itoa(len(rows)) + "|]{action|desc|required|destructive}:"
		for _, r := range rows {
			destroys := "false"
			if r[4] != "" {
				destroys = "true"
			}
			s += "\n  " + r[1] + "|" + r[2] + "|" + r[3] + "|" + destroys
		}
	} else if m := toonHead.FindStringSubmatch(s); m != nil && m[2] == "" {
		i := strings.Index(s, "\n\n")
		lines := strings.Split(s[i+2:], "\n")
		for k, l := range lines {
			if strings.HasPrefix(l, "  ") {
				lines[k] = l + "|false"
			}
		}
		s = s[:i+2] + toonHead.ReplaceAllString(strings.Join(lines, "\n"), "$1|destructive}:")
	}
	if o, ok := want.value.(*value.Object); ok && !want.failed {
		o.Set("description", s)
	}
	return want
}
