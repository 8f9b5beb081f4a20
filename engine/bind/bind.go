// Package bind turns one declared binding into one callable.
package bind

import (
	"context"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Binding is a compiled binding with from, result and total.
type Binding struct{}

// Compile compiles the binding of a tool. scope has the names that bindings
// see (args, ctx, env). rows is the most rows that need to be read (0: all).
func Compile(g *graph.Graph, t *graph.Tool, scope *expr.Scope, limit db.Limit) (*Binding, graph.Faults) {
	panic("bind.Compile")
}

// Opened gives the open database of a declared name.
type Opened func(name string) *db.DB

// Outcome is what a binding gave.
type Outcome struct {
	Result any   // the finished answer: nil, *value.Object, *value.Rows, []any, a scalar
	Item   any   // the answer before result, for error rules
	Total  int64 // -1: not known
	More   bool  // reading stopped at the limit
	Err    error // *db.Error and others: looked at by error rules, then unexpected
}

// Run runs the binding. accept is asked with the outcome before a write is
// committed; when it gives an error the transaction is rolled back and Run
// gives that error in Outcome.Err. env has args, ctx and env set.
func (b *Binding) Run(ctx context.Context, open Opened, env *expr.Env, accept func(*Outcome) error) *Outcome {
	panic("bind.Run")
}

// Statements gives every statement of the binding with its text, for check --online.
func (b *Binding) Statements() []Statement { panic("bind.Statements") }

// Statement is a statement of a binding.
type Statement struct {
	Database string
	Stmt     [2]*db.Stmt // by db.Dialect
	Source   *graph.Text
	// Offset maps a byte of Stmt[dialect].SQL to one of Source.
	Offset func(d db.Dialect, off int) int
}
