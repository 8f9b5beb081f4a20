package graph

import (
	"testing"
	"time"
)

// TestMermaid draws a machine with everything that an arrow and a state can
// have, and with names that Mermaid would read as something else.
func TestMermaid(t *testing.T) {
	f := &FSM{Name: `the "cart"`, Initial: "empty", States: []*State{
		{Name: "empty", On: []*Event{{Name: "ADD", Targets: []*Target{{To: "filled"}}}}},
		{Name: "filled", On: []*Event{
			{Name: "REMOVE", Targets: []*Target{
				{When: &Text{S: "result.pieces == 0\n&& any(result.lines, {.n < 1 % 2; true})"}, To: "empty"}, {To: "filled"}}},
			{Name: "a: b;\n--> x", Targets: []*Target{{To: "end"}}},
		}},
		{Name: "end", After: []*After{{Delay: 15 * time.Minute, To: "filled"}}},
		{Name: "state1", On: []*Event{{Name: "GO", Targets: []*Target{{To: "wartet auf \"Zahlung\""}}}}},
		{Name: "wartet auf \"Zahlung\"", After: []*After{{Delay: 30 * 24 * time.Hour, To: "über"}}},
		{Name: "über", Final: true},
	}}
	other := &FSM{Name: "other"}
	tools := []*Tool{
		{Name: "cart.view"},
		{Name: "cart.add", State: &Gate{FSM: f, In: []string{"empty", "filled"}, Send: "ADD"}},
		{Name: "cart.remove", State: &Gate{FSM: f, In: []string{"filled"}, Send: "REMOVE"}},
		{Name: "cart.show-all", State: &Gate{FSM: f, In: []string{"filled"}}},
		{Name: "other.add", State: &Gate{FSM: other, In: []string{"empty"}}},
	}
	const want = `---
title: "the \"cart\""
---
stateDiagram-v2
    state "empty" as empty
    empty : cart.add
    state "filled" as filled
    filled : cart.add
    filled : cart.remove
    filled : cart.show-all
    state "end" as state2
    state "state1" as state1
    state "wartet auf #34;Zahlung#34;" as state3
    state "über" as state4
    [*] --> empty
    empty --> filled : ADD
    filled --> empty : REMOVE [result.pieces == 0 #38;#38; any(result.lines, #123;.n #60; 1 #37; 2#59; true#125;)]
    filled --> filled : REMOVE [else]
    filled --> state2 : a#58; b#59;#10;--#62; x
    state2 --> filled : after 15m
    state1 --> state3 : GO
    state3 --> state4 : after 30d
    state4 --> [*]
`
	if got := f.Mermaid(tools); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		500 * time.Millisecond:         "500ms",
		10 * time.Second:               "10s",
		10 * time.Minute:               "10m",
		90 * time.Second:               "1m30s",
		time.Hour:                      "1h",
		90 * time.Minute:               "1h30m",
		time.Hour + 10*time.Second:     "1h0m10s",
		24 * time.Hour:                 "1d",
		36 * time.Hour:                 "36h",
		30 * 24 * time.Hour:            "30d",
		time.Hour + time.Millisecond:   "1h0m0.001s",
		24*time.Hour + 20*time.Minute:  "24h20m",
		10*time.Hour + 100*time.Minute: "11h40m",
	} {
		if got := DurationText(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
