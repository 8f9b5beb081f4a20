package dsl

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// mainFields is the field of each block's entries by which a second, whole
// declaration of one name is known from an addition to the first.
var mainFields = map[string][]string{"tools": {"kind"}, "presenters": {"schema"}, "databases": {"url"}, "apis": {"baseURL"}, "fsms": {"initial"}, "tests": {"call", "list"}}

// duplicates tells entries that are declared twice. CUE joins them silently
// where they agree and says only what differs where they do not.
func (d *doc) duplicates() {
	for _, block := range []string{"databases", "apis", "fsms", "presenters", "tools", "tests"} {
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
