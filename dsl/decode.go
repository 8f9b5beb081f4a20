package dsl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cuelang.org/go/cue/literal"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// checkSpec compares the whole spec with the language. Tests that nobody asked
// for are not looked at.
func (d *doc) checkSpec() {
	top := theLanguage().defs["Server"]
	if !d.options.WithTests {
		top = withoutTests(top)
	}
	d.spec = d.check(top, d.root)
}

// withoutTests is the language with tests that may hold anything.
func withoutTests(top *form) *form {
	x := *top
	x.fields = slices.Clone(top.fields)
	x.byName = map[string]*formField{}
	for i, f := range x.fields {
		if f.name == "tests" {
			f = &formField{name: f.name, form: &form{kind: formTop, role: roleType}}
			x.fields[i] = f
		}
		x.byName[f.name] = f
	}
	return &x
}

// decode turns the checked spec into the graph.
func (d *doc) decode() {
	if d.spec == nil {
		return
	}
	d.g.Server = d.server(d.spec.get("server"))
	for _, it := range d.spec.list("databases") {
		d.g.Databases = append(d.g.Databases, d.database(it))
	}
	for _, it := range d.spec.list("apis") {
		d.g.APIs = append(d.g.APIs, d.api(it))
	}
	for _, it := range d.spec.list("fsms") {
		d.g.FSMs = append(d.g.FSMs, d.fsm(it))
	}
	for _, it := range d.spec.list("presenters") {
		d.g.Presenters = append(d.g.Presenters, d.presenter(it, it.name()))
	}
	for _, it := range d.spec.list("groups") {
		d.g.Groups = append(d.g.Groups, d.group(it))
	}
	for _, it := range d.spec.list("tools") {
		d.g.Tools = append(d.g.Tools, d.tool(it))
	}
	if d.options.WithTests {
		for _, it := range d.spec.list("tests") {
			d.g.Tests = append(d.g.Tests, d.test(it))
		}
	}
}

// The readers below give a field's value, or the default that the language
// declares for it.

func (it *item) str(name string) string {
	if f := it.get(name); f != nil {
		return f.text.S
	}
	s, _ := literal.Unquote(it.fallback(name))
	return s
}

func (it *item) int(name string) int64 {
	if f := it.get(name); f != nil {
		return f.num
	}
	n := literalInt(it.fallback(name))
	return n
}

func literalInt(s string) int64 {
	if s == "" {
		return 0
	}
	var info literal.NumInfo
	if err := literal.ParseNum(s, &info); err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(info.String(), 10, 64)
	return n
}

func (it *item) bool(name string) bool {
	if f := it.get(name); f != nil {
		return f.flag
	}
	return it.fallback(name) == "true"
}

func (it *item) fallback(name string) string {
	if it == nil {
		return ""
	}
	if f := it.form.byName[name]; f != nil {
		return f.fallback
	}
	return ""
}

// boolean is a bool that may be left out.
func (it *item) boolean(name string) *bool {
	if f := it.get(name); f != nil {
		return &f.flag
	}
	return nil
}

// text is a text that may be left out.
func (it *item) textOf(name string) *graph.Text {
	if f := it.get(name); f != nil {
		return &f.text
	}
	return nil
}

// textOr is a text that must be there; where it is broken, it is empty.
func (it *item) textOr(name string) graph.Text {
	if t := it.textOf(name); t != nil {
		return *t
	}
	return graph.Text{}
}

func (it *item) duration(name string) time.Duration {
	t, _ := parseDuration(it.str(name)) // not written and no default: 0
	return t
}

// strings are the strings of a list.
func (it *item) strings(name string) []string {
	var l []string
	for _, x := range it.list(name) {
		l = append(l, x.text.S)
	}
	return l
}

func (d *doc) treeOf(it *item, name string) *graph.Node {
	if f := it.get(name); f != nil {
		return d.tree(f.node)
	}
	return nil
}

// treeFields are the trees of a map, by name.
func (d *doc) treeFields(it *item, name string) []graph.NodeField {
	var l []graph.NodeField
	for _, x := range it.list(name) {
		if n := d.tree(x.node); n != nil {
			l = append(l, graph.NodeField{Name: x.name(), At: x.nameAt(), Node: n})
		}
	}
	return l
}

// shape compiles a type; what does not compile is told and takes anything.
func (d *doc) shape(it *item, name string) *shape.Shape {
	f := it.get(name)
	if f == nil {
		return nil
	}
	s, _ := d.compile(f.node)
	return s
}

// compile compiles a type and tells what cannot be.
func (d *doc) compile(n *node) (*shape.Shape, graph.Faults) {
	s, faults := compileShapeWith(d.types, n.value(), d.at, n.path)
	for _, f := range faults {
		echo := len(d.replaced) > 0 && strings.Contains(f.Message, "explicit error (_|_ literal)")
		if !echo && !d.told[f.At.String()+f.Message] {
			d.faults = append(d.faults, f)
		}
	}
	return s, faults
}

func (d *doc) server(it *item) graph.Server {
	s := graph.Server{Name: it.str("name"), Version: it.str("version"), Title: it.str("title"), Description: it.str("description"),
		Instructions: it.str("instructions"), Docs: it.str("docs"), Icon: it.str("icon"),
		Exposition: "flat", Separator: "_"}
	if it == nil {
		s.HTTP = d.http(nil)
		return s
	}
	s.At = it.nameAt()
	s.Exposition, s.Separator = it.str("exposition"), it.str("separator")
	s.PageSize = int(it.int("pageSize"))
	s.HTTP = d.http(it.get("http"))
	s.Local = d.object(it.get("local").get("claims"))
	s.Tags = it.strings("tags")
	s.Deny = d.denials(it)
	s.Errors = d.errorRules(it, "errors")
	return s
}

func (d *doc) http(it *item) graph.HTTP {
	if it == nil {
		it = &item{form: theLanguage().defs["HTTP"]}
	}
	return graph.HTTP{Addr: it.str("addr"), Path: it.str("path"), Origins: it.strings("origins"), Hosts: it.strings("hosts"), MaxBody: it.int("maxBody")}
}

func (d *doc) group(it *item) *graph.Group {
	return &graph.Group{Name: it.name(), At: it.nameAt(), Description: it.str("description"), Tags: it.strings("tags"), Deny: d.denials(it), Errors: d.errorRules(it, "errors"),
		Select: it.bool("select"), ToonDescription: it.bool("toonDescription"), Params: d.shape(it, "params")}
}

func (d *doc) limit(it *item, name string) graph.Limit {
	x := it.get(name)
	if x == nil {
		return graph.Limit{}
	}
	return graph.Limit{At: x.at(), Rows: int(x.int("rows")), Bytes: x.int("bytes"), Tokens: x.int("tokens"), Text: x.textOf("text")}
}

// compareFiles orders by place: file in load order, then line.
func (d *doc) compareFiles(a, b graph.Place) int {
	return cmp.Or(d.fileIndex(a)-d.fileIndex(b), a.Line-b.Line, a.Col-b.Col)
}

func (d *doc) fileIndex(at graph.Place) int {
	return slices.IndexFunc(d.g.Files, func(f string) bool { return d.shown(f) == at.File })
}
