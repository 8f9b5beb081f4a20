package dsl

import (
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// notes is what a field says beside its type: the comment above it and its
// attributes.
type notes struct {
	doc      string
	title    string
	examples []string
	secret   bool
	format   string
}

const maxNoteDepth = 16

// notes gives a field's own notes, completed by those of what it refers to,
// also through & and |. Of alternatives with different comments none counts:
// each tells of one alternative only.
func (c *shapeCompiler) notes(v cue.Value, depth int) notes {
	n := c.attributes(v)
	sources := fieldSources(v)
	refers := len(sources) == 0
	for _, f := range sources {
		if n.doc == "" {
			n.doc = comment(f)
		}
		refers = refers || mayRefer(f.Value)
	}
	if depth > maxNoteDepth || !refers {
		return n
	}
	if key, _ := refKey(v); key != "" {
		n.complete(c.notes(cue.Dereference(v), depth+1))
		return n
	}
	op, args := v.Expr()
	if op != cue.AndOp && op != cue.OrOp {
		return n
	}
	var below []notes
	for _, a := range args {
		below = append(below, c.notes(a, depth+1))
	}
	if op == cue.OrOp {
		docs := map[string]bool{}
		for _, b := range below {
			if b.doc != "" {
				docs[b.doc] = true
			}
		}
		if len(docs) > 1 {
			for i := range below {
				below[i].doc = ""
			}
		}
	}
	for _, b := range below {
		n.complete(b)
	}
	return n
}

// mayRefer tells whether an expression may refer to another field. It spares
// a look at the parts of what is written out.
func mayRefer(e ast.Expr) bool {
	switch e := unparen(e).(type) {
	case *ast.BasicLit, *ast.StructLit, *ast.ListLit:
		return false
	case *ast.UnaryExpr:
		return mayRefer(e.X)
	case *ast.BinaryExpr:
		return mayRefer(e.X) || mayRefer(e.Y)
	case *ast.Ident:
		switch e.Name {
		case "string", "int", "number", "float", "bool", "bytes", "_":
			return e.Node != nil // a field of that name
		}
	}
	return true
}

func (n *notes) complete(from notes) {
	if n.doc == "" {
		n.doc = from.doc
	}
	if n.title == "" {
		n.title = from.title
	}
	if n.examples == nil {
		n.examples = from.examples
	}
	n.secret = n.secret || from.secret
}

// fieldSources are the declarations of a field: one, or several that & joins.
func fieldSources(v cue.Value) []*ast.Field {
	if f, ok := v.Source().(*ast.Field); ok {
		return []*ast.Field{f}
	}
	var l []*ast.Field
	if op, args := v.Expr(); op == cue.AndOp {
		for _, a := range args {
			if f, ok := a.Source().(*ast.Field); ok {
				l = append(l, f)
			}
		}
	}
	return l
}

// attributeNames are the attributes that fields of types may have.
var attributeNames = []string{"format", "title", "example", "secret"}

// attributes reads the attributes of a field itself.
func (c *shapeCompiler) attributes(v cue.Value) notes {
	var n notes
	for _, a := range v.Attributes(cue.FieldAttr) {
		at := c.at(attributePos(v, a.Name()))
		if !slices.Contains(attributeNames, a.Name()) {
			c.fault(at, "unknown attribute @%s%s", a.Name(), meant(a.Name(), attributeNames, "there are "))
			continue
		}
		if a.Name() == "secret" {
			if n.secret = true; a.NumArgs() > 0 && a.RawArg(0) != "" {
				c.fault(at, "@secret takes nothing: write @secret()")
			}
			continue
		}
		text, err := a.String(0)
		if err != nil || text == "" || a.NumArgs() > 1 {
			c.fault(at, "@%s takes one text: write @%s(%q)", a.Name(), a.Name(), "…")
			continue
		}
		switch a.Name() {
		case "title":
			n.title = text
		case "example":
			n.examples = append(n.examples, text)
		case "format":
			if !slices.Contains(shape.Formats, text) {
				c.fault(at, "unknown format %q%s", text, meant(text, shape.Formats, "there are "))
				continue
			}
			n.format = text
		}
	}
	return n
}

func attributePos(v cue.Value, name string) token.Pos {
	for _, f := range fieldSources(v) {
		for _, a := range f.Attrs {
			if key, _ := a.Split(); key == name {
				return a.Pos()
			}
		}
	}
	return v.Pos()
}

// withFormat gives a type of texts a format; the shape itself may be another
// field's, too.
func (c *shapeCompiler) withFormat(s *shape.Shape, format string, v cue.Value) *shape.Shape {
	if f := formatted(s, format); f != nil {
		return f
	}
	c.fault(c.at(attributePos(v, "format")), "@format is for texts, and the field takes none that are free")
	return s
}

func formatted(s *shape.Shape, format string) *shape.Shape {
	x := *s
	switch s.Kind {
	case shape.String:
		x.Format = format
		return &x
	case shape.Union:
		x.Alts = slices.Clone(s.Alts)
		found := false
		for i, a := range x.Alts {
			if a.Kind == shape.String {
				x.Alts[i], found = formatted(a, format), true
			}
		}
		if found {
			return &x
		}
	}
	return nil
}

// joinedFormat is the format of one of the types that & joins: a text that
// is also a #Date.
func (c *shapeCompiler) joinedFormat(v cue.Value, depth int) string {
	if depth > maxNoteDepth {
		return ""
	}
	if depth > 0 {
		if f := c.attributes(v).format; f != "" {
			return f
		}
		if key, _ := refKey(v); key != "" {
			return c.joinedFormat(cue.Dereference(v), depth+1)
		}
	}
	op, args := v.Expr()
	if op != cue.AndOp {
		return ""
	}
	for _, a := range args {
		if f := c.joinedFormat(a, depth+1); f != "" {
			return f
		}
	}
	return ""
}
