package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// isBarred tells whether an error speaks of the gate of a tool.
func isBarred(err error) bool {
	if err == nil {
		return false
	}
	var made *answered
	return errors.As(err, &made) || errors.Is(err, errClosed) || errors.Is(err, errTaken) || errors.Is(err, errDoubt) ||
		errors.Is(err, gate.ErrConflict)
}

// barred gives the answer to an error that speaks of the gate.
func (w *passage) barred(ctx context.Context, err error) *presenters.Response {
	var made *answered
	if errors.As(err, &made) {
		return made.response
	}
	return w.answer(ctx, err)
}

// answer says why a call may not go on.
func (w *passage) answer(ctx context.Context, reason error) *presenters.Response {
	t := w.call.tool
	switch {
	case errors.Is(reason, errClosed):
		return presenters.Forbidden(t.exposed, w.state, w.program.offered(ctx, w.call)).Response()
	case errors.Is(reason, errDoubt):
		return (&presenters.Failure{
			Code:       "CONFLICT",
			Message:    fmt.Sprintf("[%s] An earlier call of this workflow ended without an answer: nobody knows whether it took effect.", t.action),
			Suggestion: "Do not repeat it. Tell the user that an operator must settle the state of this workflow.",
			Severity:   "error",
		}).Response()
	}
	return (&presenters.Failure{
		Code:       "CONFLICT",
		Message:    fmt.Sprintf("[%s] Another call is moving this workflow, or has just moved it. Nothing was changed.", t.action),
		Suggestion: "List the tools again and look at what is there now before you repeat this call.",
		Severity:   "error",
	}).Response()
}

// nobody is the failure of a caller of whom nothing tells whose state it is.
func (w *passage) nobody() *presenters.Failure {
	return &presenters.Failure{
		Code:       "AUTH_REQUIRED",
		Message:    fmt.Sprintf("Tool %q works on a state of the caller's own, and this request does not tell whose it is.", w.call.tool.exposed),
		Suggestion: "Do not retry. Tell the user to sign in, or to connect with a client that keeps a session.",
		Severity:   "error",
	}
}

// unavailable answers for a store that could not be asked.
func (w *passage) unavailable(ctx context.Context, err error) *presenters.Response {
	switch {
	case errors.Is(err, gate.ErrFull):
		w.program.log.Error("the states kept in memory are at their bound: give the machine a ttl, or a store", "fsm", w.id.FSM)
		return (&presenters.Failure{
			Code: "SERVER_BUSY", Message: "The server keeps no more workflows at the moment. Nothing was changed.",
			Suggestion: "Tell the user if it stays so.", Severity: "error",
		}).Response()
	case ctx.Err() != nil && !starved(err):
		return w.call.tool.unanswered(ctx, false).Response()
	}
	return w.program.refused(w.call, &bind.Outcome{Err: fmt.Errorf("the state store: %w", err)})
}

// offered are the exposed names of the tools that the caller may use now.
func (p *Program) offered(ctx context.Context, c *call) []string {
	var names []string
	for _, t := range p.graph.Tools {
		if c.sees(ctx, p, t.Name) {
			names = append(names, p.views.Exposed(t.Name))
		}
	}
	return names
}
