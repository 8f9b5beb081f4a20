// Package bind turns one declared binding into one callable: SQL statements,
// an expression or a value, with from, result and total behind it.
package bind

import (
	"context"
	"errors"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Binding is a compiled binding with from, result and total. It may be used
// by many goroutines.
type Binding struct {
	writes bool // action or mutation
	one    bool // sql: at most one row

	// Exactly one of these is set.
	query *query
	expr  *expr.Program
	value *expr.Tree

	nests    []*nest
	computed []*expr.Tree // sql.args
	limit    db.Limit

	from   *expr.Template
	result *expr.Tree
	total  *expr.Template
	// column is the column that holds the total, "" for none.
	column string
}

// Opened gives the open database of a declared name, nil if it is not open.
type Opened func(name string) *db.DB

// Outcome is what a binding gave.
type Outcome struct {
	Result any   // the finished answer: nil, *value.Object, *value.Rows, []any, a scalar
	Item   any   // the answer before result, for error rules
	Total  int64 // -1: not known
	More   bool  // reading stopped at the limit: there is at least one row more
	Err    error // *db.Error and others: looked at by error rules, then unexpected
}

// Statement is a statement of a binding.
type Statement struct {
	Database string
	Stmt     [2]*db.Stmt // by db.Dialect
	Source   *graph.Text
	// Offset maps a byte of Stmt[dialect].SQL to one of Source; 0 for a byte
	// of a piece of choose.
	Offset func(d db.Dialect, off int) int
	// Place gives the place in the spec of a byte of Stmt[dialect].SQL, also
	// inside a piece of choose.
	Place func(d db.Dialect, off int) graph.Place
}

// compiler gathers the faults of one tool.
type compiler struct {
	sql    *graph.SQL
	url    string // of the database, "" if it is only known at open
	scope  *expr.Scope
	names  *names
	faults graph.Faults
}

// Compile compiles the binding of a tool. scope has the names that bindings
// see (args, ctx, env). limit bounds what is read of a list at most (0: all).
func Compile(g *graph.Graph, t *graph.Tool, scope *expr.Scope, limit db.Limit) (*Binding, graph.Faults) {
	c := &compiler{scope: scope}
	b := &Binding{writes: t.Kind != "query", limit: limit}
	switch {
	case t.SQL != nil:
		c.sql = t.SQL
		c.names = &names{graph: g, params: params(t), scope: scope}
		if d := g.Database(t.SQL.Database); d != nil && !graph.HasSecret(d.URL.S) {
			c.url = d.URL.S
		}
		c.bindSQL(b)
	case t.Expr != nil:
		var f graph.Faults
		b.expr, f = expr.Compile(t.Expr, scope, expr.WantAny)
		c.faults = append(c.faults, f...)
	case t.Value != nil:
		var f graph.Faults
		b.value, f = expr.CompileTree(t.Value, scope)
		c.faults = append(c.faults, f...)
	}
	c.shapeAnswer(b, t)
	return b, c.faults
}

func params(t *graph.Tool) *shape.Shape {
	if t.Params == nil {
		return &shape.Shape{Kind: shape.Struct}
	}
	return t.Params
}

func (c *compiler) bindSQL(b *Binding) {
	b.one = c.sql.One
	for i := range c.sql.Args {
		a := &c.sql.Args[i]
		tree, f := expr.CompileTree(a.Node, c.scope)
		c.faults = append(c.faults, f...)
		b.computed = append(b.computed, tree)
		c.names.computed = append(c.names.computed, a.Name)
	}
	b.query = c.query(&c.sql.Query, c.sql.Choose, false)
	b.nests = c.nests(c.sql.Nest)
}

// Statements gives every statement of the binding with its text, for check
// --online.
func (b *Binding) Statements() []Statement {
	if b.query == nil {
		return nil
	}
	l := b.query.statements()
	var add func(nests []*nest)
	add = func(nests []*nest) {
		for _, n := range nests {
			l = append(l, n.query.statements()...)
			add(n.nests)
		}
	}
	add(b.nests)
	return l
}

// Run runs the binding. accept is asked with the outcome before a write is
// committed; when it gives an error the transaction is rolled back and Run
// gives that error in Outcome.Err. A read asks nobody. env has args, ctx and
// env set.
func (b *Binding) Run(ctx context.Context, open Opened, env *expr.Env, accept func(*Outcome) error) *Outcome {
	env.SetContext(ctx)
	o := &Outcome{Total: -1}
	var err error
	switch {
	case b.query != nil:
		err = b.runSQL(ctx, open, env, accept, o)
	case b.expr != nil:
		var v any
		if v, err = b.expr.Eval(env); err == nil {
			err = b.finish(env, v, o)
		}
	default:
		var v any
		if v, err = b.value.Value(env); err == nil {
			err = b.finish(env, v, o)
		}
	}
	if err != nil {
		return &Outcome{Total: -1, Err: err}
	}
	return o
}

// runSQL runs one query alone, or everything in one transaction.
func (b *Binding) runSQL(ctx context.Context, open Opened, env *expr.Env, accept func(*Outcome) error, o *Outcome) error {
	d := open(b.query.database)
	if d == nil {
		return &db.Error{Err: errors.New("database " + b.query.database + " is not open"), Unavailable: true}
	}
	r := &run{binding: b, ctx: ctx, env: env, dialect: d.Dialect()}
	r.args, _ = env.Get("args").(*value.Object)
	if !b.writes && len(b.nests) == 0 {
		v, err := r.answer(d, o)
		if err != nil {
			return err
		}
		return b.finish(env, v, o)
	}
	return d.Tx(ctx, !b.writes, func(q db.Querier) error {
		v, err := r.answer(q, o)
		if err != nil {
			return err
		}
		if err := b.finish(env, v, o); err != nil || !b.writes || accept == nil {
			return err
		}
		return accept(o)
	})
}
