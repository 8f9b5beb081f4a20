package dsl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/schemas"
)

// TestExamples loads every example without a fault, and has CUE itself accept
// it together with the language: the schema and the checker must agree.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/*.cue")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_tests.cue") {
			continue
		}
		graphs, faults := dsl.Load([]string{f}, dsl.Options{WithTests: true, EnvMayMiss: true, Env: func(string) (string, bool) { return "", false }})
		if len(faults) > 0 || len(graphs) != 1 {
			t.Errorf("%s: %d graphs\n%v", f, len(graphs), faults)
		}
		vet(t, "", f, strings.TrimSuffix(f, ".cue")+"_tests.cue")
	}
}

// TestDesignSpecs loads the specs of the language's design that need nothing
// but what this version knows.
func TestDesignSpecs(t *testing.T) {
	dir := os.Getenv("FUSION_SPECS")
	if dir == "" {
		dir = "../../shared/design/specs"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no specs: set FUSION_SPECS to their folder (%v)", err)
	}
	model := t.TempDir()
	withSQL(t, filepath.Join(dir, ".."), model)
	for _, c := range []struct {
		file         string
		tools, tests int
	}{
		{filepath.Join(dir, "projects.cue"), 5, 16},
		{filepath.Join(dir, "orders.cue"), 3, 0},
		{filepath.Join(dir, "onboarding.cue"), 1, 0},
		{filepath.Join(dir, "github.cue"), 4, 7},
		{filepath.Join(dir, "dashboard.cue"), 1, 0},
		{filepath.Join(model, "billing.cue"), 7, 9},
	} {
		graphs, faults := dsl.Load([]string{c.file}, dsl.Options{WithTests: true, EnvMayMiss: true, Env: func(string) (string, bool) { return "", false }})
		if len(faults) > 0 || len(graphs) != 1 || len(graphs[0].Tools) != c.tools || len(graphs[0].Tests) != c.tests {
			t.Errorf("%s: %s%v", c.file, summary(graphs), faults)
		}
	}
}

// withSQL copies the model spec beside the SQL of the example of that name.
func withSQL(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"billing.cue", "billing_tests.cue", "billing.schema.sql", "billing.seed.sql"} {
		file := filepath.Join(from, name)
		if strings.HasSuffix(name, ".sql") {
			file = filepath.Join("../examples", name)
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), src, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// vet does what `cue vet -c=false` does with files and the lines that init
// writes for editors.
func vet(t *testing.T, dir string, args ...string) {
	t.Helper()
	root, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	overlay := map[string]load.Source{}
	if dir == "" { // files without a module
		abs, err := filepath.Abs(filepath.Dir(args[0]))
		if err != nil {
			t.Fatal(err)
		}
		root = abs
		overlay[filepath.Join(root, "cue.mod/module.cue")] = load.FromString("module: \"example.com/x@v0\"\nlanguage: version: \"v0.17.0\"\n")
		overlay[filepath.Join(root, schemas.Vendored)] = load.FromBytes(schemas.Source)
		for _, f := range schemas.Starter() {
			if f.Name == "fusion.cue" {
				name := strings.TrimSuffix(filepath.Base(args[0]), ".cue")
				src := strings.Replace(string(f.Data), "package notes", "package "+name, 1)
				fusion := filepath.Join(root, name+".fusion.cue")
				overlay[fusion] = load.FromString(src)
				args = append(args, fusion)
			}
		}
		for i, a := range args {
			if args[i], err = filepath.Abs(a); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(args[1]); err != nil {
			args = append(args[:1], args[2:]...)
		}
	}
	insts := load.Instances(args, &load.Config{Dir: root, ModuleRoot: root, Overlay: overlay, Env: []string{"CUE_REGISTRY=none"}})
	v := cuecontext.New().BuildInstance(insts[0])
	if err := v.Validate(cue.Concrete(false)); err != nil {
		t.Errorf("cue vet -c=false %v: %v", args, err)
	}
}

// TestStarter writes the starter, has CUE accept it and loads it.
func TestStarter(t *testing.T) {
	dir := t.TempDir()
	for _, f := range schemas.Starter() {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vet(t, dir, ".")
	graphs, faults := dsl.Load([]string{dir}, dsl.Options{WithTests: true, Env: func(string) (string, bool) { return "", false }})
	if len(faults) > 0 || len(graphs) != 1 || len(graphs[0].Tools) != 3 || len(graphs[0].Tests) != 5 {
		t.Errorf("%d graphs\n%v", len(graphs), faults)
	}
	// The editors' lines see a misspelling.
	bad := filepath.Join(dir, "bad.cue")
	if err := os.WriteFile(bad, []byte("package notes\n\ntools: \"notes.get\": descripton: \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := cuecontext.New().BuildInstance(load.Instances([]string{"."}, &load.Config{Dir: dir})[0])
	if err := v.Validate(); err == nil || !strings.Contains(err.Error(), "descripton: field not allowed") {
		t.Errorf("cue vet sees no misspelling: %v", err)
	}
}
