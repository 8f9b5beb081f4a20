package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// isBarred tells whether an error speaks of the gate of a tool.
func isBarred(err error) bool {
	if err == nil {
		return false
	}
	var made *answered
	return errors.As(err, &made) || errors.Is(err, errClosed) || errors.Is(err, errTaken) || errors.Is(err, errDoubt) ||
		errors.Is(err, gate.ErrConflict)
}

// barred gives the answer to an error that speaks of the gate.
func (w *passage) barred(ctx context.Context, err error) *presenters.Response {
	var made *answered
	if errors.As(err, &made) {
		return made.response
	}
	return w.answer(ctx, err)
}

// answer says why a call may not go on.
func (w *passage) answer(ctx context.Context, reason error) *presenters.Response {
	t := w.call.tool
	switch {
	case errors.Is(reason, errClosed):
		return presenters.Forbidden(t.exposed, w.state, w.program.offered(ctx, w.call)).Response()
	case errors.Is(reason, errDoubt):
		return (&presenters.Failure{
			Code:       "CONFLICT",
			Message:    fmt.Sprintf("[%s] An earlier call of this workflow ended without an answer: nobody knows whether it took effect.", t.action),
			Suggestion: "Do not repeat it. Tell the user that an operator must settle the state of this workflow.",
			Severity:   "error",
		}).Response()
	}
	return (&presenters.Failure{
		Code:       "CONFLICT",
		Message:    fmt.Sprintf("[%s] Another call is moving this workflow, or has just moved it. Nothing was changed.", t.action),
		Suggestion: "List the tools again and look at what is there now before you repeat this call.",
		Severity:   "error",
	}).Response()
}

// nobody is the failure of a caller of whom nothing tells whose state it is.
func (w *passage) nobody() *presenters.Failure {
	return &presenters.Failure{
		Code:       "AUTH_REQUIRED",
		Message:    fmt.Sprintf("Tool %q works on a state of the caller's own, and this request does not tell whose it is.", w.call.tool.exposed),
		Suggestion: "Do not retry. Tell the user to sign in, or to connect with a client that keeps a session.",
		Severity:   "error",
	}
}

// unavailable answers for a store that could not be asked.
func (w *passage) unavailable(ctx context.Context, err error) *presenters.Response {
	switch {
	case errors.Is(err, gate.ErrFull):
		w.program.log.Error("the states kept in memory are at their bound: give the machine a ttl, or a store", "fsm", w.id.FSM)
		return (&presenters.Failure{
			Code: "SERVER_BUSY", Message: "The server keeps no more workflows at the moment. Nothing was changed.",
			Suggestion: "Tell the user if it stays so.", Severity: "error",
		}).Response()
	case ctx.Err() != nil && !starved(err):
		return w.call.tool.unanswered(ctx, false).Response()
	}
	return w.program.refused(w.call, &bind.Outcome{Err: fmt.Errorf("the state store: %w", err)})
}

// offered are the exposed names of the tools that the caller may use now.
func (p *Program) offered(ctx context.Context, c *call) []string {
	var names []string
	for _, t := range p.graph.Tools {
		if c.sees(ctx, p, t.Name) {
			names = append(names, p.views.Exposed(t.Name))
		}
	}
	return names
}

// states are the states that a call knows of; "" for a machine whose state the
// caller does not have.
type states []known

type known struct {
	machine *machine
	state   string
}

func (s *states) set(m *machine, state string) {
	for i := range *s {
		if (*s)[i].machine == m {
			(*s)[i].state = state
			return
		}
	}
	*s = append(*s, known{m, state})
}

func (s states) of(m *machine) (state string, known bool) {
	for i := range s {
		if s[i].machine == m {
			return s[i].state, true
		}
	}
	return "", false
}

// sees tells whether the caller may use a tool (dotted name) in the states that
// his machines are in, after the transition of this call. A tool whose machine
// is keyed by arguments is there for everybody; of the machine that this call
// is about the state is known.
func (c *call) sees(ctx context.Context, p *Program, name string) bool {
	t := p.tools[name]
	if t == nil {
		return false
	}
	if t.gate == nil {
		return true
	}
	m := t.gate.machine
	state, known := c.states.of(m)
	if !known {
		if m.key.ByArgs() {
			return true
		}
		state = p.learn(ctx, c, m)
	}
	return t.gate.admits(state)
}

