package engine

import (
	"context"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Prove has the open databases prepare every statement of the spec, without
// running any, and gives what they say as faults with places inside the SQL:
// `check --online`.
func (p *Program) Prove(ctx context.Context) graph.Faults {
	var faults graph.Faults
	for _, t := range p.graph.Tools {
		for _, s := range p.tools[t.Name].binding.Statements() {
			d := p.dbs[s.Database]
			stmt := s.Stmt[d.Dialect()]
			off, hint, err := d.Describe(ctx, stmt)
			if err == nil {
				continue
			}
			message := err.Error()
			if hint != "" {
				message = fmt.Sprintf("%s (%s)", message, hint)
			}
			f := graph.Fault{At: s.Place(d.Dialect(), off), Path: s.Source.Path, Message: p.scrub(nil, message)}
			faults = append(faults, f)
		}
	}
	return faults.Sorted()
}
