package serve

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// pass lets mcp-go answer.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, ctx context.Context, body []byte) {
	s.handle(&writer{w: w, rc: http.NewResponseController(w)}, r, ctx, body)
}

// stream lets mcp-go answer with a stream that stays open; cancel ends ctx and
// with it the stream. What wt hears goes out on it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, ctx context.Context, cancel context.CancelFunc, body []byte, wt *watcher) {
	h := &writer{w: w, rc: http.NewResponseController(w), limit: s.limits.event, opened: make(chan struct{})}
	readWhole(w, r)
	_ = h.rc.SetWriteDeadline(time.Time{})
	var beside sync.WaitGroup
	beside.Go(func() { s.accompany(ctx, cancel, h, wt) })
	defer func() {
		cancel()
		beside.Wait()
		if limited(r) {
			_ = h.rc.SetWriteDeadline(time.Now().Add(s.limits.event))
		} else { // the connection may serve more requests without setting one
			_ = h.rc.SetWriteDeadline(time.Time{})
		}
	}()
	s.handle(h, r, ctx, body)
}

// accompany says on an open stream that it is there and that the tools changed,
// until ctx ends. Only this goroutine waits for a client that reads slowly.
func (s *Server) accompany(ctx context.Context, cancel context.CancelFunc, h *writer, wt *watcher) {
	select {
	case <-h.opened:
	case <-ctx.Done():
		return
	}
	if wt.missed(ctx) {
		wt.changed()
	}
	t := time.NewTicker(s.limits.alive)
	defer t.Stop()
	for {
		text := ": \n\n"
		select {
		case <-t.C:
		case <-wt.wake:
			text = "event: message\ndata: " + wt.take() + "\n\n"
		case <-ctx.Done():
			return
		}
		if h.say(ctx, text) != nil {
			cancel()
		}
	}
}

// handle calls mcp-go and answers if it panics.
func (s *Server) handle(h *writer, r *http.Request, ctx context.Context, body []byte) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		incident := newIncident()
		s.opts.Log.Error("request panicked", "incident", incident, "method", r.Method,
			"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if h.wrote() {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
		respond(h.w, http.StatusInternalServerError,
			appendError(nil, nil, mcp.INTERNAL_ERROR, "Something went wrong. Incident "+incident+"."))
	}()
	s.http.Handle(h, &server.HTTPRequest{Method: r.Method, URL: r.URL, Header: r.Header, Body: body, Context: ctx})
}

// writer is mcp-go's way to the client.
type writer struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration // for one write; 0: the connection's
	// opened is closed when the client has the headers of a stream and, if it
	// asked for a subscription, the acknowledgement; nil: nobody wants to know.
	opened chan struct{}

	mu    sync.Mutex // mcp-go writes from one goroutine at a time, say from another
	began bool
	open  bool
}

func (h *writer) Header() http.Header { return h.w.Header() }
func (h *writer) CanStream() bool     { _, ok := h.w.(http.Flusher); return ok }

func (h *writer) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = true
	h.w.WriteHeader(status)
}

// Write writes one event or one body.
func (h *writer) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = true
	h.hurry()
	return h.w.Write(p)
}

func (h *writer) Flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hurry()
	_ = h.rc.Flush()
	// mcp-go flushes behind the headers of a GET, and behind the first event
	// of a POST.
	if h.opened != nil && !h.open && strings.HasPrefix(h.w.Header().Get("Content-Type"), "text/event-stream") {
		h.open = true
		close(h.opened)
	}
}

func (h *writer) hurry() {
	if h.limit > 0 {
		_ = h.rc.SetWriteDeadline(time.Now().Add(h.limit))
	}
}

func (h *writer) wrote() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.began
}

// say writes a comment or an event of ours on an open stream. Nothing is
// written once ctx has ended: mcp-go may have written its last event.
func (h *writer) say(ctx context.Context, text string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	h.hurry()
	if _, err := io.WriteString(h.w, text); err != nil {
		return err
	}
	return h.rc.Flush()
}