// learn reads the state of a machine that is keyed by the caller. What cannot
// be read hides the tools that depend on it.
func (p *Program) learn(ctx context.Context, c *call, m *machine) string {
	state, err := p.stateOf(ctx, m, func() *expr.Env { return c.env }, c.caller)
	if err != nil {
		p.log.Warn("a state could not be read: what depends on it is not offered", "fsm", m.graph.Name, "cause", p.scrub(c, err.Error()))
	}
	c.states.set(m, state)
	return state
}

// stateOf reads the state of a machine that is keyed by the caller; env has
// ctx and env. "" is that of a caller without a key.
func (p *Program) stateOf(ctx context.Context, m *machine, env func() *expr.Env, c *Caller) (string, error) {
	key, ok, err := m.keyOf(c, env)
	if err != nil || !ok {
		return "", err
	}
	r, err := p.stores[m.index].Load(ctx, gate.ID{FSM: m.graph.Name, Key: key})
	if err != nil {
		return "", err
	}
	state, _, _ := m.Now(r, c.clock())
	return state, nil
}

// prepare reads the states that the answer will need, before a transaction
// begins: a call that has one connection must not wait for another.
func (p *Program) prepare(ctx context.Context, c *call) {
	for _, m := range c.tool.needs {
		if _, known := c.states.of(m); !known && (c.tool.gate == nil || c.tool.gate.machine != m) {
			p.learn(ctx, c, m)
		}
	}
}

// showStates gives the texts of the answer the name state.
func (c *call) showStates(p *Program) {
	if len(p.machines) == 0 || c.tool.view == nil || len(c.tool.view.Machines()) == 0 {
		return
	}
	o := value.NewObject(len(c.states))
	for _, m := range p.machines {
		if s, known := c.states.of(m); known && s != "" {
			o.Set(m.graph.Name, s)
		}
	}
	c.env.Set("state", o)
}

// resolve asks the machine's own query what became of the call that left its
// key in doubt. It runs as the login: whoever calls next may not see what the
// other call has done. False: a person must settle it.
func (p *Program) resolve(ctx context.Context, w *passage) bool {
	m, h := w.machine, w.record.Hold
	if m.resolve == nil || h == nil {
		return false
	}
	args := value.Of("key", w.key.Plain(w.call.keyEnv(w.key), w.id.Key), "state", w.record.State, "event", h.Event, "tool", h.Tool, "call", h.Call)
	if w.record.Version == 0 {
		args.Set("state", m.graph.Initial)
	}
	env := expr.NewEnv()
	env.Set("args", args)
	env.Set("env", p.env)
	o := m.resolve.Run(ctx, &bind.Host{DB: p.database, API: p.api, Login: true}, env)
	row, _ := o.Result.(*value.Object)
	v, _ := row.Get("state")
	to, _ := v.(string)
	if o.Err != nil || m.graph.State(to) == nil {
		cause := "the query gave no state of the machine"
		if o.Err != nil {
			cause = p.scrub(w.call, o.Err.Error())
		}
		p.log.Warn("resolve has not settled a key in doubt", "fsm", w.id.FSM, "call", h.Call, "cause", cause)
		return false
	}
	err := p.settle(ctx, w.store, m, gate.Entry{ID: w.id, Record: w.record}, to, "resolve")
	if err != nil {
		p.log.Warn("a key in doubt could not be settled", "fsm", w.id.FSM, "call", h.Call, "cause", p.scrub(w.call, err.Error()))
		return errors.Is(err, gate.ErrConflict) // somebody else has
	}
	p.log.Info("resolve has settled a key in doubt", "fsm", w.id.FSM, "call", h.Call, "state", to)
	return true
}

// settle ends the hold of a key with a move.
func (p *Program) settle(ctx context.Context, s gate.Store, m *machine, e gate.Entry, to, by string) error {
	now := time.Now()
	from, _, waiting := m.Now(e.Record, now)
	move := gate.Move{From: from, To: to, Caller: by, At: now}
	if h := e.Hold; h != nil {
		move.Event, move.Tool, move.Call = h.Event, h.Tool, h.Call
	}
	err := s.Move(ctx, e.ID, e.Version, append(slices.Clip(waiting), move), m.Expires(to, now))
	if err == nil {
		p.moved(e.ID)
	}
	return err
}
