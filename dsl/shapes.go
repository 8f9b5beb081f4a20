package dsl

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
)

// maxShapeDepth is how deep types may nest without a reference to themselves.
const maxShapeDepth = 64

// compileShape compiles a CUE type of a spec: params, a schema, claims, env.
// v must not be unified with anything, so that its fields know their source.
// path is the field path of v for faults. What cannot be compiled is a fault,
// and Any in the shape.
func compileShape(v cue.Value, at func(token.Pos) graph.Place, path string) (*shape.Shape, graph.Faults) {
	return compileShapeWith(typeCache{}, v, at, path)
}

func newShapeCompiler(at func(token.Pos) graph.Place, path string) *shapeCompiler {
	return &shapeCompiler{at: at, path: path, refs: map[string]*shape.Shape{}, pending: map[*shape.Shape]bool{}, names: map[string]bool{}, told: map[graph.Fault]bool{}}
}

type shapeCompiler struct {
	at      func(token.Pos) graph.Place
	path    string
	depth   int
	refs    map[string]*shape.Shape // types that fields refer to, each compiled once
	pending map[*shape.Shape]bool   // shapes that are still being compiled: Any until then
	names   map[string]bool         // taken by shapes that refer to themselves
	faults  graph.Faults
	told    map[graph.Fault]bool // faults that were reported, without their path
	cache   typeCache
}

// fault reports a mistake once, however many fields refer to it.
func (c *shapeCompiler) fault(at graph.Place, format string, args ...any) {
	var one graph.Faults
	one.Add(at, "", format, args...)
	if c.told[one[0]] {
		return
	}
	c.told[one[0]] = true
	one[0].Path = c.path
	c.faults = append(c.faults, one[0])
}

func (c *shapeCompiler) place(v cue.Value) graph.Place {
	for _, e := range sourceExprs(v) {
		return c.at(e.Pos())
	}
	return c.at(v.Pos())
}

func newShape(k shape.Kind) *shape.Shape {
	return &shape.Shape{Kind: k, MaxRunes: -1, MaxItems: -1}
}

// compile compiles a type that may be a reference to another one. A type that
// is reached again from inside itself gets a name.
func (c *shapeCompiler) compile(v cue.Value) *shape.Shape {
	if c.depth >= maxShapeDepth {
		c.fault(c.place(v), "is a type that never ends: give the part that repeats a name (#Name) and refer to that")
		return newShape(shape.Any)
	}
	c.depth++
	defer func() { c.depth-- }()
	key, name := refKey(v)
	if key == "" {
		return c.node(v)
	}
	if s := c.refs[key]; s != nil {
		if c.pending[s] && s.Name == "" {
			s.Name = c.unique(name)
		}
		return s
	}
	s := newShape(shape.Any)
	c.refs[key], c.pending[s] = s, true
	target := cue.Dereference(v)
	built := c.compile(target)
	if format := c.attributes(target).format; format != "" {
		built = c.withFormat(built, format, target)
	}
	delete(c.pending, s)
	if s.Name == "" {
		c.refs[key] = built
		return built
	}
	name = s.Name
	*s = *built
	s.Name = name
	if s.Kind == shape.Union {
		s.Alts = flat(nil, s.Alts, map[*shape.Shape]bool{s: true})
	}
	return s
}

// refKey identifies what a value refers to; "" for no reference and for
// CUE's own builtins.
func refKey(v cue.Value) (key, name string) {
	root, path := v.ReferencePath()
	sels := path.Selectors()
	if len(sels) == 0 {
		return "", ""
	}
	if op, _ := v.Eval().Expr(); op == cue.CallOp {
		return "", ""
	}
	key = path.String()
	if inst := root.BuildInstance(); inst != nil {
		key = inst.ID() + "\x00" + key
	}
	return key, sels[len(sels)-1].String()
}

// unique makes the name of a type that refers to itself, for JSON Schema.
func (c *shapeCompiler) unique(name string) string {
	name = strings.Trim(strings.TrimLeft(name, "#_"), `"?`)
	base := name
	for i := 'A'; c.names[name]; i++ {
		name = base + string(i)
	}
	c.names[name] = true
	return name
}

// node compiles a type that is no reference.
func (c *shapeCompiler) node(v cue.Value) *shape.Shape {
	op, args := v.Expr()
	switch {
	case op == cue.OrOp:
		return c.union(v, args)
	case op == cue.NoOp && len(args) == 1 && hasDefault(v):
		return c.compile(args[0]) // the default is one of its values
	}
	if isListType(v) {
		return c.list(v)
	}
	if err := v.Err(); err != nil {
		c.cueError(v, err)
		return newShape(shape.Any)
	}
	e := v.Eval()
	op, args = e.Expr()
	switch {
	case op == cue.OrOp: // & was distributed over |
		u := c.union(v, args)
		for _, a := range u.Alts {
			sortFields(v, a.Fields)
		}
		return u
	case op == cue.NoOp && len(args) == 1 && hasDefault(e):
		return c.compile(args[0])
	case v.IncompleteKind() == cue.StructKind:
		return c.object(v)
	}
	return c.scalar(v, op, args, e)
}

// hasDefault tells whether the author marked a default: an open list has one
// of its own, but is concrete.
func hasDefault(v cue.Value) bool {
	_, ok := v.Default()
	return ok && v.Kind() == cue.BottomKind
}

func (c *shapeCompiler) cueError(v cue.Value, err error) {
	first := errors.Errors(err)[0]
	format, args := first.Msg()
	at := c.place(v)
	for _, p := range errors.Positions(first) {
		if p.IsValid() && !isOurs(p) {
			at = c.at(p)
			break
		}
	}
	outer := c.path
	defer func() { c.path = outer }()
	if p := errorPath(first); strings.HasPrefix(p, c.path+".") {
		c.path = p // of the part that is wrong
	}
	if strings.HasPrefix(format, "cannot reference optional field") {
		c.fault(at, "%s", optionalReference(fmt.Sprint(args[0])))
		return
	}
	c.fault(at, "is no type that is known at the start: "+format, args...)
}

