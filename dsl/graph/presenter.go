package graph

import "github.com/fusion-serve/fusion-serve/dsl/shape"

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
