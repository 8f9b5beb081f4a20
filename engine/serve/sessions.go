package serve

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/fusion-serve/fusion-serve/engine"
)

// session is what a client of a 2025 revision made with initialize.
type session struct {
	id      string
	flights flights
	listed  atomic.Pointer[engine.List] // what the client listed last; nil: nothing yet
	gone    atomic.Bool                 // deleted, expired or pushed out; set under sessions.mu

	// Guarded by sessions.mu.
	client string
	used   time.Time
	open   bool    // initialize was answered; false while it is under way
	stream *stream // the open GET, nil: none
}

// stream is an open GET of a session.
type stream struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// sessions are the living sessions, the one used last in front.
type sessions struct {
	ttl  time.Duration
	most int
	now  func() time.Time

	mu    sync.Mutex
	byID  map[string]*list.Element // of *session
	order *list.List
}

func newSessions(ttl time.Duration, most int) *sessions {
	return &sessions{ttl: ttl, most: most, now: time.Now, byID: make(map[string]*list.Element), order: list.New()}
}

// create makes a session that opens when its client was answered. dropped are
// the sessions that had to go for it.
func (l *sessions) create() (s *session, dropped []*session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped = l.expire()
	for e := l.order.Back(); e != nil && l.order.Len() >= l.most; {
		old, prev := e.Value.(*session), e.Prev()
		if old.open {
			l.drop(old)
			dropped = append(dropped, old)
		}
		e = prev
	}
	// 130 random bits: who guesses an id is somebody else.
	s = &session{id: rand.Text(), used: l.now()}
	l.byID[s.id] = l.order.PushFront(s)
	return s, dropped
}

// opened says that the client of a session knows it.
func (l *sessions) opened(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.open = true
}

// named notes the name that the client gave itself.
func (l *sessions) named(s *session, client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.client = client
}

// use finds a living session and counts as a use; nil: there is none of that
// id (any more).
func (l *sessions) use(id string) (s *session, client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byID[id]
	if e == nil {
		return nil, ""
	}
	s = e.Value.(*session)
	now := l.now()
	if s.stale(now, l.ttl) {
		// The sweep takes it out; until then it is as good as gone.
		return nil, ""
	}
	s.used = now
	l.order.MoveToFront(e)
	return s, s.client
}

func (s *session) stale(now time.Time, ttl time.Duration) bool {
	return s.open && s.stream == nil && now.Sub(s.used) >= ttl
}

// sweep takes the sessions out that nobody used for the TTL.
func (l *sessions) sweep() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expire()
}

func (l *sessions) expire() (expired []*session) {
	now := l.now()
	for e := l.order.Back(); e != nil; {
		s, prev := e.Value.(*session), e.Prev()
		if now.Sub(s.used) < l.ttl {
			break // those in front were used later
		}
		switch {
		case s.stale(now, l.ttl):
			l.drop(s)
			expired = append(expired, s)
		case s.stream != nil: // in use
			s.used = now
			l.order.MoveToFront(e)
		}
		e = prev
	}
	return expired
}

// remove takes a session out and ends its stream.
func (l *sessions) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil {
		l.drop(e.Value.(*session))
	}
}

func (l *sessions) drop(s *session) {
	e := l.byID[s.id]
	delete(l.byID, s.id)
	l.order.Remove(e)
	s.gone.Store(true)
	if s.stream != nil {
		s.stream.cancel()
	}
}

// attach makes st the stream of the session; the one before it ends first, as
// both would take messages away from each other. False: the session is gone.
func (l *sessions) attach(ctx context.Context, s *session, st *stream) bool {
	for {
		l.mu.Lock()
		before := s.stream
		if s.gone.Load() {
			l.mu.Unlock()
			return false
		}
		if before == nil {
			s.stream = st
			l.mu.Unlock()
			return true
		}
		l.mu.Unlock()
		before.cancel()
		select {
		case <-before.ended:
		case <-ctx.Done():
			return false
		}
	}
}

// detach ends the stream; the session counts as used until now.
func (l *sessions) detach(s *session, st *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.stream == st {
		s.stream = nil
	}
	s.used = l.now()
	if e := l.byID[s.id]; e != nil {
		l.order.MoveToFront(e)
	}
	close(st.ended)
}

// birthKey finds, in the context of an initialize request, where to note the
// session that mcp-go asks for while it answers.
type birthKey struct{}

type birth struct{ session *session }

// resolver gives mcp-go our sessions in place of its own.
type resolver struct{ s *Server }

func (r resolver) ResolveSessionIdManager(q *http.Request) server.SessionIdManager {
	m := manager{s: r.s}
	if q != nil {
		m.birth, _ = q.Context().Value(birthKey{}).(*birth)
	}
	return m
}

type manager struct {
	s     *Server
	birth *birth
}

// Generate is called for initialize only: GET without a session does not get
// as far as mcp-go.
func (m manager) Generate() string {
	s, dropped := m.s.sessions.create()
	m.s.forget(dropped)
	if m.birth != nil {
		m.birth.session = s
	}
	return s.id
}

var errNoSession = errors.New("no such session")

func (m manager) Validate(id string) (terminated bool, err error) {
	if s, _ := m.s.sessions.use(id); s == nil {
		return false, errNoSession
	}
	return false, nil
}

// Terminate is called once a session is over, whatever ended it: forget comes
// here too.
func (m manager) Terminate(id string) (notAllowed bool, err error) {
	m.s.sessions.remove(id)
	m.s.current().program.Ended(id)
	return false, nil
}

// forget lets mcp-go free what it holds of sessions that are gone. A DELETE is
// the only way in.
func (s *Server) forget(gone []*session) {
	for _, g := range gone {
		h := http.Header{}
		h.Set(server.HeaderKeySessionID, g.id)
		s.http.Handle(discard{}, &server.HTTPRequest{Method: http.MethodDelete, Header: h, Context: context.Background()})
	}
}

// discard is a response that nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Flush()                      {}
func (discard) CanStream() bool             { return false }
