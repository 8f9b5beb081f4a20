package gate

import (
	"fmt"
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Step is what an event does in each state, compiled for a tool that sends it.
type Step struct {
	event string
	on    map[string][]target // of the states that know the event
}

type target struct {
	when *expr.Program // nil: it holds
	to   string
}

// CompileStep compiles an event for a tool that may be called in the states in
// and whose call has the names of scope: ctx, args and result. Conditions of
// other states may read arguments that the tool does not have. The event ""
// does nothing in every state.
func CompileStep(f *graph.FSM, event string, in []string, scope *expr.Scope) (*Step, graph.Faults) {
	var faults graph.Faults
	s := &Step{event: event, on: map[string][]target{}}
	if event == "" {
		return s, nil
	}
	for _, state := range f.States {
		if !slices.Contains(in, state.Name) {
			continue
		}
		for _, on := range state.On {
			if on.Name != event {
				continue
			}
			targets := make([]target, 0, len(on.Targets))
			for _, t := range on.Targets {
				c := target{to: t.To}
				if t.When != nil {
					p, f := expr.Compile(t.When, scope, expr.WantBool)
					faults = append(faults, f...)
					c.when = p
				}
				targets = append(targets, c)
			}
			s.on[state.Name] = targets
		}
	}
	if faults.Fatal() {
		return nil, faults
	}
	return s, faults
}

// CheckConditions gives what is wrong with the conditions of a machine in a
// scope in which every tool may stand.
func CheckConditions(f *graph.FSM, scope *expr.Scope) graph.Faults {
	var faults graph.Faults
	for _, state := range f.States {
		for _, on := range state.On {
			for _, t := range on.Targets {
				if t.When != nil {
					_, told := expr.Compile(t.When, scope, expr.WantBool)
					faults = append(faults, told...)
				}
			}
		}
	}
	return faults
}

// Knows tells whether the state does something on the event. A call in any
// other state moves nothing, and need not take the key.
func (s *Step) Knows(state string) bool { return len(s.on[state]) > 0 }

// Next gives the state that the event leads to: the first target that holds.
// It is the same state if there is none, or if the state does not know the
// event. The error is that of a condition, an *expr.Error.
func (s *Step) Next(state string, env *expr.Env) (string, error) {
	for _, t := range s.on[state] {
		if t.when == nil {
			return t.to, nil
		}
		holds, err := t.when.Bool(env)
		if err != nil {
			return "", fmt.Errorf("event %s in state %s: %w", s.event, state, err)
		}
		if holds {
			return t.to, nil
		}
	}
	return state, nil
}
