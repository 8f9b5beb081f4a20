package expr

import (
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func TestFunctionExamples(t *testing.T) {
	for _, f := range Functions() {
		p, faults := Compile(&graph.Text{S: f.Example, At: graph.Place{File: "f", Line: 1, Col: 1}}, nil, WantAny)
		if faults.Fatal() {
			t.Errorf("%s: %v", f.Name, faults)
			continue
		}
		v, err := p.Eval(NewEnv())
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if got := string(value.AppendJSON(nil, v)); got != f.Gives {
			t.Errorf("%s: %s gives %s, the table says %s", f.Name, f.Example, got, f.Gives)
		}
	}
}

// TestClosuresAreListed: every function with a closure has its line in the
// table, and every name is there once.
func TestClosuresAreListed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Functions() {
		if seen[f.Name] || f.Doc == "" || f.Signature[:len(f.Name)+1] != f.Name+"(" {
			t.Errorf("the line of %s is wrong or there twice", f.Name)
		}
		seen[f.Name] = true
	}
	for name := range closures {
		if !seen[name] {
			t.Errorf("%s has no line in the table", name)
		}
	}
	if len(seen) != len(functions)+len(closures) {
		t.Errorf("%d lines for %d functions", len(seen), len(functions)+len(closures))
	}
}
