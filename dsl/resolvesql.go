package dsl

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// databaseUse tells databases that nobody reads.
func (d *doc) databaseUse() {
	names := d.declared("databases")
	if len(names) < 2 {
		return
	}
	used := map[string]bool{}
	for _, it := range d.toolBindings() {
		sql := it.get("sql")
		name := sql.str("database")
		if it.isBroken("sql") || sql.isBroken("database") || strings.Contains(name, "{{") || name != "" && d.g.Database(name) == nil {
			return // it may be any
		}
		used[name] = true
	}
	if d.spec.isBroken("fsms") {
		return
	}
	for i, it := range d.spec.list("fsms") {
		if it.isBroken("store") || it.isBroken("resolve") {
			return // likewise
		}
		m := d.g.FSMs[i]
		used[m.Store.Database] = true
		if m.Resolve != nil {
			name := m.Resolve.SQL.Database
			if d.g.Database(name) == nil {
				return
			}
			used[name] = true
		}
	}
	if d.toolsBroken() {
		return
	}
	for _, it := range d.spec.list("databases") {
		if !used[it.name()] {
			d.faults.Add(it.nameAt(), it.path(), "no tool uses this database")
		}
	}
}

// bindingSQL finds the database of a statement and checks its choices.
func (d *doc) bindingSQL(t *graph.Tool, sql *graph.SQL, it *item) {
	if it == nil || sql == nil {
		return
	}
	if sql.Choice != nil {
		t.Broken = !d.oneHole(sql.Choice, "a declared name or one hole, as in {{ ctx.claims.region }}") || t.Broken
	} else if sql.Database = d.databaseName(it); d.g.Database(sql.Database) == nil {
		t.Broken = true // told, or it is there, but broken
	}
	for _, c := range it.list("choose") {
		d.choices(t, c)
	}
}

// databaseName gives the database that a statement names, or the only one; ""
// where there is no such database, which is told.
func (d *doc) databaseName(it *item) string {
	names := d.declared("databases")
	switch name := it.textOf("database"); {
	case name != nil:
		if d.known(name, "databases", "database") {
			return name.S
		}
	case d.spec.isBroken("databases") || it.isBroken("database"):
	case len(names) == 0:
		d.faults.Add(it.nameAt(), it.path(), "needs a database: declare one under databases")
	case len(names) > 1:
		d.faults.Add(it.nameAt(), it.path(), "must name its database: there are %s", join(names, "and"))
	default:
		return names[0]
	}
	return ""
}

// choices checks that the keys of a choose are the values of the parameter.
func (d *doc) choices(t *graph.Tool, it *item) {
	if t.Broken {
		return
	}
	f := t.Params.Field(it.name())
	if f == nil {
		var names []string
		for _, p := range t.Params.Fields {
			names = append(names, p.Name)
		}
		d.faults.Add(it.nameAt(), it.path(), "there is no parameter %q%s", it.name(), meant(it.name(), names, "there are: "))
		return
	}
	values, ok := enumOf(f.Shape)
	if !ok {
		if f.Shape.Kind != shape.Any {
			d.faults.Add(it.nameAt(), it.path(), "the parameter %s must be one of several strings, as in %s: \"newest\" | \"name\"", f.Name, f.Name)
		}
		return
	}
	var have, misspelt []string
	for _, p := range it.fields {
		have = append(have, p.name())
		if !slices.Contains(values, p.name()) {
			misspelt = append(misspelt, p.name())
			d.faults.Add(p.nameAt(), p.path(), "%q is no value of the parameter %s%s", p.name(), f.Name, meant(p.name(), values, "it takes "))
		}
	}
	for _, v := range values {
		if !slices.Contains(have, v) && value.Near(v, misspelt) == "" {
			d.faults.Add(it.nameAt(), it.path(), "has no piece for %q, which the parameter %s may be", v, f.Name)
		}
	}
}

// enumOf gives the strings that a shape takes, if they can be listed.
func enumOf(s *shape.Shape) ([]string, bool) {
	switch s.Kind {
	case shape.Const:
		v, ok := s.Const.(string)
		return []string{v}, ok
	case shape.Union:
		var l []string
		for _, a := range s.Alts {
			v, ok := enumOf(a)
			if !ok {
				return nil, false
			}
			l = append(l, v...)
		}
		return l, len(l) > 0
	}
	return nil, false
}
