package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// defaultPath is server.http.path where the spec does not say.
const defaultPath = "/mcp"

// limits are the time limits of a connection. A call may take as long as it
// takes.
type limits struct {
	header time.Duration // for the headers of a request
	read   time.Duration // for headers and body
	write  time.Duration // for the answer, from its first byte on
	idle   time.Duration // between requests
	event  time.Duration // for one event of a stream
	// alive is how often an open stream says that it is there: often enough
	// for proxies, and it finds out that the client has gone.
	alive time.Duration
}

var usualLimits = limits{
	header: 10 * time.Second, read: 30 * time.Second, write: time.Minute, idle: 2 * time.Minute,
	event: 30 * time.Second, alive: 25 * time.Second,
}

// limitedKey marks the contexts of connections that have these limits.
type limitedKey struct{}

func limited(r *http.Request) bool { return r.Context().Value(limitedKey{}) != nil }

// Serve serves over HTTP on l, which it closes, until ctx ends: at once no new
// connection is taken and the open streams end, calls in flight get
// Options.Grace. The path is the one of the spec when it starts.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.faults != "" {
		return errors.Join(errors.New("a spec with mistakes is only served over stdio"), l.Close())
	}
	path := cmp.Or(s.current().program.Server().HTTP.Path, defaultPath)
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		s.opts.Log.Warn("the server can be reached from other machines, and whoever reaches it may call every tool", "addr", a.String())
	}
	calls, cancelCalls := context.WithCancel(context.WithValue(context.Background(), limitedKey{}, true))
	defer cancelCalls()
	h := &http.Server{
		Handler:           onPath(path, s),
		ReadHeaderTimeout: s.limits.header,
		ReadTimeout:       s.limits.read,
		WriteTimeout:      s.limits.write,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return calls },
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	defer s.calls.flush()
	sweep := time.NewTicker(max(s.opts.SessionTTL/4, time.Second))
	defer sweep.Stop()
	for {
		select {
		case err := <-served:
			return fmt.Errorf("serving HTTP: %w", err)
		case <-sweep.C:
			s.forget(s.sessions.sweep())
		case <-ctx.Done():
			return s.shutdown(h, cancelCalls)
		}
	}
}

// shutdown ends the streams, waits for the calls and ends what is left.
func (s *Server) shutdown(h *http.Server, cancelCalls context.CancelFunc) error {
	s.stopStreams()
	// Calls that outlive their grace are cancelled and get a moment to say so.
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace+time.Second)
	defer cancel()
	defer time.AfterFunc(s.opts.Grace, cancelCalls).Stop()
	if err := h.Shutdown(ctx); err != nil {
		_ = h.Close()
		return fmt.Errorf("stopping: calls did not end in %s: %w", s.opts.Grace, err)
	}
	return nil
}

// onPath serves one path.
func onPath(path string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.Error(w, "MCP is served at "+path+".", http.StatusNotFound)
			return
		}
		h.ServeHTTP(w, r)
	})
}
