package db

import "context"

// Description is what a server knows of a statement without running it.
type Description struct {
	// Params are the types that the parameters take, in order; SQLite's have
	// none.
	Params []Type
	// Columns are those of the answer; none: the statement gives no rows.
	Columns []Column
}

// Column is a column of an answer.
type Column struct {
	Name string
	Type Type
	// Nullable: the column of a table that may hold NULL. That it is false
	// proves nothing: an expression, or a table that is joined from outside, may
	// be NULL all the same.
	Nullable bool
}

// TypeKind says which values a type has, as package value has them.
type TypeKind uint8

// The kinds of types.
const (
	UnknownType TypeKind = iota // the server does not say, or any
	BoolType
	IntType
	ExactType // a decimal number
	FloatType
	TextType // a text of any content
	FormType // a text of a certain form: a date, a UUID, an enum
	JSONType // any value
	ListType // of Type.Elem
	ObjectType
)

// Type is the type of a parameter or column.
type Type struct {
	Name string // as the server writes it: "integer", "text[]"
	Kind TypeKind
	Elem *Type // ListType; nil: not known
}

// Refusal is what a server says against a statement when it prepares it.
type Refusal struct {
	Offset int    // byte in Stmt.SQL, or -1
	Hint   string // "" for none
	Err    error  // in the server's own words
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Describe prepares a statement without running it. What the server has
// against it is a *Refusal; a server that cannot be reached is an *Error with
// Unavailable or Busy.
func (d *DB) Describe(ctx context.Context, s *Stmt) (*Description, error) {
	a := Access{db: d}
	return a.Describe(ctx, s)
}

// Describe is DB.Describe with the names and rights of a session's role.
func (a *Access) Describe(ctx context.Context, s *Stmt) (x *Description, err error) {
	leave, err := a.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	defer guard(&err)
	return a.db.engine.describe(ctx, a.who, s)
}
