package bind

import (
	"context"
	"errors"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// run is one call of an SQL binding.
type run struct {
	binding *Binding
	ctx     context.Context
	env     *expr.Env
	args    *value.Object
	dialect db.Dialect
	// computed holds sql.args once they are made.
	computed []any
}

// errTooMany is `one: true` with two rows.
var errTooMany = errors.New("one: true, but the query gave more than one row")

// answer runs the query and its nests: nil, an object, rows or a list.
func (r *run) answer(q db.Querier, o *Outcome) (any, error) {
	b := r.binding
	limit := b.limit
	if b.one {
		limit = db.Limit{Rows: 1}
	}
	a, err := r.query(q, b.query, nil, limit)
	switch {
	case err != nil:
		return nil, err
	case a.Rows == nil:
		return value.Of("affected", a.Affected), nil
	case b.one && a.More:
		return nil, errTooMany
	}
	o.More = a.More
	if err := b.columnTotal(a.Rows, o); err != nil {
		return nil, err
	}
	if b.one && a.Rows.Len() == 0 {
		return nil, nil
	}
	if len(b.nests) == 0 {
		if b.one {
			return a.Rows.Object(0), nil
		}
		return a.Rows, nil
	}
	list := a.Rows.List()
	if err := r.nest(q, b.nests, a.Rows, list); err != nil {
		return nil, err
	}
	if b.one {
		return list[0], nil
	}
	return list, nil
}

// query runs one query; rows are those above it.
func (r *run) query(q db.Querier, query *query, rows *value.Rows, l db.Limit) (*db.Answer, error) {
	v, err := query.pick(r.args)
	if err != nil {
		return nil, err
	}
	f := &v.forms[r.dialect]
	args := make([]any, len(f.args))
	for i := range f.args {
		if args[i], err = r.argument(&f.args[i], rows); err != nil {
			return nil, err
		}
	}
	return q.Query(r.ctx, f.stmt, args, l)
}

func (r *run) argument(a *argument, rows *value.Rows) (any, error) {
	var v any
	switch a.from.kind {
	case fromArgs:
		v, _ = r.args.Get(a.from.path[0])
	case fromScope:
		v = r.env.Get(a.from.path[0])
		for _, field := range a.from.path[1:] {
			o, _ := v.(*value.Object)
			v, _ = o.Get(field)
		}
	case fromRows:
		var err error
		if v, err = distinct(rows, a.from.path[0]); err != nil {
			return nil, err
		}
	case fromComputed:
		if err := r.compute(); err != nil {
			return nil, err
		}
		v = r.computed[a.from.computed]
	}
	switch a.mode {
	case asNull:
		return v == nil, nil
	case asList:
		switch v.(type) {
		case nil, []any:
		default:
			v = []any{v}
		}
	}
	return v, nil
}

// compute makes sql.args, once a call.
func (r *run) compute() error {
	if r.computed != nil {
		return nil
	}
	computed := make([]any, len(r.binding.computed))
	for i, t := range r.binding.computed {
		v, err := t.Value(r.env)
		if err != nil {
			return err
		}
		computed[i] = v
	}
	r.computed = computed
	return nil
}
