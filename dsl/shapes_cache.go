package dsl

import (
	"path/filepath"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// typeCache keeps the compiled form of scalar types by their source: a spec
// says string, int & >=1 or #ID hundreds of times, and asking CUE for the
// parts of a type is the dearest thing of a start.
type typeCache map[string]cachedType

// cachedType is a type with its default and the notes of what it refers to.
type cachedType struct {
	shape      *shape.Shape
	fallback   any
	hasDefault bool
	notes      notes
}

// compileShapeWith is compileShape with a cache that several calls share.
func compileShapeWith(cache typeCache, v cue.Value, at func(token.Pos) graph.Place, path string) (*shape.Shape, graph.Faults) {
	c := newShapeCompiler(at, path)
	c.cache = cache
	s := c.compile(v)
	finishUnions(s, map[*shape.Shape]bool{})
	return s, c.faults
}

// cachedField compiles a field whose type was seen before.
func (c *shapeCompiler) cachedField(f *shape.Field, key string, v cue.Value, source *ast.Field) bool {
	t, ok := c.cache[key]
	if !ok {
		return false
	}
	f.Shape = t.shape
	n := notes{doc: comment(source)}
	if len(source.Attrs) > 0 {
		own := c.attributes(v)
		own.doc = n.doc
		n = own
		if own.format != "" {
			f.Shape = c.withFormat(f.Shape, own.format, v)
		}
	}
	n.complete(t.notes)
	f.Description, f.Title, f.Examples, f.Secret = n.doc, n.title, n.examples, n.secret
	c.checkExamples(f, v)
	if t.hasDefault && !f.Optional {
		f.HasDefault, f.Default = true, t.fallback
	}
	return true
}

// remember keeps a type that was compiled without a fault, if it is a scalar:
// others may refer to themselves, and have names of their own then.
func (c *shapeCompiler) remember(key string, source *ast.Field, f *shape.Field, s *shape.Shape, v cue.Value) {
	if key == "" || !isScalar(s) || f.Optional && hasDefault(v) {
		return
	}
	t := cachedType{shape: s, fallback: f.Default, hasDefault: f.HasDefault}
	if target, _ := refKey(v); target != "" {
		t.notes = c.notes(cue.Dereference(v), 1)
	} else if _, isBinary := source.Value.(*ast.BinaryExpr); isBinary && hasReference(source.Value) {
		return // notes come from its parts
	}
	c.cache[key] = t
}

func isScalar(s *shape.Shape) bool {
	switch s.Kind {
	case shape.Null, shape.Bool, shape.Int, shape.Float, shape.String, shape.Const:
		return true
	case shape.Union:
		for _, a := range s.Alts {
			if !isScalar(a) {
				return false
			}
		}
		return true
	}
	return false
}

// typeKey is the source of a type, if that says all: it names nothing but
// CUE's own types and the package's definitions. It is "" for any other.
func typeKey(f *ast.Field) string {
	b, ok := appendType(make([]byte, 0, 64), f.Value)
	if !ok {
		return ""
	}
	if hasReference(f.Value) {
		b = append(append(b, '@'), filepath.Dir(f.Pos().Filename())...)
	}
	return string(b)
}

func appendType(b []byte, e ast.Expr) ([]byte, bool) {
	ok, ok2 := true, true
	switch e := e.(type) {
	case *ast.Ident:
		_, isTop := e.Scope.(*ast.File)
		_, isLet := e.Node.(*ast.LetClause)
		return append(b, e.Name...), e.Node == nil || isTop && !isLet
	case *ast.BasicLit:
		return append(b, e.Value...), true
	case *ast.ParenExpr:
		b, ok = appendType(append(b, '('), e.X)
		return append(b, ')'), ok
	case *ast.UnaryExpr:
		return appendType(append(b, e.Op.String()...), e.X)
	case *ast.BinaryExpr:
		b, ok = appendType(append(b, '('), e.X)
		b, ok2 = appendType(append(b, e.Op.String()...), e.Y)
		return append(b, ')'), ok && ok2
	}
	return b, false
}

// hasReference tells whether a type names something that is not CUE's own.
func hasReference(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Node != nil
	case *ast.ParenExpr:
		return hasReference(e.X)
	case *ast.UnaryExpr:
		return hasReference(e.X)
	case *ast.BinaryExpr:
		return hasReference(e.X) || hasReference(e.Y)
	}
	return false
}
