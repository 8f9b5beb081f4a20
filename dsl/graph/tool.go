package graph

import (
	"slices"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// Group is what the tools of one prefix share.
type Group struct {
	Name            string
	At              Place
	Description     string
	Tags            []string
	Deny            []*ErrorRule
	Errors          []*ErrorRule
	Select          bool
	ToonDescription bool
	Params          *shape.Shape // common parameters
}

// Tool is a declared tool.
type Tool struct {
	Name         string // dotted
	At           Place
	Path         string // tools."billing.get_invoice"
	Kind         string // query, action, mutation
	Title        string
	Description  string
	Instructions string
	Icons        []Icon
	Tags         []string     // of the tool; server and group tags are joined by the engine
	Params       *shape.Shape // a struct without Rest, the group's common params merged in; never nil
	Binding
	Deny        []*ErrorRule
	Returns     *Presenter // nil: everything the binding gave leaves
	Errors      []*ErrorRule
	Rules       []*Rule
	Hints       []*Rule
	Suggest     []*Suggest
	Select      bool
	Structured  bool
	Format      string // json, toon or "": the presenter's
	Content     *Content
	Invalidates []string
	Limit       Limit
	Timeout     time.Duration
	Annotations Annotations
	Concurrency Concurrency
	Idempotency *Idempotency
	State       *Gate // nil: in every state
	// Broken says that a fault took away the binding or the parameters: it has
	// been told, and compiling this tool would only tell it again.
	Broken bool
}

// Icon is an MCP icon.
type Icon struct{ Src, MimeType, Sizes, Theme string }

// Concurrency bounds the calls of a tool at once; Max 0 is no bound.
type Concurrency struct {
	At    Place
	Max   int
	Queue int // callers that wait; 0: none
}

// Idempotency gives the first answer again for the same key.
type Idempotency struct {
	At  Place
	Key Text
	TTL time.Duration
}

// Annotations override what the kind says; nil: as the kind says.
type Annotations struct{ Destructive, Idempotent, OpenWorld, ReadOnly *bool }

// Content sends a column or value as another kind of content.
type Content struct {
	At       Place
	Kind     string // image, audio, resource
	Source   Text   // a column or a hole
	MimeType Text
}

// HasSQL tells whether the tool has a statement, its own or that of a step.
func (t *Tool) HasSQL() bool {
	return t.SQL != nil || slices.ContainsFunc(t.Steps, func(s *Step) bool { return s.SQL != nil })
}
