package dsl_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
)

var update = flag.Bool("update", false, "write what the program says today into the files that tests compare with")

// TestBad checks each spec of the corpus, one mistake each, and compares every
// word that is said of it.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) < 200 {
		t.Fatalf("the corpus has %d files (%v), and should have 200 at least", len(files), err)
	}
	for _, file := range files {
		name, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			bad(t, name)
		})
	}
}

func bad(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	want := &a.Files[len(a.Files)-1]
	if want.Name != "want" {
		t.Fatal("the last part must be what is wanted")
	}
	for _, f := range a.Files[:len(a.Files)-1] {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := check() + "\n"
	if *update {
		want.Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(want.Data) {
		t.Errorf("%sgot:\n%swant:\n%s", a.Comment, got, want.Data)
	}
}

// check says everything that is wrong with the spec in the working folder.
func check() string {
	env := map[string]string{"WORD": "word"}
	graphs, faults := dsl.Load([]string{"."}, dsl.Options{WithTests: true, Env: func(name string) (string, bool) {
		s, ok := env[name]
		return s, ok
	}})
	for _, g := range graphs {
		_, f := engine.Compile(g)
		faults = append(faults, f...)
	}
	return faults.Sorted().Error()
}
