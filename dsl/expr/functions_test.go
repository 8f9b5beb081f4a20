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
