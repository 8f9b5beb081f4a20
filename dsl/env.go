package dsl

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// fillEnv evaluates the block env by itself, reads the declared variables and
// writes their values into the source, so that the rest of the spec sees
// plain values: the text of a variable, or for a secret a marker. The types
// are gone by then, so that a marker need not match a secret's pattern.
func (d *doc) fillEnv() {
	var decls []*ast.Field
	for _, f := range d.inst.Files {
		for _, x := range f.Decls {
			if field, ok := x.(*ast.Field); ok && labelName(field) == "env" {
				decls = append(decls, field)
			}
		}
	}
	if len(decls) == 0 {
		return
	}
	v, ok := d.buildEnv()
	if !ok {
		d.spoil(decls)
		return
	}
	n := &node{doc: d, name: "env", path: "env", label: decls[0].Label.Pos(), val: v, has: true}
	for _, f := range decls {
		n.exprs = append(n.exprs, f.Value)
	}
	n.whole = true
	if k := n.kind(); k != aStruct {
		if k != noKind {
			d.faults.Add(n.at(), n.path, "must be a struct, not %s", k)
		}
		d.spoil(decls)
		return
	}
	types, faults := compileShape(v, d.places.at, n.path)
	for _, f := range faults {
		if !d.toldAt[f.Path] {
			d.faults = append(d.faults, f)
		}
	}
	var values []ast.Decl
	fields, optional := n.fields()
	for _, x := range slices.Concat(fields, optional) {
		if d.toldAt[x.path] {
			values = append(values, d.brokenVariable(x))
			continue
		}
		declared := types.Field(x.name)
		if declared == nil { // its type was told
			declared = &shape.Field{Shape: &shape.Shape{Kind: shape.Any}}
		}
		if f := d.variable(x, declared, slices.Contains(optional, x)); f != nil {
			values = append(values, f)
		}
	}
	blank(decls, values)
}

// brokenVariable stands for a variable whose type was told to be wrong.
func (d *doc) brokenVariable(n *node) *ast.Field {
	b := &ast.BottomLit{}
	ast.SetPos(b, n.label)
	d.replaced = append(d.replaced, n.label)
	return &ast.Field{Label: ast.NewString(n.name), Value: b}
}

// spoil makes a block that was told to be wrong into an error value, so that
// what refers to it is not told as well.
func (d *doc) spoil(decls []*ast.Field) {
	blank(decls, nil)
	b := &ast.BottomLit{}
	ast.SetPos(b, decls[0].Label.Pos())
	decls[0].Value = b
	d.replaced = append(d.replaced, b.Pos())
}

// blank puts the values in the place of the block's declarations.
func blank(decls []*ast.Field, values []ast.Decl) {
	for i, f := range decls {
		s, ok := f.Value.(*ast.StructLit)
		if !ok {
			s = &ast.StructLit{Lbrace: f.Value.Pos(), Rbrace: f.Value.End()}
			f.Value = s
		}
		s.Elts = nil
		if i == 0 {
			s.Elts = values
		}
	}
}

func labelName(f *ast.Field) string {
	name, _, err := ast.LabelName(f.Label)
	if err != nil {
		return ""
	}
	return name
}

// variable reads one declared variable and gives the field that stands for it.
func (d *doc) variable(n *node, f *shape.Field, optional bool) *ast.Field {
	x := &graph.EnvVar{Name: n.name, At: n.labelAt(), Optional: optional, Shape: f.Shape, HasDefault: f.HasDefault, Default: f.Default,
		Description: f.Description, Secret: f.Secret}
	d.g.Env = append(d.g.Env, x)
	label := &ast.Field{Label: ast.NewString(n.name)}
	ast.SetPos(label.Label.(*ast.BasicLit), n.label)
	if x.Secret && !takesText(x.Shape) {
		d.faults.Add(n.at(), n.path, "a secret must be a string")
		x.Secret = false
		label.Value = literalOf(standIn(x.Shape)) // what it holds is not looked at: a fault would show it
		return label
	}
	if !isScalarType(x.Shape) {
		d.faults.Add(n.at(), n.path, "must be a text, a number or true or false: there are no lists and structs in the environment")
		label.Value = &ast.BottomLit{}
		d.replaced = append(d.replaced, n.label)
		return label
	}
	got, err := x.Lookup(d.options.Env)
	switch {
	case err != nil && d.options.EnvMayMiss && !isSet(d.options.Env, n.name):
		got = standIn(x.Shape)
	case err != nil:
		if lost := n.lostDefault(); lost != "" && !f.HasDefault && !isSet(d.options.Env, n.name) {
			err = fmt.Errorf("is not set in the environment, and its default %s does not fit its type", lost)
		}
		d.faults.Add(x.At, n.path, "%v", err)
		got = standIn(x.Shape)
	case got == nil && optional:
		return nil
	}
	if x.Secret {
		label.Value = ast.NewLit(token.STRING, literal.String.Quote(graph.Marker(n.name)))
		return label
	}
	x.Value = got
	label.Value = literalOf(got)
	return label
}

func isSet(env func(string) (string, bool), name string) bool {
	_, ok := env(name)
	return ok
}

// isScalarType tells whether a variable of the environment can have the type.
func isScalarType(s *shape.Shape) bool {
	switch s.Kind {
	case shape.List, shape.Struct:
		return false
	case shape.Union:
		return !slices.ContainsFunc(s.Alts, func(a *shape.Shape) bool { return !isScalarType(a) })
	}
	return true
}

