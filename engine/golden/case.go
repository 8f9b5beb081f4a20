package golden

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

type runner struct {
	graph    *graph.Graph
	opts     Options
	programs map[string]*loaded // by the case's own environment
}

// loaded is the spec as it is in one environment.
type loaded struct {
	program *engine.Program
	env     Lookup
	err     error
}

// skipped is why a case cannot be run here.
type skipped string

func (s skipped) Error() string { return string(s) }

func (r *runner) run(ctx context.Context, t *graph.Test) Result {
	res := Result{File: path(t), Name: t.Name, Status: Passed}
	got, err := r.answer(ctx, t)
	var why skipped
	switch {
	case errors.As(err, &why):
		res.Status, res.Detail = Skipped, string(why)
	case err != nil:
		res.Status, res.Detail = Failed, fmt.Sprintf("%s: %s", t.At, err)
	default:
		if detail := r.compare(t, got); detail != "" {
			res.Status, res.Detail = Failed, detail
		}
	}
	return res
}

// compare compares the rendered answer with the golden file, or writes it.
func (r *runner) compare(t *graph.Test, got []byte) string {
	file := path(t)
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err.Error()
	}
	if err == nil && bytes.Equal(want, got) {
		return ""
	}
	if r.opts.Update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err.Error()
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			return err.Error()
		}
		fmt.Fprintf(r.opts.Out, "wrote %s\n", file)
		return ""
	}
	if os.IsNotExist(err) {
		return fmt.Sprintf("%s: there is no golden file %s: look at the answer below, then write it with --update\n%s", t.At, file, got)
	}
	return string(diff.Diff(file, want, "answer", got))
}

// answer runs one case and renders what came of it.
func (r *runner) answer(ctx context.Context, t *graph.Test) ([]byte, error) {
	l := r.program(t.Environment)
	if l.err != nil {
		return nil, l.err
	}
	urls, cleanup, err := freshDatabases(ctx, l.program.Graph(), t, l.env)
	defer func() {
		for _, f := range cleanup {
			_ = f(context.WithoutCancel(ctx)) // a database left over harms no other case
		}
	}()
	if err != nil {
		return nil, err
	}
	p := l.program.Fork()
	net := newNetwork(p.Graph(), t, l.env)
	var log bytes.Buffer
	err = p.Open(ctx, engine.Options{
		Env:       l.env,
		URL:       func(database string) string { return urls[database] },
		Fresh:     true,
		Log:       slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
		Incident:  func() string { return "test" },
		Transport: net.of,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()
	for _, d := range p.Graph().Databases {
		if err := p.Seed(ctx, d.Name, t.Seed); err != nil {
			return nil, err
		}
	}
	got, err := play(ctx, p, t, &log)
	if fault := net.end(); fault != nil {
		return nil, fault // whatever came of it
	}
	return got, err
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}

// program compiles the spec in the case's environment, each environment once.
func (r *runner) program(own map[string]string) *loaded {
	key := fmt.Sprint(len(own))
	for _, k := range slices.Sorted(maps.Keys(own)) {
		key += "\x00" + k + "=" + own[k]
	}
	if l := r.programs[key]; l != nil {
		return l
	}
	l := &loaded{env: r.opts.Env}
	r.programs[key] = l
	g := r.graph
	if len(own) > 0 {
		l.env = func(name string) (string, bool) {
			if v, ok := own[name]; ok {
				return v, true
			}
			return r.opts.Env(name)
		}
		var faults graph.Faults
		if g, faults = r.opts.Load(l.env); faults.Fatal() {
			l.err = faults
			return l
		}
	}
	p, faults := engine.Compile(g)
	if faults.Fatal() {
		l.err = faults
	}
	l.program = p
	return l
}

// freshDatabases gives each declared database a fresh one of its engine, or
// of the one that the case asks for.
func freshDatabases(ctx context.Context, g *graph.Graph, t *graph.Test, env Lookup) (map[string]string, []func(context.Context) error, error) {
	urls := map[string]string{}
	var cleanup []func(context.Context) error
	for _, d := range g.Databases {
		server, err := serverOf(g, d, t, env)
		if err != nil {
			return nil, cleanup, err
		}
		if server == "" {
			urls[d.Name] = "sqlite::memory:"
			continue
		}
		fresh, drop, err := db.Fresh(ctx, server)
		if err != nil {
			return nil, cleanup, fmt.Errorf("databases.%s: %w", d.Name, err)
		}
		urls[d.Name] = fresh
		cleanup = append(cleanup, drop)
	}
	return urls, cleanup, nil
}

// serverOf gives the PostgreSQL server on which a database of the case is to
// be made, "" for an embedded one.
func serverOf(g *graph.Graph, d *graph.Database, t *graph.Test, env Lookup) (string, error) {
	switch t.Database {
	case "sqlite":
		return "", nil
	case "postgres":
		server, _ := env("DATABASE_URL")
		if dialect, err := db.DialectOf(server); err != nil || dialect != db.Postgres {
			return "", skipped("DATABASE_URL names no PostgreSQL server to make a fresh database on")
		}
		return server, nil
	}
	secret, err := engine.Secrets(g, env)
	if err != nil {
		return "", err
	}
	url := graph.Reveal(d.URL.S, secret)
	dialect, err := db.DialectOf(url)
	if err != nil {
		return "", fmt.Errorf("databases.%s: %w", d.Name, err)
	}
	if dialect == db.Postgres {
		return url, nil
	}
	return "", nil
}

// play makes the calls of a case and renders the last one.
func play(ctx context.Context, p *engine.Program, t *graph.Test, log *bytes.Buffer) ([]byte, error) {
	for i, b := range t.Before {
		c := t.Ctx
		if b.Ctx != nil {
			c = *b.Ctx
		}
		resp, _ := p.Traced(ctx, caller(p, c), b.Call, rawArgs(b.Args), nil)
		if resp.Code != "" {
			return nil, fmt.Errorf("before[%d]: %s ended in %s:\n%s", i, b.Call, resp.Code, renderBlocks(resp))
		}
	}
	who := caller(p, t.Ctx)
	if t.List != "" {
		list, err := p.List(ctx, who)
		if err != nil {
			return nil, err
		}
		return renderList(list), nil
	}
	var withheld []any
	resp, _ := p.Traced(ctx, who, t.Call, rawArgs(t.Args), func(v any) { withheld = append(withheld, v) })
	got := renderCall(t, resp)
	if resp.Code != t.Error {
		return nil, fmt.Errorf("%s\n%s%s", wrongEnd(t.Error, resp.Code), got, strings.TrimSuffix(log.String(), "\n"))
	}
	if leak := findLeak(append(withheld, p.SecretValues(t.Call, t.Args)...), resp, got, log.String()); leak != "" {
		return nil, errors.New(leak)
	}
	return got, nil
}

func wrongEnd(want, got string) string {
	switch {
	case want == "":
		return "the case must succeed, but it ended in " + got + " (if it should, write error: \"" + got + "\")"
	case got == "":
		return "the case must end in " + want + ", but it succeeded"
	}
	return "the case must end in " + want + ", but it ended in " + got
}

func rawArgs(args *value.Object) []byte {
	if args == nil {
		return nil
	}
	return value.AppendJSON(nil, args)
}

// caller is the caller of a case: without claims of its own the local one.
func caller(p *engine.Program, c graph.TestCtx) *engine.Caller {
	who := &engine.Caller{Session: c.Session, Claims: c.Claims, Now: c.Now}
	if who.Session == "" {
		who.Session = "test"
	}
	if who.Claims == nil {
		who.Claims = p.Server().Local
	}
	return who
}
