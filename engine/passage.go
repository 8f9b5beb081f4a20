package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// passage is a call's way through the gate of its tool. A nil passage is that
// of a tool that may be used in every state.
type passage struct {
	*toolGate
	program *Program
	call    *call
	store   gate.Store
	how     how
	id      gate.ID

	seen    bool // record, state and waiting are known
	record  gate.Record
	state   string
	waiting []gate.Move // that time made, and nobody has stored
	// asked: the record was read before the transaction that claims it.
	asked bool
	// patient: whether the call was answered before is found out first.
	patient bool
	hold    string // id of our hold; "": none
	tx      *db.Tx // that claims the key
	// refused is why the key was not to be had.
	refused error
	// ruled: a rule of the spec says that the call has failed.
	ruled bool

	moves []gate.Move // that a success stores; nil: none
	to    string
	at    time.Time
}

// how says in what order the key, the effect and the move come.
type how uint8

const (
	// looks: the tool sends nothing, or changes nothing before its move.
	looks how = iota
	// claims: all that the tool does is in the transaction of the store.
	claims
	// holds: the key is taken, the effect happens, the move is stored.
	holds
)

// holdTime bounds a call that holds a key and whose tool has no timeout. Undos
// may follow it.
const holdTime = time.Minute

// afterCall is how long a hold lasts beyond the call's own time. A COMMIT, a
// ROLLBACK, undos and the end of the hold may take 200 s together.
const afterCall = 4 * time.Minute

// passage begins the passage of a call; nil for a tool without a gate.
func (p *Program) passage(c *call) *passage {
	g := c.tool.gate
	if g == nil {
		return nil
	}
	w := &passage{toolGate: g, program: p, call: c, store: p.stores[g.machine.index], how: looks, at: c.caller.clock()}
	home := g.effects.Home()
	shared, inDatabase := w.store.(gate.Sharing)
	switch {
	case home != "" && inDatabase && p.dbs[home] == shared.Database():
		w.how = claims
	case g.step != nil && !g.effects.None():
		w.how = holds
	}
	return w
}

// clock is the time of a call.
func (c *Caller) clock() time.Time {
	if c.Now.IsZero() {
		return time.Now()
	}
	return c.Now
}

// arrive looks at the state, as far as it is looked at before the call begins.
// On PostgreSQL the claim, which goes with the first statement, finds out what
// there is; a call with an idempotency key may have been answered before.
func (w *passage) arrive(ctx context.Context) *presenters.Response {
	if failed := w.identify(); failed != nil {
		return failed
	}
	if w.call.tool.once != nil || w.how == claims && w.store.(gate.Sharing).Database().Dialect() == db.Postgres {
		return nil
	}
	w.asked = true
	return w.look(ctx)
}

// identify finds whose state it is.
func (w *passage) identify() *presenters.Response {
	key, ok, err := w.key.Of(w.call.keyEnv(w.key))
	switch {
	case err != nil:
		return w.program.unexpected(w.call, fmt.Errorf("the key of machine %s: %w", w.machine.graph.Name, err))
	case !ok:
		return w.nobody().Response()
	}
	w.id = gate.ID{FSM: w.machine.graph.Name, Key: key}
	return nil
}

// instead gives what a call is told that is refused for another reason: the
// state comes first, as a tool that is not there has nothing to say.
func (w *passage) instead(ctx context.Context, other *presenters.Response) *presenters.Response {
	if w == nil || w.seen || w.id.FSM == "" {
		return other
	}
	if failed := w.look(ctx); failed != nil {
		return failed
	}
	return other
}

// look reads the record and decides.
func (w *passage) look(ctx context.Context) *presenters.Response {
	for try := 0; ; try++ {
		r, err := w.store.Load(ctx, w.id)
		if err != nil {
			return w.unavailable(ctx, err)
		}
		err = w.admit(r)
		if err == nil {
			return nil
		}
		if try == 0 && errors.Is(err, errDoubt) && w.program.resolve(ctx, w) {
			continue
		}
		return w.answer(ctx, err)
	}
}

// The reasons for which a key is not to be had.
var (
	errClosed = errors.New("the tool is not available in this state")
	errTaken  = errors.New("another call has the key")
	errDoubt  = errors.New("the key is in doubt")
)

