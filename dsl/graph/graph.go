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
	URL     Text          // may hold secret markers
	Pool    int           // connections, default 10
	Timeout time.Duration // of a statement; 0: none
	Init    []File        // run on an empty embedded database and on the fresh database of a test
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
	Path     string
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
	SQL          *SQL
	Expr         *Text
	Value        *Node
	From         *Text
	Result       *Node
	Returns      *Presenter // nil: everything the binding gave leaves
	Errors       []*ErrorRule
	Rules        []*Rule
	Hints        []*Rule
	Suggest      []*Suggest
	Total        *Text // an expression hole or the name of a column
	Select       bool
	Structured   bool
	Format       string // json, toon or "": the presenter's
	Content      *Content
	Invalidates  []string
	Limit        Limit
	Timeout      time.Duration
	Annotations  Annotations
	// Broken says that a fault took away the binding or the parameters: it has
	// been told, and compiling this tool would only tell it again.
	Broken bool
}

// Icon is an MCP icon.
type Icon struct{ Src, MimeType, Sizes, Theme string }

// Annotations override what the kind says; nil: as the kind says.
type Annotations struct{ Destructive, Idempotent, OpenWorld, ReadOnly *bool }

// Content sends a column or value as another kind of content.
type Content struct {
	At       Place
	Kind     string // image, audio, resource
	Source   Text   // a column or a hole
	MimeType Text
}

// SQL is a binding to statements.
type SQL struct {
	At       Place
	Database string // a declared name
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
	Database    string // "" as the spec says, sqlite or postgres
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
