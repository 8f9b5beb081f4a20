package dsl

import (
	"cmp"
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

func (d *doc) fsm(it *item) *graph.FSM {
	m := &graph.FSM{Name: it.name(), At: it.nameAt(), Path: it.path(), Initial: it.str("initial"), Key: it.textOf("key"),
		Store: d.store(it), TTL: it.duration("ttl")}
	for _, x := range it.list("states") {
		m.States = append(m.States, d.state(x))
	}
	if r := it.get("resolve"); r != nil {
		if sql := d.sql(r); sql != nil {
			sql.One = true
			m.Resolve = &graph.Binding{SQL: sql}
		}
	}
	return m
}

func (d *doc) state(it *item) *graph.State {
	s := &graph.State{Name: it.name(), At: it.nameAt(), Path: it.path(), Final: it.bool("final")}
	for _, x := range it.list("on") {
		e := &graph.Event{Name: x.name(), At: x.nameAt(), Path: x.path()}
		if x.form.kind == formString {
			e.Targets = []*graph.Target{{At: x.at(), To: x.text.S}}
		}
		for _, y := range x.fields {
			e.Targets = append(e.Targets, &graph.Target{At: y.at(), When: y.textOf("when"), To: y.str("to")})
		}
		s.On = append(s.On, e)
	}
	for _, x := range it.list("after") {
		delay, err := parseDuration(x.name())
		if err != nil {
			d.faults.Add(x.nameAt(), x.path(), "%v", err)
			continue
		}
		s.After = append(s.After, &graph.After{At: x.nameAt(), Delay: delay, To: x.text.S})
	}
	slices.SortStableFunc(s.After, func(a, b *graph.After) int { return cmp.Compare(a.Delay, b.Delay) })
	return s
}

// storeKinds are the fields of a store of which it has exactly one.
var storeKinds = []string{"database", "redis"}

// store reads where states are kept. Where a mistake took that away it is the
// memory, so that nothing is opened.
func (d *doc) store(it *item) graph.Store {
	x := it.get("store")
	if x == nil {
		return graph.Store{At: it.nameAt(), Kind: graph.StoreMemory}
	}
	s := graph.Store{At: x.at(), Kind: graph.StoreMemory}
	if x.form.kind != formStruct {
		return s
	}
	kind, ok := d.exactlyOne(x, "a store", storeKinds)
	if !ok || x.get(kind) == nil {
		return s
	}
	if s.Kind = graph.StoreKind(kind); s.Kind == graph.StoreDatabase {
		s.Database = x.str(kind)
	} else {
		s.URL = x.textOr(kind)
	}
	return s
}

// gate reads in which states a tool may be used; its machine is found when
// names are resolved.
func (d *doc) gate(it *item) *graph.Gate {
	if it == nil {
		return nil
	}
	return &graph.Gate{At: it.at(), In: it.strings("in"), Send: it.str("send")}
}
