package main

import (
	"context"
	"fmt"

	"github.com/fusion-serve/fusion-serve/engine"
)

func checkCommand(ctx context.Context, c *cli, args []string) error {
	f := c.flags("check")
	online := f.Bool("online", false, "also open the databases and have them prepare every statement")
	paths, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return usageError("name the file or folder of a spec")
	}
	programs, faults := c.load(paths, true)
	n := c.report(faults)
	if *online && n == 0 {
		for _, p := range programs {
			bad, err := c.checkOnline(ctx, p)
			if err != nil {
				return err
			}
			n += bad
		}
	}
	if n > 0 {
		fmt.Fprintln(c.stderr, counted(n, "fault"))
		return errReported
	}
	for _, p := range programs {
		g := p.Graph()
		for _, t := range g.Tools {
			if t.Returns == nil {
				fmt.Fprintf(c.stdout, "%s: %s: has no returns: everything its binding gives leaves\n", t.At, t.Path)
			}
		}
		fmt.Fprintf(c.stdout, "%s: %s, %s, no faults\n", g.Server.Name, counted(len(g.Tools), "tool"), counted(len(g.Tests), "test"))
	}
	return nil
}

func (c *cli) checkOnline(ctx context.Context, p *engine.Program) (faults int, err error) {
	if err := p.Open(ctx, engine.Options{Env: c.env}); err != nil {
		return 0, err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()
	return c.report(p.Prove(ctx)), nil
}
