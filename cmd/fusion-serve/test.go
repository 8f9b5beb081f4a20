package main

import (
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/golden"
)

func testCommand(ctx context.Context, c *cli, args []string) error {
	f := c.flags("test")
	update := f.Bool("update", false, "write the golden files")
	run := f.String("run", "", "run only the tests whose name matches this regular expression")
	junit := f.String("junit", "", "also write a JUnit XML report to this file")
	paths, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return usageError("name the file or folder of a spec")
	}
	opts := golden.Options{Update: *update, Out: c.stdout, Env: c.env}
	if *run != "" {
		if opts.Run, err = regexp.Compile(*run); err != nil {
			return usageError("--run: %s", err)
		}
	}
	graphs, faults := dsl.Load(paths, dsl.Options{Env: c.env, WithTests: true, EnvMayMiss: true})
	for _, g := range graphs {
		_, f := engine.Compile(g)
		faults = append(faults, f...)
	}
	if n := c.report(faults.Sorted()); n > 0 {
		return errReported
	}
	return c.runTests(ctx, graphs, opts, *junit)
}

func (c *cli) runTests(ctx context.Context, graphs []*graph.Graph, opts golden.Options, junit string) error {
	var all []golden.Result
	for _, g := range graphs {
		opts.Load = func(env golden.Lookup) (*graph.Graph, graph.Faults) {
			again, faults := dsl.Load(g.Files, dsl.Options{Env: env, WithTests: true})
			if len(again) == 0 {
				return nil, faults
			}
			return again[0], faults
		}
		results, err := golden.Run(ctx, g, opts)
		all = append(all, results...)
		if err != nil {
			return err
		}
	}
	if junit != "" {
		if err := writeJUnit(junit, all); err != nil {
			return err
		}
	}
	line, failed := golden.Totals(all)
	fmt.Fprintln(c.stdout, line)
	if failed > 0 {
		return errReported
	}
	return nil
}

func writeJUnit(file string, results []golden.Result) error {
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := golden.JUnit(w, "fusion-serve test", results); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}
