package expr

import (
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Error is an expression that failed while it ran. It is for the log: it
// names places and kinds of values, never a value.
type Error struct {
	At      graph.Place
	Path    string // of the text in the spec
	Message string
	Err     error // what ended it from outside: the context's error; or nil

	off int // byte of the expression until the program puts in At
}

func (e *Error) Error() string {
	return graph.Fault{At: e.At, Path: e.Path, Message: e.Message}.String()
}

// Unwrap gives what ended the evaluation from outside.
func (e *Error) Unwrap() error { return e.Err }

// errChain ends a chain of ?. that met nil; the chain's node turns it into nil.
var errChain = errors.New("nil in a chain")

func (r *run) fail(off int, format string, args ...any) error {
	return &Error{off: off, Message: fmt.Sprintf(format, args...)}
}
