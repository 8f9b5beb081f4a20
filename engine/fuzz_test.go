package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
)

// FuzzCompile gives arbitrary source to the loader and the compiler: they may
// find faults, and must not panic.
func FuzzCompile(f *testing.F) {
	for _, name := range []string{"billing", "cart", "onboarding", "people"} {
		src, err := os.ReadFile(filepath.Join("..", "examples", name+".cue"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add("package a\nserver: name: \"a\"\nfsms: m: {initial: \"a\", states: a: {on: E: [{when: \"args.x\", to: \"a\"}], after: \"1s\": \"a\"}, key: \"{{ args.id }}\", resolve: query: \"SELECT @key\"}\ntools: t: {kind: \"query\", description: \"d\", value: \"{{ state.m }}\", state: {in: [\"a\"], send: \"E\"}}")
	file := filepath.Join(f.TempDir(), "a.cue")
	f.Fuzz(func(t *testing.T, src string) {
		if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		graphs, _ := dsl.Load([]string{file}, dsl.Options{WithTests: true, Env: func(name string) (string, bool) { return name, len(name)%2 == 0 }})
		for _, g := range graphs {
			if p, faults := engine.Compile(g); (p == nil) != faults.Fatal() {
				t.Errorf("program %v, faults %v", p, faults)
			}
		}
	})
}
