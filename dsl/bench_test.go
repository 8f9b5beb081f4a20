package dsl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// manyTools writes a spec of n tools, each with four parameters, a statement,
// two rules and an error rule.
func manyTools(n int) string {
	var b strings.Builder
	b.WriteString(`package many

server: {name: "many", version: "1.0.0"}

env: DATABASE_URL: string | *"sqlite::memory:" @secret()

databases: main: url: env.DATABASE_URL

#Status: "open" | "closed"

presenters: Row: schema: {
	// Number of the row
	id:     int
	name:   string
	status: #Status
	cents?: int
}

tools: {
`)
	for i := range n {
		fmt.Fprintf(&b, `	"group%d.tool%d": {
		kind:        "query"
		description: "Find rows of kind %d"
		params: {
			// Part of the name
			text?: string
			status?: #Status
			// Rows a page
			limit:  int & >=1 & <=50 | *20
			offset: int & >=0 | *0
		}
		sql: query: """
			SELECT id, name, status, cents FROM rows
			WHERE (@text IS NULL OR name = @text) AND (@status IS NULL OR status = @status)
			ORDER BY id LIMIT @limit OFFSET @offset
			"""
		returns: "Row"
		rules: [
			"Amounts are in cents.",
			{when: "data.status == 'open'", text: "{{ data.name }} is open."},
		]
		errors: [{when: "result == nil", code: "NOT_FOUND", message: "There is no such row."}]
	}
`, i%20, i, i)
	}
	b.WriteString("}\n")
	return b.String()
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "many.cue")
			if err := os.WriteFile(file, []byte(manyTools(n)), 0o600); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				graphs, faults := Load([]string{file}, Options{Env: func(string) (string, bool) { return "", false }})
				if len(faults) > 0 || len(graphs) != 1 || len(graphs[0].Tools) != n {
					b.Fatal(faults)
				}
			}
		})
	}
}
