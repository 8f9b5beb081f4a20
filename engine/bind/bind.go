// Package bind turns one declared binding into one callable: SQL statements,
// a request, an expression, a value or several of these as steps, with from,
// result and total behind it. It also compiles error rules, which hold inside
// steps and behind the whole binding.
package bind

import (
	"context"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Binding is a compiled binding with from, result and total. It may be used
// by many goroutines.
type Binding struct {
	writes bool // action or mutation
	one    bool // sql: at most one row
	limit  db.Limit

	// Exactly one of these is set.
	query *query
	http  *request
	steps []*step
	expr  *expr.Program
	value *expr.Tree

	nests    []*nest
	computed []*expr.Tree // sql.args
	database *database
	api      Rules            // http: those of the service
	services map[string]Rules // of the tool's binding: those of all its services

	// Of steps.
	last   bool // the last step's answer is the tool's
	lone   bool // a query's only statement needs no transaction
	undoes bool // there are undos

	from   *expr.Template
	result *expr.Tree
	total  *expr.Template
	// column is the column that holds the total, "" for none.
	column string
}

// Outcome is what a binding gave.
type Outcome struct {
	Result any   // the finished answer: nil, *value.Object, *value.Rows, []any, a scalar
	Item   any   // the answer before result, for error rules
	Total  int64 // -1: not known
	More   bool  // reading stopped at the limit: there is at least one row more
	// API and Status are of the service that answered, if the binding is a
	// request; 0: none.
	API    string
	Status int
	// Missing: a `one: true` that is the tool's answer found no row.
	Missing bool
	// Err is a *Declared, *db.Error, *Refused, *api.Error or another error. The
	// first is the answer, the others are looked at by error rules.
	Err error
	// Unsure, with Err: a part of the call may have taken effect: a request was
	// made that changes something and was not undone, or a commit did not tell
	// how it ended.
	Unsure bool
	// Stuck are the undos that failed: an operator must look.
	Stuck []error
	// Skipped is what made the answers of optional steps nil; for the log.
	Skipped []error
}

// Statement is a statement of a binding.
type Statement struct {
	Database string
	Stmt     [2]*db.Stmt // by db.Dialect
	Source   *graph.Text
	Above    *graph.Text // of a nest: the query whose rows it belongs to
	Params   [2][]Param  // of Stmt[dialect], in order
	// Offset maps a byte of Stmt[dialect].SQL to one of Source; 0 for a byte
	// of a piece of choose.
	Offset func(d db.Dialect, off int) int
	// Place gives the place in the spec of a byte of Stmt[dialect].SQL, also
	// inside a piece of choose.
	Place func(d db.Dialect, off int) graph.Place
}

// Param is a parameter of a statement.
type Param struct {
	Name string // without @
	List bool   // a list of values is bound: IN (@name)
	Null bool   // whether it is NULL is bound: @name IS NULL
}

// Host is the program around a binding, as one caller sees it.
type Host struct {
	// DB and API give what is open; nil for a name that is not.
	DB  func(name string) *db.DB
	API func(name string) *api.Client
	// Visible tells whether the caller sees a tool: what is offered in errors.
	Visible func(tool string) bool
	// Login says that statements run as the login, not as the caller's session.
	Login bool
	// First is called in the write transaction before anything else (nil: not);
	// its error ends the call.
	First func(t *db.Tx) error
	// Accept is asked with the outcome before a write is committed (nil: not);
	// when it gives an error the transaction is rolled back, undos run, and Run
	// gives that error in Outcome.Err. A read asks nobody.
	Accept func(*Outcome) error
}

// Run runs the binding. env has args, ctx and env set; the answers of steps
// are set in it as they come.
func (b *Binding) Run(ctx context.Context, h *Host, env *expr.Env) *Outcome {
	env.SetContext(ctx)
	w := &work{ctx: ctx, host: h, env: env, out: &Outcome{Total: -1}}
	w.args, _ = env.Get("args").(*value.Object)
	var err error
	switch {
	case b.steps != nil:
		err = w.runSteps(b)
	case b.query != nil:
		err = w.runSQL(b)
	default:
		err = w.answer(b, on{}, env, w.out)
	}
	if err != nil {
		return &Outcome{Total: -1, Err: err, Unsure: w.sends > 0 || w.lostCommit(err), Stuck: w.stuck, Skipped: w.skipped}
	}
	w.out.Skipped = w.skipped
	return w.out
}

// Service gives the error rules of a service that the binding, or one of its
// steps, asks.
func (b *Binding) Service(name string) Rules { return b.services[name] }

// Statements gives every statement of the binding, its steps and undos, with
// its text, for check --online, those of nests after the one above them; of a
// database that is chosen by the caller once for each.
func (b *Binding) Statements() []Statement {
	var l []Statement
	if b.query != nil {
		for _, name := range b.database.names() {
			l = append(l, b.query.statements(name)...)
			l = appendNested(l, b.query.text, b.nests, name)
		}
	}
	for _, s := range b.steps {
		l = append(l, s.binding.Statements()...)
		if s.undo != nil {
			l = append(l, s.undo.Statements()...)
		}
	}
	return l
}

func appendNested(l []Statement, above *graph.Text, nests []*nest, database string) []Statement {
	for _, n := range nests {
		for _, s := range n.query.statements(database) {
			s.Above = above
			l = append(l, s)
		}
		l = appendNested(l, n.query.text, n.nests, database)
	}
	return l
}
