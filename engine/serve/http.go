package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/fusion-serve/fusion-serve/engine"
)

// ServeHTTP answers MCP over streamable HTTP, whatever the path. Time limits
// on reading and writing are Serve's.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	st := s.current()
	if st.guard.admit(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, st)
	case http.MethodGet:
		s.get(w, r)
	case http.MethodDelete:
		s.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		http.Error(w, "MCP takes POST, GET and DELETE.", http.StatusMethodNotAllowed)
	}
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, st *state) {
	if !isJSON(r.Header.Get("Content-Type")) {
		http.Error(w, "Invalid content type: must be 'application/json'", http.StatusBadRequest)
		return
	}
	body, err := readBody(r, st.maxBody)
	switch {
	case errors.Is(err, errTooLarge):
		http.Error(w, fmt.Sprintf("The request body is larger than %d bytes (server.http.maxBody).", st.maxBody), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		respond(w, http.StatusBadRequest, appendError(nil, nil, mcp.PARSE_ERROR, "reading the request body: "+err.Error()))
		return
	}
	readWhole(w, r)
	m, failed := decode(body)
	if failed != "" {
		respond(w, http.StatusBadRequest, appendError(nil, nil, mcp.PARSE_ERROR, failed))
		return
	}
	if m.method == "" && !m.answer {
		respond(w, http.StatusBadRequest, appendError(nil, m.id, mcp.INVALID_REQUEST, "method is missing"))
		return
	}
	p := &post{s: s, w: w, r: r, state: st, body: body, m: &m, revision: r.Header.Get(mcp.HeaderProtocolVersion)}
	if isModern(p.revision) || isModern(m.params.meta.revision) {
		p.modern()
		return
	}
	p.legacy()
}

// post is a POST whose body is a message.
type post struct {
	s        *Server
	w        http.ResponseWriter
	r        *http.Request
	state    *state
	body     []byte
	m        *message
	revision string // of the header
}

// isTools tells whether the message is a request that is answered here.
func (p *post) isTools() bool {
	return p.m.id != nil && p.m.version && !p.m.answer && (p.m.method == methodCall || p.m.method == methodList)
}

// legacy serves a request of a 2025 revision.
func (p *post) legacy() {
	if p.m.method == methodInit {
		p.initialize()
		return
	}
	if badRevision(p.w, p.revision) {
		return
	}
	session, client := p.s.session(p.w, p.r)
	if session == nil {
		return
	}
	switch {
	case p.isTools():
		q := request{message: p.m, state: p.state, caller: engine.Caller{Session: session.id, Client: client}, session: session}
		ctx := p.r.Context()
		if p.m.method == methodCall {
			var f *flight
			ctx, f = session.flights.start(ctx, p.m.id)
			defer f.land()
		}
		p.answer(ctx, &q)
		if session.gone.Load() {
			// It ended while the call ran, which may have left something behind.
			p.state.program.Ended(session.id)
		}
		return
	case p.m.method == methodCancelled:
		session.flights.cancel(p.m.params.requestID)
	}
	p.s.pass(p.w, p.r, p.r.Context(), p.body)
}

// modern serves a request of 2026-07-28.
func (p *post) modern() {
	switch {
	case p.isTools() && p.inOrder():
		q := request{message: p.m, state: p.state, modern: true, caller: engine.Caller{Client: shorten(p.m.params.meta.client)}}
		p.answer(p.r.Context(), &q)
		return
	case p.m.method == methodCancelled:
		// Without a session the id could be anybody's; a client cancels by
		// closing its request.
		p.w.WriteHeader(http.StatusAccepted)
		return
	case p.m.method == methodListen:
		ctx, cancel := context.WithCancel(p.r.Context())
		defer cancel()
		defer context.AfterFunc(p.s.streams, cancel)()
		wt := p.s.newWatcher(engine.Caller{Client: shorten(p.m.params.meta.client)}, fromHere(p.r), p.m.id)
		defer wt.end()
		p.s.stream(p.w, p.r, context.WithValue(ctx, watcherKey{}, wt), cancel, p.body, wt)
		return
	}
	p.s.pass(p.w, p.r, p.r.Context(), p.body)
}

// inOrder tells whether headers and _meta are as 2026-07-28 wants them. What
// is not in order goes to mcp-go, which finds the same and says what is wrong.
func (p *post) inOrder() bool {
	meta := &p.m.params.meta
	if p.revision != mcp.ProtocolVersion20260728 || meta.revision != p.revision {
		return false
	}
	h := p.r.Header
	if h.Get(mcp.HeaderLastEventID) != "" || h.Get(mcp.HeaderMethod) != p.m.method || !hasCapabilities(meta.capabilities) {
		return false
	}
	if p.m.method != methodCall || p.m.problem != "" {
		return true
	}
	name := h.Get(mcp.HeaderName)
	if name == p.m.params.name && !strings.HasPrefix(name, "=?") {
		return name != ""
	}
	name, ok := mcp.DecodeHeaderValue(name)
	return ok && name != "" && name == p.m.params.name
}

var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}

