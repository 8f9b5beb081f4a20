package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// machine is a compiled state machine.
type machine struct {
	*gate.Machine
	graph *graph.FSM
	index int
	// key is that of a caller. A key over arguments is compiled for each tool:
	// then this is only asked ByArgs.
	key *gate.Key
	// direct gives the value of a key that is nothing but a field of the caller;
	// nil: the key has to be evaluated.
	direct  func(*Caller) any
	numbers map[string]int // of the states, from 1
	resolve *bind.Binding  // nil: a person decides
	timed   bool           // time moves it
	told    bool           // its conditions have faults, which are told
	// lists tells whether tools are listed or not by its state.
	lists bool
}

// toolGate binds a tool to states of a machine.
type toolGate struct {
	machine *machine
	key     *gate.Key
	in      []string
	event   string
	step    *gate.Step // nil: the tool sends nothing
	effects bind.Effects
}

func (g *toolGate) admits(state string) bool { return slices.Contains(g.in, state) }

// byCaller tells whether lists show the tool by the state of the caller.
func (g *toolGate) byCaller() bool { return !g.machine.key.ByArgs() }

// compileMachines compiles the state machines of a spec. base has ctx and env.
func (p *Program) compileMachines(spec *bind.Spec, base *expr.Scope) graph.Faults {
	var faults graph.Faults
	for i, f := range spec.Graph.FSMs {
		m := &machine{Machine: gate.New(f), graph: f, index: i, numbers: make(map[string]int, len(f.States))}
		m.timed = f.TTL > 0
		for n, s := range f.States {
			m.numbers[s.Name] = n + 1
			m.timed = m.timed || len(s.After) > 0
		}
		// What the arguments are is known for each tool; names that are wrong
		// are told once, here.
		key, fault := gate.CompileKey(f, base.With("args", nil))
		faults = append(faults, fault...)
		if key == nil {
			key = &gate.Key{}
		}
		m.key, m.direct = key, directKey(f.Key)
		if key.BySession() && !key.ByArgs() && !hasSubject(spec.Graph) {
			faults = append(faults, warning(f.Key, "a request of revision 2026-07-28 has no session: without a claim sub its caller does not get the tools that depend on it (callers on this computer have the claims of server: local)"))
		}
		// A condition is compiled for each tool that sends its event; what is
		// wrong whatever the tool is told once, here.
		told := gate.CheckConditions(f, base.With("args", nil).With("result", nil))
		faults = append(faults, told...)
		m.told = told.Fatal()
		if f.Resolve != nil {
			var fault graph.Faults
			m.resolve, fault = bind.Compile(spec, resolveTool(f), new(expr.Scope).With("env", spec.Graph.EnvShape()).With("args", resolveParams), db.Limit{})
			faults = append(faults, fault...)
		}
		p.machines = append(p.machines, m)
	}
	return faults
}

// directKey is how a key that says {{ ctx.session }} or {{ ctx.claims.NAME }} is
// read without evaluating it, which lists would pay for most; nil for any other.
func directKey(t *graph.Text) func(*Caller) any {
	if t == nil {
		return nil
	}
	inner, opens := strings.CutPrefix(t.S, "{{")
	inner, closes := strings.CutSuffix(inner, "}}")
	if inner = strings.TrimSpace(inner); !opens || !closes {
		return nil
	}
	if inner == "ctx.session" {
		return func(c *Caller) any { return c.keyOwner() }
	}
	claim, ok := strings.CutPrefix(inner, "ctx.claims.")
	if !ok || strings.ContainsFunc(claim, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
		return nil
	}
	return func(c *Caller) any {
		v, _ := c.Claims.Get(claim)
		return v
	}
}

// keyOf gives the key of a machine that is keyed by the caller; ok is false for
// a caller without one. env makes ctx and env; it is not always asked.
func (m *machine) keyOf(c *Caller, env func() *expr.Env) (key string, ok bool, err error) {
	if m.direct != nil {
		key, ok = gate.KeyOf(m.direct(c))
		return key, ok, nil
	}
	return m.key.Of(keyEnv(m.key, c, env()))
}

// keyFor is keyOf by itself.
func (p *Program) keyFor(m *machine, c *Caller) (key string, ok bool, err error) {
	return m.keyOf(c, func() *expr.Env { return p.callerEnv(c) })
}

// keyEnv gives the names that a key sees. A session is known by a digest: who
// reads its id in a store, or in what stores tell each other, could speak for
// it.
func keyEnv(k *gate.Key, c *Caller, env *expr.Env) *expr.Env {
	if !k.BySession() {
		return env
	}
	ctx, _ := env.Get("ctx").(*value.Object)
	ctx = ctx.Clone()
	ctx.Set("session", orNil(c.keyOwner()))
	env = env.Fork()
	env.Set("ctx", ctx)
	return env
}

func (c *call) keyEnv(k *gate.Key) *expr.Env { return keyEnv(k, c.caller, c.env) }

