package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdict is what a call was told.
type verdict string

const (
	done      verdict = "ok"
	forbidden verdict = "FORBIDDEN" // by the state
	taken     verdict = "CONFLICT"  // another call was faster
	doubtful  verdict = "IN DOUBT"  // a CONFLICT: nobody knows what an earlier call did
	declined  verdict = "declined"  // any other error that says that nothing was changed
	unsure    verdict = "unsure"    // any other error
	silent    verdict = "silent"    // no answer
)

// may tells whether a call with this verdict may have had its effect.
func (v verdict) may() bool { return v == done || v == unsure || v == silent }

// open tells whether nobody has told how the call ended.
func (v verdict) open() bool { return v == unsure || v == silent }

// call is one call as its caller saw it.
type call struct {
	Request, Order, Tool string
	Start, End           time.Duration // since the run began
	Verdict              verdict
	State                string // that a FORBIDDEN names
	Text                 string // of an error
	Process              int
}

// effect is one effect as the world saw it.
type effect struct {
	Serial                int64 // in the order in which they happened
	Order, Request, Event string
	Amount, Rest          int
	Tx                    string // transaction of an effect in a database
}

// move is one row of the store's history.
type move struct {
	Order                       string
	Version                     int64
	From, To, Event, Tool, Call string
	Tx                          string // that wrote the row; "": not asked
}

// state is one record of the store.
type state struct {
	Order, State string
	Version      int64
	Held         string // what is said of the call that holds it; "": none
}

// record is all that is known of a run.
type record struct {
	// OneDatabase: store and effects share a database.
	OneDatabase bool
	Calls       []call
	Effects     []effect
	Moves       []move
	States      []state
	Doubt       []state // those that are listed as held
}

// story is all that is known of one order.
type story struct {
	oneDatabase bool
	name        string
	calls       []*call          // by start
	request     map[string]*call // by id
	effects     []*effect        // by serial
	moves       []*move          // by version
	state       *state           // nil: the store has none
	doubt       *state           // nil: it is not listed as held
	faults      []string
}

// stories sorts a record by order.
func (r *record) stories() []*story {
	byName := map[string]*story{}
	of := func(name string) *story {
		s := byName[name]
		if s == nil {
			s = &story{oneDatabase: r.OneDatabase, name: name, request: map[string]*call{}}
			byName[name] = s
		}
		return s
	}
	for i := range r.Calls {
		s := of(r.Calls[i].Order)
		s.calls = append(s.calls, &r.Calls[i])
		s.request[r.Calls[i].Request] = &r.Calls[i]
	}
	for i := range r.Effects {
		s := of(r.Effects[i].Order)
		s.effects = append(s.effects, &r.Effects[i])
	}
	for i := range r.Moves {
		s := of(r.Moves[i].Order)
		s.moves = append(s.moves, &r.Moves[i])
	}
	for i := range r.States {
		s := of(r.States[i].Order)
		s.state = &r.States[i]
	}
	for i := range r.Doubt {
		s := of(r.Doubt[i].Order)
		s.doubt = &r.Doubt[i]
	}
	var all []*story
	for _, s := range byName {
		slices.SortStableFunc(s.calls, func(a, b *call) int { return int(a.Start - b.Start) })
		slices.SortStableFunc(s.effects, func(a, b *effect) int { return int(a.Serial - b.Serial) })
		slices.SortStableFunc(s.moves, func(a, b *move) int { return int(a.Version - b.Version) })
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *story) int { return strings.Compare(a.name, b.name) })
	return all
}

// String tells the story, for the reader of a fault.
func (s *story) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "order %s\n", s.name)
	for _, c := range s.calls {
		fmt.Fprintf(&b, "  call   %-9s %-8s %10.4f to %8.4f s at process %d: %s %s\n", c.Request, c.Tool, c.Start.Seconds(), c.End.Seconds(), c.Process, c.Verdict, c.State)
		if c.Verdict.open() {
			fmt.Fprintf(&b, "           %s\n", strings.ReplaceAll(c.Text, "\n", " "))
		}
	}
	for _, e := range s.effects {
		fmt.Fprintf(&b, "  effect %d %-8s of %s (amount %d, rest %d) %s\n", e.Serial, e.Event, e.Request, e.Amount, e.Rest, e.Tx)
	}
	for _, m := range s.moves {
		fmt.Fprintf(&b, "  move   %d %-8s %s to %s by %s, call %s %s\n", m.Version, m.Event, m.From, m.To, m.Tool, m.Call, m.Tx)
	}
	if s.state != nil {
		fmt.Fprintf(&b, "  state  %s, version %d, held by: %s\n", s.state.State, s.state.Version, s.state.Held)
	}
	if s.doubt != nil {
		fmt.Fprintf(&b, "  listed as held: %s\n", s.doubt.Held)
	}
	return b.String()
}
