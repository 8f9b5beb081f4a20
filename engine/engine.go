// Package engine turns a graph into a running program: it compiles what the
// spec says, opens its databases and answers calls. It knows nothing of MCP's
// transports and nothing of CUE.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Caller is who calls: the immutable ctx of a call. It is made by the
// transport, a test or the command line.
type Caller struct {
	Session string        // MCP session, "stdio" on stdio, "" for a request without one
	Client  string        // name of the client program, "" if it did not say
	Claims  *value.Object // verified claims; nil: none
	Now     time.Time     // the clock; zero: the real one
}

// Compile makes a program that has not opened anything yet. The faults are
// complete: everything that can be found without a network.
func Compile(g *graph.Graph) (*Program, graph.Faults) { panic("engine.Compile") }

// Options says how to open a program.
type Options struct {
	// Env looks up a variable of the environment; nil: os.LookupEnv.
	Env func(name string) (string, bool)
	// URL replaces the URL of a database; "" or nil: as the spec says.
	URL func(database string) string
	Log *slog.Logger
	// Incident makes the id of an unexpected failure; nil: a random one.
	Incident func() string
}

// Open opens the databases and runs init files on empty embedded ones.
func (p *Program) Open(ctx context.Context, o Options) error { panic("engine.Open") }

// Close ends what Open began.
func (p *Program) Close(ctx context.Context) error { panic("engine.Close") }

// Program is one compiled spec.
type Program struct{}

// Server gives what the spec says of the server.
func (p *Program) Server() *graph.Server { panic("engine.Server") }

// List gives the tools that the caller sees, in order of declaration. The
// slice is shared: equal visible sets give the same slice, so that a
// transport may keep what it encodes by its address.
func (p *Program) List(c *Caller) *List { panic("engine.List") }

// List is one visible set of tools.
type List struct{ Tools []presenters.Definition }

// ErrUnknownTool is what Call gives for a name that the caller cannot see; it
// leaves as JSON-RPC error -32602.
var ErrUnknownTool = errors.New("unknown tool")

// Call answers tools/call: name is the exposed name (or, from the command
// line and tests, the dotted one), args the raw JSON of the arguments (empty:
// none). The only error is ErrUnknownTool, with the response that the command
// line and tests show; everything else is a response. Call recovers panics.
func (p *Program) Call(ctx context.Context, c *Caller, name string, args []byte) (*presenters.Response, error) {
	panic("engine.Call")
}
