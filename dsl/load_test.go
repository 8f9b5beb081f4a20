package dsl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/schemas"
)

// write puts the files of an archive into a new working folder.
func write(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// summary names what graphs hold.
func summary(graphs []*graph.Graph) string {
	var b strings.Builder
	for _, g := range graphs {
		b.WriteString(g.Package + ":")
		for _, t := range g.Tools {
			b.WriteString(" " + t.Name)
		}
		for _, t := range g.Tests {
			b.WriteString(" test " + t.File + "/" + t.Name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func loads(t *testing.T, o dsl.Options, want string, paths ...string) []*graph.Graph {
	t.Helper()
	graphs, faults := dsl.Load(paths, o)
	got := summary(graphs)
	if len(faults) > 0 {
		got += faults.Error() + "\n"
	}
	if got != want {
		t.Errorf("loading %v: got\n%swant\n%s", paths, got, want)
	}
	return graphs
}

const tool = `{kind: "query", description: "d", value: 1}`

func TestLoadFile(t *testing.T) {
	write(t, `
-- a.cue --
package a
server: {name: "a", version: "1"}
tools: one: `+tool+`
-- a_tests.cue --
package a
tests: t: list: "tools"
-- bare.cue --
server: {name: "bare", version: "1"}
tools: two: `+tool+`
-- b.cue --
package a
tools: three: `+tool+`
`)
	loads(t, dsl.Options{}, "a: one\n", "a.cue")
	loads(t, dsl.Options{WithTests: true}, "a: one test a_tests/t\n", "a.cue")
	loads(t, dsl.Options{}, "_: two\n", "bare.cue")
	loads(t, dsl.Options{}, "a: one three\n", "a.cue", "b.cue")
	loads(t, dsl.Options{}, "a: one\n_: two\n", "a.cue", "bare.cue")
	loads(t, dsl.Options{WithTests: true}, "_: two\na: one three test a_tests/t\n", ".")
	loads(t, dsl.Options{}, "there is no file or folder c.cue\n", "c.cue")
}

// TestLoadAgain loads what Graph.Files names, as a test runner does.
func TestLoadAgain(t *testing.T) {
	write(t, `
-- cue.mod/module.cue --
module: "example.com/a@v0"
language: version: "v0.17.0"
-- a.cue --
package a
server: {name: "a", version: "1"}
-- sub/b.cue --
package a
tools: one: `+tool+`
-- sub/b_tests.cue --
package a
tests: t: list: "tools"
`)
	graphs := loads(t, dsl.Options{WithTests: true}, "a: one test b_tests/t\n", "sub")
	loads(t, dsl.Options{WithTests: true}, "a: one test b_tests/t\n", graphs[0].Files...)
}

// TestLoadModule has packages that import each other and the language, with
// no network.
func TestLoadModule(t *testing.T) {
	write(t, `
-- cue.mod/module.cue --
module: "example.com/shop@v0"
language: version: "v0.17.0"
-- shop.cue --
package shop

import (
	"example.com/shop/orders"
	"fusion.serve/schema"
)

server: schema.#Settings & {name: "shop", version: "1"}
tools: [string]: schema.#Tool
tools: orders.tools
tools: "ping": schema.#Tool & {
	kind:        "query"
	description: "Ping"
	value:       "pong"
}
-- orders/orders.cue --
package orders

import "fusion.serve/schema"

#OrderTool: schema.#Tool & {kind: "query", ...}

tools: "orders.get": #OrderTool & {
	description: "Get an order"
	params: id: string
	value: id: "{{ args.id }}"
}
`)
	loads(t, dsl.Options{}, "shop: orders.get ping\n", ".")
	if _, faults := dsl.Load([]string{"orders"}, dsl.Options{}); faults.Error() != `orders/orders.cue:5:1: "server" is missing` {
		t.Error(faults)
	}
}

// TestImportWithoutModule imports the language in a file that has no module.
func TestImportWithoutModule(t *testing.T) {
	write(t, `
-- a.cue --
package a
import "fusion.serve/schema"
schema.#Server
server: {name: "a", version: "1"}
tools: [string]: schema.#Tool
tools: one: `+tool+`
`)
	loads(t, dsl.Options{}, "a: one\n", "a.cue")
}

func TestVendoredCopy(t *testing.T) {
	files := `
-- cue.mod/module.cue --
module: "example.com/a@v0"
language: version: "v0.17.0"
-- a.cue --
package a
import "fusion.serve/schema"
server: {name: "a", version: "1"}
tools: [string]: schema.#Tool
tools: one: ` + tool + `
-- ` + schemas.Vendored + ` --
`
	write(t, files+"package schema\n\n#Tool: {nothing: 1}\n")
	loads(t, dsl.Options{}, "a: one\n"+schemas.Vendored+":1:1: warning: this copy of the language differs from the program's: editors may find mistakes that are none; replace it with the one that `fusion-serve init` writes\n", ".")
	write(t, files+string(schemas.Source))
	loads(t, dsl.Options{}, "a: one\n", ".")
}

// TestTestsAreIgnored serves a spec whose tests are wrong in every way that
// CUE can parse.
func TestTestsAreIgnored(t *testing.T) {
	write(t, `
-- a.cue --
package a
import "list"
server: {name: "a", version: "1"}
tools: one: `+tool+`
tests: t: {call: 5, before: list.Repeat([{}], 2), x: 1 & 2}
`)
	loads(t, dsl.Options{}, "a: one\n", "a.cue")
	_, faults := dsl.Load([]string{"a.cue"}, dsl.Options{WithTests: true})
	want := `a.cue:5:18: tests.t.call: must be a string, not a whole number
a.cue:5:21: tests.t.before[0]: "call" is missing
a.cue:5:21: tests.t.before[1]: "call" is missing
a.cue:5:54: tests.t.x: is set twice, to 1 and to 2 (also at a.cue:5:58)`
	if faults.Error() != want {
		t.Errorf("got\n%s\nwant\n%s", faults.Error(), want)
	}
}

func TestEmptyFolder(t *testing.T) {
	write(t, "-- a.txt --\n")
	loads(t, dsl.Options{}, "there is no CUE file in .\n", ".")
	loads(t, dsl.Options{}, "a.txt is no CUE file: a spec's name ends in .cue\n", "a.txt")
	loads(t, dsl.Options{}, "name the file or folder of a spec\n")
}

// TestImportCycle names the imports of the circle.
func TestImportCycle(t *testing.T) {
	write(t, `
-- cue.mod/module.cue --
module: "example.com/a@v0"
language: version: "v0.17.0"
-- a.cue --
package a
import "example.com/a/b"
server: {name: b.x, version: "1"}
-- b/b.cue --
package b
import "example.com/a/c"
x: c.x
-- c/c.cue --
package c
import "example.com/a/b"
x: b.x
`)
	loads(t, dsl.Options{}, "a.cue:2:8: packages import each other in a circle: a.cue:2:8, b/b.cue:2:8, c/c.cue:2:8\n", "a.cue")
}
