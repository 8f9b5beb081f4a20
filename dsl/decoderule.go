package dsl

import (
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// denials are the rules that refuse a call before its binding runs.
func (d *doc) denials(it *item) []*graph.ErrorRule { return d.errorRules(it, "deny") }

func (d *doc) errorRules(it *item, name string) []*graph.ErrorRule {
	var l []*graph.ErrorRule
	for _, x := range it.list(name) {
		l = append(l, d.errorRule(x))
	}
	return l
}

// oneOrMore are the elements of a field that takes a value or a list of them.
func (it *item) oneOrMore(name string) []*item {
	f := it.get(name)
	switch {
	case f == nil:
		return nil
	case f.form.kind == formList:
		return f.fields
	}
	return []*item{f}
}

func (d *doc) errorRule(it *item) *graph.ErrorRule {
	r := &graph.ErrorRule{At: it.at(), Path: it.path(), When: it.textOf("when"), Code: it.str("code"), Suggestion: it.textOf("suggestion"),
		Actions: it.strings("actions"), Severity: it.str("severity"), Details: d.treeFields(it, "details"), Unmasked: it.bool("unmasked")}
	if m := it.textOf("message"); m != nil {
		r.Message = *m
	}
	for _, s := range it.oneOrMore("sqlstate") {
		r.SQLState = append(r.SQLState, s.text.S)
	}
	for _, s := range it.oneOrMore("status") {
		r.Status = append(r.Status, int(s.num))
	}
	if a := it.get("retryAfter"); a != nil {
		t := a.text
		if a.form.kind == formInt {
			t = graph.Text{S: strconv.FormatInt(a.num, 10), At: a.at(), Path: a.path()}
		}
		r.RetryAfter = &t
	}
	return r
}
