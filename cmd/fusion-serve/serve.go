package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/serve"
)

// closeTimeout is how long calls in progress may take when the server stops.
const closeTimeout = 10 * time.Second

func serveCommand(ctx context.Context, c *cli, args []string) error {
	f := c.flags("serve")
	addr := f.String("http", "", "listen here instead of where server.http.addr says")
	stdio := f.Bool("stdio", false, "speak MCP on stdin and stdout")
	paths, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return usageError("name the file or folder of a spec")
	}
	if *stdio && *addr != "" {
		return usageError("--stdio and --http exclude each other")
	}
	lines := &lineWriter{out: c.stderr}
	log := slog.New(slog.NewTextHandler(lines, nil))
	// Evaluating CUE makes much garbage once; a larger heap for that moment is
	// given back before the first call.
	debug.SetGCPercent(400)
	p, faults, err := c.loadOne(paths)
	if err != nil {
		return err
	}
	if n := c.report(faults); n > 0 {
		return c.serveFaults(ctx, faults, *stdio, n)
	}
	if err := p.Open(ctx, engine.Options{Env: c.env, Log: log}); err != nil {
		return err
	}
	defer c.close(ctx, p)
	faults = p.Start(ctx)
	if n := c.report(faults); n > 0 {
		return c.serveFaults(ctx, faults, *stdio, n)
	}
	debug.SetGCPercent(100)
	go debug.FreeOSMemory()
	s, err := serve.New(serve.Fixed(p), serve.Options{Log: log, Together: lines.together, Version: version})
	if err != nil {
		return err
	}
	if *stdio {
		return s.ServeStdio(ctx, c.stdin, c.stdout)
	}
	return c.serveHTTP(ctx, s, p, *addr)
}

func (c *cli) serveHTTP(ctx context.Context, s *serve.Server, p *engine.Program, addr string) error {
	http := p.Server().HTTP
	if addr == "" {
		addr = http.Addr
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "serving %s on http://%s%s\n", p.Server().Name, l.Addr(), http.Path)
	return s.Serve(ctx, l)
}

// serveFaults answers the host on stdio with the faults, so that a person
// sees them there; over HTTP there is nothing to serve.
func (c *cli) serveFaults(ctx context.Context, faults graph.Faults, stdio bool, n int) error {
	fmt.Fprintln(c.stderr, counted(n, "fault"))
	if stdio {
		if err := serve.Faulty(faults).ServeStdio(ctx, c.stdin, c.stdout); err != nil {
			return err
		}
	}
	return errReported
}

func (c *cli) close(ctx context.Context, p *engine.Program) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		fmt.Fprintf(c.stderr, "closing: %s\n", err)
	}
}
