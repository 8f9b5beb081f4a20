package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// ErrUnknownTool is what Call gives for a name that the caller cannot see; it
// leaves as JSON-RPC error -32602.
var ErrUnknownTool = errors.New("unknown tool")

// Call answers tools/call: name is the exposed name, as List shows it, args
// the raw JSON of the arguments (empty: none). The only error is
// ErrUnknownTool, with the response that the command line and tests show;
// everything else is a response. Call recovers panics.
func (p *Program) Call(ctx context.Context, c *Caller, name string, args []byte) (*presenters.Response, error) {
	return p.call(ctx, &call{caller: c}, name, args)
}

// Traced is Call for the command line and tests: name may also be the dotted
// one of the spec. withheld (nil: nothing) is called with every value that a
// mask took out of the answer.
func (p *Program) Traced(ctx context.Context, c *Caller, name string, args []byte, withheld func(v any)) (*presenters.Response, error) {
	return p.call(ctx, &call{caller: c, declared: true, withheld: withheld}, name, args)
}

func (p *Program) call(ctx context.Context, c *call, name string, args []byte) (resp *presenters.Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			resp, err = p.panicked(c, name, r), nil
		}
	}()
	given, failed := parseArgs(name, args)
	if failed != nil {
		return failed, nil
	}
	c.visible = func(tool string) bool { return p.visible(c.caller, tool) }
	if t := p.tools[name]; c.declared && t != nil && c.visible(name) && !p.views.Chooses(name, given) {
		c.tool = t
	} else {
		var dotted string
		dotted, given, failed = p.views.Route(name, given, c.visible)
		if failed != nil {
			return failed, nil
		}
		if c.tool = p.tools[dotted]; c.tool == nil {
			return presenters.UnknownTool(name), ErrUnknownTool
		}
	}
	c.args = given
	return p.answer(ctx, c, given), nil
}

// call is one call on its way.
type call struct {
	caller *Caller
	// declared: the tool may be meant by its dotted name.
	declared bool
	tool     *tool // nil: not known yet
	visible  func(tool string) bool
	env      *expr.Env
	choice   []string      // the _select argument
	args     *value.Object // nil: not known yet; as they were sent until they are checked
	// withheld is told what masks took out; nil in a served call.
	withheld func(v any)
}

// parseArgs reads the arguments; none at all are an empty object.
func parseArgs(name string, raw []byte) (*value.Object, *presenters.Response) {
	if len(raw) == 0 {
		return &value.Object{}, nil
	}
	v, err := value.Parse(raw)
	if err == nil {
		switch v := v.(type) {
		case nil:
			return &value.Object{}, nil
		case *value.Object:
			return v, nil
		}
		err = errors.New("they must be an object")
	}
	f := presenters.Failure{
		Code:       "VALIDATION_ERROR",
		Message:    fmt.Sprintf("The arguments of %s cannot be read: %s.", name, err),
		Suggestion: "Send the arguments as one JSON object.",
		Severity:   "error",
	}
	return nil, f.Response()
}

func (p *Program) answer(ctx context.Context, c *call, given *value.Object) *presenters.Response {
	t := c.tool
	if t.graph.Select {
		c.choice = takeSelect(given)
	}
	checked, faults := t.graph.Params.Check(given)
	if len(faults) > 0 {
		return presenters.Invalid(t.action, t.graph.Params, faults)
	}
	c.args = checked.(*value.Object)
	c.env = expr.NewEnv()
	c.env.Set("args", c.args)
	c.env.Set("ctx", c.caller.ctx())
	c.env.Set("env", p.env)
	if d := t.graph.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	if refused := p.denied(c); refused != nil {
		return refused
	}
	if t.queue != nil {
		if failed := t.queue.enter(ctx, t); failed != nil {
			return failed.Response()
		}
		defer t.queue.leave()
	}
	return p.run(ctx, c)
}

