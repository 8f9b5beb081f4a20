package dsl

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// item is a value of the spec that fits its form. A field that is not there,
// or that does not fit and has been told, is nil.
type item struct {
	form *form
	node *node
	text graph.Text // formString, formEnum
	num  int64      // formInt
	flag bool       // formBool

	fields []*item // formStruct: in the order of the source; formMap, formList: all
	broken map[string]bool
}

func (it *item) name() string        { return it.node.name }
func (it *item) path() string        { return it.node.path }
func (it *item) at() graph.Place     { return it.node.at() }
func (it *item) nameAt() graph.Place { return it.node.labelAt() }

// get gives a field of a struct, or nil.
func (it *item) get(name string) *item {
	if it == nil {
		return nil
	}
	for _, f := range it.fields {
		if f.node.name == name {
			return f
		}
	}
	return nil
}

// has tells whether the author wrote a field, right or wrong.
func (it *item) has(name string) bool {
	return it.get(name) != nil || it != nil && it.broken[name]
}

// isBroken tells whether the author wrote a field that does not fit.
func (it *item) isBroken(name string) bool { return it != nil && it.broken[name] }

// isWrong tells whether anything in a value does not fit.
func (it *item) isWrong() bool {
	return it != nil && (len(it.broken) > 0 || slices.ContainsFunc(it.fields, (*item).isWrong))
}

// list gives the elements of a list or map field.
func (it *item) list(name string) []*item {
	if f := it.get(name); f != nil {
		return f.fields
	}
	return nil
}

// all gives the fields or elements.
func (it *item) all() []*item {
	if it == nil {
		return nil
	}
	return it.fields
}

// check compares a value with its form. What does not fit is told and nil.
func (d *doc) check(f *form, n *node) *item {
	if f.kind == formTop {
		return d.checkTop(f, n)
	}
	k := n.kind()
	if k == noKind {
		d.noValue(n)
		return nil
	}
	if f.kind == formUnion {
		a := f.alt(k)
		if a == nil {
			d.faults.Add(n.at(), n.path, "must be %s, not %s", f.wants(), k)
			return nil
		}
		if s := f.alt(aStruct); s != nil && a.kind == formEnum && !slices.Contains(a.enum, n.str()) {
			d.faults.Add(n.at(), n.path, "must be %s or a struct with %s, not %q", quoted(a.enum), join(s.names(), "or"), graph.Concealed(n.str()))
			return nil
		}
		f = a
	}
	if !f.takes(k) {
		d.faults.Add(n.at(), n.path, "must be %s, not %s%s", f.wants(), k, wrongKindHelp(f, n, k))
		return nil
	}
	it := &item{form: f, node: n}
	switch f.kind {
	case formString, formEnum:
		return d.checkString(it)
	case formInt:
		return d.checkInt(it)
	case formBool:
		it.flag = n.bool()
	case formStruct:
		d.checkStruct(it)
	case formMap:
		d.checkMap(it)
	case formList:
		for _, e := range n.elements() {
			if x := d.check(f.elem, e); x != nil {
				it.fields = append(it.fields, x)
			}
		}
	}
	return it
}

// wrongKindHelp says what to do about a common slip.
func wrongKindHelp(f *form, n *node, k valueKind) string {
	switch {
	case f.kind == formList && f.elem.takes(k):
		return ": put it in [ ]"
	case f.role == roleDuration && k == anInt:
		return `: write a unit, as in "5s"`
	case f.kind == formBool && k == aString && (n.str() == "true" || n.str() == "false"):
		return ": leave the quotes out"
	case f.kind == formInt && k == aString && isDigits(n.str()):
		return ": leave the quotes out"
	}
	return ""
}