// admit takes a record in and tells whether the call may go on with it.
func (w *passage) admit(r gate.Record) error {
	w.seen, w.record = true, r
	w.state, _, w.waiting = w.machine.Now(r, w.at)
	w.call.states.set(w.machine, w.state)
	switch {
	case r.Hold.Uncertain(w.at):
		return errDoubt
	case !w.admits(w.state):
		return errClosed
	case r.Hold != nil && (w.step != nil || !w.effects.None()):
		return errTaken // the state may be left just now
	}
	return nil
}

// begin is called in the transaction of the tool, before anything else.
func (w *passage) begin(ctx context.Context, t *db.Tx) error {
	if w == nil || w.how != claims {
		return nil
	}
	w.tx, w.refused = t, nil
	return w.store.(gate.Sharing).Claim(ctx, t, w.id, w.step != nil, func(r gate.Record, free bool) error {
		w.refused = w.claimed(r, free)
		if w.patient {
			return nil
		}
		return w.refused
	})
}

// claimed decides over what the claim has found.
func (w *passage) claimed(r gate.Record, free bool) error {
	before := w.record.Version
	switch err := w.admit(r); {
	case !free:
		return errTaken
	case w.asked && r.Version != before:
		return errTaken // it was free to go when it came
	default:
		return err
	}
}

// take takes the key of a call that does not claim it, before a transaction
// begins: it would wait there for a connection that the call has. A call that
// may have been answered before goes on without the key until granted is asked.
func (w *passage) take(ctx context.Context) error {
	if w == nil || w.how == claims {
		return nil
	}
	err := w.grasp(ctx)
	if err != nil && !isBarred(err) {
		err = &answered{w.unavailable(ctx, err)}
	}
	if w.patient {
		w.refused, err = err, nil
	}
	return err
}

// granted is asked when nothing is known that answers the call already, and its
// effects are next.
func (w *passage) granted() error {
	if w == nil {
		return nil
	}
	return w.refused
}

// grasp looks, and holds the key if the call moves it.
func (w *passage) grasp(ctx context.Context) error {
	if !w.seen {
		if failed := w.look(ctx); failed != nil {
			return &answered{failed}
		}
	}
	if w.how != holds || w.hold != "" || !w.step.Knows(w.state) {
		return nil
	}
	h := gate.Hold{
		Call: rand.Text(), Tool: w.call.tool.graph.Name, Event: w.event, Caller: w.call.caller.shown(),
		Since: w.at, Until: w.at.Add(w.time() + afterCall),
	}
	switch err := w.store.Hold(ctx, w.id, w.record.Version, h); {
	case errors.Is(err, gate.ErrConflict):
		return errTaken
	case err != nil:
		w.letGo(ctx, h.Call)
		return err
	}
	w.hold = h.Call
	return nil
}

// letGo gives back a key of which nobody knows whether it was taken: the caller
// went away, or the store did not answer. Nothing has happened yet.
func (w *passage) letGo(ctx context.Context, call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := w.store.Release(ctx, w.id, call, false)
	if err != nil && !errors.Is(err, gate.ErrConflict) {
		w.program.log.Error("a key of a state machine may be in doubt: see fusion-serve state", "fsm", w.id.FSM,
			"tool", w.call.tool.graph.Name, "call", call, "cause", w.program.scrub(w.call, err.Error()))
	}
}

// time is how long the call may take while it holds the key.
func (w *passage) time() time.Duration {
	if d := w.call.tool.graph.Timeout; d > 0 {
		return d
	}
	return holdTime
}

// answered is an error whose answer is made already.
type answered struct{ response *presenters.Response }

func (a *answered) Error() string { return "the call is answered: " + a.response.Code }

// ready makes sure that the record is known: if no statement of the transaction
// has run, the claim waits for one.
func (w *passage) ready(ctx context.Context) error {
	if w == nil || w.how != claims || w.seen {
		return nil
	}
	return w.tx.Flush(ctx)
}

