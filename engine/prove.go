package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/db"
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
			_, err := d.Describe(ctx, stmt)
			if err == nil {
				continue
			}
			message, off := err.Error(), -1
			var refused *db.Refusal
			if errors.As(err, &refused) {
				off = refused.Offset
				if refused.Hint != "" {
					message = fmt.Sprintf("%s (%s)", message, refused.Hint)
				}
			}
			f := graph.Fault{At: s.Place(d.Dialect(), off), Path: s.Source.Path, Message: p.scrub(nil, message)}
			faults = append(faults, f)
		}
	}
	return faults.Sorted()
}
