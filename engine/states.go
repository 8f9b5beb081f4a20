package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// States are the states of one machine, for an operator.
type States struct {
	FSM     *graph.FSM
	Entries []gate.Entry
	// Remote is false for states in the memory of a server, which nobody else
	// sees: Entries are empty then.
	Remote bool
}

// machineNamed gives a machine of the spec; "" is the only one.
func (p *Program) machineNamed(name string) (*machine, error) {
	var names []string
	for _, m := range p.machines {
		if m.graph.Name == name || name == "" && len(p.machines) == 1 {
			return m, nil
		}
		names = append(names, m.graph.Name)
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("the spec has no state machines (fsms)")
	case name == "":
		return nil, fmt.Errorf("the spec has several machines: choose one of %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no machine %q: there are %s", name, strings.Join(names, ", "))
}

// States gives the stored states of a machine ("": the only one), or that of
// one key ("": of all), held ones first; at most limit.
func (p *Program) States(ctx context.Context, fsm, key string, limit int) (*States, error) {
	m, err := p.machineNamed(fsm)
	if err != nil {
		return nil, err
	}
	s := m.graph.Store
	out := &States{FSM: m.graph, Remote: s.Kind != graph.StoreMemory && !p.fleeting[s.Database]}
	store := p.stores[m.index]
	switch {
	case !out.Remote:
	case key == "":
		out.Entries, err = store.List(ctx, m.graph.Name, limit)
	default:
		e := gate.Entry{ID: gate.ID{FSM: m.graph.Name, Key: key}}
		if e.Record, err = store.Load(ctx, e.ID); e.Version > 0 || e.Hold != nil {
			out.Entries = []gate.Entry{e}
		}
	}
	return out, err
}

// Machines gives the names of the machines of the spec, in order.
func (p *Program) Machines() []string {
	var names []string
	for _, m := range p.machines {
		names = append(names, m.graph.Name)
	}
	return names
}

// Strays gives the stored states of machines that the spec does not have, or
// keeps elsewhere now; at most limit of each. Nothing moves them.
func (p *Program) Strays(ctx context.Context, limit int) ([]gate.Entry, error) {
	var out []gate.Entry
	for _, s := range p.opened {
		names, err := s.Machines(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			ours := slices.ContainsFunc(p.machines, func(m *machine) bool { return m.graph.Name == name && p.stores[m.index] == s })
			if ours {
				continue
			}
			l, err := s.List(ctx, name, limit)
			if err != nil {
				return nil, err
			}
			out = append(out, l...)
		}
	}
	return out, nil
}

// StateNow gives the state that an entry of the machine is in at a time, with
// what time has done to it.
func (p *Program) StateNow(e gate.Entry, now time.Time) string {
	m, err := p.machineNamed(e.FSM)
	if err != nil {
		return e.State
	}
	state, _, _ := m.Now(e.Record, now)
	return state
}

// History gives the last moves of a machine, or of one of its keys ("": of
// all), newest first; at most limit.
func (p *Program) History(ctx context.Context, fsm, key string, limit int) ([]gate.Past, error) {
	m, err := p.machineNamed(fsm)
	if err != nil {
		return nil, err
	}
	return p.stores[m.index].History(ctx, gate.ID{FSM: m.graph.Name, Key: key}, limit)
}

// Settle gives a key a state by the decision of a person, by, whatever call
// holds it. An operator must know that the call is over: one that still runs
// may take effect after it.
func (p *Program) Settle(ctx context.Context, fsm, key, state, by string) (from string, err error) {
	m, err := p.machineNamed(fsm)
	if err != nil {
		return "", err
	}
	if m.graph.State(state) == nil {
		var names []string
		for _, s := range m.graph.States {
			names = append(names, s.Name)
		}
		return "", fmt.Errorf("machine %s has no state %q: it has %s", m.graph.Name, state, strings.Join(names, ", "))
	}
	store, id := p.stores[m.index], gate.ID{FSM: m.graph.Name, Key: key}
	r, err := store.Load(ctx, id)
	if err != nil {
		return "", err
	}
	if r.Version == 0 && r.Hold == nil {
		return "", fmt.Errorf("nobody has moved a key %q of machine %s: look at its keys first", key, m.graph.Name)
	}
	from, _, _ = m.Now(r, time.Now())
	return from, p.settle(ctx, store, m, gate.Entry{ID: id, Record: r}, state, by)
}

// PutState gives a caller's machine a state: where a test begins. tool and args
// are those of the case, for a machine keyed by arguments.
func (p *Program) PutState(ctx context.Context, c *Caller, tool string, args *value.Object, fsm, state string) error {
	m, id, r, err := p.stateFor(ctx, c, tool, args, fsm)
	if err != nil {
		return err
	}
	at := c.clock()
	from, _, waiting := m.Now(r, at)
	move := gate.Move{From: from, To: state, Caller: "test", At: at}
	return p.stores[m.index].Move(ctx, id, r.Version, append(slices.Clip(waiting), move), m.Expires(state, at))
}

// StateOf gives the state of a caller's machine, as PutState finds it; held
// says that a call holds it: one that runs, or one that ended in doubt.
func (p *Program) StateOf(ctx context.Context, c *Caller, tool string, args *value.Object, fsm string) (state string, held bool, err error) {
	m, _, r, err := p.stateFor(ctx, c, tool, args, fsm)
	if err != nil {
		return "", false, err
	}
	state, _, _ = m.Now(r, c.clock())
	return state, r.Hold != nil, nil
}

func (p *Program) stateFor(ctx context.Context, c *Caller, tool string, args *value.Object, fsm string) (*machine, gate.ID, gate.Record, error) {
	id := gate.ID{FSM: fsm}
	m, err := p.machineNamed(fsm)
	if err != nil {
		return nil, id, gate.Record{}, err
	}
	env, key := p.callerEnv(c), m.key
	if m.key.ByArgs() {
		t := p.tools[tool]
		if t == nil || t.gate == nil || t.gate.machine != m {
			return nil, id, gate.Record{}, fmt.Errorf("the key of machine %s depends on arguments (%s): only a case that calls one of its tools has a state of it", fsm, m.graph.Key.S)
		}
		given := args.Clone()
		if given == nil {
			given = &value.Object{}
		}
		checked, faults := t.graph.Params.Check(given)
		if len(faults) > 0 {
			return nil, id, gate.Record{}, fmt.Errorf("the key of machine %s depends on arguments, and those of the case are not valid", fsm)
		}
		env.Set("args", checked)
		key = t.gate.key
	}
	var ok bool
	if id.Key, ok, err = key.Of(keyEnv(key, c, env)); err != nil || !ok {
		return nil, id, gate.Record{}, errors.Join(fmt.Errorf("the caller of the case has no key of machine %s", fsm), err)
	}
	r, err := p.stores[m.index].Load(ctx, id)
	return m, id, r, err
}
