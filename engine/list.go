package engine

import "github.com/fusion-serve/fusion-serve/presenters"

// List is one visible set of tools.
type List struct{ Tools []presenters.Definition }

// List gives the tools that the caller sees, in order of declaration. The
// list is shared: equal visible sets give the same list, so that a transport
// may keep what it encodes by its address.
func (p *Program) List(c *Caller) *List {
	_ = c // every caller sees every tool until something filters or gates them
	return p.list
}

// visible is the one function that says whether a caller sees a tool (dotted
// name): list, call and suggestions ask it.
func (p *Program) visible(c *Caller, name string) bool {
	_ = c
	_, ok := p.tools[name]
	return ok
}
