package engine

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Compile makes a program that has not opened anything yet. The faults are
// complete: everything that can be found without a network. With a fatal
// fault the program is nil.
func Compile(g *graph.Graph) (*Program, graph.Faults) {
	var faults graph.Faults
	ctx := ctxShape(g)
	views, f := presenters.Compile(g, ctx)
	faults = append(faults, f...)
	p := &Program{graph: g, server: g.Server, views: views, tools: make(map[string]*tool, len(g.Tools)), env: g.EnvValue()}
	for _, text := range []*string{&p.server.Instructions, &p.server.Description} {
		*text = views.Words(&graph.Text{S: *text}).S
	}
	base := new(expr.Scope).With("ctx", ctx).With("env", g.EnvShape())
	for _, t := range g.Tools {
		if t.Broken {
			continue // its fault is told
		}
		c, f := compileTool(g, t, views, base)
		faults = append(faults, f...)
		p.tools[t.Name] = c
	}
	if faults.Fatal() {
		return nil, faults.Sorted()
	}
	p.list = &List{Tools: views.Definitions(func(string) bool { return true })}
	return p, faults.Sorted()
}

func compileTool(g *graph.Graph, t *graph.Tool, views *presenters.Set, base *expr.Scope) (*tool, graph.Faults) {
	var faults graph.Faults
	scope := base.With("args", t.Params)
	view := views.View(t.Name)
	c := &tool{graph: t, view: view, action: presenters.ActionName(t.Name), mayRepeat: mayRepeat(t)}
	var limit db.Limit
	if view != nil {
		limit = db.Limit{Rows: view.RowLimit(), Bytes: view.ByteLimit()}
	}
	b, f := bind.Compile(g, t, scope, limit)
	faults = append(faults, f...)
	c.binding = b
	outcome := scope.With("item", nil).With("result", nil)
	for _, list := range [][]*graph.ErrorRule{t.Errors, groupErrors(g, t), g.Server.Errors} {
		for _, r := range list {
			compiled, f := compileErrorRule(r, outcome, views, view)
			faults = append(faults, f...)
			c.errors = append(c.errors, compiled)
		}
	}
	return c, faults
}

func groupErrors(g *graph.Graph, t *graph.Tool) []*graph.ErrorRule {
	prefix, _, _ := strings.Cut(t.Name, ".")
	if group := g.Group(prefix); group != nil {
		return group.Errors
	}
	return nil
}

// mayRepeat tells whether a tool is a query or says that it is idempotent.
func mayRepeat(t *graph.Tool) bool {
	if i := t.Annotations.Idempotent; i != nil {
		return *i
	}
	return t.Kind == "query"
}
