package serve

import (
	"context"
	"sync"
)

// flights are the calls in flight of one client by their request id, so that
// the client can take one back. Ids are compared as they were written.
type flights struct {
	mu sync.Mutex
	m  map[string]*flight
}

// flight is one call in flight.
type flight struct {
	of     *flights
	id     string
	cancel context.CancelCauseFunc
}

// start notes a call; land must be called when it ends.
func (f *flights) start(ctx context.Context, id []byte) (context.Context, *flight) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &flight{of: f, id: string(id), cancel: cancel}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = make(map[string]*flight)
	}
	f.m[l.id] = l
	return ctx, l
}

// land forgets a call. A second call with the same id, which a client must
// not make, stays.
func (l *flight) land() {
	l.cancel(nil)
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.of.m[l.id] == l {
		delete(l.of.m, l.id)
	}
}

// cancel takes a call back; an unknown id is nothing, as the call may have
// ended.
func (f *flights) cancel(id []byte) {
	f.mu.Lock()
	l := f.m[string(id)]
	f.mu.Unlock()
	if l != nil {
		l.cancel(errCancelled)
	}
}
