package dsl

import (
	"fmt"
	"slices"
	"strings"
)

// Reference writes the reference of the language in Markdown, made from the
// comments of the schema: a table for each block, a row for each field.
func Reference() []byte {
	l := theLanguage()
	var b strings.Builder
	b.WriteString("# Reference\n\n")
	b.WriteString("<!-- Made from schemas/*.cue by `go test ./dsl -run TestReference -update`. Do not edit. -->\n\n")
	b.WriteString("Every field of a spec. A field without a default may be left out, unless it is *required*. A type in capitals links to its own section.\n\n")
	for _, f := range l.order {
		if f.kind == formStruct || f.kind == formUnion {
			section(&b, f)
		}
	}
	b.WriteString("## Kinds of strings and values\n\n| kind | meaning |\n|---|---|\n")
	for _, f := range l.order {
		if f.kind != formStruct && f.kind != formUnion {
			fmt.Fprintf(&b, "| <a id=%q></a>%s | %s |\n", strings.ToLower(f.name), f.name, cell(f.doc))
		}
	}
	return []byte(b.String())
}

// section writes a definition: its comment, and its fields if it has some.
func section(b *strings.Builder, f *form) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n", f.name, escapeText(f.doc))
	fields := f.fields
	for _, a := range f.alts {
		if a.kind == formStruct && a.name == "" {
			fields = a.fields
		}
	}
	if len(fields) == 0 {
		return
	}
	b.WriteString("| field | type | default | meaning |\n|---|---|---|---|\n")
	for _, x := range fields {
		fallback := ""
		switch {
		case x.required:
			fallback = "*required*"
		case x.fallback != "":
			fallback = "`" + x.fallback + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", x.name, strings.ReplaceAll(typeText(x.form), "|", `\|`), fallback, cell(x.doc))
	}
	b.WriteString("\n")
}

// typeText says a type in words, with links to definitions.
func typeText(f *form) string {
	if f.name != "" {
		return fmt.Sprintf("[%s](#%s)", f.name, strings.ToLower(f.name))
	}
	switch f.kind {
	case formString:
		return "string"
	case formInt:
		return boundsText(f)
	case formBool:
		return "bool"
	case formNull:
		return "null"
	case formEnum:
		l := make([]string, len(f.enum))
		for i, s := range f.enum {
			l[i] = fmt.Sprintf("`%q`", s)
		}
		return strings.Join(l, ", ")
	case formMap:
		return "names: " + typeText(f.elem)
	case formList:
		return "list of " + typeText(f.elem)
	case formUnion:
		var l []string
		for _, a := range f.alts {
			l = append(l, typeText(a))
		}
		return strings.Join(slices.Compact(l), " or ")
	}
	return "value"
}

func boundsText(f *form) string {
	switch {
	case f.hasMin && f.max > 0:
		return fmt.Sprintf("int, %d to %d", f.min, f.max)
	case f.hasMin:
		return fmt.Sprintf("int, at least %d", f.min)
	}
	return "int"
}

// cell makes a text fit for a table.
func cell(s string) string { return strings.ReplaceAll(escapeText(s), "|", `\|`) }

// escapeText keeps Markdown from reading what the comments mean literally.
func escapeText(s string) string {
	return strings.NewReplacer("*", `\*`, "<", "&lt;", "_", `\_`, "[\"", "[\\\"").Replace(s)
}