// keyOwner is owner as keys have it: no user is taken for a session.
func (c *Caller) keyOwner() string {
	switch owner := c.owner(); {
	case owner == "":
		return ""
	case c.Session == "":
		return "user-" + owner
	}
	sum := sha256.Sum256([]byte(c.Session))
	return "session-" + hex.EncodeToString(sum[:12])
}

func warning(t *graph.Text, message string) graph.Fault {
	f := t.Fault(0, "%s", message)
	f.Warning = true
	return f
}

// hasSubject tells whether a caller without a session may have a verified
// subject.
func hasSubject(g *graph.Graph) bool {
	sub, ok := g.Server.Local.Get("sub")
	return ok && sub != nil
}

// gate compiles what binds a tool to states.
func (c *toolCompiler) gate(machines []*machine, b *bind.Binding) *toolGate {
	s := c.graph.State
	if s == nil || s.FSM == nil {
		return nil
	}
	i := slices.IndexFunc(machines, func(m *machine) bool { return m.graph == s.FSM })
	m := machines[i]
	out := &toolGate{machine: m, key: m.key, in: s.In, event: s.Send, effects: b.Effects()}
	if m.key.ByArgs() {
		key, f := gate.CompileKey(s.FSM, c.scope)
		if f.Fatal() {
			c.faults.Add(s.At, c.graph.Path+".state", "the key of machine %s needs arguments that this tool does not have (%s): declare them in its params", s.FSM.Name, s.FSM.Key.S)
			return nil
		}
		out.key = key
	} else {
		m.lists = true
	}
	if s.Send != "" {
		step, f := gate.CompileStep(s.FSM, s.Send, s.In, c.scope.With("result", nil))
		if !m.told {
			c.faults = append(c.faults, f...)
		}
		out.step = step
	}
	return out
}

// joinMachines finds, once all tools are compiled, what each call has to know
// of the caller's states: those that the answer reads, and those that decide
// whether what it offers may be used.
func (p *Program) joinMachines() {
	for _, m := range p.machines {
		if m.lists {
			p.gating = append(p.gating, m)
		}
	}
	for _, t := range p.tools {
		t.needs = p.needsOf(t)
	}
}

func (p *Program) needsOf(t *tool) []*machine {
	var needs []*machine
	add := func(m *machine) {
		if !m.key.ByArgs() && !slices.Contains(needs, m) {
			needs = append(needs, m)
		}
	}
	offers := t.offers(p.graph)
	if t.view != nil {
		offers = append(offers, t.view.Offers()...)
		for _, name := range t.view.Machines() {
			for _, m := range p.machines {
				if name == "*" || name == m.graph.Name {
					add(m)
				}
			}
		}
	}
	for _, name := range offers {
		if o := p.tools[name]; o != nil && o.gate != nil {
			add(o.gate.machine)
		}
	}
	return needs
}

// offers are the tools that the error rules of a writing tool offer: they are
// looked at while its transaction is open, when nothing else should be asked.
func (t *tool) offers(g *graph.Graph) []string {
	if t.graph.Kind == "query" {
		return nil
	}
	group := groupOf(g, t.graph)
	rules := slices.Concat(t.graph.Errors, group.Errors, g.Server.Errors)
	for _, s := range t.graph.Steps {
		rules = append(rules, s.Errors...)
	}
	for _, a := range g.APIs {
		rules = append(rules, a.Errors...)
	}
	var names []string
	for _, r := range rules {
		names = append(names, r.Actions...)
	}
	return names
}

// openStores opens the stores of the machines; a test has a memory of its own
// in place of Redis.
func (p *Program) openStores(o Options, secret func(string) string) error {
	p.stores = make([]gate.Store, len(p.machines))
	byPlace := map[string]gate.Store{}
	for _, m := range p.machines {
		s := m.graph.Store
		place := string(s.Kind) + " " + s.Database + s.URL.S
		if s.Kind == graph.StoreRedis && o.Fresh {
			place = string(graph.StoreMemory)
		}
		store := byPlace[place]
		if store == nil {
			var err error
			if store, err = p.openStore(s, o, secret); err != nil {
				return fmt.Errorf("%s: fsms.%s.store: %s", s.At, m.graph.Name, p.scrub(nil, err.Error()))
			}
			byPlace[place] = store
			p.opened = append(p.opened, store)
		}
		p.stores[m.index] = store
	}
	return nil
}

func (p *Program) openStore(s graph.Store, o Options, secret func(string) string) (gate.Store, error) {
	switch {
	case s.Kind == graph.StoreDatabase:
		d := p.dbs[s.Database]
		if d == nil {
			return nil, fmt.Errorf("database %s is not open", s.Database)
		}
		return gate.NewDatabase(d), nil
	case s.Kind == graph.StoreRedis && !o.Fresh:
		url := graph.Reveal(s.URL.S, secret)
		p.hideURL(url, graph.HasSecret(s.URL.S))
		return gate.OpenRedis(db.RedisConfig{URL: url}, p.graph.Server.Name)
	}
	return gate.NewMemory(gate.MemoryRecords), nil
}
