package presenters

import (
	"fmt"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// prepared is a value on its way out: cut, checked, stripped and masked, with
// the children's data in their places.
type prepared struct {
	plan *plan
	// value is what leaves: a scalar, an object, or items of a list. rows
	// holds a list that is still in its cells instead.
	value any
	clear any // as value, before the masks of this plan; value if there are none
	rows  *cells
	list  bool

	n       int   // items
	given   int   // items before the limits
	more    bool  // the binding has more than it gave
	omitted int64 // 0: nothing was cut, -1: it cannot be counted
	total   int64 // -1: not known

	children []child
	lists    [2][]any // the rows as objects, masked and clear, made when something asks for all
}

// child is what an embedded plan made of a key of one parent.
type child struct {
	parent int // place of the parent in its list
	of     *prepared
}

// item gives the i-th item of a list, or the value.
func (p *prepared) item(i int, unmasked bool) any {
	switch {
	case !p.list && unmasked:
		return p.clear
	case !p.list:
		return p.value
	case p.rows != nil:
		return p.rows.object(i, unmasked)
	case unmasked:
		return p.clear.([]any)[i]
	}
	return p.value.([]any)[i]
}

// items gives the list as a value.
func (p *prepared) items(unmasked bool) any {
	if p.rows == nil {
		l := p.value.([]any)
		if unmasked {
			l = p.clear.([]any)
		}
		return l[:p.n:p.n]
	}
	i := 0
	if unmasked {
		i = 1
	}
	if p.lists[i] == nil {
		l := make([]any, p.n)
		for k := range l {
			l[k] = p.item(k, unmasked)
		}
		p.lists[i] = l
	}
	return p.lists[i]
}

// prepare makes a value ready to leave through a plan. more tells that the
// binding has more rows than it gave; total is their number, -1 if unknown.
func (r *renderer) prepare(p *plan, v any, total int64, more bool) (*prepared, error) {
	out := &prepared{plan: p, total: total}
	var err error
	switch v := v.(type) {
	case *value.Rows:
		out.list = true
		if !r.checked {
			out.rows = p.cells(v)
		}
		if out.rows != nil {
			out.given, out.more = v.Len(), more
			out.cut(p.limit.keep(v.Len()))
			if r.call.Withheld != nil && p.masks != nil {
				err = out.rows.withheld(out.n, r.call.Withheld)
			}
			return out, err
		}
		err = r.prepareList(out, v.List(), more)
	case []any:
		out.list = true
		err = r.prepareList(out, v, more)
	default:
		out.n = 1
		out.clear, out.value, err = r.prepareItem(out, v, -1)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// count is the number of rows there are, -1 if it is not known.
func (p *prepared) count() int64 {
	if p.total < 0 && !p.more {
		return int64(p.given)
	}
	return p.total
}

// keep gives how many of n items are kept.
func (l *limit) keep(n int) int {
	if l.rows > 0 || l.zero {
		return min(n, l.rows)
	}
	return n
}

// cut keeps the first n items and counts what is left out.
func (p *prepared) cut(n int) {
	p.n = n
	switch {
	case n == p.given && !p.more:
		p.omitted = 0
	case p.total > int64(p.given) || p.total == int64(p.given) && !p.more:
		p.omitted = p.total - int64(n)
	case p.more:
		p.omitted = -1
	default:
		p.omitted = int64(p.given - n)
	}
	p.lists = [2][]any{}
}

func (r *renderer) prepareList(out *prepared, l []any, more bool) error {
	out.given, out.more = len(l), more
	out.cut(out.plan.limit.keep(len(l)))
	l = l[:out.n]
	clear, shown := make([]any, out.n), []any(nil)
	for i, x := range l {
		c, s, err := r.prepareItem(out, x, i)
		if err != nil {
			return err
		}
		clear[i] = c
		if shown == nil && !same(c, s) {
			shown = append(make([]any, 0, out.n), clear[:i]...)
		}
		if shown != nil {
			shown = append(shown, s)
		}
	}
	if shown == nil {
		shown = clear
	}
	out.clear, out.value = clear, shown
	return nil
}

// prepareItem checks, strips and masks one item and sends its embedded keys
// through their plans. row is its place in the list, -1 for a lone value.
func (r *renderer) prepareItem(out *prepared, v any, row int) (clear, shown any, err error) {
	p := out.plan
	if !r.checked {
		if v, err = p.check(v, row); err != nil {
			return nil, nil, err
		}
	}
	clear = v
	if p.masks != nil {
		v = applyMasks(p.masks, v, r.env, r.call.Withheld)
	}
	if p.embeds == nil {
		return clear, v, nil
	}
	o, ok := v.(*value.Object)
	if !ok {
		return clear, v, nil
	}
	checked := r.checked
	r.checked = true
	defer func() { r.checked = checked }()
	for _, e := range p.embeds {
		x, ok := o.Get(e.key)
		if !ok || x == nil {
			continue
		}
		c, err := r.prepare(e.plan, x, -1, false)
		if err != nil {
			return nil, nil, err
		}
		out.children = append(out.children, child{parent: max(row, 0), of: c})
		y := c.whole()
		if same(x, y) {
			continue
		}
		if v == clear { // the view before the masks keeps what it had
			o = o.Clone()
			v = o
		}
		o.Set(e.key, y)
	}
	return clear, v, nil
}

// check compares an item with the schema, and what is embedded in it with the
// schemas of the children: all before the first mask, which may put a text
// where a number was.
func (p *plan) check(v any, row int) (any, error) {
	own := false
	if p.schema != nil {
		stripped, faults := p.schema.Strip(v)
		if len(faults) > 0 {
			return nil, &RowError{Presenter: p.name, Row: row, Faults: faults}
		}
		own = !same(stripped, v)
		v = stripped
	}
	o, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	for _, e := range p.embeds {
		x, ok := o.Get(e.key)
		if !ok || x == nil || e.declared {
			continue
		}
		y, err := e.plan.checkAll(x)
		if err != nil {
			return nil, err
		}
		if same(x, y) {
			continue
		}
		if !own {
			o, own = o.Clone(), true
		}
		o.Set(e.key, y)
	}
	return o, nil
}

// checkAll checks a value, or the items of a list that its limit keeps.
func (p *plan) checkAll(v any) (any, error) {
	if rows, ok := v.(*value.Rows); ok {
		v = rows.List()
	}
	l, ok := v.([]any)
	if !ok {
		return p.check(v, -1)
	}
	var c []any
	for i := range l[:p.limit.keep(len(l))] {
		y, err := p.check(l[i], i)
		if err != nil {
			return nil, err
		}
		if c == nil && !same(y, l[i]) {
			c = append([]any(nil), l...)
		}
		if c != nil {
			c[i] = y
		}
	}
	if c == nil {
		return v, nil
	}
	return c, nil
}

// whole gives the prepared value as one value.
func (p *prepared) whole() any {
	if p.list {
		return p.items(false)
	}
	return p.value
}

// same tells whether two values are the same one, without looking inside.
func same(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return a == b
}

// RowError is a value that does not fit the schema of its presenter.
type RowError struct {
	Presenter string
	Row       int // place in the list, -1 for a lone value
	Faults    []shape.Fault
}

// Error gives the presenter, the row (counted from 1) and for each field the
// rule that it breaks; no value of the row is in it.
func (e *RowError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s Presenter] Validation failed:", e.Presenter)
	for i := range e.Faults {
		f := &e.Faults[i]
		b.WriteString("\n  • ")
		if e.Row >= 0 {
			fmt.Fprintf(&b, "row %d ", e.Row+1)
		}
		if len(f.Path) == 0 {
			b.WriteString("(root)")
		} else {
			fmt.Fprintf(&b, "'%s'", pathText(f.Path))
		}
		b.WriteString(": ")
		b.WriteString(faultMessage(f))
	}
	return b.String()
}
