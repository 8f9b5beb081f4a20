package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// errorRules compiles the rules that look at the outcome of a tool: its own,
// those of its group and those of the server.
func (c *toolCompiler) errorRules() bind.Rules {
	t := c.graph
	own := c.scope.With("result", c.answer())
	if t.Steps == nil || t.From != nil {
		own = own.With("item", nil)
	}
	switch {
	case t.HTTP != nil:
		own = bind.WithAnswer(own)
	case asksService(t.Steps):
		own = withAnyAnswer(own)
	}
	for _, s := range t.Steps {
		if s.Name != "" {
			own = own.With(s.Name, c.columns.Step(s))
			c.rules.Answers = append(c.rules.Answers, s.Name)
		}
	}
	shared := withAnyAnswer(c.scope.With("item", nil).With("result", nil))
	rules := c.compileRules(t.Errors, own)
	rules = append(rules, c.compileRules(c.group.Errors, shared)...)
	return append(rules, c.compileRules(c.spec.Graph.Server.Errors, shared)...)
}

// answer gives the type of the finished answer, nil if it is not known.
func (c *toolCompiler) answer() *shape.Shape {
	t := c.graph
	if n := len(t.Steps); n > 0 && t.From == nil && t.Result == nil {
		return c.columns.Step(t.Steps[n-1])
	}
	return c.columns.Answer(&t.Binding)
}

// denyRules compiles what refuses a call before its binding. Only the tool's
// own rules see its arguments.
func (c *toolCompiler) denyRules() bind.Rules {
	rules := c.compileRules(c.spec.Graph.Server.Deny, c.base)
	rules = append(rules, c.compileRules(c.group.Deny, c.base)...)
	return append(rules, c.compileRules(c.graph.Deny, c.scope)...)
}

func (c *toolCompiler) compileRules(list []*graph.ErrorRule, scope *expr.Scope) bind.Rules {
	rules, f := c.rules.Compile(list, scope)
	c.faults = append(c.faults, f...)
	return rules
}

func asksService(steps []*graph.Step) bool {
	for _, s := range steps {
		if s.HTTP != nil {
			return true
		}
	}
	return false
}

// withAnyAnswer adds the names of a service's answer where there may be none.
func withAnyAnswer(s *expr.Scope) *expr.Scope {
	return s.With("body", nil).With("status", nil).With("headers", nil)
}

// declared gives the failure that the spec declares for an outcome, nil if
// there is none: of a rule that held inside the binding, else of the first
// that holds of the tool, its group, the server and the service that was
// asked.
func (t *tool) declared(o *bind.Outcome, c *call) (*presenters.Failure, error) {
	service := t.binding.Service(o.API)
	facts := bind.FactsOf(o.Err)
	if o.Err == nil {
		facts.Status = o.Status
	} else {
		var d *bind.Declared
		if errors.As(o.Err, &d) {
			return d.Failure, nil
		}
		var refused *bind.Refused
		if errors.As(o.Err, &refused) {
			service = t.binding.Service(refused.API)
		}
	}
	if len(t.errors) == 0 && len(service) == 0 {
		return nil, nil
	}
	env := c.env.Fork()
	env.Set("item", o.Item)
	env.Set("result", o.Result)
	bind.SetAnswer(env, o.Err)
	f, err := t.errors.First(facts, env, c.visible)
	if f != nil || err != nil {
		return f, err
	}
	return service.First(facts, env, c.visible)
}

// denied answers a call that a rule of deny refuses, nil: none does.
func (p *Program) denied(c *call) *presenters.Response {
	f, err := c.tool.deny.First(bind.Facts{}, c.env, c.visible)
	switch {
	case err != nil:
		return p.unexpected(c, fmt.Errorf("deny: %w", err))
	case f != nil:
		return f.Response()
	}
	return nil
}

// unanswered is the reply to a call that did not come to an answer in time.
// unsure: a part of it may have taken effect.
func (t *tool) unanswered(ctx context.Context, unsure bool) *presenters.Failure {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &presenters.Failure{Message: fmt.Sprintf("[%s] Request cancelled.", t.action)}
	}
	f := &presenters.Failure{
		Code:     "TIMEOUT",
		Message:  fmt.Sprintf("[%s] There was no answer within %s.", t.action, t.graph.Timeout),
		Severity: "error",
	}
	switch {
	case t.mayRepeat:
		f.Suggestion = "Retry once with narrower arguments."
	case unsure:
		f.Suggestion = "A part of it may have taken effect. Tell the user before you try again."
	default:
		f.Suggestion = "Nothing was changed. Tell the user before you try again."
	}
	return f
}
