package dsl

import (
	"slices"
	"strconv"
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
	for _, it := range d.spec.list("tools") {
		if it.isBroken("sql") {
			return
		}
		used[it.get("sql").str("database")] = true
	}
	if d.spec.get("tools") == nil || len(d.spec.get("tools").broken) > 0 {
		return
	}
	for _, it := range d.spec.list("databases") {
		if !used[it.name()] {
			d.faults.Add(it.nameAt(), it.path(), "no tool uses this database")
		}
	}
}

// toolSQL finds the database of a statement and checks its choices.
func (d *doc) toolSQL(t *graph.Tool, it *item) {
	if it == nil || t.SQL == nil {
		return
	}
	names := d.declared("databases")
	switch name := it.textOf("database"); {
	case name != nil:
		t.Broken = !d.known(name, "databases", "database") || t.Broken
	case d.spec.isBroken("databases"):
		t.Broken = true
	case len(names) == 0:
		d.faults.Add(it.nameAt(), it.path(), "needs a database: declare one under databases")
		t.Broken = true
	case len(names) > 1:
		d.faults.Add(it.nameAt(), it.path(), "must name its database: there are %s", join(names, "and"))
		t.Broken = true
	default:
		t.SQL.Database = names[0]
	}
	if !t.Broken && d.g.Database(t.SQL.Database) == nil {
		t.Broken = true // it is there, but broken
	}
	for _, c := range it.list("choose") {
		d.choices(t, c)
	}
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

// tests checks the names in tests and that no two write one golden file.
func (d *doc) tests() {
	golden := map[string]*graph.Test{}
	for i, it := range d.spec.list("tests") {
		t := d.g.Tests[i]
		d.oneCase(it)
		if c := it.textOf("call"); c != nil {
			d.known(c, "tools", "tool")
		}
		for _, b := range it.list("before") {
			if c := b.textOf("call"); c != nil {
				d.known(c, "tools", "tool")
			}
		}
		if e := it.get("environment"); e != nil {
			for _, x := range e.fields {
				d.environmentName(x)
			}
		}
		file := t.Dir + "\x00" + t.File + "\x00" + graph.Slug(t.Name)
		if other := golden[file]; other != nil {
			d.faults.Add(it.nameAt(), it.path(), "would have the same golden file as %s (golden/%s/%s.txt): give it another name", strconv.Quote(other.Name), t.File, graph.Slug(t.Name))
		}
		golden[file] = t
	}
}

// oneCase checks that a case is a call or a list, and that a list has nothing
// that only a call has.
func (d *doc) oneCase(it *item) {
	kind, ok := d.exactlyOne(it, "a case", []string{"call", "list"})
	if !ok || kind == "call" {
		return
	}
	for _, name := range []string{"args", "error"} {
		if f := it.get(name); f != nil {
			d.faults.Add(f.nameAt(), f.path(), "is for a call: list takes none")
		}
	}
}

func (d *doc) environmentName(it *item) {
	var names []string
	for _, v := range d.g.Env {
		if v.Name == it.name() {
			return
		}
		names = append(names, v.Name)
	}
	d.faults.Add(it.nameAt(), it.path(), "env declares no %s%s", it.name(), meant(it.name(), names, "it has "))
}

// mainFields is the field of each block's entries by which a second, whole
// declaration of one name is known from an addition to the first.
var mainFields = map[string][]string{"tools": {"kind"}, "presenters": {"schema"}, "databases": {"url"}, "tests": {"call", "list"}}

// duplicates tells entries that are declared twice. CUE joins them silently
// where they agree and says only what differs where they do not.
func (d *doc) duplicates() {
	for _, block := range []string{"databases", "presenters", "tools", "tests"} {
		b := d.spec.get(block)
		if b == nil || b.form.kind != formMap {
			continue
		}
		for name, places := range b.node.declarations(mainFields[block]) {
			if len(places) > 1 {
				d.duplicate(joinPath(block, name), places)
			}
		}
	}
}

func (d *doc) duplicate(path string, places []graph.Place) {
	inside := path + "."
	d.faults = slices.DeleteFunc(d.faults, func(f graph.Fault) bool {
		return d.told[f.At.String()+f.Message] && strings.HasPrefix(f.Path, inside)
	})
	d.faults.Add(places[1], path, "is declared twice, here and at %s: a second one may add to the first, but not say it all again", places[0])
}
