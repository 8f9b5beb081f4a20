package bind

import (
	"fmt"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// shapeAnswer compiles from, result and total of a binding that is no list of
// steps.
func (c *compiler) shapeAnswer(b *Binding, g *graph.Binding) {
	scope := c.scope.With("item", c.columns.Rows(g.SQL))
	if g.HTTP != nil {
		scope = WithAnswer(scope)
	}
	b.from = c.sentTemplate(g.From, scope)
	element := scope.With("item", nil)
	if g.From == nil {
		element = scope.With("item", c.columns.Row(g.SQL))
	}
	b.result = c.sentTree(g.Result, element)
	switch {
	case g.Total == nil:
	case isHole(g.Total):
		b.total = c.sentTemplate(g.Total, scope)
	case g.SQL == nil:
		c.faults = append(c.faults, g.Total.Fault(0, "only SQL has columns: write {{ item.%s }}", g.Total.S))
	default:
		b.column = g.Total.S
		if !c.columns.has(g.SQL, g.Total.S) {
			c.faults = append(c.faults, g.Total.Fault(0, "the query gives no column %q%s", g.Total.S, near(g.Total.S, c.columns[&g.SQL.Query])))
		}
	}
}

// finish applies total, from and result to what the binding gave. An answer
// that is nil stays nil. total sees all of it: what counts the elements of a
// list stands beside the list that from picks.
func (b *Binding) finish(env *expr.Env, v any, o *Outcome) error {
	o.Item, o.Result = v, v
	if v == nil || b.from == nil && b.result == nil && b.total == nil {
		return nil
	}
	if err := b.count(env, v, o); err != nil {
		return err
	}
	if b.from != nil {
		env = env.Fork()
		env.Set("item", v)
		var err error
		if o.Item, err = b.from.Value(env); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	return b.shape(env, o.Item, o)
}

// count applies total, which sees the answer as item.
func (b *Binding) count(env *expr.Env, answer any, o *Outcome) error {
	if b.total == nil {
		return nil
	}
	env = env.Fork()
	env.Set("item", answer)
	n, err := b.total.Value(env)
	if err == nil {
		err = o.setTotal(n)
	}
	if err != nil {
		return fmt.Errorf("total: %w", err)
	}
	return nil
}

// shape applies result to item, which from has made.
func (b *Binding) shape(env *expr.Env, item any, o *Outcome) error {
	o.Item, o.Result = item, item
	if b.result == nil || item == nil {
		return nil
	}
	env = env.Fork()
	env.Set("item", item)
	var err error
	if o.Result, err = b.each(env, item); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// each makes the result, for a list once for each element.
func (b *Binding) each(env *expr.Env, item any) (any, error) {
	var n int
	var set func(i int)
	switch item := item.(type) {
	case *value.Rows:
		n, set = item.Len(), func(i int) { env.SetRow("item", item, i) }
	case []any:
		n, set = len(item), func(i int) { env.Set("item", item[i]) }
	default:
		return b.result.Value(env)
	}
	out := make([]any, n)
	for i := range out {
		set(i)
		v, err := b.result.Value(env)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

// columnTotal reads the total from its column in the first row; without rows
// it is 0.
func (b *Binding) columnTotal(rows *value.Rows, o *Outcome) error {
	if b.column == "" {
		return nil
	}
	col := rows.Col(b.column)
	if col < 0 {
		return fmt.Errorf("total: the query gives no column %q", b.column)
	}
	if rows.Len() == 0 {
		o.Total = 0
		return nil
	}
	if err := o.setTotal(rows.Value(0, col)); err != nil {
		return fmt.Errorf("total: column %s: %w", b.column, err)
	}
	return nil
}

// setTotal takes a count in; nil is not known.
func (o *Outcome) setTotal(v any) error {
	switch n := v.(type) {
	case nil:
		return nil
	case int64:
		if n >= 0 {
			o.Total = n
			return nil
		}
	case float64:
		if n >= 0 && n == float64(int64(n)) {
			o.Total = int64(n)
			return nil
		}
	case value.Number: // sum(), count() of numeric
		if whole, ok := value.ParseNumber(trimFraction(string(n))).(int64); ok && whole >= 0 {
			o.Total = whole
			return nil
		}
	}
	return fmt.Errorf("%s is no count", value.AppendJSON(nil, v))
}

// trimFraction takes a fraction of zeros away.
func trimFraction(digits string) string {
	if !strings.Contains(digits, ".") {
		return digits
	}
	return strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
}
