package docs

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

var update = flag.Bool("update", false, "rewrite the pages that are made by a command")

// TestReference demands that the language reference is what the program says.
func TestReference(t *testing.T) {
	root, err := servers.Root()
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(servers.Binary(t), "reference").Output()
	if err != nil {
		t.Fatalf("fusion-serve reference: %v", err)
	}
	page := filepath.Join(root, "docs", "reference.md")
	if *update {
		if err := os.WriteFile(page, said, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stands, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(stands) != string(said) {
		t.Error("docs/reference.md is stale: run ./test.sh --update")
	}
}
