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
	spec, f := bind.NewSpec(g, views, base)
	faults = append(faults, f...)
	p.spec, p.base = spec, base
	faults = append(faults, p.compileMachines(spec, base)...)
	for _, t := range g.Tools {
		if t.Broken {
			continue // its fault is told
		}
		c, f := compileTool(spec, t, base, p.machines)
		faults = append(faults, f...)
		p.tools[t.Name] = c
	}
	if faults.Fatal() {
		return nil, faults.Sorted()
	}
	p.joinMachines()
	p.lists = newLists()
	p.list = &List{Tools: views.Definitions(func(string) bool { return true })}
	return p, faults.Sorted()
}

// toolCompiler compiles one tool.
type toolCompiler struct {
	spec  *bind.Spec
	graph *graph.Tool
	group *graph.Group
	base  *expr.Scope // ctx, env
	scope *expr.Scope // these and args
	rules bind.RuleCompiler
	// columns are what the tool's statements give, once a database was asked.
	columns bind.Columns
	faults  graph.Faults
}

func compileTool(spec *bind.Spec, t *graph.Tool, base *expr.Scope, machines []*machine) (*tool, graph.Faults) {
	view := spec.Views.View(t.Name)
	c := newToolCompiler(spec, t, base)
	out := &tool{graph: t, view: view, action: presenters.ActionName(t.Name), exposed: spec.Views.Exposed(t.Name), mayRepeat: mayRepeat(t)}
	var limit db.Limit
	if view != nil {
		limit = db.Limit{Rows: view.RowLimit(), Bytes: view.ByteLimit()}
	}
	var f graph.Faults
	out.binding, f = bind.Compile(spec, t, c.scope, limit)
	c.faults = append(c.faults, f...)
	out.deny, out.errors = c.denyRules(), c.errorRules()
	out.once = c.onceKey()
	out.gate = c.gate(machines, out.binding)
	out.queue = newQueue(t.Concurrency)
	return out, c.faults
}

func newToolCompiler(spec *bind.Spec, t *graph.Tool, base *expr.Scope) *toolCompiler {
	return &toolCompiler{
		spec: spec, graph: t, group: groupOf(spec.Graph, t), base: base, scope: base.With("args", t.Params),
		rules: bind.RuleCompiler{Views: spec.Views, View: spec.Views.View(t.Name)},
	}
}

// groupOf gives the group of a tool; an empty one if it has none.
func groupOf(g *graph.Graph, t *graph.Tool) *graph.Group {
	prefix, _, _ := strings.Cut(t.Name, ".")
	if group := g.Group(prefix); group != nil {
		return group
	}
	return &graph.Group{}
}

// mayRepeat tells whether a tool is a query or says that it is idempotent.
func mayRepeat(t *graph.Tool) bool {
	if i := t.Annotations.Idempotent; i != nil {
		return *i
	}
	return t.Kind == "query"
}
