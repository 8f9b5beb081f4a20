package dsl

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"
)

// userPositions keeps the positions in the author's files, sorted, each once.
func userPositions(l []token.Pos) []token.Pos {
	var out []token.Pos
	for _, p := range l {
		if p.IsValid() && !isOurs(p) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, token.Pos.Compare)
	return slices.CompactFunc(out, func(a, b token.Pos) bool { return a.Compare(b) == 0 })
}

// pathOf is the path of an error in our form.
func (d *doc) pathOf(e errors.Error) string {
	path := ""
	for _, p := range e.Path() {
		switch {
		case isDigits(p):
			path += "[" + p + "]"
		case strings.HasPrefix(p, "_") || strings.HasPrefix(p, "#"):
			if path != "" {
				path += "."
			}
			path += p
		default:
			path = joinPath(path, unquoteLabel(p))
		}
	}
	return path
}

func unquoteLabel(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}

// lookup finds the value at a path of CUE's.
func (d *doc) lookup(path []string) cue.Value {
	if d.root == nil {
		return cue.Value{}
	}
	sels := make([]cue.Selector, 0, len(path))
	for _, p := range path {
		switch {
		case isDigits(p):
			i, _ := strconv.Atoi(p)
			sels = append(sels, cue.Index(i))
		case strings.HasPrefix(p, "#"):
			sels = append(sels, cue.Def(p))
		case strings.HasPrefix(p, "_"):
			sels = append(sels, cue.Hid(p, d.inst.ID()))
		default:
			sels = append(sels, cue.Str(unquoteLabel(p)))
		}
	}
	return d.root.value().LookupPath(cue.MakePath(sels...))
}

// notAllowed tells whether CUE refused the field already.
func (d *doc) notAllowed(n *node) bool { return d.toldAt[n.path] }

// buildErrors tells what keeps a package from being compiled, and takes it
// out of the source where that can be done; false if it cannot.
func (d *doc) buildErrors(err error) bool {
	fixed := true
	d.cueErrors(err, nil)
	for _, e := range errors.Errors(err) {
		switch format, _ := e.Msg(); {
		case strings.HasPrefix(format, "reference "):
			fixed = d.replace(e.Position()) && fixed
		case strings.HasPrefix(format, "imported and not used"), strings.HasPrefix(format, "unreferenced alias"):
			fixed = d.remove(e.Position()) && fixed
		default:
			fixed = false
		}
	}
	return fixed
}

// replace puts an error value in the place of the name at a position.
func (d *doc) replace(pos token.Pos) bool {
	done := false
	for _, f := range d.inst.Files {
		astutil.Apply(f, func(c astutil.Cursor) bool {
			if id, ok := c.Node().(*ast.Ident); ok && samePos(id.Pos(), pos) {
				if _, isLabel := c.Parent().Node().(*ast.Field); isLabel && c.Parent().Node().(*ast.Field).Label == ast.Label(id) {
					return true
				}
				b := &ast.BottomLit{}
				ast.SetPos(b, pos)
				c.Replace(b)
				d.replaced = append(d.replaced, pos)
				done = true
			}
			return !done
		}, nil)
	}
	return done
}

// remove takes the import or let clause at a position out.
func (d *doc) remove(pos token.Pos) bool {
	done := false
	for _, f := range d.inst.Files {
		f.Decls = slices.DeleteFunc(f.Decls, func(x ast.Decl) bool {
			switch x := x.(type) {
			case *ast.ImportDecl:
				n := len(x.Specs)
				x.Specs = slices.DeleteFunc(x.Specs, func(s *ast.ImportSpec) bool { return samePos(s.Pos(), pos) })
				done = done || len(x.Specs) < n
				return len(x.Specs) == 0
			case *ast.LetClause:
				if samePos(x.Pos(), pos) {
					done = true
					return true
				}
			}
			return false
		})
	}
	return done
}

func samePos(a, b token.Pos) bool {
	return a.IsValid() && b.IsValid() && a.Filename() == b.Filename() && a.Offset() == b.Offset()
}