func isDigits(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// checkTop takes a value whose parts are looked at by whoever decodes it.
func (d *doc) checkTop(f *form, n *node) *item {
	if f.role != roleType && n.kind() == noKind {
		d.noValue(n)
		return nil
	}
	return &item{form: f, node: n}
}

// noValue tells why a value has none.
func (d *doc) noValue(n *node) {
	v := n.value()
	if err := v.Err(); err != nil {
		d.cueErrors(err, n)
		return
	}
	if !v.Exists() || len(d.replaced) > 0 && v.IncompleteKind() == cue.BottomKind {
		return
	}
	if root, path := v.ReferencePath(); root.Exists() {
		if err := root.LookupPath(path).Err(); err != nil {
			d.cueErrors(err, n)
			return
		}
	}
	known := ""
	if s := graph.Concealed(shortCUE(v)); s != "_" {
		known = ": it is only known to be " + s
	}
	d.tell(n.at(), n.path, "has no value yet"+known)
}

// shortCUE is a value as CUE writes it, on one line and cut.
func shortCUE(v cue.Value) string {
	s := strings.Join(strings.Fields(sprint(v)), " ")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return s
}

func (d *doc) checkString(it *item) *item {
	t, ok := it.node.text()
	if !ok {
		d.noValue(it.node)
		return nil
	}
	it.text = t
	f := it.form
	if f.kind == formEnum {
		for _, e := range f.enum {
			if e == t.S {
				return it
			}
		}
		d.faults.Add(it.at(), it.path(), "%q is not one of %s%s", graph.Concealed(t.S), quoted(f.enum), didYouMean(t.S, f.enum))
		return nil
	}
	if !d.checkRole(it) {
		return nil
	}
	return it
}

func (d *doc) checkInt(it *item) *item {
	n, err := it.node.int()
	f := it.form
	switch {
	case err != nil:
		d.faults.Add(it.at(), it.path(), "is too large a number")
	case f.hasMin && n < f.min:
		d.faults.Add(it.at(), it.path(), "must be at least %d, not %d", f.min, n)
	case f.max > 0 && n > f.max:
		d.faults.Add(it.at(), it.path(), "must be at most %d, not %d", f.max, n)
	default:
		it.num = n
		return it
	}
	return nil
}

// checkStruct checks the fields that are there, those that are not known and
// those that are missing. A misspelt field is not missing as well.
func (d *doc) checkStruct(it *item) {
	f := it.form
	it.broken = map[string]bool{}
	fields, optional := it.node.fields()
	d.sayOptional(optional)
	for _, n := range optional {
		it.broken[n.name] = true
	}
	misspelt := map[string]bool{}
	for _, n := range fields {
		ff := f.byName[n.name]
		if ff == nil {
			near := value.Near(n.name, f.names())
			misspelt[near] = true
			if !d.notAllowed(n) {
				d.faults.Add(n.labelAt(), n.path, "unknown field%s", meant(n.name, f.names(), "known here: "))
			}
			continue
		}
		if x := d.check(ff.form, n); x != nil {
			it.fields = append(it.fields, x)
		} else {
			it.broken[n.name] = true
		}
	}
	for _, ff := range f.fields {
		if ff.required && !misspelt[ff.name] && !it.has(ff.name) {
			at := it.node.labelAt()
			if it.node.name == "" {
				at = it.node.at()
			}
			d.faults.Add(at, it.path(), "%q is missing", ff.name)
		}
	}
}

// checkMap checks the values below names of the author's own.
func (d *doc) checkMap(it *item) {
	fields, optional := it.node.fields()
	d.sayOptional(optional)
	it.broken = map[string]bool{}
	for _, n := range fields {
		if x := d.check(it.form.elem, n); x != nil {
			it.fields = append(it.fields, x)
		} else {
			it.broken[n.name] = true
		}
	}
}

func (d *doc) sayOptional(fields []*node) {
	for _, n := range fields {
		d.faults.Add(n.labelAt(), n.path, "is written with a ?, which sets nothing: leave the ? out")
	}
}

// str is the value of a string node, "" if it has none.
func (n *node) str() string {
	t, _ := n.text()
	return t.S
}

// int is the value of a whole number.
func (n *node) int() (int64, error) {
	if lit, ok := n.literal().(*ast.BasicLit); ok {
		if i, err := strconv.ParseInt(lit.Value, 10, 64); err == nil {
			return i, nil
		}
	}
	v := n.value()
	if dv, ok := v.Default(); ok {
		v = dv
	}
	i, err := v.Int64()
	if err != nil {
		return math.MaxInt64, err
	}
	return i, nil
}

func (n *node) bool() bool {
	if lit, ok := n.literal().(*ast.BasicLit); ok {
		return lit.Value == "true"
	}
	b, _ := n.value().Bool()
	return b
}
