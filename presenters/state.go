package presenters

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// stateShape is the type of the name state: a field a machine, which holds
// the name of a state. It is nil where the call has no key of the machine.
func stateShape(g *graph.Graph) *shape.Shape {
	if len(g.FSMs) == 0 {
		return nil
	}
	out := &shape.Shape{Kind: shape.Struct}
	for _, f := range g.FSMs {
		states := &shape.Shape{Kind: shape.Union}
		for _, s := range f.States {
			states.Alts = append(states.Alts, &shape.Shape{Kind: shape.Const, Const: s.Name})
		}
		out.Fields = append(out.Fields, &shape.Field{Name: f.Name, Shape: states, Optional: true})
	}
	return out
}

func (c *compiler) withState(s *expr.Scope) *expr.Scope {
	if c.state == nil {
		return s
	}
	return s.With("state", c.state)
}

// mentions is what the texts of a presenter or a tool need to know of state
// machines.
type mentions struct {
	machines []string // whose state is read; "*": of all
	tools    []string // that are suggested, which a machine may hide
}

// note collects the machines whose state is read.
func (m *mentions) note(reads [][]string) {
	for _, r := range reads {
		switch {
		case len(r) == 0 || r[0] != "state":
		case len(r) == 1 || r[1] == "**":
			m.machines = append(m.machines, "*")
		default:
			m.machines = append(m.machines, r[1])
		}
	}
}

func (m *mentions) join(o mentions) {
	m.machines = append(slices.Clip(m.machines), o.machines...)
	m.tools = append(slices.Clip(m.tools), o.tools...)
}

// Machines gives the machines whose state the texts of the view read; "*" are
// all. Names may repeat.
func (v *View) Machines() []string { return v.plan.gates.machines }

// Offers gives the tools (dotted) that the view may suggest; names may repeat.
func (v *View) Offers() []string { return v.plan.gates.tools }
