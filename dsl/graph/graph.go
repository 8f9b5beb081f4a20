package graph

import (
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Graph is one spec, checked and resolved. It is not changed after dsl made it.
type Graph struct {
	Dir     string // folder that relative paths start from when nothing nearer is known
	Files   []string
	Package string

	Server     Server
	Env        []*EnvVar
	Databases  []*Database
	APIs       []*API
	Presenters []*Presenter
	Groups     []*Group
	Tools      []*Tool // in order of declaration: file in load order, then line
	Tests      []*Test
}

// Tool gives the tool of that dotted name, or nil.
func (g *Graph) Tool(name string) *Tool {
	return byName(g.Tools, name, func(t *Tool) string { return t.Name })
}

// Presenter gives the presenter of that name, or nil.
func (g *Graph) Presenter(name string) *Presenter {
	return byName(g.Presenters, name, func(p *Presenter) string { return p.Name })
}

// Database gives the database of that name, or nil.
func (g *Graph) Database(name string) *Database {
	return byName(g.Databases, name, func(d *Database) string { return d.Name })
}

// API gives the HTTP service of that name, or nil.
func (g *Graph) API(name string) *API {
	return byName(g.APIs, name, func(a *API) string { return a.Name })
}

// Group gives the group of that prefix, or nil.
func (g *Graph) Group(name string) *Group {
	return byName(g.Groups, name, func(x *Group) string { return x.Name })
}

func byName[T any](l []*T, name string, of func(*T) string) *T {
	for _, x := range l {
		if of(x) == name {
			return x
		}
	}
	return nil
}

// Server is what the spec says of the server as a whole.
type Server struct {
	At           Place
	Name         string
	Version      string
	Title        string
	Description  string
	Instructions string
	Docs         string
	Icon         string
	Exposition   string // flat or grouped
	Separator    string // _ or .
	PageSize     int    // tools a page of tools/list; 0: all on one page
	HTTP         HTTP
	Local        *value.Object // claims of the caller where there is no token to check; nil: none declared
	Tags         []string
	Deny         []*ErrorRule // without SQLState and Status
	Errors       []*ErrorRule
}

// HTTP is where and for whom the server listens.
type HTTP struct {
	Addr    string // default 127.0.0.1:8383
	Path    string // default /mcp
	Origins []string
	Hosts   []string
	MaxBody int64 // bytes of a request body, default 4 MiB
}

// EnvVar is a declared variable of the environment.
type EnvVar struct {
	Name        string
	At          Place
	Shape       *shape.Shape
	HasDefault  bool
	Default     any
	Optional    bool
	Secret      bool
	Description string
	// Value is what the program sees; nil for a secret, whose value is only
	// put in at open.
	Value any
}

// Database is a declared database.
type Database struct {
	Name    string
	At      Place
	URL     Text // may hold secret markers
	Pool    Pool
	Session *Session      // nil: none
	Timeout time.Duration // of a statement; 0: none
	Init    []File        // run on an empty embedded database and on the fresh database of a test
}

// Pool bounds the connections of a database; written as a number it is Max.
type Pool struct {
	Max         int           // default 10
	Min         int           // kept open, default 0
	MaxLifetime time.Duration // of a connection; default 1h
	MaxIdle     time.Duration // unused, then closed; default 30m
	Acquire     time.Duration // how long a call waits for a connection; default 5s
}

// Session is set inside the transaction of every call: row-level security.
// A setting that is nil is UNAUTHORIZED.
type Session struct {
	At       Place
	Role     *Text
	Settings []NodeField
}

// API is a declared HTTP service.
type API struct {
	Name    string
	At      Place
	Path    string
	BaseURL Text // may hold secret markers
	Auth    *Auth
	Headers []NodeField   // texts; may hold secret markers
	Timeout time.Duration // of one try; default 10s
	Retry   int           // more tries of a GET
	MaxBody int64         // bytes of an answer; default 10 MiB
	Errors  []*ErrorRule
}

// Auth is how a service knows us. Exactly one member is set. Texts may hold
// secret markers.
type Auth struct {
	At     Place
	Bearer *Text
	Basic  *Basic
	Header *HeaderAuth
	OAuth2 *OAuth2 // client credentials
}

// Basic is a user and a password.
type Basic struct{ User, Password Text }

// HeaderAuth is a header of its own.
type HeaderAuth struct{ Name, Value Text }

// OAuth2 is the client credentials grant (RFC 6749, 4.4).
type OAuth2 struct {
	TokenURL, ClientID, ClientSecret Text
	Scopes                           []string
}

// File is a file named in a spec.
type File struct {
	At   Place
	Name string // as written
	Path string // where it is
}

// Presenter says how a value leaves.
type Presenter struct {
	Name       string // the name in the spec; for a presenter in place the tool's name
	At         Place
	Path       string
	Schema     *shape.Shape
	Rules      []*Rule
	Hints      []*Rule
	Suggest    []*Suggest
	UI         []*Block
	Collection Collection
	Embed      []*Embed
	Limit      Limit
	Redact     []*Redact
	Format     string // json or toon
	AutoRules  bool
}

// Collection is what a presenter says of a list as a whole.
type Collection struct {
	Rules   []*Rule
	Hints   []*Rule
	Suggest []*Suggest
	UI      []*Block
}

// Rule is a sentence for the agent, with or without a condition.
type Rule struct {
	At       Place
	When     *Text // an expression; nil: always
	Text     Text  // with holes
	Unmasked bool
}

// Suggest is a next step.
type Suggest struct {
	At       Place
	When     *Text
	Tool     string // dotted name
	Reason   Text
	Unmasked bool
}

// Block is a UI block.
type Block struct {
	At       Place
	Kind     string // echarts json mermaid markdown summary codeBlock list table
	Title    *Text
	Width    string
	Priority *int64
	When     *Text
	Unmasked bool
	// Content is the text (mermaid, markdown, summary), the tree (echarts,
	// json) or the list's hole.
	Content *Node
	Lang    *Text    // codeBlock
	Columns []Column // table
	Rows    *Text    // table: a hole; nil: the items of a collection
}

// Column is a column of a table block.
type Column struct {
	Title string
	Cell  Text // a path of the row, or a text with holes over data, the row
}

// Embed sends a key through another presenter.
type Embed struct {
	At        Place
	Key       string
	Presenter string
}

// Limit bounds an answer; 0 is no bound.
type Limit struct {
	At     Place
	Rows   int
	Bytes  int64
	Tokens int64 // ceil(characters / 3.5)
	Text   *Text // the truncation block's text, over items, omitted, total
}

// Redact masks paths.
type Redact struct {
	At       Place
	Paths    []Text
	Patterns []Text // regular expressions: only what matches is masked
	When     *Text
	As       string // what stands in its place
	Remove   bool   // as: null
}

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

// Binding is where a value comes from, and what is made of it. Exactly one of
// the first five is set.
type Binding struct {
	SQL   *SQL
	HTTP  *Request
	Steps []*Step
	Expr  *Text
	Value *Node

	From   *Text
	Result *Node
	Total  *Text // an expression hole or the name of a column
}

// Step is one of several bindings of a tool.
type Step struct {
	Name string // "": no later step can name its answer
	At   Place
	Path string
	When *Text // nil: always
	Binding
	Errors   []*ErrorRule
	Undo     *Binding
	Optional bool
	Each     *Text // a hole that gives a list; nil: once
}

// Request is a binding to an HTTP service.
type Request struct {
	At      Place
	API     string
	Method  string // GET, POST, PUT, PATCH, DELETE
	Target  Text   // the path; each hole is one escaped segment
	Query   []NodeField
	Headers []NodeField
	Body    *Node       // sent as JSON
	Form    []NodeField // sent as application/x-www-form-urlencoded
	Pages   *Pages
}

// Pages follows the pages of a list.
type Pages struct {
	At    Place
	Next  Text // "link", or a hole over body: the next page or cursor, nil at the end
	Param string
	Max   int
}

// SQL is a binding to statements.
type SQL struct {
	At       Place
	Database string // a declared name; "" if Choice is set
	Choice   *Text  // a hole over ctx that gives a declared name
	Query    Text   // the statement, from query or file
	One      bool
	Args     []NodeField // computed names, before the parameters
	Choose   []Choose
	Nest     []*Nest
}

// Choose puts one of the author's own pieces where @Param stands.
type Choose struct {
	Param  string
	At     Place
	Pieces []Piece
}

// Piece is one choice.
type Piece struct {
	Key string
	SQL Text
}

// Nest is one more query a level.
type Nest struct {
	Key   string
	At    Place
	Query Text
	By    string
	One   bool
	Nest  []*Nest
}

// ErrorRule turns an outcome into a declared error.
type ErrorRule struct {
	At         Place
	Path       string
	When       *Text
	SQLState   []string
	Status     []int
	Code       string
	Message    Text
	Suggestion *Text
	Actions    []string // dotted names
	Severity   string   // error (default), warning, critical
	Details    []NodeField
	RetryAfter *Text
	Unmasked   bool
}

// NodeKind says what a Node is.
type NodeKind uint8

// The kinds of nodes.
const (
	Const  NodeKind = iota // Node.Const: null, bool or number
	String                 // Node.Text, with holes
	Struct                 // Node.Fields
	List                   // Node.Items
)

// Node is a tree of the spec whose strings are texts with holes.
type Node struct {
	At     Place
	Path   string
	Kind   NodeKind
	Const  any
	Text   Text
	Fields []NodeField
	Items  []*Node
}

// NodeField is a field of a struct node.
type NodeField struct {
	Name string
	At   Place
	Node *Node
}

// Test is a declared case.
type Test struct {
	Name        string
	At          Place
	Path        string
	File        string // name of the file that declares it, without folder and .cue
	Dir         string // folder of that file: golden/ stands in it
	Call        string // dotted tool name, or
	List        string // "tools"
	Args        *value.Object
	Ctx         TestCtx
	Environment map[string]string
	Seed        []File
	Database    string      // "" as the spec says, sqlite or postgres
	HTTP        []*Exchange // the only requests that may be made, in this order
	Before      []*TestCall
	Error       string // code the case must end in; "": it must succeed
}

// TestCtx is the caller and the clock of a case.
type TestCtx struct {
	Session string        // default test
	Claims  *value.Object // nil: server.local
	Now     time.Time     // zero: the real clock
}

// TestCall is a call made before the case.
type TestCall struct {
	At   Place
	Call string
	Args *value.Object
	Ctx  *TestCtx // nil: the case's
}

// EnvShape is the type of the name env: the variables that are not secret.
func (g *Graph) EnvShape() *shape.Shape {
	s := &shape.Shape{Kind: shape.Struct}
	for _, v := range g.Env {
		if !v.Secret {
			s.Fields = append(s.Fields, &shape.Field{Name: v.Name, Shape: v.Shape, Optional: v.Optional, Description: v.Description})
		}
	}
	return s
}

// EnvValue is the value of the name env.
func (g *Graph) EnvValue() *value.Object {
	o := &value.Object{}
	for _, v := range g.Env {
		if !v.Secret {
			o.Set(v.Name, v.Value)
		}
	}
	return o
}

// Exchange is a request that a case expects, and its answer.
type Exchange struct {
	At      Place
	API     string
	Method  string
	Target  string // path and query
	Body    any    // as value; HasBody tells whether it is compared
	HasBody bool
	Status  int
	Headers []Header
	// Answer is the body: JSON of AnswerValue, or AnswerFile's bytes.
	AnswerValue any
	HasAnswer   bool
	AnswerFile  File
	Timeout     bool // no answer comes
}

// Header is one header field.
type Header struct{ Name, Value string }
