package dsl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// workflows are the machines of the language's design: a review, one for each
// session, and a cart, one for each customer.
const workflows = `package workflows

server: {
	name:    "workflows"
	version: "1.0.0"
	local: claims: sub: "me"
}

databases: main: url: "sqlite::memory:"

fsms: review: {
	initial: "draft"
	states: {
		draft: on: APPROVE:      "approved"
		approved: on: DISCHARGE: "draft"
	}
	key: "{{ ctx.session }}"
	store: database: "main"
}

fsms: cart: {
	initial: "empty"
	states: {
		empty: on: ADD: "filled"
		filled: on: {
			ADD: "filled"
			REMOVE: [{when: "result.pieces == 0", to: "empty"}, {to: "filled"}]
			CLEAR:    "empty"
			CHECKOUT: "payment"
		}
		payment: {
			on: {PAY: "empty", CANCEL: "filled"}
			after: "15m": "filled"
		}
	}
	key: "{{ ctx.claims.sub }}"
	store: database: "main"
	ttl: "30d"
}

tools: [string]: {
	kind:        "action"
	description: string | *"d"
	sql: query: string | *"SELECT 1 AS pieces"
}

tools: {
	"billing.approve": state: {fsm: "review", in: ["draft"], send: "APPROVE"}
	"billing.discharge": state: {fsm: "review", in: ["approved"], send: "DISCHARGE"}
	"cart.view": {}
	"cart.add": state: {fsm: "cart", in: ["empty", "filled"], send: "ADD"}
	"cart.remove": state: {fsm: "cart", in: ["filled"], send: "REMOVE"}
	"cart.clear": state: {fsm: "cart", in: ["filled"], send: "CLEAR"}
	"cart.checkout": state: {fsm: "cart", in: ["filled"], send: "CHECKOUT"}
	"cart.cancel": state: {fsm: "cart", in: ["payment"], send: "CANCEL"}
	"cart.pay": state: {fsm: "cart", in: ["payment"], send: "PAY"}
}

tests: "a paid cart is empty": {
	call: "cart.pay"
	state: {cart: "payment", review: "approved"}
	after: state: cart: "empty"
}
`

// TestMachines loads the machines of the design without a fault or warning, and
// tells each move and gate of them.
func TestMachines(t *testing.T) {
	var b strings.Builder
	g := loadText(t, workflows)
	for _, m := range g.FSMs {
		fmt.Fprintf(&b, "%s from %s by %s in %s %s for %s\n", m.Name, m.Initial, m.Key.S, m.Store.Kind, m.Store.Database, m.TTL)
		for _, s := range m.States {
			for _, e := range s.On {
				for _, x := range e.Targets {
					when := ""
					if x.When != nil {
						when = x.When.S
					}
					fmt.Fprintf(&b, "  %s %s %s %s\n", s.Name, e.Name, x.To, when)
				}
			}
			for _, a := range s.After {
				fmt.Fprintf(&b, "  %s after %s %s\n", s.Name, a.Delay, a.To)
			}
		}
		for _, x := range g.Tools {
			if x.State != nil && x.State.FSM == m {
				fmt.Fprintf(&b, "  %s in %v sends %s\n", x.Name, x.State.In, x.State.Send)
			}
		}
	}
	want := `review from draft by {{ ctx.session }} in database main for 0s
  draft APPROVE approved 
  approved DISCHARGE draft 
  billing.approve in [draft] sends APPROVE
  billing.discharge in [approved] sends DISCHARGE
cart from empty by {{ ctx.claims.sub }} in database main for 720h0m0s
  empty ADD filled 
  filled ADD filled 
  filled REMOVE empty result.pieces == 0
  filled REMOVE filled 
  filled CLEAR empty 
  filled CHECKOUT payment 
  payment PAY empty 
  payment CANCEL filled 
  payment after 15m0s filled
  cart.add in [empty filled] sends ADD
  cart.remove in [filled] sends REMOVE
  cart.clear in [filled] sends CLEAR
  cart.checkout in [filled] sends CHECKOUT
  cart.cancel in [payment] sends CANCEL
  cart.pay in [payment] sends PAY
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &b, want)
	}
	if v := g.Tool("cart.view"); v == nil || v.State != nil {
		t.Errorf("cart.view is bound to a machine: %v", v)
	}
	c := g.Tests[0]
	states := func(l []graph.TestState) (s []string) {
		for _, x := range l {
			s = append(s, x.FSM+" "+x.State)
		}
		return s
	}
	if got := states(c.State); !slices.Equal(got, []string{"cart payment", "review approved"}) {
		t.Errorf("the case starts in %v", got)
	}
	if got := states(c.After); !slices.Equal(got, []string{"cart empty"}) {
		t.Errorf("the case ends in %v", got)
	}
}

// TestMachinesVet has CUE itself accept machines together with the language.
func TestMachinesVet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "workflows.cue")
	if err := os.WriteFile(file, []byte(workflows), 0o600); err != nil {
		t.Fatal(err)
	}
	vet(t, "", file, strings.TrimSuffix(file, ".cue")+"_tests.cue")
}

// TestGateOfBrokenMachine finds no gate where the gate or its machine has a
// fault: whoever compiles the tools need not look for names that are not there.
func TestGateOfBrokenMachine(t *testing.T) {
	for _, c := range []struct{ old, new string }{
		{`CANCEL: "filled"`, `CANCEL: "full"`},
		{`initial: "empty"`, `initial: "emty"`},
		{`in: ["payment"], send: "PAY"`, `in: ["paid"], send: "PAY"`},
		{`in: ["payment"], send: "PAY"`, `in: [3], send: "PAY"`},
		{`in: ["payment"], send: "PAY"`, `in: ["payment"], send: "PAID"`},
		{`fsm: "cart", in: ["payment"], send: "PAY"`, `fsm: "crat", in: ["payment"]`},
	} {
		graphs, faults := loadAny(t, strings.Replace(workflows, c.old, c.new, 1))
		if len(faults) != 1 || !faults.Fatal() {
			t.Errorf("%s: faults %v, want one", c.new, faults)
		}
		if g := graphs[0].Tool("cart.pay").State; g != nil {
			t.Errorf("%s: the gate of cart.pay is %+v", c.new, g)
		}
	}
}

// TestMachineStoreUsesDatabase has a database that only a machine uses be no
// fault.
func TestMachineStoreUsesDatabase(t *testing.T) {
	s := strings.Replace(workflows, `databases: main: url: "sqlite::memory:"`, `databases: {
	main: url:   "sqlite::memory:"
	states: url: "sqlite::memory:"
	record: url: "sqlite::memory:"
}
tools: [string]: sql: database: "main"`, 1)
	s = strings.ReplaceAll(s, `store: database: "main"`, `store: database: "states"`)
	s = strings.Replace(s, `ttl: "30d"`, `resolve: {query: "SELECT 'empty' AS state", database: "record"}`, 1)
	loadText(t, s)
}

func loadAny(t *testing.T, text string) ([]*graph.Graph, graph.Faults) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.cue")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dsl.Load([]string{file}, dsl.Options{WithTests: true, Env: func(string) (string, bool) { return "", false }})
}

// loadText loads a spec in which nothing is wrong.
func loadText(t *testing.T, text string) *graph.Graph {
	t.Helper()
	graphs, faults := loadAny(t, text)
	if len(faults) > 0 || len(graphs) != 1 {
		t.Fatalf("%d graphs\n%v", len(graphs), faults)
	}
	return graphs[0]
}
