package dsl

import (
	"fmt"
	"slices"
	"strings"
)

// exactlyOne finds the one of several fields that a struct has; none and
// several are told.
func (d *doc) exactlyOne(it *item, what string, names []string) (string, bool) {
	var have []string
	for _, n := range names {
		if it.has(n) {
			have = append(have, n)
		}
	}
	at := it.nameAt()
	if it.name() == "" {
		at = it.at()
	}
	switch {
	case len(have) == 1:
		return have[0], true
	case len(have) > 1:
		d.faults.Add(at, it.path(), "has %s: %s has exactly one of them", join(have, "and"), what)
	case !d.misspelt(it, names):
		d.faults.Add(at, it.path(), "needs exactly one of %s", join(names, "or"))
	}
	return "", false
}

// misspelt tells whether a field that is not known looks like one of the names,
// or is a binding that this place does not have.
func (d *doc) misspelt(it *item, names []string) bool {
	fields, _ := it.node.fields()
	for _, f := range fields {
		if it.form.byName[f.name] == nil {
			if slices.Contains(toolBindings, f.name) {
				return true
			}
			near := didYouMean(f.name, it.form.names())
			for _, n := range names {
				if near == didYouMean(n+"?", []string{n}) {
					return true
				}
			}
		}
	}
	return false
}

// join makes "a, b and c" of names.
func join(names []string, last string) string {
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return fmt.Sprintf("%s %s %s", strings.Join(names[:n-1], ", "), last, names[n-1])
}
