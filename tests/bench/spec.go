package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// table is portable SQL, so that a generated spec runs on both engines.
const table = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price_cents INTEGER NOT NULL, status TEXT NOT NULL);\n"

// getItem is the name of the tool that the benchmark calls, as clients see it.
const getItem = "items_get_1"

// writeSpec writes a spec with a number of tools and gives its folder. Every
// tool has parameters with bounds, a statement and a presenter with rules, as
// those of a hand-written spec do; ten tools share a presenter.
func writeSpec(folder string, tools int) (string, error) {
	dir := filepath.Join(folder, fmt.Sprintf("spec%d", tools))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(`package items

server: {name: "items", version: "1.0.0"}

env: DATABASE_URL: string | *"sqlite::memory:" @secret()

databases: main: {url: env.DATABASE_URL, init: ["items.sql"]}

#Status: "open" | "closed"
`)
	for i := range (tools + 9) / 10 {
		fmt.Fprintf(&b, `
presenters: Item%[1]d: {
	schema: {
		id:   int
		name: string
		// in CENTS
		price_cents: int
		status:      #Status
	}
	rules: [
		"price_cents is in CENTS.",
		{when: "data.status == 'closed'", text: "{{ data.name }} is not for sale."},
	]
}
`, i)
	}
	for i := range tools {
		fmt.Fprintf(&b, `
tools: "items.get_%[1]d": {
	kind:        "query"
	description: "Get an item by its number, the %[1]dth way"
	params: {
		// Number of the item
		id: int & >=1 & <=1000000
		// Only if it has this status
		status?: #Status
	}
	sql: {query: "SELECT id, name, price_cents, status FROM items WHERE id = @id AND (@status IS NULL OR status = @status)", one: true}
	returns: "Item%[2]d"
}
`, i+1, i/10)
	}
	if err := os.WriteFile(filepath.Join(dir, "items.cue"), []byte(b.String()), 0o644); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "items.sql"), []byte(table), 0o644)
}
