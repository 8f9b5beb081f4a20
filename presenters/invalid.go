package presenters

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Invalid renders the validation_error envelope of arguments that do not fit,
// all faults at once. action is tool/action. The value of a parameter that
// params marks as secret, or that holds such a one, is not echoed.
func Invalid(action string, params *shape.Shape, faults []shape.Fault) *Response {
	b := append(make([]byte, 0, 512), "<validation_error"...)
	b = append(b, ` action="`...)
	b = append(appendAttr(b, action), "\">\n"...)
	for i := range faults {
		f := &faults[i]
		b = append(b, `<field name="`...)
		b = appendAttr(b, fieldName(f.Path))
		b = append(b, `">`...)
		b = appendElement(b, faultMessage(f))
		b = append(b, " You sent: "...)
		b = appendElement(b, sent(f, params))
		b = append(b, '.')
		if hint := faultHint(f); hint != "" {
			b = appendElement(append(b, ' '), hint)
		}
		b = append(b, "</field>\n"...)
	}
	b = append(b, "<recovery>Fix the fields above and call the tool again. Do not explain the error.</recovery>\n</validation_error>"...)
	return errorText(b, "VALIDATION_ERROR", true)
}

func fieldName(path []any) string {
	if len(path) == 0 {
		return "(root)"
	}
	return pathText(path)
}

// pathText writes a path as the recorded validator does: a.b.1.c.
func pathText(path []any) string {
	var b []byte
	for i, p := range path {
		if i > 0 {
			b = append(b, '.')
		}
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case int:
			b = strconv.AppendInt(b, int64(p), 10)
		}
	}
	return string(b)
}

// faultMessage says which rule a value breaks, in the recorded words. It
// holds nothing of the value but its kind and, for unknown fields, their names.
func faultMessage(f *shape.Fault) string {
	switch f.Code {
	case shape.InvalidType:
		got := "undefined"
		if !f.Missing {
			got = kindOf(f.Got)
		}
		return "Invalid input: expected " + f.Expected + ", received " + got
	case shape.TooSmall:
		return "Too small: expected " + sized(f, ">")
	case shape.TooBig:
		return "Too big: expected " + sized(f, "<")
	case shape.NotMultipleOf:
		return "Invalid number: must be a multiple of " + f.Limit
	case shape.InvalidFormat:
		if f.Format == "regex" {
			if prefix, ok := literalPrefix(f.Pattern); ok {
				return `Invalid string: must start with "` + prefix + `"`
			}
			return "Invalid string: must match pattern /" + f.Pattern + "/"
		}
		return "Invalid " + format(f.Format).name
	case shape.InvalidValue:
		if len(f.Values) == 1 {
			return "Invalid input: expected " + literal(f.Values[0])
		}
		return "Invalid option: expected one of " + joined(f.Values, "|", literal)
	case shape.InvalidUnion:
		return "Invalid input"
	case shape.UnrecognizedKey:
		s := "Unrecognized key"
		if len(f.Keys) > 1 {
			s += "s"
		}
		return s + ": " + joined(f.Keys, ", ", func(k string) string { return `"` + k + `"` })
	case shape.NotUnique:
		return "Invalid input: the items must differ from each other"
	case shape.Forbidden:
		return "Invalid input: must not be " + joined(f.Values, " or ", literal)
	case shape.TooDeep:
		return "Invalid input: nested too deeply"
	}
	return "Invalid input"
}

// literalPrefix reads a pattern that only says how a text begins: ^x_.
func literalPrefix(pattern string) (string, bool) {
	rest, ok := strings.CutPrefix(pattern, "^")
	if !ok || rest == "" || regexp.QuoteMeta(rest) != rest {
		return "", false
	}
	return rest, true
}

// sized is the rest of a message about a bound.
func sized(f *shape.Fault, op string) string {
	if f.Inclusive {
		op += "="
	}
	switch f.Origin {
	case "string":
		return "string to have " + op + f.Limit + " characters"
	case "array":
		return "array to have " + op + f.Limit + " items"
	}
	return "number to be " + op + f.Limit
}

// faultHint says what to send instead.
func faultHint(f *shape.Fault) string {
	switch f.Code {
	case shape.InvalidType:
		return "Expected type: " + f.Expected + "."
	case shape.TooSmall:
		return bound(f, "Minimum", ">")
	case shape.TooBig:
		return bound(f, "Maximum", "<")
	case shape.InvalidFormat:
		if _, ok := literalPrefix(f.Pattern); ok {
			return ""
		}
		return format(f.Format).hint
	case shape.InvalidValue:
		return "Valid options: " + joined(f.Values, ", ", func(v any) string {
			return "'" + string(value.AppendText(nil, v)) + "'"
		}) + "."
	case shape.InvalidUnion:
		return "Value didn't match any of the expected formats."
	case shape.UnrecognizedKey:
		hint := "Remove or correct unrecognized fields: " +
			joined(f.Keys, ", ", func(k string) string { return "'" + k + "'" }) + ". Check for typos."
		var near []string
		for _, n := range f.Near {
			if n != "" {
				near = append(near, n)
			}
		}
		if len(near) > 0 {
			hint += " Did you mean " + joined(near, ", ", func(k string) string { return "'" + k + "'" }) + "?"
		}
		return hint
	case shape.NotUnique:
		return "Send each item once."
	}
	return ""
}

