package expr

import (
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// over is one closure at work.
type over struct {
	seq
	off   int
	loop  loop
	body  eval // nil for count(list) and sum(list): the element itself
	extra eval // third argument
	inOff int  // where the part stands
}

// turn runs the part for element i and gives the element and what came out.
func (l *over) turn(r *run, i int) (item, out any, err error) {
	if err := r.tick(l.off, 1); err != nil {
		return nil, nil, err
	}
	item = l.at(i)
	if l.body == nil {
		return item, item, nil
	}
	r.slots[l.loop.item], r.slots[l.loop.index] = item, int64(i)
	out, err = l.body(r)
	return item, out, err
}

// test runs the part for element i, which must come out true or false.
func (l *over) test(r *run, i int) (item any, ok bool, err error) {
	item, out, err := l.turn(r, i)
	if err != nil {
		return nil, false, err
	}
	ok, isBool := out.(bool)
	if !isBool {
		return nil, false, r.fail(l.inOff, "must be true or false, not %s", kindOf(out))
	}
	return item, ok, nil
}

// search gives the place of the first element, from the front or the back,
// whose test is want, or -1.
func (l *over) search(r *run, want, back bool) (int, any, error) {
	n := l.len()
	for k := range n {
		i := k
		if back {
			i = n - 1 - k
		}
		item, ok, err := l.test(r, i)
		if err != nil {
			return -1, nil, err
		}
		if ok == want {
			return i, item, nil
		}
	}
	return -1, nil, nil
}

func (r *run) all(l *over) (any, error) {
	i, _, err := l.search(r, false, false)
	return boolean(i < 0, err)
}

func (r *run) none(l *over) (any, error) {
	i, _, err := l.search(r, true, false)
	return boolean(i < 0, err)
}

func (r *run) any(l *over) (any, error) {
	i, _, err := l.search(r, true, false)
	return boolean(i >= 0, err)
}

func (r *run) one(l *over) (any, error) {
	n, err := l.holding(r)
	return boolean(n == 1, err)
}

func (r *run) count(l *over) (any, error) {
	n, err := l.holding(r)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (l *over) holding(r *run) (int64, error) {
	var n int64
	for i := range l.len() {
		_, ok, err := l.test(r, i)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

func (r *run) filter(l *over) (any, error) {
	out := []any{}
	for i := range l.len() {
		item, ok, err := l.test(r, i)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item)
		}
	}
	return out, r.room(l.off, len(out))
}

func (r *run) find(l *over) (any, error) {
	_, item, err := l.search(r, true, false)
	return item, err
}

func (r *run) findLast(l *over) (any, error) {
	_, item, err := l.search(r, true, true)
	return item, err
}

func (r *run) findIndex(l *over) (any, error)     { return l.place(r, false) }
func (r *run) findLastIndex(l *over) (any, error) { return l.place(r, true) }

func (l *over) place(r *run, back bool) (any, error) {
	i, _, err := l.search(r, true, back)
	if err != nil || i < 0 {
		return nil, err
	}
	return int64(i), nil
}

func (r *run) mapped(l *over) (any, error) {
	if err := r.room(l.off, l.len()); err != nil {
		return nil, err
	}
	out := make([]any, l.len())
	for i := range out {
		_, v, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (r *run) sum(l *over) (any, error) {
	var total any = int64(0)
	for i := range l.len() {
		_, v, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		if total, err = r.arithmetic(l.inOff, "+", v, total); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// groupBy gives a struct of lists, in the order in which the keys appear; a
// key that is no text stands there as str gives it.
func (r *run) groupBy(l *over) (any, error) {
	out := &value.Object{}
	if err := r.room(l.off, l.len()); err != nil {
		return nil, err
	}
	for i := range l.len() {
		item, k, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			if err := r.weigh(l.inOff, k); err != nil {
				return nil, err
			}
			key = string(appendStr(nil, k))
		}
		group, _ := out.Get(key)
		members, _ := group.([]any)
		out.Set(key, append(members, item))
	}
	return out, nil
}

func (r *run) sortBy(l *over) (any, error) {
	desc, err := l.descending(r)
	if err != nil {
		return nil, err
	}
	if err := r.room(l.off, 2*l.len()); err != nil {
		return nil, err
	}
	items, keys := make([]any, l.len()), make([]any, l.len())
	for i := range items {
		if items[i], keys[i], err = l.turn(r, i); err != nil {
			return nil, err
		}
	}
	return r.sorted(l.inOff, items, keys, desc)
}

func (l *over) descending(r *run) (bool, error) {
	if l.extra == nil {
		return false, nil
	}
	v, err := l.extra(r)
	if err != nil {
		return false, err
	}
	return r.descending(l.off, v)
}

func (r *run) descending(off int, order any) (bool, error) {
	if order != "asc" && order != "desc" {
		return false, r.fail(off, `the order is "asc" or "desc"`)
	}
	return order == "desc", nil
}

// sorted orders items by their keys; equal ones keep their order.
func (r *run) sorted(off int, items, keys []any, desc bool) (any, error) {
	at := make([]int, len(items))
	for i := range at {
		at[i] = i
	}
	var bad error
	slices.SortStableFunc(at, func(i, j int) int {
		if bad != nil {
			return 0
		}
		order, ok := compare(keys[i], keys[j])
		if !ok {
			bad = r.fail(off, "only numbers or only texts can be sorted, not %s and %s", kindOf(keys[i]), kindOf(keys[j]))
		}
		if desc {
			return -order
		}
		return order
	})
	out := make([]any, len(items))
	for i, k := range at {
		out[i] = items[k]
	}
	return out, bad
}

func (r *run) reduce(l *over) (any, error) {
	var acc any
	from := 0
	switch {
	case l.extra != nil:
		v, err := l.extra(r)
		if err != nil {
			return nil, err
		}
		acc = v
	case l.len() == 0:
		return nil, r.fail(l.off, "reduce of an empty list needs a start: reduce(list, …, 0)")
	default:
		acc, from = l.at(0), 1
	}
	for i := from; i < l.len(); i++ {
		r.slots[l.loop.acc] = acc
		_, v, err := l.turn(r, i)
		if err != nil {
			return nil, err
		}
		acc = v
	}
	return acc, nil
}