// keepBuffer is the largest buffer that is kept for the next answer.
const keepBuffer = 64 << 10

func (p *post) answer(ctx context.Context, q *request) {
	if fromHere(p.r) {
		q.caller.Claims = p.state.local
	}
	buf := buffers.Get().(*[]byte)
	body, code := p.s.answer(ctx, (*buf)[:0], q)
	if len(body) == 0 { // cancelled
		p.w.WriteHeader(http.StatusAccepted)
	} else {
		p.s.writeWithin(p.w, p.r, q.caller.Now)
		respond(p.w, statusOf(code, q.modern), body)
	}
	if cap(body) <= keepBuffer {
		*buf = body
		buffers.Put(buf)
	}
}

// initialize lets mcp-go answer and opens the session that it asked for.
func (p *post) initialize() {
	b := &birth{}
	greeted := false
	greet := greeting(func(client string) {
		greeted = true
		p.s.sessions.named(b.session, client)
	})
	ctx := context.WithValue(p.r.Context(), birthKey{}, b)
	ctx = context.WithValue(ctx, greetingKey{}, greet)
	p.s.pass(p.w, p.r, ctx, p.body)
	if b.session == nil {
		return
	}
	p.s.sessions.opened(b.session)
	if !greeted || ctx.Err() != nil {
		// An initialize that was refused, or whose client has gone: nobody
		// knows the session.
		p.s.forget([]*session{b.session})
	}
}

// get opens a stream of a session.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	revision := r.Header.Get(mcp.HeaderProtocolVersion)
	if isModern(revision) {
		s.pass(w, r, r.Context(), nil)
		return
	}
	if badRevision(w, revision) {
		return
	}
	session, client := s.session(w, r)
	if session == nil {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.streams, cancel)()
	st := &stream{cancel: cancel, ended: make(chan struct{})}
	if !s.sessions.attach(ctx, session, st) {
		http.Error(w, noSession, http.StatusNotFound)
		return
	}
	defer s.sessions.detach(session, st)
	wt := s.newWatcher(engine.Caller{Session: session.id, Client: client}, fromHere(r), nil)
	wt.listed = &session.listed
	wt.watch()
	defer wt.end()
	s.stream(w, r, ctx, cancel, nil, wt)
}

// delete ends a session.
func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	revision := r.Header.Get(mcp.HeaderProtocolVersion)
	if !isModern(revision) {
		if badRevision(w, revision) {
			return
		}
		if session, _ := s.session(w, r); session == nil {
			return
		}
	}
	s.pass(w, r, r.Context(), nil)
}

const noSession = "There is no such session (any more): send initialize again."

// session finds the session that a request names; without one the request is
// answered.
func (s *Server) session(w http.ResponseWriter, r *http.Request) (*session, string) {
	id := r.Header.Get(server.HeaderKeySessionID)
	if id == "" {
		http.Error(w, "The header Mcp-Session-Id is missing: send initialize first.", http.StatusBadRequest)
		return nil, ""
	}
	session, client := s.sessions.use(id)
	if session == nil {
		http.Error(w, noSession, http.StatusNotFound)
	}
	return session, client
}

// badRevision refuses a header that names a revision nobody knows, in
// mcp-go's words.
func badRevision(w http.ResponseWriter, revision string) bool {
	if revision == "" || mcp.IsValidProtocolVersion(revision) {
		return false
	}
	http.Error(w, "Unsupported protocol version: "+shorten(revision), http.StatusBadRequest)
	return true
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}

var errTooLarge = errors.New("too large")

// readBody reads at most limit bytes. Memory is taken as bytes come, not as
// the client announces them.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, errTooLarge
	}
	const first = 64 << 10
	var b bytes.Buffer
	if n := r.ContentLength; n >= 0 {
		b.Grow(int(min(n, first)) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(r.Body, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

var jsonContent = []string{"application/json"}

func respond(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonContent
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = w.Write(body)
}

// writeWithin gives the answer to a long call the time that the connection's
// own limit, which counts from the request, has used up.
func (s *Server) writeWithin(w http.ResponseWriter, r *http.Request, start time.Time) {
	if limited(r) && time.Since(start) > s.limits.write/4 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.write))
	}
}

// readWhole lifts the time limit on reading once the body is there: it would
// end the request's context while the call runs.
func readWhole(w http.ResponseWriter, r *http.Request) {
	if limited(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
}
