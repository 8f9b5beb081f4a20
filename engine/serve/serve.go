package serve

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Program is what a transport asks of a running program; *engine.Program is
// one. Its dynamic type must be comparable.
type Program interface {
	Server() *graph.Server
	// List gives the tools that the caller sees; equal sets are the same
	// *engine.List. An error is a store of states that could not be asked; its
	// text is logged and holds no secret.
	List(ctx context.Context, c *engine.Caller) (*engine.List, error)
	// Watch calls changed when the tools that the caller sees may be others,
	// from any goroutine, never beside itself, and maybe more often than
	// needed, until stop is called; a nil stop is nothing to call. Watch must
	// be quick, and stop may be called when the program was replaced.
	Watch(c *engine.Caller, changed func()) (stop func())
	// Ended says that a session is over: what is kept for it may go. It may be
	// said more than once, and must be quick too.
	Ended(session string)
	Call(ctx context.Context, c *engine.Caller, name string, args []byte) (*presenters.Response, error)
}

// Source gives the program that answers now. It is asked once for each
// request, by many goroutines, and must be as cheap as reading a pointer.
type Source interface{ Program() Program }

// Fixed is the source of a program that does not change.
func Fixed(p Program) Source { return fixed{p} }

type fixed struct{ program Program }

func (f fixed) Program() Program { return f.program }

// Options says how to serve.
type Options struct {
	// Log takes one line for each call, without its arguments, and what went
	// wrong in the transport; nil: nothing is logged.
	Log *slog.Logger
	// Together runs a function that logs many lines, so that they may be
	// written at once; nil: each is written by itself.
	Together func(write func())
	// Version is that of the running program; clients see it where the spec
	// has no version. Empty: 0.0.0.
	Version string
	// Grace is how long calls in flight may go on after the server was asked
	// to stop; 0: 10 s.
	Grace time.Duration
	// SessionTTL is how long a session lives that nobody uses; a session with
	// an open stream is in use. 0: 30 min.
	SessionTTL time.Duration
	// MaxSessions bounds the sessions; the one unused for longest makes room
	// for a new one. A session costs about 14 KB. 0: 10,000.
	MaxSessions int
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.SessionTTL == 0 {
		o.SessionTTL = 30 * time.Minute
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 10_000
	}
	return o
}

// revisions are what server/discover offers, newest first. Older clients that
// ask initialize for an older revision get it from mcp-go; nobody is invited.
var revisions = []string{mcp.ProtocolVersion20260728, mcp.ProtocolVersion20251125, mcp.ProtocolVersion20250618}

// Server serves one source. It is an http.Handler and may serve stdio. Once
// Serve or ServeStdio has ended it opens no more streams.
type Server struct {
	opts     Options
	source   Source
	faults   string // fault lines of a spec that did not load; "": it did
	state    atomic.Pointer[state]
	calls    *callLog
	sessions *sessions
	core     *server.MCPServer
	http     *server.StreamableHTTPServer
	limits   limits
	watchers watchers
	// streams ends when the server is asked to stop: open GET and listen
	// streams end with it.
	streams     context.Context
	stopStreams context.CancelFunc
}

// New makes a server for the programs of a source. An error is one of the
// lists in server.http.
func New(src Source, o Options) (*Server, error) {
	h := src.Program().Server().HTTP
	if err := checkNames(h.Hosts, h.Origins); err != nil {
		return nil, err
	}
	return newServer(src, o), nil
}

func newServer(src Source, o Options) *Server {
	o = o.withDefaults()
	s := &Server{opts: o, source: src, calls: newCallLog(o.Log, o.Together), sessions: newSessions(o.SessionTTL, o.MaxSessions), limits: usualLimits}
	s.streams, s.stopStreams = context.WithCancel(context.Background())
	hooks := &server.Hooks{}
	hooks.AddAfterInitialize(s.initialized)
	hooks.AddAfterDiscover(s.discovered)
	hooks.AddBeforeSubscriptionsListen(s.listening)
	info := s.implementation(s.current().program.Server())
	s.core = server.NewMCPServer(info.Name, info.Version,
		server.WithToolCapabilities(true), server.WithHooks(hooks), server.WithRecovery())
	s.http = server.NewStreamableHTTPServer(s.core,
		server.WithSessionIdManagerResolver(resolver{s}),
		server.WithStreamableHTTPProtocolVersions(revisions...),
		server.WithStreamableHTTPLogger(slog.New(warnings{o.Log.Handler()})))
	return s
}

// greeting is called by the initialized hook with the name of the client.
type greeting func(client string)

type greetingKey struct{}

// initialized completes the answer to initialize with what the spec says now,
// which may not be what it said when mcp-go's server was made.
func (s *Server) initialized(ctx context.Context, _ any, q *mcp.InitializeRequest, r *mcp.InitializeResult) {
	spec := s.current().program.Server()
	r.ServerInfo = s.implementation(spec)
	r.Instructions = spec.Instructions
	if greet, ok := ctx.Value(greetingKey{}).(greeting); ok {
		greet(shorten(q.Params.ClientInfo.Name))
	}
}

// discovered does the same for server/discover.
func (s *Server) discovered(_ context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
	st := s.current()
	spec := st.program.Server()
	r.Instructions = spec.Instructions
	r.EnsureResultMeta().SetServerInfo(s.implementation(spec))
	r.SetCacheHints(listTTL, mcp.CacheScopePrivate)
}

// implementation is how the server names itself to clients.
func (s *Server) implementation(spec *graph.Server) mcp.Implementation {
	i := mcp.Implementation{
		Name: spec.Name, Version: spec.Version, Title: spec.Title,
		Description: spec.Description, WebsiteURL: spec.Docs,
	}
	i.Version = cmp.Or(i.Version, s.opts.Version, "0.0.0") // the field is required
	if spec.Icon != "" {
		i.Icons = []mcp.Icon{{Src: spec.Icon}}
	}
	return i
}

// shorten bounds a text of the client that is kept or logged.
func shorten(s string) string {
	const most = 128
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && s[n]&0xC0 == 0x80 { // not inside a character
		n--
	}
	return s[:n] + "…"
}
