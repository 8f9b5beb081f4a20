package engine

import (
	"context"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

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
