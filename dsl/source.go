package dsl

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// node is a value of the spec together with the source that says it. Most of
// a spec is literals, whose source alone tells everything: CUE is only asked
// for the value where it is not.
type node struct {
	doc    *doc
	parent *node
	name   string // of the field, or "" for an element of a list
	path   string
	label  token.Pos // of the field's name; of an element, of its value

	// exprs are the sources of the value; they are all of it if whole.
	exprs []ast.Expr
	whole bool

	sel cue.Selector
	val cue.Value
	has bool // val is set
}

// value asks CUE.
func (n *node) value() cue.Value {
	if !n.has {
		n.val, n.has = n.parent.value().LookupPath(cue.MakePath(n.sel)), true
	}
	return n.val
}

// literal is the one expression that says the value, or nil.
func (n *node) literal() ast.Expr {
	if n.whole && len(n.exprs) == 1 {
		return unparen(n.exprs[0])
	}
	return nil
}

func unparen(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// at is where the value stands.
func (n *node) at() graph.Place {
	for _, e := range n.exprs {
		if pos := e.Pos(); pos.IsValid() && !isOurs(pos) {
			return n.doc.at(pos)
		}
	}
	if n.has {
		if pos := n.val.Pos(); pos.IsValid() && !isOurs(pos) {
			return n.doc.at(pos)
		}
	}
	return n.labelAt()
}

// labelAt is where the name of the field stands.
func (n *node) labelAt() graph.Place {
	if n.label.IsValid() && !isOurs(n.label) {
		return n.doc.at(n.label)
	}
	if n.parent != nil {
		return n.parent.labelAt()
	}
	return graph.Place{}
}

// child makes the node of a field.
func (n *node) child(name string, label token.Pos) *node {
	return &node{doc: n.doc, parent: n, name: name, path: joinPath(n.path, name), label: label, sel: cue.Str(name)}
}

// element makes the node of an element of a list.
func (n *node) element(i int) *node {
	return &node{doc: n.doc, parent: n, path: n.path + "[" + strconv.Itoa(i) + "]", sel: cue.Index(i)}
}

// joinPath adds a name to a path, quoted as CUE does where it must be.
func joinPath(path, name string) string {
	if !ast.IsValidIdent(name) || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
		name = literal.String.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// fields gives the fields of a struct in the order of the source. Hidden
// fields and definitions are the author's own and left out. A field that is
// written with ? sets nothing and is in optional.
func (n *node) fields() (fields, optional []*node) {
	if fields, ok := n.plainFields(); ok {
		return fields, nil
	}
	v := n.value()
	it, err := v.Fields(cue.Optional(true))
	if err != nil {
		return nil, nil
	}
	for it.Next() {
		c := n.child(it.Selector().Unquoted(), token.NoPos)
		c.val, c.has = it.Value(), true
		c.findSource()
		if it.Selector().ConstraintType() == cue.OptionalConstraint {
			optional = append(optional, c)
			continue
		}
		fields = append(fields, c)
	}
	return n.inSourceOrder(fields), optional
}

// plainFields gives the fields if the source says all of them literally.
func (n *node) plainFields() ([]*node, bool) {
	if !n.whole {
		return nil, false
	}
	var fields []*node
	index := map[string]*node{}
	for _, e := range n.exprs {
		s, ok := unparen(e).(*ast.StructLit)
		if !ok {
			return nil, false
		}
		for _, d := range s.Elts {
			f, name, ok := plainField(d)
			if !ok {
				return nil, false
			}
			if f == nil {
				continue
			}
			c := index[name]
			if c == nil {
				c = n.child(name, f.Label.Pos())
				c.whole = true
				index[name] = c
				fields = append(fields, c)
			}
			c.exprs = append(c.exprs, f.Value)
		}
	}
	return fields, true
}

// plainField tells whether a declaration is a field whose name is written out,
// or one that makes no field (then it is nil).
func plainField(d ast.Decl) (f *ast.Field, name string, ok bool) {
	switch d := d.(type) {
	case *ast.Field:
		name, isIdent, err := ast.LabelName(d.Label)
		if err != nil || d.Constraint != token.ILLEGAL || d.Alias != nil {
			return nil, "", false
		}
		if _, ok := d.Value.(*ast.Alias); ok {
			return nil, "", false
		}
		if isIdent && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#")) {
			return nil, "", true
		}
		return d, name, true
	case *ast.CommentGroup, *ast.Attribute, *ast.LetClause:
		return nil, "", true
	}
	return nil, "", false
}

// elements gives the elements of a list.
func (n *node) elements() []*node {
	if l, ok := n.literal().(*ast.ListLit); ok {
		if nodes, ok := n.plainElements(l); ok {
			return nodes
		}
	}
	it, err := n.value().List()
	if err != nil {
		return nil
	}
	var nodes []*node
	for i := 0; it.Next(); i++ {
		c := n.element(i)
		c.val, c.has = it.Value(), true
		c.findSource()
		nodes = append(nodes, c)
	}
	return nodes
}

func (n *node) plainElements(l *ast.ListLit) ([]*node, bool) {
	nodes := make([]*node, 0, len(l.Elts))
	for i, e := range l.Elts {
		switch e.(type) {
		case *ast.Ellipsis, *ast.Comprehension:
			return nil, false
		}
		c := n.element(i)
		c.exprs, c.whole, c.label = []ast.Expr{e}, true, e.Pos()
		nodes = append(nodes, c)
	}
	return nodes, true
}

// findSource looks up the source of a value that CUE gave.
func (n *node) findSource() {
	if f, ok := n.val.Source().(*ast.Field); ok {
		n.exprs, n.whole, n.label = []ast.Expr{f.Value}, true, f.Label.Pos()
		if _, ok := f.Value.(*ast.Alias); ok {
			n.whole = false
		}
		return
	}
	vals := []cue.Value{n.val}
	if op, args := n.val.Expr(); op == cue.AndOp {
		vals = args
	}
	for _, v := range vals {
		switch s := v.Source().(type) {
		case *ast.Field:
			n.exprs = append(n.exprs, s.Value)
			if !n.label.IsValid() || isOurs(n.label) {
				n.label = s.Label.Pos()
			}
		case ast.Expr:
			n.exprs = append(n.exprs, s)
		}
	}
	if !n.label.IsValid() && len(n.exprs) > 0 && n.name == "" {
		n.label = n.exprs[0].Pos()
	}
	n.preferConcrete()
}

// preferConcrete puts the literal that says the value before its constraints,
// so that the value's place is the author's.
func (n *node) preferConcrete() {
	for i, e := range n.exprs {
		switch unparen(e).(type) {
		case *ast.BasicLit, *ast.Interpolation, *ast.StructLit, *ast.ListLit:
			if i > 0 && !isOurs(e.Pos()) {
				n.exprs[0], n.exprs[i] = n.exprs[i], n.exprs[0]
			}
			return
		}
	}
}

// inSourceOrder puts fields in the order of the source: CUE puts embedded
// fields last.
func (n *node) inSourceOrder(fields []*node) []*node {
	s, ok := n.literal().(*ast.StructLit)
	if !ok || len(fields) < 2 {
		return fields
	}
	left := make(map[string]*node, len(fields))
	for _, f := range fields {
		left[f.name] = f
	}
	out := make([]*node, 0, len(fields))
	take := func(name string) {
		if f := left[name]; f != nil {
			delete(left, name)
			out = append(out, f)
		}
	}
	embedded := n.embedded()
	for _, d := range s.Elts {
		switch d := d.(type) {
		case *ast.Field:
			if name, _, err := ast.LabelName(d.Label); err == nil {
				take(name)
			}
		case *ast.EmbedDecl:
			if len(embedded) == 0 {
				continue
			}
			if it, err := embedded[0].Fields(); err == nil {
				for it.Next() {
					take(it.Selector().Unquoted())
				}
			}
			embedded = embedded[1:]
		}
	}
	for _, f := range fields {
		take(f.name)
	}
	return out
}

// embedded gives the values that are embedded in the struct, in order.
func (n *node) embedded() []cue.Value {
	op, args := n.value().Expr()
	if op != cue.AndOp {
		return nil
	}
	var l []cue.Value
	for _, a := range args {
		if a.Source() != nil {
			l = append(l, a)
		}
	}
	return l
}

// declarations gives, for each field that is declared with one of the fields
// named inside it, the places where it is.
func (n *node) declarations(names []string) map[string][]graph.Place {
	places := map[string][]graph.Place{}
	for _, e := range n.exprs {
		s, ok := unparen(e).(*ast.StructLit)
		if !ok {
			continue
		}
		for _, d := range s.Elts {
			f, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			body, ok := unparen(f.Value).(*ast.StructLit)
			if ok && slices.ContainsFunc(body.Elts, func(d ast.Decl) bool {
				f, ok := d.(*ast.Field)
				return ok && slices.Contains(names, labelName(f))
			}) {
				name := labelName(f)
				places[name] = append(places[name], n.doc.at(f.Label.Pos()))
			}
		}
	}
	return places
}

// source is the file that declares the field.
func (n *node) source() string {
	if n.label.IsValid() && !isOurs(n.label) {
		return n.label.Filename()
	}
	if at := n.at(); at.File != "" {
		return n.doc.paths[at.File]
	}
	return ""
}
