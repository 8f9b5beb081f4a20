package expr

import (
	"fmt"
	"strings"
)

// AppendPage appends the page of the language's functions in Markdown; the
// repository's docs/expressions.md is this page, and a test says when it is
// stale.
func AppendPage(dst []byte) []byte {
	dst = append(dst, pageHead...)
	dst = fmt.Appendf(dst, pageBounds, MaxSource>>10, MaxNodes, MaxSteps, MaxText>>20, MaxTexts>>20, MaxCells, MaxResult>>20)
	closures, helpers, others := []Function{}, []Function{}, []Function{}
	for _, f := range Functions() {
		switch {
		case isClosure(f.Name):
			closures = append(closures, f)
		case f.Helper:
			helpers = append(helpers, f)
		default:
			others = append(others, f)
		}
	}
	dst = appendTable(dst, "Helpers for people", helpers)
	dst = appendTable(dst, "Functions with a closure", closures)
	return appendTable(dst, "Other functions", others)
}

func appendTable(dst []byte, title string, l []Function) []byte {
	dst = fmt.Appendf(dst, "\n## %s\n\n| function | gives | example | result |\n|---|---|---|---|\n", title)
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	for _, f := range l {
		dst = fmt.Appendf(dst, "| `%s` | %s | `%s` | `%s` |\n", cell(f.Signature), cell(f.Doc), cell(f.Example), cell(f.Gives))
	}
	return dst
}

const pageHead = `<!-- Made from dsl/expr by: go test ./dsl/expr -run Page -update -->
# Expressions

` + "`when` and `expr` are bare expressions; every other text that is read at run time has holes `{{ expr }}`." + `
The language is that of [expr-lang](https://expr-lang.org/docs/language-definition); this page lists its functions and where it differs here.

- Types are checked at start: an unknown name, field or function, operands that do not fit, and a text that an enum does not have are errors with their place.
- A value that is only picked keeps its digits and its key order; arithmetic sees whole numbers of 64 bits, and everything else as float64.
  A whole number that leaves 64 bits, a division by zero and a result that is not finite are errors.
- Structs keep the order of their keys, map literals their source order.
- ` + "`?.`" + ` goes on with nil, ` + "`.`" + ` on nil is an error; ` + "`x ?? y`" + ` is y where x is nil.
- Texts are counted and sliced by characters. Times are RFC 3339 texts in UTC; the clock is ` + "`ctx.now`" + `.
- In a closure ` + "`#`" + ` is the element, ` + "`.x`" + ` its field and ` + "`#index`" + ` its place.
- A hole ends at the first ` + "`}}`" + ` outside quotes and braces; ` + "`{{ \"{{\" }}`" + ` writes two braces.
`

const pageBounds = `
An expression is at most %d KiB and %d parts. One evaluation ends with an error after %d steps (turns of closures, elements and texts that functions touch),
with a text of more than %d MiB or %d MiB of texts made, with %d elements made, or with a result of more than %d MiB that it made.
`
