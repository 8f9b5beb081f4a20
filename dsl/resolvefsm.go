package dsl

import (
	"net/url"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// resolveFSM checks the names in a machine, and that every transition can be
// taken.
func (d *doc) resolveFSM(m *graph.FSM, it *item) {
	if states := it.get("states"); states != nil && len(states.fields)+len(states.broken) == 0 {
		d.faults.Add(states.nameAt(), states.path(), "has no state: give it one at least")
	} else {
		d.stateName(it.textOf("initial"), it)
	}
	for i, x := range it.list("states") {
		for _, e := range x.list("on") {
			d.targets(e, it)
		}
		for _, a := range x.list("after") {
			d.stateName(&a.text, it)
		}
		d.timeouts(m.States[i], x)
		for _, name := range []string{"on", "after"} {
			if f := x.get(name); f != nil && m.States[i].Final {
				d.faults.Add(f.nameAt(), f.path(), "is not for a final state: the machine ends here")
			}
		}
	}
	d.rings(m, it)
	if key := it.textOf("key"); key != nil && strings.TrimSpace(key.S) == "" {
		d.faults.Add(key.At, key.Path, "is empty: write whose state it is, as in {{ ctx.claims.sub }}, or a name for one state for all callers")
	}
	d.storeNames(it.get("store"))
	if r := it.get("resolve"); r != nil && m.Resolve != nil {
		if m.Resolve.SQL.Choice != nil {
			d.fixed(r.get("database"))
			m.Resolve.SQL.Choice = nil
		} else {
			m.Resolve.SQL.Database = d.databaseName(r)
		}
	}
	m.Broken = d.hasFault(it.path()) || it.isWrong()
}

// stateName tells a name that is no state of a machine; nothing is said of one
// that is not known itself.
func (d *doc) stateName(t *graph.Text, machine *item) bool {
	states := machine.get("states")
	if t == nil || states == nil {
		return t != nil
	}
	names := states.declared()
	if slices.Contains(names, t.S) {
		return true
	}
	d.faults.Add(t.At, t.Path, "there is no state %q%s", t.S, meant(t.S, names, "there are: "))
	return false
}

// targets checks where an event leads.
func (d *doc) targets(event, machine *item) {
	if event.form.kind == formString {
		d.stateName(&event.text, machine)
		return
	}
	if len(event.node.elements()) == 0 {
		d.faults.Add(event.at(), event.path(), "leads nowhere: name a state, or leave the event out")
	}
	for i, x := range event.fields {
		d.stateName(x.textOf("to"), machine)
		if i > 0 && !event.fields[i-1].has("when") {
			d.faults.Add(x.at(), x.path(), "is never looked at: the target before it has no when")
			return
		}
	}
}

// timeouts tells times that never come, because an earlier one does.
func (d *doc) timeouts(s *graph.State, it *item) {
	first := true
	for _, x := range it.list("after") {
		switch delay, err := parseDuration(x.name()); {
		case err != nil: // told
		case first && delay == s.After[0].Delay:
			first = false
		default:
			d.faults.Add(x.nameAt(), x.path(), "never comes: the state is left after %s", graph.DurationText(s.After[0].Delay))
		}
	}
}

// rings tells states that time alone leads from and back to: such a machine
// would never come to rest.
func (d *doc) rings(m *graph.FSM, it *item) {
	told := map[string]bool{}
	for i, s := range m.States {
		way := []string{s.Name}
		for x := s; x != nil && len(x.After) > 0 && !slices.Contains(way[:len(way)-1], x.Name); x = m.State(x.After[0].To) {
			way = append(way, x.After[0].To)
		}
		if last := way[len(way)-1]; len(way) == 1 || last != s.Name || told[s.Name] {
			continue
		}
		for _, name := range way {
			told[name] = true
		}
		after := it.list("states")[i].get("after")
		d.faults.Add(s.After[0].At, after.path(), "time alone would move the machine round and round: %s", strings.Join(way, " -> "))
	}
}

// storeNames checks the database or the address of a store.
func (d *doc) storeNames(it *item) {
	d.known(it.textOf("database"), "databases", "database")
	t := it.textOf("redis")
	switch {
	case t == nil || graph.HasSecret(t.S):
	case strings.Contains(t.S, "{{"):
		d.fixed(it.get("redis"))
	default:
		if u, err := url.Parse(t.S); err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
			d.faults.Add(t.At, t.Path, `%q is no address: write it as in "redis://127.0.0.1:6379/0"`, graph.Concealed(t.S))
		}
	}
}

// resolveGate joins a tool to its machine. A gate with a fault, or of a machine
// with one, is taken away: what is wrong was told.
func (d *doc) resolveGate(t *graph.Tool, it *item) {
	if it == nil {
		return
	}
	name := d.fsmName(it)
	t.State.FSM = d.g.FSM(name)
	machine := d.spec.get("fsms").get(name)
	if in := it.get("in"); in != nil && len(in.node.elements()) == 0 {
		d.faults.Add(in.at(), in.path(), "is empty: name the states in which the tool may be used")
	}
	whole := machine != nil
	for i, x := range it.list("in") {
		whole = d.stateName(&x.text, machine) && whole
		if slices.Contains(t.State.In[:i], x.text.S) {
			d.faults.Add(x.at(), x.path(), "%q is named twice", x.text.S)
		}
	}
	if whole && len(t.State.In) > 0 {
		d.sends(t.State, it, machine)
	}
	if t.State.FSM == nil || t.State.FSM.Broken || it.isWrong() || d.hasFault(it.path()) {
		t.State = nil
	}
}

// fsmName gives the machine that a gate names, or the only one; "" where there
// is no such machine, which is told.
func (d *doc) fsmName(it *item) string {
	names := d.declared("fsms")
	switch name := it.textOf("fsm"); {
	case name != nil:
		if d.known(name, "fsms", "state machine") {
			return name.S
		}
	case d.spec.isBroken("fsms") || it.isBroken("fsm"):
	case len(names) == 0:
		d.faults.Add(it.nameAt(), it.path(), "needs a state machine: declare one under fsms")
	case len(names) > 1:
		d.faults.Add(it.nameAt(), it.path(), "must name its fsm: there are %s", join(names, "and"))
	default:
		return names[0]
	}
	return ""
}

// sends checks that the event of a tool is one of the states in which the tool
// may be used.
func (d *doc) sends(g *graph.Gate, it, machine *item) {
	send := it.textOf("send")
	if send == nil {
		return
	}
	var have, known []string
	for _, name := range g.In {
		s := machine.get("states").get(name)
		if s == nil || s.isBroken("on") {
			return // it may have the event
		}
		events := s.get("on").declared()
		known = append(known, events...)
		if slices.Contains(events, send.S) {
			have = append(have, name)
		}
	}
	slices.Sort(known)
	if len(have) == 0 {
		d.faults.Add(send.At, send.Path, "no state of in has an event %q%s", send.S, meant(send.S, slices.Compact(known), "they have "))
		return
	}
	for _, x := range it.list("in") {
		if !slices.Contains(have, x.text.S) {
			d.faults.Warn(x.at(), x.path(), "%q has no event %q: a call there leaves the state as it is", x.text.S, send.S)
		}
	}
}
