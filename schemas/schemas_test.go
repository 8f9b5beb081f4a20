package schemas

import (
	"slices"
	"testing"
)

// TestParts finds a file of the language that is not part of Source.
func TestParts(t *testing.T) {
	entries, err := language.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	want := slices.Sorted(slices.Values(parts))
	if !slices.Equal(have, want) {
		t.Errorf("the files are %v, the parts %v", have, want)
	}
}