// lostDefault gives the default that the source of a value marks, for a value
// that has none: what else is said of its type leaves it out. "" for no mark.
func (n *node) lostDefault() string {
	found := ""
	for _, e := range n.exprs {
		ast.Walk(e, func(x ast.Node) bool {
			if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.MUL && found == "" {
				if b, err := format.Node(u.X); err == nil {
					found = string(b)
				}
			}
			return true
		}, nil)
	}
	return found
}

func takesText(s *shape.Shape) bool {
	switch s.Kind {
	case shape.String, shape.Any:
		return true
	case shape.Const:
		_, ok := s.Const.(string)
		return ok
	case shape.Union:
		return !slices.ContainsFunc(s.Alts, func(a *shape.Shape) bool { return !takesText(a) })
	}
	return false
}

// standIn is something of a variable's type, for a variable whose value is
// missing, so that the rest of the spec can be checked.
func standIn(s *shape.Shape) any {
	switch s.Kind {
	case shape.Bool:
		return false
	case shape.Int, shape.Float:
		if s.Min != nil {
			return value.ParseNumber(string(s.Min.Value))
		}
		return int64(0)
	case shape.Const:
		return s.Const
	case shape.Union:
		return standIn(s.Alts[0])
	case shape.Null:
		return nil
	}
	return ""
}

// literalOf writes a value in CUE.
func literalOf(v any) ast.Expr {
	switch v := v.(type) {
	case nil:
		return ast.NewNull()
	case bool:
		return ast.NewBool(v)
	case string:
		return ast.NewLit(token.STRING, literal.String.Quote(v))
	}
	text := string(value.AppendJSON(nil, v))
	kind := token.INT
	if strings.ContainsAny(text, ".eE") {
		kind = token.FLOAT
	}
	if strings.HasPrefix(text, "-") {
		return &ast.UnaryExpr{Op: token.SUB, X: ast.NewLit(kind, text[1:])}
	}
	return ast.NewLit(kind, text)
}

// buildEnv evaluates env with nothing but the declarations that it needs: the
// same source with everything else blanked out, so that places stay.
func (d *doc) buildEnv() (cue.Value, bool) {
	needed := d.neededBy("env")
	d.envNeeds = needed
	bc := build.NewContext(build.Loader(func(_ token.Pos, path string) *build.Instance { return d.inst.LookupImport(path) }))
	inst := bc.NewInstance(d.inst.Dir, nil)
	inst.PkgName, inst.Module, inst.Root = d.inst.PkgName, d.inst.Module, d.inst.Root
	for i, f := range d.inst.Files {
		src, ok := d.sourceOf(i)
		if !ok {
			return cue.Value{}, false
		}
		mini, err := parser.ParseFile(f.Filename, blankOut(src, f, needed), parser.ParseComments)
		if err != nil {
			d.loadErrors(err)
			return cue.Value{}, false
		}
		eraseSchema(mini)
		if err := inst.AddSyntax(mini); err != nil {
			d.loadErrors(err)
			return cue.Value{}, false
		}
	}
	if err := inst.Complete(); err != nil {
		d.loadErrors(err)
		return cue.Value{}, false
	}
	v := cuecontext.New().BuildInstance(inst)
	if inst.Err != nil {
		d.loadErrors(inst.Err)
		return cue.Value{}, false
	}
	env := v.LookupPath(cue.ParsePath("env"))
	if err := env.Validate(); err != nil {
		d.cueErrors(err, nil)
	}
	return env, env.Exists()
}

// neededBy gives the names of the top-level declarations and imports that a
// declaration refers to, and those that these refer to.
func (d *doc) neededBy(name string) map[string]bool {
	refs := map[string]map[string]bool{}
	for _, f := range d.inst.Files {
		for _, x := range f.Decls {
			for _, n := range declNames(x) {
				if refs[n] == nil {
					refs[n] = map[string]bool{}
				}
				ast.Walk(x, func(y ast.Node) bool {
					if id, ok := y.(*ast.Ident); ok {
						refs[n][id.Name] = true
					}
					return true
				}, nil)
			}
		}
	}
	needed := map[string]bool{}
	var visit func(n string)
	visit = func(n string) {
		if needed[n] {
			return
		}
		needed[n] = true
		for r := range refs[n] {
			visit(r)
		}
	}
	visit(name)
	return needed
}

// declNames gives the names that a top-level declaration makes.
func declNames(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.Field:
		return []string{labelName(d)}
	case *ast.LetClause:
		return []string{d.Ident.Name}
	}
	return nil
}

// blankOut puts spaces in the place of the declarations that are not needed.
func blankOut(src []byte, f *ast.File, needed map[string]bool) []byte {
	out := slices.Clone(src)
	erase := func(from, to int) {
		for i := max(from, 0); i < min(to, len(out)); i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	end := 0
	for _, d := range f.Decls {
		keep := false
		switch d := d.(type) {
		case *ast.Package:
			keep = true
		case *ast.ImportDecl:
			for _, s := range d.Specs {
				keep = keep || needed[importName(s)]
			}
			if keep {
				for _, s := range d.Specs {
					if !needed[importName(s)] {
						erase(s.Pos().Offset(), s.End().Offset())
					}
				}
			}
		default:
			for _, n := range declNames(d) {
				keep = keep || needed[n]
			}
		}
		next := d.End().Offset()
		if !keep {
			erase(end, next)
		}
		end = next
	}
	return out
}

func importName(s *ast.ImportSpec) string {
	if s.Name != nil {
		return s.Name.Name
	}
	p, err := literal.Unquote(s.Path.Value)
	if err != nil {
		return ""
	}
	ip := ast.ParseImportPath(p)
	return ip.Qualifier
}

// sourceOf is the text of a file of the package.
func (d *doc) sourceOf(i int) ([]byte, bool) {
	src, err := os.ReadFile(d.inst.Files[i].Filename)
	return src, err == nil
}
