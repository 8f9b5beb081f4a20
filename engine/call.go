package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

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
			c.passage.abandon(ctx)
		}
	}()
	given, failed := parseArgs(name, args)
	if failed != nil {
		return failed, nil
	}
	c.env = p.callerEnv(c.caller)
	c.visible = func(tool string) bool { return c.sees(ctx, p, tool) }
	if t := p.tools[name]; c.declared && t != nil && !p.views.Chooses(name, given) {
		c.tool = t
	} else {
		var dotted string
		dotted, given, failed = p.route(c, name, given)
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
	states   states   // what is known of the caller's machines
	passage  *passage // nil: the tool has no gate
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
	w := p.passage(c)
	c.passage = w
	if d := t.time(w); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	if w != nil && w.byCaller() {
		if refused := w.arrive(ctx); refused != nil {
			return refused
		}
	}
	checked, faults := t.graph.Params.Check(given)
	if len(faults) > 0 {
		return w.instead(ctx, presenters.Invalid(t.action, t.graph.Params, faults))
	}
	c.args = checked.(*value.Object)
	c.env.Set("args", c.args)
	if refused := p.denied(c); refused != nil {
		return w.instead(ctx, refused)
	}
	if w != nil && !w.byCaller() { // after deny: the state may be somebody else's
		if refused := w.arrive(ctx); refused != nil {
			return refused
		}
	}
	if t.queue != nil {
		if failed := t.queue.enter(ctx, t); failed != nil {
			if t.once != nil { // it may have been answered before, in another state
				return failed.Response()
			}
			return w.instead(ctx, failed.Response())
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

// callerEnv is what an expression sees that depends on the caller alone.
func (p *Program) callerEnv(c *Caller) *expr.Env {
	env := expr.NewEnv()
	env.Set("ctx", c.ctx())
	env.Set("env", p.env)
	return env
}

// route finds the tool that is meant. A gate does not hide one from a call,
// which is told why it may not be used; what is offered in its place is what
// the caller sees.
func (p *Program) route(c *call, name string, args *value.Object) (string, *value.Object, *presenters.Response) {
	dotted, rest, failed := p.views.Route(name, args, p.exists)
	if failed != nil && len(p.gating) > 0 {
		// Nothing is said of a group of which the caller sees no tool.
		_, _, failed = p.views.Route(name, args, c.visible)
	}
	return dotted, rest, failed
}

// time is how long a call may take; 0: as long as it takes. One that holds a
// key always has an end.
func (t *tool) time(w *passage) time.Duration {
	if w != nil && w.how == holds {
		return w.time()
	}
	return t.graph.Timeout
}

// run runs the binding and makes the response. It is made before a write is
// committed, so that an error rule or a failed presenter undoes the write.
func (p *Program) run(ctx context.Context, c *call) *presenters.Response {
	first, err := c.oneTime()
	if err != nil {
		return p.unexpected(c, err)
	}
	w := c.passage
	if w != nil {
		w.patient = first != nil
		if err := w.take(ctx); err != nil {
			return w.barred(ctx, err)
		}
	}
	p.prepare(ctx, c)
	for try := 0; ; try++ {
		resp, o := p.attempt(ctx, c, first)
		if try == 0 && errors.Is(o.Err, errDoubt) {
			if refused := w.look(ctx); refused != nil { // asks what settles the doubt
				return refused
			}
			continue
		}
		if isBarred(o.Err) {
			resp = w.barred(ctx, o.Err)
		}
		resp = w.end(ctx, o, resp)
		if len(o.Stuck) > 0 {
			return p.stuck(c, o, resp)
		}
		return resp
	}
}

// attempt runs the binding once.
func (p *Program) attempt(ctx context.Context, c *call, first *once) (*presenters.Response, *bind.Outcome) {
	var resp *presenters.Response
	w := c.passage
	h := &bind.Host{DB: p.database, API: p.api, Visible: c.visible}
	if first != nil || w != nil {
		h.First = func(t *db.Tx) error {
			if err := w.begin(ctx, t); err != nil {
				return err
			}
			if first != nil {
				if err := first.take(ctx, t); err != nil {
					return err
				}
			}
			return w.granted()
		}
	}
	h.Accept = func(o *bind.Outcome) error {
		if err := w.ready(ctx); err != nil {
			return err
		}
		var ok bool
		resp, ok = p.outcome(ctx, c, o)
		if !ok {
			return errDeclined
		}
		if first != nil {
			if err := first.keep(ctx, resp); err != nil {
				return err
			}
		}
		return w.commit(ctx)
	}
	o := c.tool.binding.Run(ctx, h, c.env)
	for _, err := range o.Skipped {
		p.log.Warn("an optional step failed", "tool", c.tool.graph.Name, "cause", p.scrub(c, err.Error()))
	}
	switch {
	case errors.Is(o.Err, errAnswered):
		return first.first, o
	case isBarred(o.Err):
		return nil, o // what it says is found out when the transaction is over
	case resp == nil || o.Err != nil && !errors.Is(o.Err, errDeclined):
		resp, _ = p.outcome(ctx, c, o)
	}
	if resp.Incident != "" && o.Err != nil && !o.Unsure {
		// It was made before anybody could know that all would be rolled back.
		resp = presenters.Internal(c.tool.action, resp.Incident, c.tool.extent(true))
	}
	return resp, o
}

// extent tells what an unexpected failure of the tool leaves behind.
func (t *tool) extent(rolledBack bool) presenters.Extent {
	switch {
	case t.mayRepeat:
		return presenters.Repeatable
	case rolledBack:
		return presenters.Nothing
	}
	return presenters.Unknown
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
	case f != nil && (o.Err != nil || f.Severity != "warning"):
		c.passage.fail()
		return f.Response(), false
	case o.Err != nil && ctx.Err() != nil && !starved(o.Err):
		return t.unanswered(ctx, o.Unsure).Response(), false
	case o.Err != nil:
		return p.refused(c, o), false
	case f == nil && o.Missing && o.Result == nil:
		return nothingFound.Response(), false
	}
	if err := c.passage.advance(o.Result); err != nil {
		return p.unexpected(c, err), false
	}
	if f != nil { // a warning: the call has succeeded
		return f.Response(), true
	}
	c.showStates(p)
	resp, err = t.view.Present(&presenters.Call{
		Context: ctx, Env: c.env, Visible: c.visible, Select: c.choice, Total: o.Total, More: o.More,
		Withheld: c.withheld,
	}, o.Result)
	if err != nil {
		return p.unexpected(c, fmt.Errorf("presenter: %w", err)), false
	}
	return resp, resp.IsError == nil || !*resp.IsError // too large an answer is an error, and undoes a write
}

// starved tells whether a call ended because it got no connection.
func starved(err error) bool {
	var e *db.Error
	return errors.As(err, &e) && e.Busy
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
	return presenters.Internal(c.tool.action, id, c.tool.extent(false))
}

func (p *Program) panicked(c *call, name string, r any) *presenters.Response {
	id := p.incident()
	action, extent := presenters.ActionName(name), presenters.Unknown
	if t := c.tool; t != nil {
		name, action, extent = t.graph.Name, t.action, t.extent(false)
	}
	p.log.Error("call panicked", "incident", id, "tool", name, "cause", p.scrub(c, fmt.Sprint(r)), "stack", string(debug.Stack()))
	return presenters.Internal(action, id, extent)
}
