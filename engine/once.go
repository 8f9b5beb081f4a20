package engine

import (
	"github.com/fusion-serve/fusion-serve/dsl/expr"
)

// onceKey compiles the idempotency key of a tool, nil: none.
func (c *toolCompiler) onceKey() *expr.Template {
	i := c.graph.Idempotency
	if i == nil {
		return nil
	}
	key, f := expr.CompileTemplate(&i.Key, c.scope)
	c.faults = append(c.faults, f...)
	return key
}
