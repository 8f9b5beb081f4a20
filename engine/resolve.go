package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// resolveParams are the names that a query sees which settles a key in doubt.
var resolveParams = func() *shape.Shape {
	s := &shape.Shape{Kind: shape.Struct}
	for _, name := range []string{"key", "state", "event", "tool", "call"} {
		s.Fields = append(s.Fields, &shape.Field{Name: name, Shape: &shape.Shape{Kind: shape.String, MaxRunes: -1}})
	}
	return s
}()

// resolveTool is the query that settles keys in doubt, in the form in which
// bindings are compiled and proven.
func resolveTool(f *graph.FSM) *graph.Tool {
	return &graph.Tool{Name: "fsms." + f.Name, At: f.At, Path: f.Path + ".resolve", Kind: "query", Params: resolveParams, Binding: *f.Resolve}
}

// resolve asks the machine's own query what became of the call that left its
// key in doubt. It runs as the login: whoever calls next may not see what the
// other call has done. False: a person must settle it.
func (p *Program) resolve(ctx context.Context, w *passage) bool {
	m, h := w.machine, w.record.Hold
	if m.resolve == nil || h == nil {
		return false
	}
	args := value.Of("key", w.key.Plain(w.call.env, w.id.Key), "state", w.record.State, "event", h.Event, "tool", h.Tool, "call", h.Call)
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
