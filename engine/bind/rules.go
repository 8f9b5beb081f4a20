package bind

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Rules is a compiled list of `errors` or `deny`: the first that holds wins.
type Rules []*rule

// rule is one compiled rule.
type rule struct {
	graph      *graph.ErrorRule
	when       *expr.Program
	statuses   bool // when looks at the status of a service's answer
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

// RuleCompiler compiles rules for one place.
type RuleCompiler struct {
	Views *presenters.Set
	// View masks what the texts may read; nil masks nothing.
	View *presenters.View
	// Answers are the names under which a text can read the answer, besides
	// result and item: those of steps.
	Answers []string
}

// Compile compiles rules that see the names of scope.
func (c *RuleCompiler) Compile(list []*graph.ErrorRule, scope *expr.Scope) (Rules, graph.Faults) {
	var faults graph.Faults
	out := make(Rules, 0, len(list))
	for _, r := range list {
		compiled, f := c.rule(r, scope)
		faults = append(faults, f...)
		out = append(out, compiled)
	}
	return out, faults
}

func (c *RuleCompiler) rule(r *graph.ErrorRule, scope *expr.Scope) (*rule, graph.Faults) {
	var faults graph.Faults
	out := &rule{graph: r}
	text := func(t *graph.Text) *expr.Template {
		if t == nil {
			return nil
		}
		compiled, f := expr.CompileTemplate(c.Views.Words(t), scope)
		faults = append(faults, f...)
		if compiled != nil && !r.Unmasked {
			faults = append(faults, c.masked(t, compiled.Reads())...)
			faults = append(faults, presenters.SecretReads(t, compiled.Reads(), scope, presenters.LeaveOutOrInsist)...)
		}
		return compiled
	}
	if r.When != nil {
		p, f := expr.Compile(r.When, scope, expr.WantBool)
		faults = append(faults, f...)
		out.when = p
		out.statuses = p != nil && readsAny(p.Reads(), "status")
	}
	out.message, out.suggestion, out.retryAfter = text(&r.Message), text(r.Suggestion), text(r.RetryAfter)
	for _, d := range r.Details {
		tree, f := expr.CompileTree(d.Node, scope)
		faults = append(faults, f...)
		if tree != nil && !r.Unmasked {
			faults = append(faults, c.masked(&d.Node.Text, tree.Reads())...)
			faults = append(faults, presenters.SecretReads(&graph.Text{At: d.Node.At, Path: d.Node.Path}, tree.Reads(), scope, presenters.LeaveOutOrInsist)...)
		}
		out.details = append(out.details, detail{key: d.Name, tree: tree})
	}
	for _, a := range r.Actions {
		out.actions = append(out.actions, action{tool: a, exposed: c.Views.Exposed(a)})
	}
	return out, faults
}

// masked gives a fault for each read of a path that the presenter may mask. A
// step's answer, and the body of a service's, may become the tool's.
func (c *RuleCompiler) masked(t *graph.Text, reads [][]string) graph.Faults {
	if c.View == nil {
		return nil
	}
	faults := c.View.MaskedReads(t, reads)
	for _, read := range reads {
		if len(read) > 1 && (read[0] == "body" || slices.Contains(c.Answers, read[0])) {
			as := append([]string{"result"}, read[1:]...)
			if len(c.View.MaskedReads(t, [][]string{as})) > 0 {
				faults = append(faults, t.Fault(0, "this reads %s, which the presenter may mask: leave it out, or say unmasked: true to show the hidden value all the same", pathText(read)))
			}
		}
	}
	return faults
}

func pathText(read []string) string {
	return strings.TrimSuffix(strings.Join(read, "."), ".**")
}

// readsAny tells whether a name, or something in it, is read.
func readsAny(reads [][]string, name string) bool {
	return slices.ContainsFunc(reads, func(r []string) bool { return len(r) > 0 && r[0] == name })
}

// Facts is what rules look at besides the names of their scope: how a binding
// ended.
type Facts struct {
	State  string // SQLSTATE of a refusal, "" for none
	Status int    // of a service's answer; 0: there is none
	Failed bool   // there is no finished answer
}

// FactsOf gives the facts of an error.
func FactsOf(err error) Facts {
	f := Facts{Failed: err != nil}
	if err == nil {
		return f
	}
	var refused *db.Error
	var answer *Refused
	switch {
	case errors.As(err, &refused):
		f.State = refused.SQLState
	case errors.As(err, &answer):
		f.Status = answer.Status
	}
	return f
}

// First gives the failure of the first rule that holds, nil if none does. A
// rule with sqlstate speaks of a refusal by the database, one with status of a
// service's refusal, any other of finished answers and, if its when reads
// status, of such refusals: `result == nil` must not take a broken connection
// for a missing row. visible says which actions are offered.
func (l Rules) First(f Facts, env *expr.Env, visible func(tool string) bool) (*presenters.Failure, error) {
	for _, r := range l {
		if !r.speaksOf(f) {
			continue
		}
		if r.when != nil {
			holds, err := r.when.Bool(env)
			if err != nil {
				return nil, fmt.Errorf("error rule: %w", err)
			}
			if !holds {
				continue
			}
		}
		failure, err := r.failure(env, visible)
		if err != nil {
			return nil, fmt.Errorf("error rule: %w", err)
		}
		return failure, nil
	}
	return nil, nil
}

func (r *rule) speaksOf(f Facts) bool {
	switch {
	case len(r.graph.SQLState) > 0 && !slices.Contains(r.graph.SQLState, f.State):
		return false
	case len(r.graph.Status) > 0 && !slices.Contains(r.graph.Status, f.Status):
		return false
	case len(r.graph.SQLState) > 0, len(r.graph.Status) > 0, !f.Failed:
		return true
	}
	return f.Status != 0 && r.statuses
}

func (r *rule) failure(env *expr.Env, visible func(string) bool) (*presenters.Failure, error) {
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
		if visible == nil || visible(a.tool) {
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
