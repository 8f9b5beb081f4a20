package presenters

import (
	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// A plan is what is known of a presenter before the first call. Conditions
// and texts are small interfaces, which the compiled expressions and templates
// of package expr satisfy.

// cond decides over the names of one evaluation.
type cond interface {
	Bool(e *expr.Env) (bool, error)
}

// text gives words. What comes from data goes through safe, what the author
// wrote does not.
type text interface {
	Append(dst []byte, e *expr.Env, safe func(dst []byte, s string) []byte) ([]byte, error)
}

// tree gives a value.
type tree interface {
	Value(e *expr.Env) (any, error)
}

// plan is a compiled presenter.
type plan struct {
	name    string       // for the text of a failed check
	schema  *shape.Shape // nil: everything is declared
	auto    []string     // the rules that autoRules gives
	rules   []rule
	hints   []rule
	suggest []suggestion
	ui      []block
	coll    collection
	extra   extra // of the tool
	embeds  []embed
	limit   limit
	masks   []mask
	hidden  []maskPath // what the masks and those of the children hide
	toon    bool
	gates   mentions  // of all its texts and suggestions
	rows    *rowCache // nil: rows have to become objects
}

// collection is what a plan says of a list as a whole.
type collection struct {
	rules, hints []rule
	suggest      []suggestion
	ui           []block
}

// extra is what a tool adds to its presenter. Its rules that read the list are
// marked so.
type extra struct {
	rules, hints  []rule
	suggest, coll []suggestion
}

// rule is a sentence: a static one, or a text with holes, with or without a
// condition.
type rule struct {
	when     cond
	static   string // if text is nil
	text     text
	unmasked bool
	// perItem: condition or text read the item, so that each item of a list
	// is asked; otherwise one answer holds for all.
	perItem bool
	// always: without a condition and without reading an item, stated for an
	// empty list too.
	always bool
	// whole: condition or text read all of the item or of an element, not
	// only some of their fields.
	whole bool
	// list: a rule of a tool that reads items, omitted or total.
	list bool
}

// suggestion is a next step.
type suggestion struct {
	rule
	tool    string // dotted, for the question whether the caller sees it
	exposed string
}

// embed sends a key through another plan.
type embed struct {
	key  string
	plan *plan
	// declared: the parent's schema says the same of the key as the child's
	// own, so that the child need not look again.
	declared bool
}

// limit bounds a list; 0 is no bound.
type limit struct {
	rows   int
	bytes  int64
	tokens int64
	block  *block // the author's own words
	zero   bool   // rows is 0 and means it
}

// block is a UI block.
type block struct {
	kind     kind
	when     cond
	unmasked bool
	reads    bool // something in it reads the item or the items
	whole    bool // and reads all of the item or of an element
	title    text // nil: none
	width    string
	priority string // as it is written; "" for none
	name     text   // codeBlock: its language, which is also its type
	body     text   // mermaid, markdown, summary, codeBlock
	tree     tree   // echarts, json, list; the rows of a table
	columns  []column
}

// words is a text without holes.
type words string

// Append appends the text.
func (w words) Append(dst []byte, _ *expr.Env, _ func([]byte, string) []byte) ([]byte, error) {
	return append(dst, w...), nil
}

// kind is the kind of a UI block.
type kind uint8

const (
	echarts kind = iota
	jsonBlock
	mermaid
	markdown
	summary
	codeBlock
	list
	table
)

var kinds = map[string]kind{
	"echarts": echarts, "json": jsonBlock, "mermaid": mermaid, "markdown": markdown,
	"summary": summary, "codeBlock": codeBlock, "list": list, "table": table,
}

// column is a column of a table.
type column struct {
	title string
	path  []string // of the row, or
	cell  text     // over data, the row; nil: the path
}