// takeSelect takes _select out of the arguments. What is no list of texts is
// ignored (feature P12).
func takeSelect(args *value.Object) []string {
	v, ok := args.Get("_select")
	if !ok {
		return nil
	}
	args.Delete("_select")
	list, _ := v.([]any)
	var names []string
	for _, x := range list {
		name, ok := x.(string)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// errDeclined makes a binding roll back: the response is made already.
var errDeclined = errors.New("the answer is an error")

// run runs the binding and makes the response. It is made before a write is
// committed, so that an error rule or a failed presenter undoes the write.
func (p *Program) run(ctx context.Context, c *call) *presenters.Response {
	var resp *presenters.Response
	first, err := c.oneTime()
	if err != nil {
		return p.unexpected(c, err)
	}
	h := &bind.Host{DB: p.database, API: p.api, Visible: c.visible}
	if first != nil {
		h.First = func(t *db.Tx) error { return first.take(ctx, t) }
	}
	h.Accept = func(o *bind.Outcome) error {
		var ok bool
		resp, ok = p.outcome(ctx, c, o)
		switch {
		case !ok:
			return errDeclined
		case first != nil:
			return first.keep(ctx, resp)
		}
		return nil
	}
	o := c.tool.binding.Run(ctx, h, c.env)
	for _, err := range o.Skipped {
		p.log.Warn("an optional step failed", "tool", c.tool.graph.Name, "cause", p.scrub(c, err.Error()))
	}
	switch {
	case errors.Is(o.Err, errAnswered):
		return first.first
	case resp == nil || o.Err != nil && !errors.Is(o.Err, errDeclined):
		resp, _ = p.outcome(ctx, c, o)
	}
	if len(o.Stuck) > 0 {
		return p.stuck(c, o, resp)
	}
	return resp
}

func (p *Program) database(name string) *db.DB { return p.dbs[name] }

func (p *Program) api(name string) *api.Client { return p.apis[name] }

// outcome turns what a binding gave into a response; ok is false if it is an
// error one.
func (p *Program) outcome(ctx context.Context, c *call, o *bind.Outcome) (resp *presenters.Response, ok bool) {
	t := c.tool
	f, err := t.declared(o, c)
	switch {
	case err != nil:
		return p.unexpected(c, err), false
	case f != nil:
		return f.Response(), o.Err == nil && f.Severity == "warning"
	case o.Err != nil && ctx.Err() != nil:
		return t.unanswered(ctx, o.Unsure).Response(), false
	case o.Err != nil:
		return p.refused(c, o), false
	case o.Missing && o.Result == nil:
		return nothingFound.Response(), false
	}
	resp, err = t.view.Present(&presenters.Call{
		Context: ctx, Env: c.env, Visible: c.visible, Select: c.choice, Total: o.Total, More: o.More,
		Withheld: c.withheld,
	}, o.Result)
	if err != nil {
		return p.unexpected(c, fmt.Errorf("presenter: %w", err)), false
	}
	return resp, resp.IsError == nil || !*resp.IsError // too large an answer is an error, and undoes a write
}

// refused answers a refusal for which no rule speaks.
func (p *Program) refused(c *call, o *bind.Outcome) *presenters.Response {
	d := bind.DefaultOf(o.Err)
	if d == nil {
		return p.unexpected(c, o.Err)
	}
	if d.Log {
		p.log.Warn("call refused", "tool", c.tool.graph.Name, "code", d.Code, "cause", p.scrub(c, o.Err.Error()))
	}
	return d.Failure(o.Err, o.Unsure, c.tool.mayRepeat).Response()
}

// stuck answers a call that failed and of which a part could not be taken
// back: the log says what, under an incident id, and the answer that an
// operator must look.
func (p *Program) stuck(c *call, o *bind.Outcome, failed *presenters.Response) *presenters.Response {
	id := p.incident()
	for _, err := range o.Stuck {
		p.log.Error("an undo failed: an operator must look at what the call has left behind",
			"incident", id, "tool", c.tool.graph.Name, "code", failed.Code, "cause", p.scrub(c, err.Error()), "call", p.scrub(c, o.Err.Error()))
	}
	f := &presenters.Failure{
		Code:       "INTERNAL_ERROR",
		Message:    fmt.Sprintf("[%s] The call ended in %s, and a part of what it had done could not be undone. Incident %s.", c.tool.action, failed.Code, id),
		Suggestion: "Do not repeat this call. Tell the user that an operator must look, and give the incident id.",
		Severity:   "critical",
	}
	resp := f.Response()
	resp.Incident = id
	return resp
}

// nothingFound answers a `one: true` without a row for which no rule speaks:
// an agent must not read success.
var nothingFound = presenters.Failure{Code: "NOT_FOUND", Message: "Nothing found for these arguments.", Severity: "error"}

// unexpected logs the cause under an incident id and answers INTERNAL_ERROR.
func (p *Program) unexpected(c *call, cause error) *presenters.Response {
	id := p.incident()
	p.log.Error("call failed", "incident", id, "tool", c.tool.graph.Name, "cause", p.scrub(c, cause.Error()))
	return presenters.Internal(c.tool.action, id, c.tool.mayRepeat)
}

func (p *Program) panicked(c *call, name string, r any) *presenters.Response {
	id := p.incident()
	action, mayRepeat := presenters.ActionName(name), false
	if t := c.tool; t != nil {
		name, action, mayRepeat = t.graph.Name, t.action, t.mayRepeat
	}
	p.log.Error("call panicked", "incident", id, "tool", name, "cause", p.scrub(c, fmt.Sprint(r)), "stack", string(debug.Stack()))
	return presenters.Internal(action, id, mayRepeat)
}