func errorPath(err errors.Error) string {
	path := ""
	for _, p := range errors.Path(err) {
		if q, err := literal.Unquote(p); err == nil {
			p = q
		}
		path = joinPath(path, p)
	}
	return path
}

// object compiles a struct.
func (c *shapeCompiler) object(v cue.Value) *shape.Shape {
	s := newShape(shape.Struct)
	c.refuseValidators(v, 0)
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		c.cueError(v, err)
		return s
	}
	var all *shape.Shape
	for it.Next() {
		sel := it.Selector()
		if sel.ConstraintType() == cue.PatternConstraint {
			if a := c.patternField(s, sel.Pattern(), it.Value()); a != nil {
				all = a
			}
			continue
		}
		s.Fields = append(s.Fields, c.field(sel, it.Value()))
	}
	if all == nil {
		if any := v.LookupPath(cue.MakePath(cue.AnyString)); any.Exists() && len(s.KeyPatterns) == 0 {
			s.Rest = newShape(shape.Any)
		} else if any.Exists() && isOpen(v) {
			s.Rest = newShape(shape.Any)
		}
	} else if len(s.KeyPatterns) > 0 { // it holds for the fields that others match, too
		s.KeyPatterns = append(s.KeyPatterns, shape.PatternField{Re: everyKey, Shape: all})
	} else {
		s.Rest = all
	}
	sortFields(v, s.Fields)
	return s
}

// refuseValidators finds what is joined to a struct and would be lost:
// struct.MinFields and the like.
func (c *shapeCompiler) refuseValidators(v cue.Value, depth int) {
	if depth > maxNoteDepth {
		return
	}
	if key, _ := refKey(v); key != "" {
		c.refuseValidators(cue.Dereference(v), depth+1)
		return
	}
	op, args := v.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			c.refuseValidators(a, depth+1)
		}
	case cue.CallOp, cue.SelectorOp:
		if op, args = v.Eval().Expr(); op == cue.CallOp {
			c.builtin(newShape(shape.Struct), args, v)
		}
	}
}

// field compiles a field that is declared by name.
func (c *shapeCompiler) field(sel cue.Selector, v cue.Value) *shape.Field {
	f := &shape.Field{Name: sel.Unquoted(), Optional: sel.ConstraintType() == cue.OptionalConstraint}
	outer := c.path
	c.path = joinPath(c.path, f.Name)
	defer func() { c.path = outer }()

	source, _ := v.Source().(*ast.Field)
	key := ""
	if source != nil {
		if key = typeKey(source); key != "" && c.cachedField(f, key, v, source) {
			return f
		}
	}
	told := len(c.faults)
	f.Shape = c.compile(v)
	plain := f.Shape
	n := c.notes(v, 0)
	if own := c.attributes(v).format; own != "" {
		f.Shape = c.withFormat(f.Shape, own, v)
	}
	f.Description, f.Title, f.Examples, f.Secret = n.doc, n.title, n.examples, n.secret
	c.checkExamples(f, v)
	if d, ok := v.Default(); ok && hasDefault(v) {
		c.setDefault(f, v, d)
	}
	if key != "" && len(c.faults) == told {
		c.remember(key, source, f, plain, v)
	}
	return f
}

func (c *shapeCompiler) setDefault(f *shape.Field, v, d cue.Value) {
	if f.Optional {
		if key, _ := refKey(v); key == "" {
			c.faults.Warn(c.place(v), c.path, "the default is never used: a field with ? stays away when it is left out; take the ? away")
		}
		return
	}
	x, err := concrete(d)
	if err != nil {
		c.fault(c.place(v), "has a default that is not known at the start: %s", shortCUE(d))
		return
	}
	f.HasDefault, f.Default = true, x
}

// checkExamples finds examples that do not fit their field.
func (c *shapeCompiler) checkExamples(f *shape.Field, v cue.Value) {
	for i, x := range f.ExampleValues() {
		if _, faults := f.Shape.Check(x); len(faults) > 0 {
			c.fault(c.place(v), "the example %q does not fit the type", f.Examples[i])
		}
	}
}

// patternField compiles [=~"…"]: T; for [string]: T it gives T.
func (c *shapeCompiler) patternField(s *shape.Shape, pattern, v cue.Value) *shape.Shape {
	outer := c.path
	c.path += "[" + shortCUE(pattern) + "]"
	defer func() { c.path = outer }()
	key := c.compile(pattern)
	to := c.compile(v)
	switch {
	case key.Kind != shape.String || key.MinRunes > 0 || key.MaxRunes >= 0 || key.Format != "" || len(key.Not) > 0 ||
		len(key.Patterns) > 1 || len(key.Patterns) == 1 && key.Patterns[0].Not:
		c.fault(c.place(v), `fields can be declared by name, as [string] or as [=~"…"], not as [%s]`, shortCUE(pattern))
	case len(key.Patterns) == 0:
		return to
	default:
		s.KeyPatterns = append(s.KeyPatterns, shape.PatternField{Re: key.Patterns[0].Re, Shape: to})
	}
	return nil
}

// isOpen tells whether a struct is written with "…".
func isOpen(v cue.Value) bool {
	for _, e := range sourceExprs(v) {
		if s, ok := unparen(e).(*ast.StructLit); ok {
			for _, d := range s.Elts {
				if _, ok := d.(*ast.Ellipsis); ok {
					return true
				}
			}
		}
	}
	return false
}
