package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// errorRule is a compiled rule of `errors`.
type errorRule struct {
	graph      *graph.ErrorRule
	when       *expr.Program
	message    *expr.Template
	suggestion *expr.Template
	retryAfter *expr.Template
	details    []detail
	actions    []action
}

type detail struct {
	key  string
	tree *expr.Tree
}

// action is a tool that an error offers, under both its names.
type action struct{ tool, exposed string }

func compileErrorRule(r *graph.ErrorRule, scope *expr.Scope, views *presenters.Set, view *presenters.View) (*errorRule, graph.Faults) {
	var faults graph.Faults
	c := &errorRule{graph: r}
	text := func(t *graph.Text) *expr.Template {
		if t == nil {
			return nil
		}
		compiled, f := expr.CompileTemplate(views.Words(t), scope)
		faults = append(faults, f...)
		if compiled != nil && !r.Unmasked {
			faults = append(faults, view.MaskedReads(t, compiled.Reads())...)
		}
		return compiled
	}
	if r.When != nil {
		p, f := expr.Compile(r.When, scope, expr.WantBool)
		faults = append(faults, f...)
		c.when = p
	}
	c.message, c.suggestion, c.retryAfter = text(&r.Message), text(r.Suggestion), text(r.RetryAfter)
	for _, d := range r.Details {
		tree, f := expr.CompileTree(d.Node, scope)
		faults = append(faults, f...)
		if tree != nil && !r.Unmasked {
			faults = append(faults, view.MaskedReads(&d.Node.Text, tree.Reads())...)
		}
		c.details = append(c.details, detail{key: d.Name, tree: tree})
	}
	for _, a := range r.Actions {
		c.actions = append(c.actions, action{tool: a, exposed: views.Exposed(a)})
	}
	return c, faults
}

// declared finds the first error rule that the outcome of a binding meets. A
// rule without sqlstate speaks of answers, one with sqlstate of a refusal by
// the database: `result == nil` must not take a broken connection for a
// missing row.
func (t *tool) declared(o *bind.Outcome, env *expr.Env, visible func(string) bool) (*presenters.Failure, error) {
	state := ""
	if o.Err != nil {
		var refused *db.Error
		if !errors.As(o.Err, &refused) || refused.SQLState == "" {
			return nil, nil
		}
		state = refused.SQLState
	}
	var scope *expr.Env
	for _, r := range t.errors {
		if (state != "") != (len(r.graph.SQLState) > 0) || state != "" && !slices.Contains(r.graph.SQLState, state) {
			continue
		}
		if scope == nil {
			scope = env.Fork()
			scope.Set("item", o.Item)
			scope.Set("result", o.Result)
		}
		if r.when != nil {
			holds, err := r.when.Bool(scope)
			if err != nil {
				return nil, err
			}
			if !holds {
				continue
			}
		}
		return r.failure(scope, visible)
	}
	return nil, nil
}

func (r *errorRule) failure(env *expr.Env, visible func(string) bool) (*presenters.Failure, error) {
	f := &presenters.Failure{Code: r.graph.Code, Severity: r.graph.Severity}
	var err error
	text := func(t *expr.Template) string {
		if t == nil || err != nil {
			return ""
		}
		var b []byte
		b, err = t.Append(nil, env, nil)
		return string(b)
	}
	f.Message, f.Suggestion = text(r.message), text(r.suggestion)
	if r.retryAfter != nil && err == nil {
		var v any
		v, err = r.retryAfter.Value(env)
		f.RetryAfter = retryAfter(v)
	}
	for _, d := range r.details {
		if err != nil {
			break
		}
		var v any
		v, err = d.tree.Value(env)
		f.Details = append(f.Details, presenters.Detail{Key: d.key, Text: string(value.AppendText(nil, v))})
	}
	for _, a := range r.actions {
		if visible(a.tool) {
			f.Actions = append(f.Actions, a.exposed)
		}
	}
	return f, err
}

// retryAfter writes seconds as the envelope does, any other text as it is;
// nil, 0 and less leave it out.
func retryAfter(v any) string {
	n, ok := v.(int64)
	if f, isFloat := v.(float64); isFloat {
		n, ok = int64(f), true
	}
	if s, isText := v.(string); isText {
		parsed, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return s
		}
		n, ok = parsed, true
	}
	if !ok || n <= 0 {
		return ""
	}
	return fmt.Sprintf("%d seconds", n)
}

// unanswered is the reply to a call that did not come to an answer in time.
func (t *tool) unanswered(ctx context.Context) *presenters.Failure {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &presenters.Failure{Message: fmt.Sprintf("[%s] Request cancelled.", t.action)}
	}
	f := &presenters.Failure{
		Code:     "TIMEOUT",
		Message:  fmt.Sprintf("[%s] There was no answer within %s.", t.action, t.graph.Timeout),
		Severity: "error",
	}
	if t.mayRepeat {
		f.Suggestion = "Retry once with narrower arguments."
	} else {
		f.Suggestion = "Nothing was changed. Tell the user before you try again."
	}
	return f
}
