// Package engine turns a graph into a running program: it compiles what the
// spec says, opens its databases and answers calls. It knows nothing of MCP's
// transports and nothing of CUE.
//
// A program goes through four verbs: dsl loads, Compile compiles, Open opens,
// and a transport serves. What Compile finds wrong needs no network.
package engine

import (
	"log/slog"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Program is one compiled spec. After Open it may be used by many goroutines
// and does not change.
type Program struct {
	graph *graph.Graph
	// server is graph.Server with the tools' exposed names in its texts.
	server graph.Server
	views  *presenters.Set
	tools  map[string]*tool // by dotted name
	list   *List            // what a caller sees who sees everything
	spec   *bind.Spec
	base   *expr.Scope   // ctx and env
	env    *value.Object // variables of the environment that are not secret

	machines []*machine // in order of declaration
	gating   []*machine // those by whose state lists differ
	lists    *lists     // by the states of those

	// Set by Open.
	dbs      map[string]*db.DB
	fleeting map[string]bool // databases in memory: nobody else sees what is in them
	apis     map[string]*api.Client
	stores   []gate.Store // by machine
	opened   []gate.Store // each once
	watchers *watchers
	log      *slog.Logger
	incident func() string
	secrets  []string // values that no log line may hold
	parts    []string // of URLs, words that no log line may hold

	// later is set by Start: the proofs that wait for a database.
	later *proofs
}

// tool is a compiled tool.
type tool struct {
	graph   *graph.Tool
	binding *bind.Binding
	view    *presenters.View
	deny    bind.Rules
	errors  bind.Rules     // of the tool, its group and the server
	action  string         // tool/action, as the envelopes write it
	exposed string         // as it is on the wire
	gate    *toolGate      // nil: in every state
	needs   []*machine     // whose state the answer depends on
	queue   *queue         // nil: calls are not bounded
	once    *expr.Template // idempotency key; nil: none
	// mayRepeat tells that calling again with the same arguments does no harm.
	mayRepeat bool
}

// Server gives what the spec says of the server, its texts as agents read them.
func (p *Program) Server() *graph.Server { return &p.server }

// Graph gives the spec that the program was compiled from.
func (p *Program) Graph() *graph.Graph { return p.graph }