// advance finds where the call's event leads, before the answer is made: it is
// made for the state after the transition.
func (w *passage) advance(result any) error {
	if w == nil {
		return nil
	}
	w.moves, w.to = nil, w.state
	if w.step == nil || !w.step.Knows(w.state) {
		return nil
	}
	env := w.call.env.Fork()
	env.Set("result", result)
	to, err := w.step.Next(w.state, env)
	if err != nil {
		return err
	}
	w.to = to
	id := w.hold
	if id == "" {
		id = rand.Text()
	}
	w.moves = append(w.waiting[:len(w.waiting):len(w.waiting)], gate.Move{
		From: w.state, To: to, Event: w.event, Tool: w.call.tool.graph.Name, Call: id, Caller: w.call.caller.shown(), At: w.at,
	})
	w.call.states.set(w.machine, to)
	return nil
}

// expires is when the record may go that the moves make.
func (w *passage) expires() time.Time { return w.machine.Expires(w.to, w.at) }

// commit stores the moves with the transaction that has claimed the key.
func (w *passage) commit(ctx context.Context) error {
	if w == nil || w.how != claims || w.moves == nil {
		return nil
	}
	return w.store.(gate.Sharing).MoveIn(ctx, w.tx, w.id, w.record.Version, w.moves, w.expires())
}

// endTime bounds what is stored after the effect. A caller who goes away does
// not break it off.
const endTime = 15 * time.Second

// end is called when the binding is done: the effect is there, or it is not.
// It gives the answer in place of resp.
func (w *passage) end(ctx context.Context, o *bind.Outcome, resp *presenters.Response) *presenters.Response {
	if w == nil {
		return resp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	succeeded := w.moves != nil && o.Err == nil && (resp.IsError == nil || !*resp.IsError)
	switch {
	case succeeded && w.how != claims:
		if failed := w.move(ctx); failed != nil {
			return failed
		}
	case !succeeded:
		// A request that was answered and whose answer cannot be used has done its
		// work, unless a rule says that it was declined.
		used := o.Err == nil && !w.ruled
		w.release(ctx, o.Unsure || len(o.Stuck) > 0 || used)
		return resp
	}
	w.program.moved(w.id)
	return resp
}

// move stores the moves of a call that is not in the store's transaction.
func (w *passage) move(ctx context.Context) *presenters.Response {
	err := w.store.Move(ctx, w.id, w.record.Version, w.moves, w.expires())
	switch {
	case err == nil:
		w.hold = ""
		return nil
	case w.hold == "" && errors.Is(err, gate.ErrConflict): // a query: nothing has happened
		return w.answer(ctx, errTaken)
	case w.hold == "":
		return w.unavailable(ctx, err)
	}
	p, c := w.program, w.call
	id := p.incident()
	p.log.Error("the call took effect, and its move could not be stored", "incident", id, "fsm", w.id.FSM,
		"tool", c.tool.graph.Name, "call", w.hold, "cause", p.scrub(c, err.Error()))
	w.release(ctx, true)
	f := &presenters.Failure{
		Code:       "INTERNAL_ERROR",
		Message:    fmt.Sprintf("[%s] The call took effect, but the state of the workflow could not be stored. Incident %s.", c.tool.action, id),
		Suggestion: "Do not repeat this call. Tell the user that an operator must look, and give the incident id.",
		Severity:   "critical",
	}
	resp := f.Response()
	resp.Incident = id
	return resp
}

// fail notes that a rule of the spec has declared the call failed.
func (w *passage) fail() {
	if w != nil {
		w.ruled = true
	}
}

// release gives the key back, or leaves it in doubt.
func (w *passage) release(ctx context.Context, doubt bool) {
	if w.hold == "" {
		return
	}
	err := w.store.Release(ctx, w.id, w.hold, doubt)
	if err != nil || doubt {
		attrs := []any{"fsm", w.id.FSM, "tool", w.call.tool.graph.Name, "call", w.hold}
		if err != nil {
			attrs = append(attrs, "cause", w.program.scrub(w.call, err.Error()))
		}
		w.program.log.Error("a key of a state machine is in doubt: see fusion-serve state", attrs...)
	}
	w.hold = ""
}

// abandon is called when the call panics.
func (w *passage) abandon(ctx context.Context) {
	if w == nil || w.hold == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	w.release(ctx, true)
}

// shown is who calls, for people who read a history. A session's id opens the
// session: it is cut.
func (c *Caller) shown() string {
	if sub, ok := c.Claims.Get("sub"); ok && sub != nil {
		return string(value.AppendText(nil, sub))
	}
	if len(c.Session) > 8 {
		return "session " + c.Session[:8] + "…"
	}
	return "session " + c.Session
}
