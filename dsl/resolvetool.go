package dsl

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// groups checks that groups have tools and that tools leave out what there is.
func (d *doc) groups() {
	var prefixes []string
	for _, n := range d.declared("tools") {
		prefixes = append(prefixes, groupOf(n))
	}
	slices.Sort(prefixes)
	prefixes = slices.Compact(prefixes)
	for _, it := range d.spec.list("groups") {
		if p := it.get("params"); p != nil {
			s := d.g.Group(it.name()).Params
			if s.Kind != shape.Any && (s.Kind != shape.Struct || s.Rest != nil || len(s.KeyPatterns) > 0) {
				d.faults.Add(p.at(), p.path(), "must be a struct that names every parameter")
			}
		}
		if !slices.Contains(prefixes, it.name()) {
			d.faults.Add(it.nameAt(), it.path(), "no tool's name begins with %q%s", it.name(), meant(it.name(), prefixes, "there are: "))
		}
	}
}

func groupOf(tool string) string {
	g, _, _ := strings.Cut(tool, ".")
	return g
}

// toolName is one to three words, joined by dots.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){0,2}$`)

// maxWireName is how long a tool's name may be for widely used clients.
const maxWireName = 64

func (d *doc) resolveTool(t *graph.Tool, it *item) {
	switch {
	case !toolName.MatchString(t.Name):
		d.faults.Add(it.nameAt(), it.path(), "%q is no name for a tool: write one, two or three words of letters, digits, _ and -, joined by dots", t.Name)
	case len(t.Name) > maxWireName:
		d.faults.Add(it.nameAt(), it.path(), "its name has %d characters: clients take at most %d", len(t.Name), maxWireName)
	}
	if about := it.get("description"); about != nil && strings.TrimSpace(t.Description) == "" {
		d.faults.Add(about.at(), about.path(), "is empty: say in a sentence what the tool does")
	}
	d.mergeParams(t, it)
	d.returns(t, it)
	d.selects(t, it)
	d.resolveBinding(t, &t.Binding, it)
	d.resolveSteps(t, it)
	d.ruleNames(it, sourceOf(it))
	d.suggestNames(it)
	d.idempotency(t, it.get("idempotency"))
	d.resolveGate(t, it.get("state"))
	for _, x := range it.list("invalidates") {
		d.glob(x)
	}
	if t.SQL != nil && t.SQL.One && t.Limit.Rows > 0 {
		r := it.get("limit").get("rows")
		d.faults.Add(r.at(), r.path(), "limits nothing: sql.one gives at most one row")
	}
}

// selects decides whether an agent may choose fields of the answer: there must
// be declared ones.
func (d *doc) selects(t *graph.Tool, it *item) {
	fields := t.Returns != nil && t.Returns.Schema != nil && len(t.Returns.Schema.Fields) > 0
	switch f := it.get("select"); {
	case f == nil:
		g := d.g.Group(groupOf(t.Name))
		t.Select = g != nil && g.Select && fields
	case t.Select && !fields:
		t.Select = false
		if r := it.get("returns"); it.isBroken("returns") || r != nil && r.form.kind != formStruct && d.g.Presenter(r.text.S) == nil {
			return // what is wrong with its presenter is told
		}
		d.faults.Add(f.at(), f.path(), "there is nothing to select: give the tool a presenter (returns) whose schema names fields")
	}
}

// idempotency checks that there is something to do only once, a key a call,
// and a transaction to keep the answer in.
func (d *doc) idempotency(t *graph.Tool, it *item) {
	if it == nil {
		return
	}
	switch {
	case t.Kind == "query":
		d.faults.Add(it.nameAt(), it.path(), "is for actions and mutations: a query changes nothing that could be done twice")
	case !t.Broken && !t.HasSQL():
		d.faults.Add(it.nameAt(), it.path(), "keeps the first answer in the transaction of the tool's own statements: this tool has none")
	}
	if key := it.textOf("key"); key != nil && !strings.Contains(key.S, "{{") {
		d.faults.Add(key.At, key.Path, "is the same for every call: write what tells calls apart, as in {{ args.request_id }}")
	}
}

