package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

func callCommand(ctx context.Context, c *cli, args []string) error {
	f := c.flags("call")
	ctxJSON := f.String("ctx", "", `the caller, as JSON: {"session": "…", "claims": {…}, "now": "2026-03-01T09:00:00Z"}`)
	format := f.String("format", "text", "text: the blocks as they read; json: {content, isError?, structuredContent?}")
	structure := f.Bool("structure", false, "with json: also data, rules, blocks, directives and suggestions as values")
	rest, err := parse(f, args)
	if err != nil {
		return err
	}
	if len(rest) < 2 || len(rest) > 3 {
		return usageError("name a spec and a tool, and give the arguments as one JSON object")
	}
	if *format != "text" && *format != "json" {
		return usageError("--format is text or json, not %q", *format)
	}
	p, faults, err := c.loadOne(rest[:1])
	if err != nil {
		return err
	}
	if n := c.report(faults); n > 0 {
		return errReported
	}
	who, err := callerFrom(p, *ctxJSON)
	if err != nil {
		return err
	}
	if err := p.Open(ctx, engine.Options{Env: c.env}); err != nil {
		return err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()
	var raw []byte
	if len(rest) == 3 {
		raw = []byte(rest[2])
	}
	resp, _ := p.Traced(ctx, who, rest[1], raw, nil) // an unknown tool has its response too
	c.print(resp, *format, *structure)
	if resp.IsError != nil && *resp.IsError {
		return errReported
	}
	return nil
}

// callerFrom reads --ctx; what it leaves out is as on stdio.
func callerFrom(p *engine.Program, ctxJSON string) (*engine.Caller, error) {
	who := &engine.Caller{Session: "call", Client: "fusion-serve", Claims: p.Server().Local}
	if ctxJSON == "" {
		return who, nil
	}
	v, err := value.Parse([]byte(ctxJSON))
	o, ok := v.(*value.Object)
	if err != nil || !ok {
		return nil, usageError("--ctx must be a JSON object")
	}
	for i := range o.Len() {
		key, v := o.At(i)
		switch key {
		case "session":
			who.Session, ok = v.(string)
		case "client":
			who.Client, ok = v.(string)
		case "claims":
			who.Claims, ok = v.(*value.Object)
		case "now":
			var s string
			if s, ok = v.(string); ok {
				who.Now, err = time.Parse(time.RFC3339, s)
				ok = err == nil
			}
		default:
			return nil, usageError("--ctx: there is no %q: it takes session, client, claims and now", key)
		}
		if !ok {
			return nil, usageError("--ctx: %s is not of the right form", key)
		}
	}
	return who, nil
}

func (c *cli) print(resp *presenters.Response, format string, structure bool) {
	if format == "text" {
		for i := range resp.Blocks {
			if b := &resp.Blocks[i]; b.Type == "text" {
				fmt.Fprintf(c.stdout, "%s\n", b.Text)
			} else {
				fmt.Fprintf(c.stdout, "[%s %s %s]\n", b.Type, b.MimeType, b.URI)
			}
		}
		return
	}
	out := resp.AppendResult(nil, false)
	if structure {
		out = append(bytes.TrimSuffix(out, []byte("}")), `,"structure":`...)
		out = append(value.AppendJSON(out, resp.Side().Value()), '}')
	}
	fmt.Fprintf(c.stdout, "%s\n", out)
}
