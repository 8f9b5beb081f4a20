package model

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// check gives all that is wrong with a record, by order; faulty are the
// stories with faults.
func (r *record) check() (faulty []*story) {
	for _, s := range r.stories() {
		s.checkMoves()
		s.checkEffects()
		s.checkPath()
		s.checkPairs()
		s.checkNotes()
		s.checkStates()
		s.checkDoubt()
		s.checkOrder()
		s.checkRefusals()
		if len(s.faults) > 0 {
			faulty = append(faulty, s)
		}
	}
	return faulty
}

func (s *story) fault(format string, args ...any) {
	s.faults = append(s.faults, s.name+": "+fmt.Sprintf(format, args...))
}

// checkMoves: the history has every version once, and is a chain that begins
// where the machine does.
func (s *story) checkMoves() {
	at := initial
	for i, m := range s.moves {
		if m.Version != int64(i+1) {
			s.fault("the history has version %d where version %d belongs", m.Version, i+1)
			return
		}
		if m.From != at {
			s.fault("move %d leaves %s, and the machine was in %s", m.Version, m.From, at)
		}
		if t := toolOf(m.Event); t == nil || t.dotted() != m.Tool || !t.moves {
			s.fault("move %d is event %s of tool %s, which does not send it", m.Version, m.Event, m.Tool)
		}
		at = m.To
	}
}

// checkEffects: every call has as many effects as its answer allows.
func (s *story) checkEffects() {
	count := map[string]int{}
	for _, e := range s.effects {
		count[e.Request]++
		switch c := s.request[e.Request]; {
		case c == nil:
			s.fault("effect %d is of request %s, which nobody made", e.Serial, e.Request)
		case e.tool() != c.tool():
			s.fault("effect %d is %s, and its request %s called %s", e.Serial, e.Event, e.Request, c.Tool)
		case !c.Verdict.may():
			s.fault("effect %d is of request %s, which was answered %s", e.Serial, e.Request, c.Verdict)
		}
	}
	for _, c := range s.calls {
		switch n := count[c.Request]; {
		case n > 1:
			s.fault("request %s had %d effects", c.Request, n)
		case n == 0 && c.Verdict == done && c.tool().acts:
			s.fault("request %s was answered ok and had no effect", c.Request)
		}
	}
}

// checkPath: the effects, in the order in which they happened, are a way
// through the machine.
func (s *story) checkPath() {
	at := initial
	for _, e := range s.effects {
		to, ok := next(at, e)
		if !ok {
			s.fault("effect %d (%s of %s) happened in state %s", e.Serial, e.Event, e.Request, at)
			return
		}
		at = to
	}
}

// pairs gives the effects that move and the moves that have an effect.
func (s *story) pairs() (effects []*effect, moves []*move) {
	for _, e := range s.effects {
		if e.moves() {
			effects = append(effects, e)
		}
	}
	for _, m := range s.moves {
		if needsEffect(m.Event) {
			moves = append(moves, m)
		}
	}
	return effects, moves
}

// checkPairs: effects and history match row by row. Where they are not in one
// database, the last effect may lack its move: then the key is in doubt.
func (s *story) checkPairs() {
	effects, moves := s.pairs()
	for i := range min(len(effects), len(moves)) {
		e, m := effects[i], moves[i]
		if e.Event != m.Event {
			s.fault("effect %d is %s, and move %d in its place is %s", e.Serial, e.Event, m.Version, m.Event)
			return
		}
		if to, _ := next(m.From, e); to != m.To {
			s.fault("move %d goes from %s to %s, and effect %d leads to %q", m.Version, m.From, m.To, e.Serial, to)
		}
		if m.Tx != "" && m.Tx != e.Tx {
			s.fault("move %d is of transaction %s, and its effect %d of %s", m.Version, m.Tx, e.Serial, e.Tx)
		}
	}
	switch missing := len(effects) - len(moves); {
	case missing < 0:
		s.fault("%d moves have no effect: %d effects, %d moves", -missing, len(effects), len(moves))
	case missing == 0:
	case s.oneDatabase:
		s.fault("%d effects have no move: %d effects, %d moves", missing, len(effects), len(moves))
	case missing > 1:
		s.fault("%d effects have no move, and one may at most", missing)
	default:
		last := effects[len(effects)-1]
		if c := s.request[last.Request]; c != nil && !c.Verdict.open() {
			s.fault("effect %d has no move, and its request %s was answered %s", last.Serial, last.Request, c.Verdict)
		}
		if s.state == nil || s.state.Held == "" {
			s.fault("effect %d has no move, and nothing holds the key", last.Serial)
		}
	}
}

// checkNotes: of the moves that have no effect there are as many as calls that
// may have made them.
func (s *story) checkNotes() {
	moves, sure, most := 0, 0, 0
	for _, m := range s.moves {
		if !needsEffect(m.Event) {
			moves++
		}
	}
	for _, c := range s.calls {
		switch {
		case c.tool().acts:
		case c.Verdict == done:
			sure, most = sure+1, most+1
		case c.Verdict.open():
			most++
		}
	}
	if moves < sure || moves > most {
		s.fault("%d moves without an effect, and %d to %d calls that made them", moves, sure, most)
	}
}

