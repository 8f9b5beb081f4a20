package graph

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
