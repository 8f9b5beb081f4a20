package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

func inspectCommand(_ context.Context, c *cli, args []string) error {
	f := c.flags("inspect")
	fsm := f.Bool("fsm", false, "print the state machines, or the named one, as Mermaid diagrams")
	rest, err := parse(f, args)
	if err != nil {
		return err
	}
	if !*fsm {
		return usageError("say what to print: --fsm")
	}
	if len(rest) < 1 || len(rest) > 2 {
		return usageError("name a spec, and a state machine if it is only one")
	}
	// What a spec says does not depend on the values of its environment.
	graphs, faults := dsl.Load(rest[:1], dsl.Options{Env: c.env, EnvMayMiss: true})
	if n := c.report(faults); n > 0 {
		return errReported
	}
	if len(graphs) != 1 {
		return usageError("there are %d specs at this path, and this command takes one: name its file or folder", len(graphs))
	}
	g := graphs[0]
	machines := g.FSMs
	if len(rest) == 2 {
		m := g.FSM(rest[1])
		if m == nil {
			return noMachine(g, rest[1])
		}
		machines = []*graph.FSM{m}
	}
	if len(machines) == 0 {
		return fmt.Errorf("%s declares no state machine", g.Server.Name)
	}
	for i, m := range machines {
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		fmt.Fprint(c.stdout, m.Mermaid(g.Tools))
	}
	return nil
}

func noMachine(g *graph.Graph, name string) error {
	if len(g.FSMs) == 0 {
		return fmt.Errorf("there is no state machine %q: %s declares none", name, g.Server.Name)
	}
	var names []string
	for _, m := range g.FSMs {
		names = append(names, m.Name)
	}
	return fmt.Errorf("there is no state machine %q: there are %s", name, strings.Join(names, ", "))
}
