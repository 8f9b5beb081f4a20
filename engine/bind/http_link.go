package bind

import "strings"

// nextLink gives the target of the first link with the relation next in a
// Link header (RFC 8288), "" if there is none.
func nextLink(s string) string {
	for {
		open := strings.IndexByte(s, '<')
		if open < 0 {
			return ""
		}
		target, rest, ok := strings.Cut(s[open+1:], ">")
		if !ok {
			return ""
		}
		var isNext bool
		if isNext, s = linkParams(rest); isNext {
			return strings.TrimSpace(target)
		}
	}
}

// linkParams reads the parameters of a link up to the comma behind them. Only
// the first rel counts; a link with an anchor is one of another page.
func linkParams(s string) (isNext bool, rest string) {
	relation, anchored := "", false
	for {
		s = strings.TrimLeft(s, " \t")
		if !strings.HasPrefix(s, ";") {
			break
		}
		var name, v string
		name, v, s = linkParam(s[1:])
		switch {
		case strings.EqualFold(name, "rel") && relation == "":
			relation = v
		case strings.EqualFold(name, "anchor"):
			anchored = true
		}
	}
	if comma := strings.IndexByte(s, ','); comma >= 0 {
		s = s[comma+1:]
	} else {
		s = ""
	}
	for r := range strings.FieldsSeq(relation) {
		if strings.EqualFold(r, "next") && !anchored {
			return true, s
		}
	}
	return false, s
}

// linkParam reads `name`, `name=token` or `name="text"`.
func linkParam(s string) (name, v, rest string) {
	end := strings.IndexAny(s, "=;,")
	if end < 0 {
		return strings.TrimSpace(s), "", ""
	}
	name, s = strings.TrimSpace(s[:end]), s[end:]
	if s[0] != '=' {
		return name, "", s
	}
	s = strings.TrimLeft(s[1:], " \t")
	if !strings.HasPrefix(s, `"`) {
		end = strings.IndexAny(s, ";,")
		if end < 0 {
			end = len(s)
		}
		return name, strings.TrimSpace(s[:end]), s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case c == '"':
			return name, b.String(), s[i+1:]
		default:
			b.WriteByte(c)
		}
	}
	return name, b.String(), ""
}
