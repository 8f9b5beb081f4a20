package dsl

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// machineUse warns of what no caller will ever come to: states, events, tools
// and machines. It looks at machines that are right only, and when the state of
// every tool is known.
func (d *doc) machineUse() {
	tools := d.spec.get("tools")
	if tools == nil || len(tools.broken) > 0 {
		return
	}
	for i, it := range tools.fields {
		if it.has("state") && d.g.Tools[i].State == nil {
			return
		}
	}
	for i, it := range d.spec.list("fsms") {
		m := d.g.FSMs[i]
		if m.Broken {
			continue
		}
		reached := reachable(m)
		d.stateUse(m, it, reached)
		d.toolUse(m, reached)
	}
}

// reachable gives the states that events and time lead to from the first.
func reachable(m *graph.FSM) map[string]bool {
	reached := map[string]bool{m.Initial: true}
	next := []string{m.Initial}
	for len(next) > 0 {
		s := m.State(next[0])
		next = next[1:]
		for _, to := range leadsTo(s) {
			if !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	return reached
}

func leadsTo(s *graph.State) []string {
	var l []string
	for _, e := range s.On {
		for _, t := range e.Targets {
			l = append(l, t.To)
		}
	}
	for _, a := range s.After {
		l = append(l, a.To)
	}
	return l
}

// stateUse warns of states that nothing leads to or from, and of events that no
// tool sends.
func (d *doc) stateUse(m *graph.FSM, it *item, reached map[string]bool) {
	bound := d.gates(m)
	if len(bound) == 0 {
		d.faults.Warn(it.nameAt(), it.path(), "no tool is bound to this state machine: name it in the state of one")
	}
	for _, s := range m.States {
		told := len(bound) == 0
		here := slices.DeleteFunc(slices.Clone(bound), func(t *graph.Tool) bool { return !slices.Contains(t.State.In, s.Name) })
		switch {
		case !reached[s.Name]:
			told = true
			d.faults.Warn(s.At, s.Path, "no event and no time leads to this state from %q", m.Initial)
		case s.Final || len(s.After) > 0:
		case len(s.On) == 0:
			d.faults.Warn(s.At, s.Path, "is a dead end: give it on or after, or say final: true")
		case !told && len(here) == 0:
			told = true
			d.faults.Warn(s.At, s.Path, "is a dead end for callers: no tool of this machine may be used here, and no time leads on")
		}
		for _, e := range s.On {
			if !told && !slices.ContainsFunc(here, func(t *graph.Tool) bool { return t.State.Send == e.Name }) {
				d.faults.Warn(e.At, e.Path, "no tool that may be used in this state sends this event")
			}
		}
	}
}

// gates gives the tools that are bound to a machine.
func (d *doc) gates(m *graph.FSM) []*graph.Tool {
	return slices.DeleteFunc(slices.Clone(d.g.Tools), func(t *graph.Tool) bool { return t.State == nil || t.State.FSM != m })
}

// toolUse warns of tools that may be used in states only that nothing leads to.
func (d *doc) toolUse(m *graph.FSM, reached map[string]bool) {
	for _, t := range d.gates(m) {
		if !slices.ContainsFunc(t.State.In, func(s string) bool { return reached[s] }) {
			d.faults.Warn(t.State.At, t.Path+".state", "the tool can never be used: nothing leads to %s", quoted(t.State.In))
		}
	}
}
