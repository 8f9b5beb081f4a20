package dsl

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// toolBindings gives what holds the bindings of the tools: the tools, their
// steps and the undos of these, as far as they are right.
func (d *doc) toolBindings() []*item {
	var l []*item
	for _, t := range d.spec.list("tools") {
		l = append(l, t)
		for _, s := range t.list("steps") {
			l = append(l, s)
			if u := s.get("undo"); u != nil {
				l = append(l, u)
			}
		}
	}
	return l
}

// toolsBroken tells whether some tool or step is not known, so that nothing can
// be said of what no tool uses.
func (d *doc) toolsBroken() bool {
	tools := d.spec.get("tools")
	if tools == nil || len(tools.broken) > 0 {
		return true
	}
	for i, t := range d.spec.list("tools") {
		if d.g.Tools[i].Broken && (t.has("steps") || !t.has("sql") && !t.has("http")) {
			return true
		}
	}
	return false
}

// resolveBinding joins a binding to its database or service.
func (d *doc) resolveBinding(t *graph.Tool, b *graph.Binding, it *item) {
	d.bindingSQL(t, b.SQL, it.get("sql"))
	d.bindingHTTP(t, b.HTTP, it.get("http"))
	for _, name := range []string{"from", "result"} {
		if f := it.get(name); f != nil && b.Value != nil {
			d.faults.Add(f.nameAt(), f.path(), "is not for value: write there what it gives")
		}
	}
}

// resolveSteps checks the names of the steps and joins their bindings.
func (d *doc) resolveSteps(t *graph.Tool, it *item) {
	earlier := map[string]bool{}
	for i, x := range it.list("steps") {
		if i >= len(t.Steps) {
			return
		}
		s := t.Steps[i]
		if name := x.textOf("name"); name != nil {
			if why := stepName(t, name.S, earlier); why != "" {
				d.faults.Add(name.At, name.Path, "%s", why)
				t.Broken = true
			}
			earlier[name.S] = true
		}
		d.resolveBinding(t, &s.Binding, x)
		if s.Undo != nil {
			d.resolveBinding(t, s.Undo, x.get("undo"))
		}
		d.ruleNames(x, sourceOf(x))
		if s.Each != nil {
			t.Broken = !d.oneHole(s.Each, "one hole that gives a list, as in {{ args.lines }}") || t.Broken
		}
	}
}

// oneHole tells a text that is not exactly one hole.
func (d *doc) oneHole(t *graph.Text, want string) bool {
	cut := expr.Pieces(t)
	if len(cut) == 0 || len(cut) == 1 && cut[0].Hole { // a hole that is not closed is told where it is compiled
		return true
	}
	d.faults.Add(t.At, t.Path, "must be %s", want)
	return false
}

// identifier is a name that an expression can use.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// taken are the names that some place of a tool sees, and the words of
// expressions.
var taken = []string{
	"args", "ctx", "env", "item", "items", "result", "body", "status", "headers", "data", "rows", "state", "total", "omitted", "tool",
	"text", "content", "structured", "failed",
	"true", "false", "nil", "not", "in", "and", "or", "let", "if", "else", "matches", "contains", "startsWith", "endsWith",
}

// stepName says why a name is none for a step, or "".
func stepName(t *graph.Tool, name string, earlier map[string]bool) string {
	const other = ": give the step another name"
	switch {
	case !identifier.MatchString(name):
		return strconv.Quote(name) + " is no name for a step: write letters, digits and _"
	case earlier[name]:
		return "an earlier step has this name already" + other
	case t.Params.Field(name) != nil:
		return "is the name of a parameter" + other
	case slices.Contains(taken, name):
		return "is a name that expressions see already" + other
	}
	return ""
}
