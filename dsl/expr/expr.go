// Package expr is the only place that knows the expression language
// (expr-lang): it parses, types, compiles, bounds and runs the expressions
// and the texts with holes of a spec. It knows values, shapes and source
// places; it does not know what an expression is for.
package expr

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// Scope is the set of names that an expression of one kind of place may see,
// with their types. It is built at start and not changed after the first
// Compile. The zero Scope has no names.
type Scope struct {
	names []name
}

type name struct {
	name string
	typ  *shape.Shape
}

// With gives a scope with one more name; a nil type is unknown (any).
func (s *Scope) With(n string, typ *shape.Shape) *Scope { panic("expr.With") }

// Env holds the values of one evaluation's names: made once a call, filled as
// the call goes on. Values are those of package value. An Env belongs to one
// goroutine.
type Env struct{}

// NewEnv makes an empty Env; an unset name is nil.
func NewEnv() *Env { panic("expr.NewEnv") }

// Set gives a name its value.
func (e *Env) Set(name string, v any) { panic("expr.Set") }

// Get gives the value of a name, nil if it is not set.
func (e *Env) Get(name string) any { panic("expr.Get") }

// Fork copies the names, so that a nested place can set its own.
func (e *Env) Fork() *Env { panic("expr.Fork") }

// Program is a compiled expression.
type Program struct{}

// Want says what an expression must give.
type Want uint8

// What an expression must give.
const (
	WantAny Want = iota
	WantBool
)

// Compile compiles a bare expression. All faults have their place inside the text.
func Compile(src *graph.Text, scope *Scope, want Want) (*Program, graph.Faults) {
	panic("expr.Compile")
}

// Eval gives the result as a value of package value: exact numbers and key
// order are kept where the expression only picks, and map literals keep their
// source order.
func (p *Program) Eval(e *Env) (any, error) { panic("expr.Eval") }

// Bool evaluates a condition; a result that is no bool is an error.
func (p *Program) Bool(e *Env) (bool, error) { panic("expr.Bool") }

// Reads gives the paths that the expression reads, each from a name of the
// scope down as far as it is known: ["data" "customer_email"], ["items" "*"
// "id"]. A path whose end is computed ends in "**".
func (p *Program) Reads() [][]string { panic("expr.Reads") }

// Template is a compiled text with holes.
type Template struct{}

// CompileTemplate compiles a text with holes {{ expr }}.
func CompileTemplate(src *graph.Text, scope *Scope) (*Template, graph.Faults) {
	panic("expr.CompileTemplate")
}

// IsStatic tells whether the text has no hole; Append then gives the text.
func (t *Template) IsStatic() bool { panic("expr.IsStatic") }

// Value is the value of a text that is exactly one hole, with its type; of any
// other text the string.
func (t *Template) Value(e *Env) (any, error) { panic("expr.Value") }

// Append appends the text. What comes from a hole goes through safe (nil: as
// it is), which appends the hole's text to dst in the form that is safe there.
func (t *Template) Append(dst []byte, e *Env, safe func(dst []byte, s string) []byte) ([]byte, error) {
	panic("expr.Append")
}

// Reads gives the paths that all holes read.
func (t *Template) Reads() [][]string { panic("expr.Reads") }

// Tree is a compiled Node: a value with holes at its leaves.
type Tree struct{}

// CompileTree compiles the texts of a node.
func CompileTree(n *graph.Node, scope *Scope) (*Tree, graph.Faults) { panic("expr.CompileTree") }

// Value builds the value; a lone hole that is nil is nil.
func (t *Tree) Value(e *Env) (any, error) { panic("expr.Value") }

// Reads gives the paths that all holes read.
func (t *Tree) Reads() [][]string { panic("expr.Reads") }