func bound(f *shape.Fault, word, op string) string {
	s := ""
	if f.Limit != "1" {
		s = "s"
	}
	switch f.Origin {
	case "string":
		return word + " length: " + f.Limit + " character" + s + "."
	case "array":
		return word + " " + f.Limit + " item" + s + "."
	}
	if f.Inclusive {
		op += "="
	}
	return "Must be " + op + " " + f.Limit + "."
}

// formatText is what is said of a text that is not in its format.
type formatText struct{ name, hint string }

// formats has the recorded names and hints, under the names of JSON Schema and
// under those of the recorded validator.
var formats = map[string]formatText{
	"email":     {"email address", "Expected: a valid email address (e.g. user@example.com)."},
	"uri":       {"URL", "Expected: a valid URL (e.g. https://example.com)."},
	"url":       {"URL", "Expected: a valid URL (e.g. https://example.com)."},
	"uuid":      {"UUID", "Expected: a valid UUID (e.g. 123e4567-e89b-12d3-a456-426614174000)."},
	"date-time": {"ISO datetime", "Expected: an ISO 8601 datetime (e.g. 2024-01-15T10:30:00Z)."},
	"datetime":  {"ISO datetime", "Expected: an ISO 8601 datetime (e.g. 2024-01-15T10:30:00Z)."},
	"date":      {"ISO date", ""},
	"time":      {"ISO time", ""},
	"duration":  {"ISO duration", ""},
	"ipv4":      {"IPv4 address", ""},
	"ipv6":      {"IPv6 address", ""},
	"regex":     {"string", "Value does not match the required pattern."},
}

func format(name string) formatText {
	if f, ok := formats[name]; ok {
		return f
	}
	return formatText{name: name}
}

func joined[T any](l []T, sep string, f func(T) string) string {
	words := make([]string, len(l))
	for i, x := range l {
		words[i] = f(x)
	}
	return strings.Join(words, sep)
}

// literal writes a value as a message names it: a text in quotes.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return `"` + s + `"`
	}
	return string(value.AppendJSON(nil, v))
}

// kindOf names the kind of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case *value.Object:
		return "object"
	case []any, *value.Rows:
		return "array"
	}
	return "number"
}

// sent shows what was sent: a text up to 50 characters, the length of a list,
// the start of an object.
func sent(f *shape.Fault, params *shape.Shape) string {
	switch {
	case f.Missing, f.Code == shape.UnrecognizedKey:
		return "(missing)"
	case f.Secret, secretAt(params, f.Path):
		return "(secret)"
	}
	switch v := f.Got.(type) {
	case string:
		return "'" + cut(v, 50, 47, "...") + "'"
	case []any:
		return "array(" + strconv.Itoa(len(v)) + ")"
	case *value.Object:
		return cut(string(value.AppendJSON(nil, v)), 50, 50, "")
	}
	return string(value.AppendJSON(nil, f.Got))
}

// cut shortens a text of more than limit UTF-16 units, as the recorded
// validator counts, to at most keep units and adds more; it never splits a
// character.
func cut(s string, limit, keep int, more string) string {
	if len(s) <= limit {
		return s
	}
	units, end := 0, 0
	for i, r := range s {
		if units <= keep {
			end = i
		}
		units += max(utf16.RuneLen(r), 1)
		if units > limit {
			return s[:end] + more
		}
	}
	return s
}

// secretAt tells whether a secret parameter lies on the path or below its end.
func secretAt(s *shape.Shape, path []any) bool {
	for _, p := range path {
		if s == nil {
			return false
		}
		switch p := p.(type) {
		case int:
			switch {
			case p < len(s.Prefix):
				s = s.Prefix[p]
			default:
				s = s.Items
			}
		case string:
			f := s.Field(p)
			switch {
			case f == nil:
				s = s.Rest
			case f.Secret:
				return true
			default:
				s = f.Shape
			}
		}
	}
	return hasSecret(s, 0)
}

func hasSecret(s *shape.Shape, depth int) bool {
	const deepest = 8 // a recursive shape says the same further down
	if s == nil || depth > deepest {
		return false
	}
	for _, f := range s.Fields {
		if f.Secret || hasSecret(f.Shape, depth+1) {
			return true
		}
	}
	for _, p := range s.KeyPatterns {
		if hasSecret(p.Shape, depth+1) {
			return true
		}
	}
	for _, l := range [][]*shape.Shape{s.Alts, s.Prefix, {s.Items, s.Rest}} {
		for _, x := range l {
			if hasSecret(x, depth+1) {
				return true
			}
		}
	}
	return false
}
