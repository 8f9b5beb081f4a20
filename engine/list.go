package engine

import (
	"context"

	"github.com/fusion-serve/fusion-serve/presenters"
)

// List is one visible set of tools.
type List struct{ Tools []presenters.Definition }

// List gives the tools that the caller sees, in order of declaration. The
// list is shared: equal visible sets give the same list, so that a transport
// may keep what it encodes by its address. An error is a store of
// states that could not be asked.
func (p *Program) List(_ context.Context, c *Caller) (*List, error) {
	_ = c // every caller sees every tool until something filters or gates them
	return p.list, nil
}

// Watch calls changed, from any goroutine but never beside itself, when the
// tools that the caller sees may be others, until stop is called.
func (p *Program) Watch(c *Caller, changed func()) (stop func()) {
	_, _ = c, changed // nothing changes while a program runs
	return func() {}
}

// Ended says that a session is over: what is kept for it may go.
func (p *Program) Ended(session string) { _ = session }

// visible is the one function that says whether a caller sees a tool (dotted
// name): list, call and suggestions ask it.
func (p *Program) visible(c *Caller, name string) bool {
	_ = c
	_, ok := p.tools[name]
	return ok
}
