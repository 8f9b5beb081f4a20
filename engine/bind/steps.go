package bind

import (
	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// step is one compiled step.
type step struct {
	name     string // "": nobody can read its answer
	path     string
	when     *expr.Program
	perItem  bool       // when looks at the element of each
	each     *expr.Tree // nil: once
	binding  *Binding
	errors   Rules
	undo     *Binding
	optional bool
}

// MaxEach is how many elements a step with each takes at most.
const MaxEach = 1000

// maxStepRows bounds what a step reads that is not the tool's answer: others
// count on having all of it, so that more rows are an error.
const maxStepRows = 10000

// bindSteps compiles steps, each in the scope of those before it, and what is
// made of them.
func (c *compiler) bindSteps(b *Binding, g *graph.Binding) {
	scope := c.scope
	limit := b.limit
	b.last = g.From == nil && g.Result == nil
	for i, s := range g.Steps {
		bound := db.Limit{Rows: maxStepRows}
		if b.last && i == len(g.Steps)-1 && s.Each == nil {
			bound = limit
		}
		c.scope = scope
		b.steps = append(b.steps, c.step(s, bound))
		b.undoes = b.undoes || s.Undo != nil
		if s.Name != "" {
			scope = scope.With(s.Name, c.columns.Step(s))
			c.rules.Answers = append(c.rules.Answers, s.Name)
		}
	}
	b.lone = !b.writes && countSQL(b.steps) == 1
	b.from = c.sentTemplate(g.From, scope)
	shaped := scope
	if g.From != nil {
		shaped = scope.With("item", nil)
	}
	b.result = c.sentTree(g.Result, shaped)
	c.stepsTotal(b, g, shaped)
	c.scope = scope
}

// countSQL counts the statements of steps that need one transaction; several
// for a step that may run more than one.
func countSQL(steps []*step) int {
	n := 0
	for _, s := range steps {
		if s.binding.query == nil {
			continue
		}
		if n++; s.each != nil || len(s.binding.nests) > 0 {
			n++
		}
	}
	return n
}

// stepsTotal compiles the total of steps: an expression, or a column of the
// last one.
func (c *compiler) stepsTotal(b *Binding, g *graph.Binding, scope *expr.Scope) {
	switch last := b.steps[len(b.steps)-1]; {
	case g.Total == nil:
	case isHole(g.Total):
		b.total = c.sentTemplate(g.Total, scope)
	case !b.last || last.binding.query == nil || last.each != nil:
		c.faults = append(c.faults, g.Total.Fault(0, "only the rows of the last step, where they are the answer, have columns: write {{ NAME.%s }}", g.Total.S))
	default:
		last.binding.column = g.Total.S
		if s := g.Steps[len(g.Steps)-1].SQL; !c.columns.has(s, g.Total.S) {
			c.faults = append(c.faults, g.Total.Fault(0, "the query of the last step gives no column %q%s", g.Total.S, near(g.Total.S, c.columns[&s.Query])))
		}
	}
}

// step compiles one step in c.scope.
func (c *compiler) step(s *graph.Step, limit db.Limit) *step {
	out := &step{name: s.Name, path: s.Path, optional: s.Optional}
	before := c.scope
	var element *shape.Shape // nil: not known
	if s.Each != nil {
		each, elem, f := expr.CompileList(&graph.Node{At: s.Each.At, Path: s.Each.Path, Kind: graph.String, Text: *s.Each}, before)
		c.faults = append(c.faults, f...)
		out.each, element = each, elem
	}
	if out.each != nil && (s.Value != nil || s.Expr != nil || s.From != nil || s.Result != nil) {
		c.sent(s.Each, out.each.Reads()) // its elements are in item
	}
	if s.Each != nil {
		c.scope = before.With("item", element)
	}
	if s.When != nil {
		out.when = c.expression(s.When, expr.WantBool)
		out.perItem = s.Each != nil && out.when != nil && readsAny(out.when.Reads(), "item")
	}
	out.binding = c.binding(&s.Binding, limit)
	if r := out.binding.http; r != nil {
		r.told = s.From == nil && s.Result == nil
	}
	own := c.scope
	if s.Name != "" {
		own = own.With(s.Name, c.columns.Step(s))
	}
	seen := own.With("item", nil).With("result", nil)
	if s.HTTP != nil {
		seen = WithAnswer(seen)
	}
	rules := *c.rules
	rules.Answers = append(rules.Answers[:len(rules.Answers):len(rules.Answers)], s.Name)
	var f graph.Faults
	out.errors, f = rules.Compile(s.Errors, seen)
	c.faults = append(c.faults, f...)
	if s.Undo != nil {
		c.scope = own
		writes := c.writes
		c.writes = true // it runs by itself, after all was rolled back
		out.undo = c.binding(s.Undo, db.Limit{Rows: maxStepRows})
		c.writes = writes
	}
	return out
}
