package bind

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Spec is what the bindings of one spec are compiled with.
type Spec struct {
	Graph *graph.Graph
	// Views gives tools their exposed names in the texts of error rules.
	Views    *presenters.Set
	sessions map[string]*session // by database
}

// NewSpec compiles what bindings share: the sessions of the databases. base
// has the names that every expression sees (ctx, env).
func NewSpec(g *graph.Graph, views *presenters.Set, base *expr.Scope) (*Spec, graph.Faults) {
	s := &Spec{Graph: g, Views: views, sessions: map[string]*session{}}
	var faults graph.Faults
	for _, d := range g.Databases {
		if !graph.HasSecret(d.URL.S) { // else it is known when it is opened
			if _, err := db.DialectOf(d.URL.S); err != nil {
				faults = append(faults, d.URL.Fault(0, "%s", err))
			}
		}
		if d.Session == nil {
			continue
		}
		compiled, f := compileSession(d, base)
		faults = append(faults, f...)
		s.sessions[d.Name] = compiled
	}
	return s, faults
}

// compiler compiles the binding of one tool and gathers its faults.
type compiler struct {
	spec   *Spec
	tool   *graph.Tool
	rules  *RuleCompiler
	scope  *expr.Scope // of the binding at work
	base   *expr.Scope // of the tool: args, ctx, env
	faults graph.Faults
	writes bool
	// columns are what statements give, for Recheck.
	columns Columns

	services map[string]Rules

	// Of the SQL binding at work.
	sql   *graph.SQL
	url   string // of the database, "" if it is only known at open
	names *names
}

// Compile compiles the binding of a tool. scope has the names that bindings
// see (args, ctx, env). limit bounds what is read of a list at most (0: all).
func Compile(s *Spec, t *graph.Tool, scope *expr.Scope, limit db.Limit) (*Binding, graph.Faults) {
	c := newCompiler(s, t, scope)
	b := c.binding(&t.Binding, limit)
	b.services = c.services
	return b, c.faults
}

func newCompiler(s *Spec, t *graph.Tool, scope *expr.Scope) *compiler {
	c := &compiler{spec: s, tool: t, scope: scope, base: scope, writes: t.Kind != "query"}
	c.rules = &RuleCompiler{Views: s.Views}
	if s.Views != nil {
		c.rules.View = s.Views.View(t.Name)
	}
	c.services = map[string]Rules{}
	return c
}

// binding compiles one binding, whose texts see c.scope.
func (c *compiler) binding(g *graph.Binding, limit db.Limit) *Binding {
	b := &Binding{writes: c.writes, limit: limit}
	switch {
	case g.SQL != nil:
		c.bindSQL(b, g.SQL)
	case g.HTTP != nil:
		b.http = c.request(g.HTTP, limit)
		b.api = c.apiRules(g.HTTP.API)
	case g.Steps != nil:
		c.bindSteps(b, g)
		return b
	case g.Expr != nil:
		if b.expr = c.expression(g.Expr, expr.WantAny); b.expr != nil {
			c.sent(g.Expr, b.expr.Reads())
		}
	case g.Value != nil:
		b.value = c.sentTree(g.Value, c.scope)
	}
	c.shapeAnswer(b, g)
	return b
}

func (c *compiler) expression(t *graph.Text, want expr.Want) *expr.Program {
	p, f := expr.Compile(t, c.scope, want)
	c.faults = append(c.faults, f...)
	return p
}

func (c *compiler) template(t *graph.Text, scope *expr.Scope) *expr.Template {
	if t == nil {
		return nil
	}
	p, f := expr.CompileTemplate(t, scope)
	c.faults = append(c.faults, f...)
	return p
}

func (c *compiler) tree(n *graph.Node) *expr.Tree { return c.treeIn(n, c.scope) }

func (c *compiler) treeIn(n *graph.Node, scope *expr.Scope) *expr.Tree {
	if n == nil {
		return nil
	}
	t, f := expr.CompileTree(n, scope)
	c.faults = append(c.faults, f...)
	return t
}

// sent tells the reads of @secret() parameters in what becomes an answer. What
// a later step is given can be computed where it is used.
func (c *compiler) sent(t *graph.Text, reads [][]string) {
	c.faults = append(c.faults, presenters.SecretReads(t, reads, c.base, presenters.LeaveOut)...)
}

func (c *compiler) sentTree(n *graph.Node, scope *expr.Scope) *expr.Tree {
	t := c.treeIn(n, scope)
	if t != nil {
		c.sent(&graph.Text{At: n.At, Path: n.Path}, t.Reads())
	}
	return t
}

func (c *compiler) sentTemplate(src *graph.Text, scope *expr.Scope) *expr.Template {
	t := c.template(src, scope)
	if t != nil {
		c.sent(src, t.Reads())
	}
	return t
}

// apiRules compiles the error rules of a service for this tool.
func (c *compiler) apiRules(name string) Rules {
	a := c.spec.Graph.API(name)
	if a == nil || c.services[name] != nil {
		return c.services[name]
	}
	rules, f := c.rules.Compile(a.Errors, WithAnswer(c.base))
	c.faults = append(c.faults, f...)
	c.services[name] = rules
	return rules
}

var (
	statusShape  = &shape.Shape{Kind: shape.Int}
	headersShape = &shape.Shape{Kind: shape.Struct, Rest: &shape.Shape{Kind: shape.String, MaxRunes: -1}}
)

// WithAnswer adds the names that a service's answer sets: body, status and
// headers.
func WithAnswer(s *expr.Scope) *expr.Scope {
	return s.With("body", nil).With("status", statusShape).With("headers", headersShape)
}

func (c *compiler) bindSQL(b *Binding, s *graph.SQL) {
	c.sql = s
	c.names = &names{graph: c.spec.Graph, params: params(c.tool), scope: c.scope}
	for _, n := range c.scope.Names() {
		if _, ofTool := c.base.Lookup(n); !ofTool {
			c.names.answers = append(c.names.answers, n)
		}
	}
	c.url = c.commonURL()
	b.one = s.One
	for i := range s.Args {
		a := &s.Args[i]
		b.computed = append(b.computed, c.tree(a.Node))
		c.names.computed = append(c.names.computed, a.Name)
	}
	b.database = c.databaseOf(s)
	b.query = c.query(&s.Query, s.Choose, false)
	b.nests = c.nests(s.Nest)
}

// commonURL gives a URL of the engine that all databases of the binding have,
// "" if that is only known at open.
func (c *compiler) commonURL() string {
	var url string
	var engine db.Dialect
	for _, d := range c.spec.Graph.Databases {
		if c.sql.Choice == nil && d.Name != c.sql.Database {
			continue
		}
		if graph.HasSecret(d.URL.S) {
			return ""
		}
		e, err := db.DialectOf(d.URL.S)
		if err != nil || url != "" && e != engine {
			return ""
		}
		url, engine = d.URL.S, e
	}
	return url
}

func params(t *graph.Tool) *shape.Shape {
	if t.Params == nil {
		return &shape.Shape{Kind: shape.Struct}
	}
	return t.Params
}

// isHole tells whether a text has holes; a text without is a column's name.
func isHole(t *graph.Text) bool { return strings.Contains(t.S, "{{") }
