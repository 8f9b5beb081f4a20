package model

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// good is the record of two orders with which all is well: one that went its
// way, and one that a killed process has left in doubt.
func good() *record {
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	did := func(n int, request, order, tool string, v verdict) call {
		return call{Request: request, Order: order, Tool: tool, Start: at(n), End: at(n + 2), Verdict: v}
	}
	wrong := did(12, "5", "a", "approve", forbidden)
	wrong.State = "approved"
	return &record{
		Calls: []call{
			did(0, "1", "a", "submit", done),
			did(1, "2", "a", "edit", taken),
			did(3, "3", "a", "approve", done),
			did(6, "4", "a", "pay", done),
			wrong,
			did(15, "6", "a", "pay", done),
			did(0, "10", "b", "note", done),
			did(3, "11", "b", "submit", silent),
			did(6, "12", "b", "edit", taken),
			did(9, "13", "b", "edit", doubtful),
		},
		Effects: []effect{
			{Serial: 1, Order: "a", Request: "1", Event: "SUBMIT", Amount: 700, Tx: "51"},
			{Serial: 2, Order: "a", Request: "3", Event: "APPROVE", Rest: 1, Tx: "52"},
			{Serial: 3, Order: "a", Request: "4", Event: "PAY", Rest: 1, Tx: "53"},
			{Serial: 4, Order: "b", Request: "11", Event: "SUBMIT", Amount: 700, Tx: "54"},
			{Serial: 5, Order: "a", Request: "6", Event: "PAY", Tx: "55"},
		},
		Moves: []move{
			{Order: "a", Version: 4, From: "approved", To: "paid", Event: "PAY", Tool: "order.pay", Call: "k4"},
			{Order: "a", Version: 3, From: "approved", To: "approved", Event: "PAY", Tool: "order.pay", Call: "k3"},
			{Order: "a", Version: 2, From: "review", To: "approved", Event: "APPROVE", Tool: "order.approve", Call: "k2"},
			{Order: "a", Version: 1, From: "draft", To: "review", Event: "SUBMIT", Tool: "order.submit", Call: "k1"},
			{Order: "b", Version: 1, From: "draft", To: "draft", Event: "NOTE", Tool: "order.note", Call: "k5"},
		},
		States: []state{
			{Order: "a", State: "paid", Version: 4},
			{Order: "b", State: "draft", Version: 1, Held: "in doubt: order.submit"},
		},
		Doubt: []state{{Order: "b", State: "draft", Version: 1, Held: "in doubt: order.submit"}},
	}
}

// goodInOne is the record of one database.
func goodInOne() *record {
	r := good()
	r.OneDatabase = true
	r.Calls = slices.DeleteFunc(r.Calls, func(c call) bool { return c.Order == "b" })
	r.Effects = slices.DeleteFunc(r.Effects, func(e effect) bool { return e.Order == "b" })
	r.Moves = slices.DeleteFunc(r.Moves, func(m move) bool { return m.Order == "b" })
	r.States, r.Doubt = r.States[:1], nil
	for i := range r.Moves {
		r.Moves[i].Tx = []string{"55", "53", "52", "51"}[i]
	}
	r.Calls = append(r.Calls, call{Request: "7", Order: "a", Tool: "comment", Start: 3 * time.Second, End: 4 * time.Second, Verdict: done})
	r.Effects = slices.Insert(r.Effects, 1, effect{Serial: 1, Order: "a", Request: "7", Event: "COMMENT"})
	return r
}

// without removes what is like that, once.
func without[T any](list *[]T, is func(*T) bool) {
	i := slices.IndexFunc(*list, func(x T) bool { return is(&x) })
	*list = slices.Delete(*list, i, i+1)
}

func (r *record) call(request string) *call {
	return &r.Calls[slices.IndexFunc(r.Calls, func(c call) bool { return c.Request == request })]
}

// broken is a record with one thing wrong with it.
type broken struct {
	name   string
	one    bool // in one database
	breaks func(r *record)
	want   []string
}

