package bind

import (
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Declared is a failure that is made already: by an error rule of a step, or
// by a bound of the language that the caller ran into. It is answered as it is.
type Declared struct{ Failure *presenters.Failure }

func (d *Declared) Error() string { return d.Failure.Code + ": " + d.Failure.Message }

// Refused is an answer of an HTTP service whose status is 400 or more. Error
// rules see what it said; nobody else does.
type Refused struct {
	API     string
	Status  int
	Headers *value.Object // lower-case names
	Body    any
}

func (r *Refused) Error() string { return fmt.Sprintf("service %s answered %d", r.API, r.Status) }

// SetAnswer gives the names body, status and headers what a service said, if
// it refused.
func SetAnswer(env *expr.Env, err error) {
	var r *Refused
	if !errors.As(err, &r) {
		return
	}
	env.Set("body", r.Body)
	env.Set("status", r.Status)
	env.Set("headers", r.Headers)
}
