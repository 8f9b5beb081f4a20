// Package model drives state machines with random calls from many callers over
// three processes that are killed at random, and compares what the server's
// own record says with one that it knows nothing of.
package model

import "slices"

// The machine of testdata/machine.cue, said once more: this is what the test
// believes.

const initial = "draft"

// tool is a tool of the machine.
type tool struct {
	name  string
	event string // of its effect and of its move
	in    []string
	moves bool // it moves the machine
	acts  bool // it has an effect
}

var tools = []tool{
	{"edit", "EDIT", []string{"draft"}, true, true},
	{"submit", "SUBMIT", []string{"draft"}, true, true},
	{"approve", "APPROVE", []string{"review"}, true, true},
	{"reject", "REJECT", []string{"review", "approved"}, true, true},
	{"pay", "PAY", []string{"approved"}, true, true},
	{"refund", "REFUND", []string{"paid"}, true, true},
	{"close", "CLOSE", []string{"paid"}, true, true},
	{"note", "NOTE", []string{"draft", "review"}, true, false},
	{"comment", "COMMENT", []string{"draft", "review"}, false, true},
}

// by finds a tool by one of its names; nil: there is none.
func by(is func(*tool) bool) *tool {
	if i := slices.IndexFunc(tools, func(t tool) bool { return is(&t) }); i >= 0 {
		return &tools[i]
	}
	return nil
}

func toolNamed(name string) *tool   { return by(func(t *tool) bool { return t.name == name }) }
func toolOf(event string) *tool     { return by(func(t *tool) bool { return t.event == event }) }
func (t *tool) at(in string) bool   { return slices.Contains(t.in, in) }
func (t *tool) exposed() string     { return "order_" + t.name }
func (t *tool) dotted() string      { return "order." + t.name }
func (e *effect) tool() *tool       { return toolOf(e.Event) }
func (c *call) tool() *tool         { return toolNamed(c.Tool) }
func (e *effect) moves() bool       { t := e.tool(); return t != nil && t.moves }
func needsEffect(event string) bool { t := toolOf(event); return t == nil || t.acts }

// next is where an effect leads from a state; false: it may not happen there.
func next(state string, e *effect) (string, bool) {
	t := e.tool()
	if t == nil || !t.at(state) {
		return "", false
	}
	switch t.event {
	case "SUBMIT":
		if e.Amount >= 500 {
			return "review", true
		}
		return "approved", true
	case "APPROVE":
		return "approved", true
	case "REJECT", "REFUND":
		return "draft", true
	case "PAY":
		if e.Rest == 0 {
			return "paid", true
		}
		return "approved", true
	case "CLOSE":
		return "closed", true
	}
	return state, true // EDIT, NOTE and COMMENT
}
