package gate

import (
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Machine is what a state machine does by itself: where it begins, what time
// does to it. It is not changed once it is made.
type Machine struct {
	initial string
	ttl     time.Duration
	states  map[string]*timed
}

// timed is what time does to a state.
type timed struct {
	delay time.Duration // since the state was entered; 0: nothing happens
	to    string
	// round is how long time takes to lead back to the state; 0: it does not.
	round time.Duration
}

// New makes the machine of a spec.
func New(f *graph.FSM) *Machine {
	m := &Machine{initial: f.Initial, ttl: f.TTL, states: make(map[string]*timed, len(f.States))}
	for _, s := range f.States {
		t := &timed{}
		// Only the shortest can ever happen: it leaves the state.
		if len(s.After) > 0 && s.After[0].Delay > 0 {
			t.delay, t.to = s.After[0].Delay, s.After[0].To
		}
		m.states[s.Name] = t
	}
	for name, t := range m.states {
		t.round = m.round(name)
	}
	return m
}

// round gives how long time takes to lead from a state back to it, 0 if it
// never does.
func (m *Machine) round(name string) time.Duration {
	var sum time.Duration
	at := name
	for range m.states {
		t := m.states[at]
		if t == nil || t.delay == 0 {
			return 0
		}
		sum += t.delay
		if at = t.to; at == name {
			return sum
		}
	}
	return 0
}

// Now gives the state of a record at a time, when it was entered, and the
// moves that time made since the record was stored. They are to be stored
// before the next move.
//
// A record that was never moved is in the initial state, and was never
// entered: no time runs in it. The same holds of one that nobody moved for
// ttl, a final state too. ttl runs from the last stored move, so that it ends
// when the store forgets the record, whatever time did in between.
//
// While a call holds the record, time stands still: what the call has seen
// stays until its end is known.
//
// Where time leads in a circle, only the last rounds are in moves: a machine
// that nobody asked for a month has made millions of them.
//
// A stored state that the machine does not have (the spec has changed) is
// given as it is; no tool allows it.
func (m *Machine) Now(r Record, now time.Time) (state string, entered time.Time, moves []Move) {
	if r.Version == 0 {
		return m.initial, time.Time{}, nil
	}
	if r.Hold != nil && r.Hold.Since.Before(now) {
		now = r.Hold.Since
	}
	until, over := now, false
	if end := m.Expires(r.State, r.Entered); !end.IsZero() && !end.After(now) {
		until, over = end, true
	}
	state, entered = r.State, r.Entered
	move := func(to string, at time.Time) {
		moves = append(moves, Move{From: state, To: to, At: at})
		state, entered = to, at
	}
	for t := m.states[state]; t != nil && t.delay > 0; t = m.states[state] {
		left := until.Sub(entered)
		if t.round > 0 && left >= 2*t.round {
			entered = entered.Add((left/t.round - 1) * t.round)
			continue
		}
		if left < t.delay || over && left == t.delay { // at its end, ttl comes first
			break
		}
		move(t.to, entered.Add(t.delay))
	}
	if over {
		if state != m.initial {
			move(m.initial, until)
		}
		entered = time.Time{}
	}
	return state, entered, moves
}

// Due gives when the state changes next by time, after now; false: it does
// not.
func (m *Machine) Due(r Record, now time.Time) (time.Time, bool) {
	state, entered, _ := m.Now(r, now)
	if r.Hold != nil || entered.IsZero() {
		return time.Time{}, false
	}
	end := m.Expires(r.State, r.Entered)
	if t := m.states[state]; t != nil && t.delay > 0 {
		if at := entered.Add(t.delay); end.IsZero() || at.Before(end) {
			return at, true
		}
	}
	return end, !end.IsZero() && state != m.initial
}

// Expires gives when a record may be forgotten whose last stored move entered
// this state then; the zero time: never. It is the same for every state: a
// final one is kept for as long as any other.
func (m *Machine) Expires(_ string, entered time.Time) time.Time {
	if m.ttl == 0 || entered.IsZero() {
		return time.Time{}
	}
	return entered.Add(m.ttl)
}