// namesAt gives the names that a reference at a position could mean.
func (d *doc) namesAt(pos []token.Pos) []string {
	var names []string
	add := func(decls []ast.Decl) {
		for _, x := range decls {
			names = append(names, declNames(x)...)
			if imp, ok := x.(*ast.ImportDecl); ok {
				for _, s := range imp.Specs {
					names = append(names, importName(s))
				}
			}
		}
	}
	for _, f := range d.inst.Files {
		add(f.Decls)
		if len(pos) == 0 || f.Filename != pos[0].Filename() {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructLit); ok && s.Pos().IsValid() && s.Pos().Offset() <= pos[0].Offset() && pos[0].Offset() < s.End().Offset() {
				add(s.Elts)
			}
			return true
		}, nil)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fieldsOfSelector finds X.name at or around one of the positions and gives X
// and the fields that it has.
func (d *doc) fieldsOfSelector(pos []token.Pos, name string) (base string, known []string) {
	for _, f := range d.inst.Files {
		ast.Walk(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || base != "" {
				return base == ""
			}
			label, isIdent := s.Sel.(*ast.Ident)
			if !isIdent || label.Name != name || !slices.ContainsFunc(pos, func(p token.Pos) bool { return samePos(p, s.Sel.Pos()) || samePos(p, s.Pos()) }) {
				return true
			}
			base, known = d.fieldsOf(s.X)
			return false
		}, nil)
	}
	return base, known
}

// fieldsOf gives an expression as it is written, and the fields of the struct
// that it names.
func (d *doc) fieldsOf(e ast.Expr) (text string, known []string) {
	switch e := e.(type) {
	case *ast.Ident:
		for _, f := range d.inst.Files {
			for _, x := range f.Decls {
				if field, ok := x.(*ast.Field); ok && labelName(field) == e.Name {
					if s, ok := field.Value.(*ast.StructLit); ok {
						for _, y := range s.Elts {
							known = append(known, declNames(y)...)
						}
					}
				}
			}
		}
		return e.Name, known
	case *ast.SelectorExpr:
		text, _ := d.fieldsOf(e.X)
		if label, ok := e.Sel.(*ast.Ident); ok && text != "" {
			return text + "." + label.Name, nil
		}
	}
	return "", nil
}

// isLiteralAt tells whether a literal of that text stands at a position.
func (d *doc) isLiteralAt(pos token.Pos, text string) bool {
	found := false
	for _, f := range d.inst.Files {
		if f.Filename != pos.Filename() {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && samePos(lit.Pos(), pos) {
				found = found || lit.Value == text
			}
			return !found
		}, nil)
	}
	return found
}

// blocks are the fields of the top level that a spec refers to.
var blocks = []string{"server", "env", "databases", "apis", "presenters", "groups", "tools", "tests"}

// checkShadows tells a reference to a block that CUE takes for a nearer field
// of the same name.
func (d *doc) checkShadows() {
	for _, f := range d.inst.Files {
		ast.Walk(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := s.X.(*ast.Ident)
			if !ok || id.Node == nil || !slices.Contains(blocks, id.Name) || !d.declares(id.Name) {
				return true
			}
			scope, ok := id.Scope.(*ast.StructLit)
			if !ok {
				return true
			}
			for _, x := range scope.Elts {
				if field, ok := x.(*ast.Field); ok && labelName(field) == id.Name {
					pos := id.Pos()
					defer d.replace(pos) // what follows from it need not be told
					d.faults.Add(d.at(pos), d.pathAt(pos), "this %s is the field at %s, not the block %s: CUE takes the nearer one; give that field another name", id.Name, d.at(field.Label.Pos()), id.Name)
				}
			}
			return true
		}, nil)
	}
}

// pathAt is the path of the innermost field at a position.
func (d *doc) pathAt(pos token.Pos) string {
	path := ""
	for _, f := range d.inst.Files {
		if f.Filename != pos.Filename() {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.Field); ok {
				if x.Pos().Offset() > pos.Offset() || x.End().Offset() < pos.Offset() {
					return false
				}
				path = joinPath(path, labelName(x))
			}
			return true
		}, nil)
	}
	return path
}

// declares tells whether the package has a top-level field of that name.
func (d *doc) declares(name string) bool {
	for _, f := range d.inst.Files {
		for _, x := range f.Decls {
			if slices.Contains(declNames(x), name) {
				return true
			}
		}
	}
	return false
}
