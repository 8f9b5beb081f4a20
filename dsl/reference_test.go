package dsl_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
)

// TestReference fails when the reference in docs is not that of the schema.
func TestReference(t *testing.T) {
	const file = "../docs/reference.md"
	got := dsl.Reference()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run go test ./dsl -run TestReference -update", file)
	}
}