var brokens = []broken{
	{name: "all is well", breaks: func(*record) {}},
	{name: "all is well in one database", one: true, breaks: func(*record) {}},
	{name: "an effect twice", one: true, breaks: func(r *record) {
		r.Effects = append(r.Effects, effect{Serial: 6, Order: "a", Request: "4", Event: "PAY"})
	}, want: []string{
		"a: 1 effects have no move: 5 effects, 4 moves",
		"a: effect 6 (PAY of 4) happened in state paid",
		"a: request 4 had 2 effects",
		"a: request 4 had ended when 6 began, and its effect came after that one's",
	}},
	{name: "an effect twice elsewhere", breaks: func(r *record) {
		r.Effects = append(r.Effects, effect{Serial: 6, Order: "b", Request: "11", Event: "SUBMIT", Amount: 700})
	}, want: []string{
		"b: 2 effects have no move, and one may at most",
		"b: effect 6 (SUBMIT of 11) happened in state review",
		"b: request 11 had 2 effects",
	}},
	{name: "two effects for one version", breaks: func(r *record) {
		r.Calls = append(r.Calls, call{Request: "14", Order: "b", Tool: "edit", Start: 1, End: 9 * time.Second, Verdict: silent})
		r.Effects = slices.Insert(r.Effects, 0, effect{Order: "b", Request: "14", Event: "EDIT"})
	}, want: []string{"b: 2 effects have no move, and one may at most"}},
	{name: "effects in another order", one: true, breaks: func(r *record) {
		r.Effects[0].Serial, r.Effects[2].Serial = 2, 0
	}, want: []string{
		"a: effect 0 (APPROVE of 3) happened in state draft",
		"a: effect 0 is APPROVE, and move 1 in its place is SUBMIT",
		"a: request 1 had ended when 3 began, and its effect came after that one's",
		"a: request 1 had ended when 7 began, and its effect came after that one's",
		"a: request 5 was told of state \"approved\", in which the machine was not while it ran",
	}},
	{name: "a move that is lost", one: true, breaks: func(r *record) {
		without(&r.Moves, func(m *move) bool { return m.Version == 3 })
	}, want: []string{
		"a: 1 effects have no move: 4 effects, 3 moves",
		"a: move 4 goes from approved to paid, and effect 3 leads to \"approved\"",
		"a: move 4 is of transaction 55, and its effect 3 of 53",
		"a: the history has version 4 where version 3 belongs",
	}},
	{name: "the last move is lost", one: true, breaks: func(r *record) {
		without(&r.Moves, func(m *move) bool { return m.Version == 4 })
	}, want: []string{
		"a: 1 effects have no move: 4 effects, 3 moves",
		"a: its record is paid, version 4, and the last move led to approved, version 3",
	}},
	{name: "a move without its effect", one: true, breaks: func(r *record) {
		without(&r.Effects, func(e *effect) bool { return e.Request == "6" })
	}, want: []string{
		"a: 1 moves have no effect: 3 effects, 4 moves",
		"a: request 6 was answered ok and had no effect",
	}},
	{name: "a move without its effect, of a call nobody answered", one: true, breaks: func(r *record) {
		without(&r.Effects, func(e *effect) bool { return e.Request == "6" })
		r.call("6").Verdict = silent
	}, want: []string{"a: 1 moves have no effect: 3 effects, 4 moves"}},
	{name: "an effect without its move, in one database", one: true, breaks: func(r *record) {
		without(&r.Moves, func(m *move) bool { return m.Version == 4 })
		r.call("6").Verdict = silent
		r.States[0] = state{Order: "a", State: "approved", Version: 3}
	}, want: []string{"a: 1 effects have no move: 4 effects, 3 moves"}},
	{name: "move and effect are in two transactions", one: true, breaks: func(r *record) {
		r.Moves[1].Tx = "77"
	}, want: []string{"a: move 3 is of transaction 77, and its effect 3 of 53"}},
	{name: "a move to another state", breaks: func(r *record) {
		r.Moves[1].To = "paid"
	}, want: []string{
		"a: move 3 goes from approved to paid, and effect 3 leads to \"approved\"",
		"a: move 4 leaves approved, and the machine was in paid",
	}},
	{name: "a move of another tool", breaks: func(r *record) {
		r.Moves[1].Tool = "order.close"
	}, want: []string{"a: move 3 is event PAY of tool order.close, which does not send it"}},
	{name: "a refused call had its effect", breaks: func(r *record) {
		r.call("6").Verdict = taken
		r.call("5").End = 20 * time.Second
	}, want: []string{"a: effect 5 is of request 6, which was answered CONFLICT"}},
	{name: "an effect of nobody", breaks: func(r *record) {
		r.Effects[4].Request = "99"
	}, want: []string{
		"a: effect 5 is of request 99, which nobody made",
		"a: request 6 was answered ok and had no effect",
	}},
	{name: "an effect of another tool", one: true, breaks: func(r *record) {
		r.call("1").Tool = "edit"
	}, want: []string{"a: effect 1 is SUBMIT, and its request 1 called edit"}},
	{name: "a doubt that is not listed", breaks: func(r *record) {
		r.Doubt = nil
	}, want: []string{"b: the key is held: true, and listed as held: false"}},
	{name: "a doubt that nothing holds", breaks: func(r *record) {
		r.Doubt, r.States[1].Held = nil, ""
	}, want: []string{
		"b: effect 4 has no move, and nothing holds the key",
		"b: request 13 was told of a doubt, and the key is not listed",
	}},
	{name: "a call that may have had its effect, and holds nothing", breaks: func(r *record) {
		without(&r.Effects, func(e *effect) bool { return e.Request == "11" })
		without(&r.Calls, func(c *call) bool { return c.Request == "13" })
		r.call("11").Verdict = unsure
		r.Doubt, r.States[1].Held = nil, ""
	}, want: []string{"b: request 11 was told that it may have taken effect, and the key is not listed"}},
	{name: "a doubt about a call that was answered", breaks: func(r *record) {
		r.call("11").Verdict = done
	}, want: []string{
		"b: effect 4 has no move, and its request 11 was answered ok",
		"b: request 12 was told that another call moves the order, and there was none",
		"b: request 13 was told of a doubt, and every call was answered",
		"b: the key is held, and every call on it was answered",
	}},
	{name: "a doubt in one database", one: true, breaks: func(r *record) {
		r.States[0].Held = "in doubt"
		r.Doubt = r.States
		r.call("2").Verdict = doubtful
		r.Calls = append(r.Calls, call{Request: "8", Order: "a", Tool: "pay", Start: 20 * time.Second, End: 21 * time.Second, Verdict: silent})
	}, want: []string{
		"a: request 2 was told of a doubt, and everything happens in one database",
		"a: the key is held, and everything happens in one database",
	}},
	{name: "a move of a key in doubt", breaks: func(r *record) {
		r.Calls = append(r.Calls, call{Request: "14", Order: "b", Tool: "note", Start: 20 * time.Second, End: 21 * time.Second, Verdict: done})
		r.Moves = append(r.Moves, move{Order: "b", Version: 2, From: "draft", To: "draft", Event: "NOTE", Tool: "order.note"})
		r.States[1].Version = 2
	}, want: []string{"b: request 14 moved a key in doubt"}},
	{name: "a note that is lost", breaks: func(r *record) {
		without(&r.Moves, func(m *move) bool { return m.Event == "NOTE" })
		r.States[1].Version = 0
	}, want: []string{"b: 0 moves without an effect, and 1 to 1 calls that made them"}},
	{name: "a note twice", breaks: func(r *record) {
		r.Moves = append(r.Moves, move{Order: "b", Version: 2, From: "draft", To: "draft", Event: "NOTE", Tool: "order.note"})
		r.States[1].Version = 2
	}, want: []string{"b: 2 moves without an effect, and 1 to 1 calls that made them"}},
	{name: "a record that went back", breaks: func(r *record) {
		r.States[0] = state{Order: "a", State: "approved", Version: 3}
	}, want: []string{"a: its record is approved, version 3, and the last move led to paid, version 4"}},
	{name: "a record that is gone", breaks: func(r *record) {
		r.States = r.States[1:]
	}, want: []string{"a: has 4 moves and no record"}},
	{name: "a refusal in a state that allows it", breaks: func(r *record) {
		r.call("5").Tool = "pay"
	}, want: []string{"a: request 5 was forbidden in state approved, which allows it"}},
	{name: "a refusal by a state that is over", breaks: func(r *record) {
		r.call("5").State = "draft"
	}, want: []string{"a: request 5 was told of state \"draft\", in which the machine was not while it ran"}},
	{name: "a refusal by a state that is not there yet", breaks: func(r *record) {
		r.call("5").State = "paid"
	}, want: []string{"a: request 5 was told of state \"paid\", in which the machine was not while it ran"}},
	{name: "a conflict with nobody", breaks: func(r *record) {
		r.call("5").Verdict = taken
	}, want: []string{"a: request 5 was told that another call moves the order, and there was none"}},
	{name: "a comment in a state that forbids it", one: true, breaks: func(r *record) {
		r.Effects[1].Serial = 2
		r.Effects[2].Serial = 1
		slices.SortStableFunc(r.Effects, func(a, b effect) int { return int(a.Serial - b.Serial) })
		r.call("7").Start = 0
	}, want: []string{"a: effect 2 (COMMENT of 7) happened in state approved"}},
}

