package main

import (
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
)

// load loads and compiles the specs at the paths. The programs are those that
// compiled; the faults are complete.
func (c *cli) load(paths []string, withTests bool) ([]*engine.Program, graph.Faults) {
	graphs, faults := dsl.Load(paths, dsl.Options{Env: c.env, WithTests: withTests})
	var programs []*engine.Program
	for _, g := range graphs {
		p, f := engine.Compile(g)
		faults = append(faults, f...)
		if p != nil {
			programs = append(programs, p)
		}
	}
	return programs, faults.Sorted()
}

// loadOne loads the one spec at the paths; a second one is an error.
func (c *cli) loadOne(paths []string) (*engine.Program, graph.Faults, error) {
	programs, faults := c.load(paths, false)
	if faults.Fatal() {
		return nil, faults, nil
	}
	if len(programs) != 1 {
		return nil, faults, usageError("there are %d specs at these paths, and this command takes one: name its file or folder", len(programs))
	}
	return programs[0], faults, nil
}

// report prints faults and counts those that are no warnings.
func (c *cli) report(faults graph.Faults) (fatal int) {
	for _, f := range faults {
		fmt.Fprintln(c.stderr, f)
		if !f.Warning {
			fatal++
		}
	}
	return fatal
}

// counted is n things: "1 fault", "3 faults".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
