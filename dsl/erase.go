package dsl

import (
	"path"
	"strconv"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/schemas"
)

// eraseSchema takes the language's own definitions out of a file where they
// only constrain: `tools: [string]: schema.#Tool` is there for editors. The
// loader checks against the same definitions itself, faster and with better
// places, and CUE would only evaluate them once more.
func eraseSchema(f *ast.File) {
	name := schemaImport(f)
	if name == "" {
		return
	}
	e := eraser{name: name}
	f.Decls = e.decls(f.Decls)
	astutil.Apply(f, func(c astutil.Cursor) bool {
		switch x := c.Node().(type) {
		case *ast.StructLit:
			x.Elts = e.decls(x.Elts)
		case *ast.Field:
			x.Value = e.operand(x.Value)
		}
		return true
	}, nil)
	if !e.isUsed(f) {
		dropImport(f)
	}
}

// schemaImport is the name under which a file imports the language, or "".
func schemaImport(f *ast.File) string {
	for spec := range f.ImportSpecs() {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == schemas.ImportPath {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(p)
		}
	}
	return ""
}

type eraser struct{ name string }

// isSchema tells whether an expression is schema.#X.
func (e eraser) isSchema(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == e.name
}

// operand drops schema.#X from the sides of an &.
func (e eraser) operand(x ast.Expr) ast.Expr {
	b, ok := x.(*ast.BinaryExpr)
	if !ok || b.Op != token.AND {
		return x
	}
	l, r := e.operand(b.X), e.operand(b.Y)
	switch {
	case e.isSchema(l):
		return r
	case e.isSchema(r):
		return l
	}
	b.X, b.Y = l, r
	return b
}

// decls drops declarations that say no more than schema.#X: an embedding, and
// a field that is only constrained.
func (e eraser) decls(l []ast.Decl) []ast.Decl {
	kept := l[:0]
	for _, d := range l {
		switch d := d.(type) {
		case *ast.EmbedDecl:
			if e.isSchema(e.operand(d.Expr)) {
				continue
			}
		case *ast.Field:
			if _, isPattern := d.Label.(*ast.ListLit); isPattern && e.isOnlySchema(d.Value) {
				continue
			}
			if e.isSchema(d.Value) {
				d.Value = ast.NewIdent("_")
			}
		}
		kept = append(kept, d)
	}
	return kept
}

// isOnlySchema tells whether a value is schema.#X, also below further patterns.
func (e eraser) isOnlySchema(x ast.Expr) bool {
	if s, ok := x.(*ast.StructLit); ok && len(s.Elts) == 1 {
		if f, ok := s.Elts[0].(*ast.Field); ok {
			_, isPattern := f.Label.(*ast.ListLit)
			return isPattern && e.isOnlySchema(f.Value)
		}
		return false
	}
	return e.isSchema(x)
}

func (e eraser) isUsed(f *ast.File) bool {
	used := false
	ast.Walk(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && e.isSchema(s) {
			used = true
		}
		return !used
	}, nil)
	return used
}

func dropImport(f *ast.File) {
	kept := f.Decls[:0]
	for _, d := range f.Decls {
		if imp, ok := d.(*ast.ImportDecl); ok {
			specs := imp.Specs[:0]
			for _, s := range imp.Specs {
				if p, err := strconv.Unquote(s.Path.Value); err != nil || p != schemas.ImportPath {
					specs = append(specs, s)
				}
			}
			imp.Specs = specs
			if len(specs) == 0 {
				continue
			}
		}
		kept = append(kept, d)
	}
	f.Decls = kept
}