// mergeParams puts the common parameters of the group before the tool's own.
func (d *doc) mergeParams(t *graph.Tool, it *item) {
	g := d.g.Group(groupOf(t.Name))
	var common []*shape.Field
	if g != nil && g.Params != nil {
		common = g.Params.Fields
	}
	var names []string
	for _, f := range common {
		names = append(names, f.Name)
	}
	omitted := map[string]bool{}
	for _, o := range it.list("omit") {
		omitted[o.text.S] = true
		switch {
		case slices.Contains(names, o.text.S):
		case len(names) == 0:
			d.faults.Add(o.at(), o.path(), "group %q has no common parameters to leave out", groupOf(t.Name))
		default:
			d.faults.Add(o.at(), o.path(), "group %q has no parameter %q%s", g.Name, o.text.S, meant(o.text.S, names, "it has "))
		}
	}
	merged := make([]*shape.Field, 0, len(common)+len(t.Params.Fields))
	for _, f := range common {
		if omitted[f.Name] {
			continue
		}
		if t.Params.Field(f.Name) != nil {
			at := it.nameAt()
			if own := d.paramNode(it, f.Name); own != nil {
				at = own.labelAt()
			}
			d.faults.Add(at, joinPath(it.path()+".params", f.Name), "is a common parameter of group %q already: leave it out here, or leave that one out with omit: [%q]", g.Name, f.Name)
			continue
		}
		merged = append(merged, f)
	}
	if len(merged) == 0 {
		return
	}
	s := *t.Params
	s.Fields = append(merged, t.Params.Fields...)
	t.Params = &s
}

// paramNode finds the source of a parameter.
func (d *doc) paramNode(it *item, name string) *node {
	p := it.get("params")
	if p == nil {
		return nil
	}
	fields, optional := p.node.fields()
	for _, f := range slices.Concat(fields, optional) {
		if f.name == name {
			return f
		}
	}
	return nil
}

// returns joins the tool to its presenter.
func (d *doc) returns(t *graph.Tool, it *item) {
	r := it.get("returns")
	switch {
	case it.isBroken("returns"):
		t.Returns = anyPresenter(t)
	case r == nil:
	case r.form.kind == formStruct:
		d.presenterNames(r)
	case !d.known(&r.text, "presenters", "presenter"):
		t.Returns = anyPresenter(t)
	default:
		if t.Returns = d.g.Presenter(r.text.S); t.Returns == nil {
			t.Returns = anyPresenter(t) // it is there, but broken
		}
	}
}

// anyPresenter stands in for a presenter with a mistake, so that what the tool
// says of its answer is checked all the same.
func anyPresenter(t *graph.Tool) *graph.Presenter {
	return &graph.Presenter{Name: t.Name, At: t.At, Path: t.Path + ".returns", Schema: &shape.Shape{Kind: shape.Any}, Format: "json"}
}

// presenterNames checks the names in a presenter.
func (d *doc) presenterNames(it *item) {
	for _, e := range it.list("embed") {
		d.known(&e.text, "presenters", "presenter")
	}
	d.suggestNames(it)
	d.suggestNames(it.get("collection"))
}

func (d *doc) suggestNames(it *item) {
	for _, s := range it.list("suggest") {
		if t := s.textOf("tool"); t != nil {
			d.known(t, "tools", "tool")
		}
	}
}

// glob checks that a pattern of tool names means at least one tool.
func (d *doc) glob(it *item) {
	names := d.declared("tools")
	for _, n := range names {
		if ok, err := path.Match(it.text.S, n); err == nil && ok {
			return
		}
	}
	if _, err := path.Match(it.text.S, ""); err != nil {
		d.faults.Add(it.at(), it.path(), `%q is no pattern of tool names: write it as in "billing.*"`, it.text.S)
		return
	}
	known := slices.Clone(names)
	for _, n := range names {
		known = append(known, groupOf(n)+".*")
	}
	d.faults.Add(it.at(), it.path(), "no tool is called %q%s", it.text.S, didYouMean(it.text.S, known))
}
