package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// List is one visible set of tools.
type List struct {
	Tools []presenters.Definition
	// ByState says that the caller's list is another one in other states, so
	// that nobody should keep it for long.
	ByState bool
}

// List gives the tools that the caller sees in the states of his machines, in
// order of declaration. The list is shared: equal visible sets give the same
// list, so that a transport may keep what it encodes by its address. The error
// is that a state could not be read.
func (p *Program) List(ctx context.Context, c *Caller) (*List, error) {
	if len(p.gating) == 0 {
		return p.list, nil
	}
	var made *expr.Env
	env := func() *expr.Env {
		if made == nil {
			made = p.callerEnv(c)
		}
		return made
	}
	var room [64]byte
	key := room[:0]
	for _, m := range p.gating {
		state, err := p.stateOf(ctx, m, env, c)
		if err != nil {
			return nil, fmt.Errorf("the state of machine %s: %s", m.graph.Name, p.scrub(nil, err.Error()))
		}
		key = binary.AppendUvarint(key, uint64(m.numbers[state])) // 0: none, or one that the spec does not know
	}
	return p.lists.of(p, key), nil
}

// exists tells whether there is a tool of that dotted name.
func (p *Program) exists(name string) bool {
	_, ok := p.tools[name]
	return ok
}

// lists keeps the lists by the states of the machines that they depend on.
type lists struct {
	mu       sync.RWMutex
	byStates map[string]*List
	byTools  map[string]*List
}

// maxLists bounds the combinations of states that are kept; past it all are
// made anew.
const maxLists = 4096

func newLists() *lists {
	return &lists{byStates: map[string]*List{}, byTools: map[string]*List{}}
}

// of gives the list for the states in key: their numbers, in the order of
// p.gating.
func (l *lists) of(p *Program, key []byte) *List {
	l.mu.RLock()
	found := l.byStates[string(key)]
	l.mu.RUnlock()
	if found != nil {
		return found
	}
	made, tools := p.listFor(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byStates) >= maxLists {
		clear(l.byStates)
		clear(l.byTools)
	}
	if same := l.byTools[tools]; same != nil {
		made = same
	}
	l.byTools[tools], l.byStates[string(key)] = made, made
	return made
}

// listFor makes a list, and the names of its tools as one text.
func (p *Program) listFor(key []byte) (*List, string) {
	numbers := make(map[*machine]int, len(p.gating))
	for _, m := range p.gating {
		n, size := binary.Uvarint(key)
		key = key[size:]
		numbers[m] = int(n)
	}
	var names strings.Builder
	list := &List{ByState: true, Tools: p.views.Definitions(func(name string) bool {
		t := p.tools[name]
		if t == nil || t.gate != nil && t.gate.byCaller() && !t.gate.admitsNumber(numbers[t.gate.machine]) {
			return false
		}
		names.WriteString(name + "\n")
		return true
	})}
	return list, names.String()
}

// admitsNumber is admits for the number of a state.
func (g *toolGate) admitsNumber(n int) bool {
	return n > 0 && g.admits(g.machine.graph.States[n-1].Name)
}
