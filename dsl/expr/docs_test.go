package expr_test

import (
	"flag"
	"os"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
)

var update = flag.Bool("update", false, "rewrite docs/expressions.md")

// TestPage: the page of the docs is the one that the table of functions makes.
func TestPage(t *testing.T) {
	const file = "../../docs/expressions.md"
	want := expr.AppendPage(nil)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is stale: run go test ./dsl/expr -run Page -update", file)
	}
}