// The checker is the proof: what it would not see is not proven.
func TestChecker(t *testing.T) {
	for _, test := range brokens {
		t.Run(test.name, func(t *testing.T) {
			r := good()
			if test.one {
				r = goodInOne()
			}
			test.breaks(r)
			var got []string
			for _, s := range r.check() {
				got = append(got, s.faults...)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// What is not in this list of words could be anything: then the checker allows
// more than it should.
func TestJudge(t *testing.T) {
	for text, want := range map[string][2]string{
		`<tool_error code="FORBIDDEN" severity="error"><message>Tool "x" is not available in the current FSM state ("draft").</message>`: {"FORBIDDEN", "draft"},
		`<tool_error code="FORBIDDEN" severity="error"><message>This may not be done here.</message>`:                                    {"unsure", ""},
		`<tool_error code="INTERNAL_ERROR"><message>Something went wrong.</message>`:                                                     {"unsure", ""},
		`<tool_error code="SERVER_BUSY"><message>At capacity. Nothing was changed.</message>`:                                            {"declined", ""},
		`<tool_error code="TIMEOUT"><message>A part of the call may have taken effect.</message>`:                                        {"unsure", ""},
	} {
		if v, state := judge(text); string(v) != want[0] || state != want[1] {
			t.Errorf("%s: %s %q, want %q", text, v, state, want)
		}
	}
}