// checkStates: the record of the store is what its history leads to.
func (s *story) checkStates() {
	switch {
	case s.state == nil && len(s.moves) > 0:
		s.fault("has %d moves and no record", len(s.moves))
	case s.state == nil:
	case len(s.moves) == 0:
		if s.state.Version != 0 || s.state.State != initial {
			s.fault("its record is %s, version %d, and nobody has moved it", s.state.State, s.state.Version)
		}
	default:
		last := s.moves[len(s.moves)-1]
		if s.state.Version != last.Version || s.state.State != last.To {
			s.fault("its record is %s, version %d, and the last move led to %s, version %d", s.state.State, s.state.Version, last.To, last.Version)
		}
	}
}

// checkDoubt: what a call holds is listed, a call that may hold it there was,
// and nothing happened on it after that.
func (s *story) checkDoubt() {
	held := s.state != nil && s.state.Held != ""
	if held != (s.doubt != nil) {
		s.fault("the key is held: %t, and listed as held: %t", held, s.doubt != nil)
	}
	if !held {
		s.checkUnlisted()
		return
	}
	if s.oneDatabase {
		s.fault("the key is held, and everything happens in one database")
	}
	last := time.Duration(-1)
	for _, c := range s.calls {
		if t := c.tool(); c.Verdict.open() && t.moves && t.acts {
			last = max(last, c.End)
		}
	}
	if last < 0 {
		s.fault("the key is held, and every call on it was answered")
		return
	}
	for _, c := range s.calls {
		if c.Verdict == done && c.tool().moves && c.Start > last {
			s.fault("request %s moved a key in doubt", c.Request)
		}
	}
}

// checkUnlisted: of a key that is not listed nobody was told that something on
// it is unknown. Nobody settles anything in a run.
func (s *story) checkUnlisted() {
	for _, c := range s.calls {
		switch t := c.tool(); {
		case s.oneDatabase:
		case c.Verdict == doubtful:
			s.fault("request %s was told of a doubt, and the key is not listed", c.Request)
		case c.Verdict == unsure && t.moves && t.acts:
			s.fault("request %s was told that it may have taken effect, and the key is not listed", c.Request)
		}
	}
}

// checkOrder: of two calls, one after the other, the first has its effect
// first.
func (s *story) checkOrder() {
	for i, e := range s.effects {
		first := s.request[e.Request]
		for _, f := range s.effects[i+1:] {
			second := s.request[f.Request]
			if first != nil && second != nil && second.Verdict == done && second.End < first.Start {
				s.fault("request %s had ended when %s began, and its effect came after that one's", second.Request, first.Request)
			}
		}
	}
}

// stay is a state with the longest time for which it can have been there.
type stay struct {
	state    string
	from, to time.Duration
}

const forever = time.Duration(math.MaxInt64)

// stays gives the states that the machine went through. A move happened while
// its call ran, and they happened in order.
func (s *story) stays() []stay {
	effects, moves := s.pairs()
	n := min(len(effects), len(moves))
	all := []stay{{state: initial}}
	for _, e := range effects[:n] {
		last := all[len(all)-1]
		to, _ := next(last.state, e)
		from := last.from
		if c := s.request[e.Request]; c != nil {
			from = max(from, c.Start)
		}
		all = append(all, stay{state: to, from: from})
	}
	end := forever
	for i := n; i >= 0; i-- {
		all[i].to = end
		if i > 0 {
			if c := s.request[effects[i-1].Request]; c != nil && c.Verdict == done {
				end = min(end, c.End)
			}
		}
	}
	return all
}

// checkRefusals: what a refused call was told was true at some moment of it.
func (s *story) checkRefusals() {
	stays := s.stays()
	for _, c := range s.calls {
		switch c.Verdict {
		case forbidden:
			s.checkForbidden(c, stays)
		case taken:
			if !s.meets(c, func(o *call) bool { return o.End >= c.Start || o.Verdict.open() }) {
				s.fault("request %s was told that another call moves the order, and there was none", c.Request)
			}
		case doubtful:
			if s.oneDatabase {
				s.fault("request %s was told of a doubt, and everything happens in one database", c.Request)
			} else if !s.meets(c, func(o *call) bool { return o.Verdict.open() }) {
				s.fault("request %s was told of a doubt, and every call was answered", c.Request)
			}
		}
	}
}

// meets tells whether there is another call like that which began before c
// ended.
func (s *story) meets(c *call, like func(*call) bool) bool {
	for _, o := range s.calls {
		if o != c && o.Start <= c.End && like(o) {
			return true
		}
	}
	return false
}

func (s *story) checkForbidden(c *call, stays []stay) {
	if c.tool().at(c.State) {
		s.fault("request %s was forbidden in state %s, which allows it", c.Request, c.State)
	}
	for _, x := range stays {
		if x.state == c.State && x.from <= c.End && x.to >= c.Start {
			return
		}
	}
	s.fault("request %s was told of state %q, in which the machine was not while it ran", c.Request, c.State)
}

// report is what a reader gets of faulty stories: every fault of the first
// ones, and what there is to see.
func report(faulty []*story) string {
	const most = 3
	var b strings.Builder
	for i, s := range faulty {
		if i == most {
			fmt.Fprintf(&b, "and %d more orders with faults\n", len(faulty)-most)
			break
		}
		fmt.Fprintf(&b, "%s\n%s\n", strings.Join(s.faults, "\n"), s)
	}
	return b.String()
}
