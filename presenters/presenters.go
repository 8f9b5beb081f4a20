// Package presenters is the one wire-format engine: a value goes in, the
// ordered content blocks of the wire format come out. It owns every rule of
// how an answer, an error and a tool definition look on the wire. It knows
// nothing of MCP sessions, databases or CUE.
package presenters

import (
	"context"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Set is the compiled presenters and tool views of one spec.
type Set struct{}

// Compile plans every presenter and every tool's view. ctx is the type of the
// name ctx. Faults have their places.
func Compile(g *graph.Graph, ctx *shape.Shape) (*Set, graph.Faults) { panic("presenters.Compile") }

// Exposed gives the name under which a tool is on the wire; a name that is no
// tool comes back as it is.
func (s *Set) Exposed(tool string) string { panic("presenters.Exposed") }

// View gives what is needed to present the answers of a tool; nil for an unknown one.
func (s *Set) View(tool string) *View { panic("presenters.View") }

// View is how one tool's answers leave: its presenter with the tool's own
// rules, hints and suggestions, its format and limits.
type View struct{}

// Call is what one call brings to its presentation.
type Call struct {
	Context context.Context
	// Env has the names args and ctx (and state, later) set; Present adds
	// data, items, omitted and total on its own fork.
	Env *expr.Env
	// Visible tells whether the caller sees a tool (dotted name) now.
	Visible func(tool string) bool
	// Select is the _select argument; nil: all.
	Select []string
	// Total is the number of rows there are, -1 if it is not known.
	Total int64
	// Withheld, if set, is called with every value that a mask took out of
	// the answer: the leak check of golden tests. nil in a served call.
	Withheld func(v any)
	// More tells that the binding stopped reading at the limit: there are
	// more rows than it gave.
	More bool
}

// Present renders the answer of a binding. An error is an unexpected failure
// (a row that does not fit the schema, an expression that fails): the caller
// logs it and answers Internal.
func (v *View) Present(c *Call, result any) (*Response, error) { panic("presenters.Present") }

// RowLimit is how many rows the binding needs to read at most, one more than
// is shown so that truncation is known; 0: all. ByteLimit likewise.
func (v *View) RowLimit() int { panic("presenters.RowLimit") }

// ByteLimit is how many bytes of rows the binding may read; 0: all.
func (v *View) ByteLimit() int64 { panic("presenters.ByteLimit") }

// MaskedReads gives a fault for each path in reads (of a text of an error
// rule, which sees the names result and item before masking) that the
// presenter may mask. A nil View masks nothing.
func (v *View) MaskedReads(t *graph.Text, reads [][]string) graph.Faults {
	panic("presenters.MaskedReads")
}

// Response is the answer to one call, ready for the wire.
type Response struct {
	Blocks []Content
	// Code is the code of an error response, "" on success; it is not
	// serialised apart from its place in the envelope.
	Code string
	// IsError: nil absent, else written.
	IsError *bool
	// Structured is structuredContent as JSON, nil: absent. It is the value
	// as it is for 2026-07-28; AppendResult wraps it for 2025-x revisions.
	Structured []byte
	// Side is the structured view for tests; it never reaches the wire.
	Side Side
}

// Content is one content block.
type Content struct {
	Type     string // text, image, audio, resource_link, resource
	Text     []byte
	Data     []byte // base64, image and audio
	MimeType string
	URI      string
	Name     string
	Blob     []byte // base64, resource
}

// Side is what a response says, as structured values, the embedded children's
// included.
type Side struct {
	Data        any
	Rules       []string
	UIBlocks    []UIBlock
	Directives  []string
	Suggestions []Suggestion
}

// UIBlock is a rendered UI block.
type UIBlock struct {
	Type     string
	Title    string
	Width    string
	Priority *int64
	Content  string
}

// Suggestion is a next step as it was sent.
type Suggestion struct{ Tool, Reason string }

// AppendResult appends `{"content":[…],"isError":…,"structuredContent":…}`
// without a line break. legacy wraps structured lists and scalars for
// revisions 2025-x.
func (r *Response) AppendResult(dst []byte, legacy bool) []byte { panic("presenters.AppendResult") }

// Failure is a declared error on its way out.
type Failure struct {
	Code       string
	Message    string
	Suggestion string
	Actions    []string // exposed names
	Details    []Detail
	Severity   string // "" for none
	RetryAfter string // "30 seconds", "" for none
}

// Detail is one key of a failure's details.
type Detail struct{ Key, Text string }

// Response renders the tool_error envelope.
func (f *Failure) Response() *Response { panic("presenters.Failure") }

// Invalid renders the validation_error envelope of arguments that do not fit.
// action is tool/action; known lists the declared parameters for near names.
func Invalid(action string, params *shape.Shape, faults []shape.Fault) *Response {
	panic("presenters.Invalid")
}

// Internal renders an unexpected failure: incident is the id under which the
// log has the cause; mayRepeat is true for query and idempotent tools.
func Internal(action, incident string, mayRepeat bool) *Response { panic("presenters.Internal") }

// UnknownTool renders the answer to a name that is no tool.
func UnknownTool(name string) *Response { panic("presenters.UnknownTool") }

// ActionName is the tool/action form of a dotted tool name: billing/refund,
// ping/default.
func ActionName(tool string) string { panic("presenters.ActionName") }

// Definition is one MCP tool of tools/list, encoded.
type Definition struct {
	Name string // exposed
	// JSON is the tool object for revisions 2025-x, Modern for 2026-07-28
	// (they differ in the output schema).
	JSON, Modern []byte
	// Tools are the dotted names behind it: one in flat exposition, all
	// actions of the group in grouped exposition.
	Tools []string
}

// Definitions gives the MCP tools for the declared tools that keep(dotted
// name) admits, in order of declaration, in the spec's exposition.
func (s *Set) Definitions(keep func(tool string) bool) []Definition { panic("presenters.Definitions") }

// Route finds the declared tool that a call of an exposed name with these
// arguments means, and the arguments without the discriminator. A failed
// route is a response.
func (s *Set) Route(name string, args *value.Object, visible func(tool string) bool) (tool string, rest *value.Object, failed *Response) {
	panic("presenters.Route")
}
