package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// watchers are the clients that want to hear when their tools change.
type watchers struct {
	ctx  context.Context
	stop context.CancelFunc
	feed sync.Once
	busy sync.WaitGroup
	// looks bounds those at one time: a move that concerns everybody must leave
	// connections to calls.
	looks chan struct{}

	mu   sync.Mutex
	byID map[gate.ID]map[*watcher]bool
	all  map[*watcher]bool
}

func newWatchers() *watchers {
	w := &watchers{byID: map[gate.ID]map[*watcher]bool{}, all: map[*watcher]bool{}, looks: make(chan struct{}, maxLooks)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

func (w *watchers) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.stop() // nothing begins after it
	w.mu.Unlock()
	w.busy.Wait()
}

// watcher is one of them.
type watcher struct {
	program *Program
	caller  Caller
	changed func()
	ids     []gate.ID
	// due says that a look waits to begin: it will see what is moved until then.
	due atomic.Bool

	// mu is held while it looks, so that changed runs once at a time.
	mu    sync.Mutex
	list  *List       // what the client has been told of
	timer *time.Timer // of the next change that time makes
	over  bool
}

// maxLooks is how many watchers look at the same time.
const maxLooks = 4

// lookTime bounds one look at the states of a client, firstLookTime the one
// that a client waits for.
const (
	lookTime      = 30 * time.Second
	firstLookTime = 5 * time.Second
)

// Watch calls changed when the tools that a caller sees may be other ones: once
// at a time, from any goroutine, until stop is called. It may be called more
// often than needed. What the caller sees at first is read before Watch is done.
func (p *Program) Watch(c *Caller, changed func()) (stop func()) {
	if len(p.gating) == 0 {
		return func() {}
	}
	p.follow()
	w := &watcher{program: p, caller: *c, changed: changed}
	w.caller.Now = time.Time{}
	for _, m := range p.gating {
		if key, ok, err := p.keyFor(m, &w.caller); ok && err == nil {
			w.ids = append(w.ids, gate.ID{FSM: m.graph.Name, Key: key})
		}
	}
	if len(w.ids) == 0 {
		return func() {}
	}
	p.watchers.add(w)
	// What is moved from here on waits until this has been seen.
	ctx, cancel := context.WithTimeout(p.watchers.ctx, firstLookTime)
	defer cancel()
	w.look(ctx, p.watchers, false)
	return func() {
		p.watchers.remove(w)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
		if w.timer != nil {
			w.timer.Stop()
		}
	}
}

// follow begins to listen to what other processes move, once a program.
func (p *Program) follow() {
	p.watchers.feed.Do(func() {
		p.watchers.mu.Lock()
		defer p.watchers.mu.Unlock()
		if p.watchers.ctx.Err() != nil {
			return // end may wait already
		}
		for _, s := range p.opened {
			p.watchers.busy.Go(func() {
				s.Feed(p.watchers.ctx, func(c gate.Change) {
					if c.All {
						p.watchers.lookAll(c.FSM)
						return
					}
					p.moved(c.ID)
				})
			})
		}
	})
}

// moved tells those who watch a key that it was moved.
func (p *Program) moved(id gate.ID) { p.watchers.lookAt(id) }

func (l *watchers) add(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[w] = true
	for _, id := range w.ids {
		if l.byID[id] == nil {
			l.byID[id] = map[*watcher]bool{}
		}
		l.byID[id][w] = true
	}
}

func (l *watchers) remove(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, w)
	for _, id := range w.ids {
		delete(l.byID[id], w)
		if len(l.byID[id]) == 0 {
			delete(l.byID, id)
		}
	}
}

func (l *watchers) lookAt(id gate.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.byID[id] {
		l.look(w)
	}
}

// lookAll looks at the keys of one machine; "": of all.
func (l *watchers) lookAll(fsm string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.all {
		for _, id := range w.ids {
			if fsm == "" || id.FSM == fsm {
				l.look(w)
				break
			}
		}
	}
}

// begin is look for who does not hold mu.
func (l *watchers) begin(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(w)
}

// look looks at what a client sees, beside the caller, who holds mu.
func (l *watchers) look(w *watcher) {
	if l.ctx.Err() != nil || !w.due.CompareAndSwap(false, true) {
		return
	}
	l.busy.Go(func() {
		l.looks <- struct{}{}
		defer func() { <-l.looks }()
		ctx, cancel := context.WithTimeout(l.ctx, lookTime)
		defer cancel()
		w.look(ctx, l, true)
	})
}

// look compares what the client sees now with what it was told of. tell is
// false for the first look, which it need not hear of.
func (w *watcher) look(ctx context.Context, l *watchers, tell bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due.Store(false) // what is moved from here on is another look's
	if w.over {
		return
	}
	list, due, err := w.program.outlook(ctx, w)
	if err != nil && ctx.Err() == nil {
		w.program.log.Warn("what a client sees could not be read: it is told to look itself", "cause", w.program.scrub(nil, err.Error()))
	}
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if !due.IsZero() {
		w.timer = time.AfterFunc(time.Until(due)+time.Millisecond, func() { l.begin(w) })
	}
	same := err == nil && list == w.list
	first := w.list == nil
	w.list = list
	if same || first && !tell {
		return
	}
	w.changed()
}

// outlook gives what a client sees now, and when time changes one of its
// states next.
func (p *Program) outlook(ctx context.Context, w *watcher) (*List, time.Time, error) {
	list, err := p.List(ctx, &w.caller)
	if err != nil {
		return nil, time.Time{}, err
	}
	var due time.Time
	now := time.Now()
	for _, m := range p.gating {
		if !m.timed {
			continue
		}
		for _, id := range w.ids {
			if id.FSM != m.graph.Name {
				continue
			}
			r, err := p.stores[m.index].Load(ctx, id)
			if err != nil {
				return nil, time.Time{}, err
			}
			if at, ok := m.Due(r, now); ok && (due.IsZero() || at.Before(due)) {
				due = at
			}
		}
	}
	return list, due, nil
}

// Ended says that a session is over: the states kept in memory for it go.
func (p *Program) Ended(session string) {
	for _, m := range p.machines {
		if m.graph.Store.Kind != graph.StoreMemory || !m.key.BySession() || m.key.ByArgs() {
			continue
		}
		key, ok := p.sessionKey(m, session)
		// One that others have too (claims.sub ?? ctx.session) is not the session's.
		if other, _ := p.sessionKey(m, "no "+session); !ok || key == other {
			continue
		}
		// One that a call holds stays, and with it what is known of the call.
		_ = p.stores[m.index].Forget(context.Background(), gate.ID{FSM: m.graph.Name, Key: key})
	}
}

// sessionKey gives the key of a session's caller, who is on this computer.
func (p *Program) sessionKey(m *machine, session string) (key string, ok bool) {
	key, ok, err := p.keyFor(m, &Caller{Session: session, Claims: p.server.Local})
	return key, ok && err == nil
}
