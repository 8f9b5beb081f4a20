package serve

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/fusion-serve/fusion-serve/engine"
)

// watcher is a client that hears when its tools change: on an open stream, or
// on stdio. It is told through wake, so that whoever changes something never
// waits for a client.
type watcher struct {
	s      *Server
	local  bool   // the client sits on this machine: server.local is its claims
	note   string // the notification
	listed *atomic.Pointer[engine.List]
	// wake holds one: a burst of changes is one notification, sent after the
	// last of them.
	wake chan struct{}

	mu      sync.Mutex
	caller  engine.Caller
	program Program // the one that is watched; nil: none
	stop    func()
	ended   bool
}

// newWatcher makes a watcher that hears nothing yet. subscription is the id,
// in JSON, of the request that listens; nil: a client of a 2025 revision.
func (s *Server) newWatcher(caller engine.Caller, local bool, subscription []byte) *watcher {
	w := &watcher{s: s, caller: caller, local: local, wake: make(chan struct{}, 1)}
	w.note = `{"jsonrpc":"2.0","method":"` + mcp.MethodNotificationToolsListChanged + `"`
	if subscription != nil {
		w.note += `,"params":{"_meta":{"` + mcp.MetaKeySubscriptionID + `":` + string(subscription) + `}}`
	}
	w.note += "}"
	return w
}

// watch begins to watch, or goes on with the program that answers now.
func (w *watcher) watch() {
	w.s.watchers.add(w) // first, so that no later program is missed
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		w.s.watchers.remove(w)
		return
	}
	st := w.s.current()
	if w.program == st.program {
		return
	}
	w.release()
	caller := w.caller
	if w.local {
		caller.Claims = st.local
	}
	w.program, w.stop = st.program, st.program.Watch(&caller, w.changed)
}

// named begins to watch for a client that has said its name.
func (w *watcher) named(client string) {
	w.mu.Lock()
	if w.caller.Client != client {
		w.release()
		w.caller.Client = client
	}
	w.mu.Unlock()
	w.watch()
}

// release ends the watching, with mu held.
func (w *watcher) release() {
	if w.stop != nil {
		w.stop()
	}
	w.program, w.stop = nil, nil
}

// end ends it for good.
func (w *watcher) end() {
	w.mu.Lock()
	w.ended = true
	w.release()
	w.mu.Unlock()
	w.s.watchers.remove(w) // last: watch may be putting it in
}

// changed says that the client is to be told; it never blocks.
func (w *watcher) changed() {
	select {
	case w.wake <- struct{}{}:
	default: // it will be
	}
}

// take gives the notification for a wake.
func (w *watcher) take() string {
	w.watch() // another program may be what has changed
	return w.note
}

// missed tells whether the tools changed after the client listed them, while
// it had no stream to hear of it.
func (w *watcher) missed(ctx context.Context) bool {
	if w.listed == nil {
		return false
	}
	before := w.listed.Load()
	if before == nil {
		return false
	}
	st := w.s.current()
	w.mu.Lock()
	caller := w.caller
	w.mu.Unlock()
	if w.local {
		caller.Claims = st.local
	}
	now, err := st.program.List(ctx, &caller)
	return err != nil || now != before // who cannot know asks the client to look
}

// watchers are those that watch.
type watchers struct {
	mu sync.Mutex
	m  map[*watcher]struct{}
}

func (l *watchers) add(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.m == nil {
		l.m = make(map[*watcher]struct{})
	}
	l.m[w] = struct{}{}
}

func (l *watchers) remove(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.m, w)
}

// ToolsChanged says that another program answers now: everybody who hears of
// tools is told. What a running program changes it tells those concerned.
func (s *Server) ToolsChanged() {
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	for w := range s.watchers.m {
		w.changed()
	}
}

// watcherKey finds, in the context of a subscriptions/listen, who listens.
type watcherKey struct{}

// listening is called before mcp-go acknowledges a subscriptions/listen that is
// in order.
func (s *Server) listening(ctx context.Context, _ any, q *mcp.SubscriptionsListenRequest) {
	if w, ok := ctx.Value(watcherKey{}).(*watcher); ok && q.Params.Notifications.ToolsListChanged {
		w.watch()
	}
}
