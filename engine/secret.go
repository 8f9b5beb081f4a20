package engine

import (
	"net/url"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// scrub makes an error fit for the log: without the values of secrets, what a
// database's URL is made of, and the arguments of the call (nil: there is
// none), which some errors quote.
func (p *Program) scrub(c *call, s string) string {
	s = p.withoutSecrets(s)
	for _, part := range p.parts {
		s = replaceWord(s, part, redacted)
	}
	if c == nil || c.args == nil {
		return s
	}
	for _, v := range secretArgs(nil, c.tool.graph.Params, c.args, false) {
		if text := string(value.AppendText(nil, v)); text != "" {
			s = strings.ReplaceAll(s, text, redacted)
		}
	}
	texts := longTexts(nil, c.args)
	// A text may hold another one.
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	for _, text := range texts {
		s = replaceWord(s, text, "…")
		s = replaceWord(s, strings.ReplaceAll(text, "'", "''"), "…") // as SQL quotes it
	}
	return s
}

const redacted = "[REDACTED]"

// withoutSecrets takes out the values of secrets alone: the rest is the
// author's own.
func (p *Program) withoutSecrets(s string) string {
	for _, secret := range p.secrets {
		s = strings.ReplaceAll(s, secret, redacted)
	}
	return s
}

// leastText is the length from which on a text of the arguments is taken out
// of errors: a shorter one is a part of many words.
const leastText = 4

// longTexts appends the texts in v, at any depth.
func longTexts(out []string, v any) []string {
	switch v := v.(type) {
	case string:
		if len(v) >= leastText {
			out = append(out, v)
		}
	case *value.Object:
		for i := range v.Len() {
			_, x := v.At(i)
			out = longTexts(out, x)
		}
	case []any:
		for _, x := range v {
			out = longTexts(out, x)
		}
	}
	return out
}

// replaceWord replaces a part of a URL where it is no part of a longer word:
// a user may be called a.
func replaceWord(s, part, by string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, part)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := i + len(part)
		b.WriteString(s[:i])
		if i > 0 && inWord(s[i-1]) && inWord(part[0]) || end < len(s) && inWord(s[end]) && inWord(part[len(part)-1]) {
			b.WriteString(part)
		} else {
			b.WriteString(by)
		}
		s = s[end:]
	}
}

func inWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// hideURL keeps the user part of a URL out of the log, whether the spec marks
// it or not, and of a URL that a secret went into everything else too: host,
// path and parameters.
func (p *Program) hideURL(raw string, secret bool) {
	u, err := url.Parse(raw)
	if err != nil {
		if secret && raw != "" {
			p.parts = append(p.parts, raw)
		}
		return
	}
	if password, ok := u.User.Password(); ok && password != "" {
		p.secrets = append(p.secrets, password)
	}
	var parts []string
	q := u.Query()
	parts = append(parts, u.User.Username(), q.Get("user"), q.Get("password"))
	if secret {
		for _, path := range []string{u.Opaque, u.Path} {
			parts = append(append(parts, path), strings.Split(path, "/")...)
		}
		parts = append(parts, u.Host, u.Hostname(), q.Get("host"), q.Get("dbname"))
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return strings.Trim(s, "/.:") == "" || s == ":memory:" })
	slices.SortStableFunc(parts, func(a, b string) int { return len(b) - len(a) })
	p.parts = append(p.parts, parts...)
}

// SecretValues gives what must not stand in the answer to a call: the values
// of its @secret parameters and of the secret variables of the environment.
func (p *Program) SecretValues(tool string, args *value.Object) []any {
	var values []any
	for _, s := range p.secrets {
		values = append(values, s)
	}
	if t := p.tools[tool]; t != nil {
		values = secretArgs(values, t.graph.Params, args, false)
	}
	return values
}

// secretArgs appends the values of @secret fields at any depth of v, which has
// shape s; secret: it lies in such a field itself.
func secretArgs(out []any, s *shape.Shape, v any, secret bool) []any {
	switch v := v.(type) {
	case *value.Object:
		for i := range v.Len() {
			name, x := v.At(i)
			inner, hidden := fieldOf(s, name)
			out = secretArgs(out, inner, x, secret || hidden)
		}
	case []any:
		for i, x := range v {
			out = secretArgs(out, elementOf(s, i), x, secret)
		}
	default:
		if secret && v != nil {
			out = append(out, v)
		}
	}
	return out
}

// fieldOf gives the shape of a field, nil if it has none, and whether it is
// secret; in a union it is when one of the alternatives says so.
func fieldOf(s *shape.Shape, name string) (inner *shape.Shape, secret bool) {
	if s == nil {
		return nil, false
	}
	if f := s.Field(name); f != nil {
		return f.Shape, f.Secret
	}
	for _, a := range s.Alts {
		x, hidden := fieldOf(a, name)
		if hidden {
			return x, true
		}
		if inner == nil {
			inner = x
		}
	}
	if inner == nil {
		inner = s.Rest
	}
	return inner, false
}

// elementOf gives the shape of an element of a list, nil if it has none.
func elementOf(s *shape.Shape, i int) *shape.Shape {
	switch {
	case s == nil:
		return nil
	case i < len(s.Prefix):
		return s.Prefix[i]
	case s.Items != nil:
		return s.Items
	}
	for _, a := range s.Alts {
		if x := elementOf(a, i); x != nil {
			return x
		}
	}
	return nil
}
