package presenters

import (
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Meta is what a view's presenter says of itself, for the manifest and for
// contracts: the fields of its schema, the kinds of UI blocks it has, whether rules depend on data, the
// static rules, what is masked and how many rows leave at most.
func (v *View) Meta() *value.Object {
	p := v.plan
	keys := []any{}
	s := p.schema
	if s != nil && s.Kind == shape.Union && len(s.Alts) == 2 && s.TakesNull() {
		s = s.Alts[0]
	}
	if s != nil && s.Kind == shape.List && s.Items != nil {
		s = s.Items
	}
	if s != nil {
		for _, f := range s.Fields {
			keys = append(keys, f.Name)
		}
	}
	ui := []any{}
	if len(p.ui) > 0 {
		ui = append(ui, "item")
	}
	if len(p.coll.ui) > 0 {
		ui = append(ui, "collection")
	}
	dynamic := false
	static := []any{}
	for _, r := range p.rules {
		if r.always && r.text == nil {
			static = append(static, r.static)
		} else {
			dynamic = true
		}
	}
	paths := []any{}
	for _, m := range p.masks {
		for _, x := range m.paths {
			paths = append(paths, pathOf(x))
		}
	}
	var most any
	if p.limit.rows > 0 {
		most = int64(p.limit.rows)
	}
	return value.Of("schemaKeys", keys, "uiBlockTypes", ui, "hasContextualRules", dynamic,
		"staticRules", static, "redactPaths", paths, "agentLimitMax", most)
}
