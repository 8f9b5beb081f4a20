package serve

import (
	"context"
	"fmt"
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

// stream lets mcp-go answer with a stream that stays open; cancel ends it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, ctx context.Context, cancel context.CancelFunc, body []byte) {
	h := &writer{w: w, rc: http.NewResponseController(w), limit: s.limits.event}
	readWhole(w, r)
	_ = h.rc.SetWriteDeadline(time.Time{})
	var ticks sync.WaitGroup
	ended := make(chan struct{})
	ticks.Go(func() {
		t := time.NewTicker(s.limits.alive)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if h.comment() != nil {
					cancel()
				}
			case <-ended:
				return
			}
		}
	})
	defer func() {
		close(ended)
		ticks.Wait()
		if limited(r) {
			_ = h.rc.SetWriteDeadline(time.Now().Add(s.limits.event))
		} else { // the connection may serve more requests without setting one
			_ = h.rc.SetWriteDeadline(time.Time{})
		}
	}()
	s.handle(h, r, ctx, body)
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

	mu    sync.Mutex // mcp-go writes from one goroutine at a time, comments come from another
	began bool
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

// comment writes an SSE comment, if the answer is a stream by now.
func (h *writer) comment() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.began || !strings.HasPrefix(h.w.Header().Get("Content-Type"), "text/event-stream") {
		return nil
	}
	h.hurry()
	if _, err := h.w.Write([]byte(": \n\n")); err != nil {
		return err
	}
	return h.rc.Flush()
}
