package dsl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/schemas"
)

// formKind says which values a form takes.
type formKind uint8

const (
	formString formKind = iota
	formInt
	formBool
	formNull
	formEnum   // one of the strings in form.enum
	formStruct // form.fields and no others
	formMap    // any names, each form.elem
	formList   // each form.elem
	formUnion  // one of form.alts, told apart by kind
	formTop    // anything; role says what is made of it
)

// role says what a value is for, beyond its kind: the attribute of its
// definition in the schema.
type role string

const (
	rolePlain    role = ""
	roleText     role = "text"
	roleExpr     role = "expr"
	roleTree     role = "tree"
	roleType     role = "type"
	roleData     role = "data"
	roleDuration role = "duration"
	roleFile     role = "file"
	roleSQL      role = "sql"
	roleMoment   role = "moment"
	roleCell     role = "cell"
)

var roles = []role{roleText, roleExpr, roleTree, roleType, roleData, roleDuration, roleFile, roleSQL, roleMoment, roleCell}

// form is a type of the language's own schema, compiled from its source. The
// schema uses a small part of CUE, so that a mistake in a spec can be told in
// one line; what it does not know it refuses at start.
type form struct {
	name   string // of the definition, without #
	kind   formKind
	role   role
	enum   []string
	min    int64 // formInt: at least, if hasMin
	hasMin bool
	max    int64 // formInt: at most, 0: no bound
	fields []*formField
	byName map[string]*formField
	elem   *form
	alts   []*form
	doc    string
}

// formField is a field of a struct form.
type formField struct {
	name     string
	form     *form
	required bool
	fallback string // the default as CUE writes it, "" if there is none
	doc      string
}

// language is the compiled schema: its definitions by name, without #.
type language struct {
	defs  map[string]*form
	order []*form
}

// theLanguage compiles the embedded schema once.
var theLanguage = sync.OnceValue(func() *language {
	f, err := parser.ParseFile("schema.cue", schemas.Source, parser.ParseComments)
	if err != nil {
		panic(err) // the schema is part of the program; a test reads it
	}
	return compileLanguage(f)
})

func compileLanguage(f *ast.File) *language {
	l := &language{defs: map[string]*form{}}
	var decls []*ast.Field
	for _, d := range f.Decls {
		if d, ok := d.(*ast.Field); ok {
			name, _, _ := ast.LabelName(d.Label)
			x := &form{name: strings.TrimPrefix(name, "#"), doc: comment(d)}
			l.defs[x.name] = x
			l.order = append(l.order, x)
			decls = append(decls, d)
		}
	}
	for i, d := range decls {
		x := l.order[i]
		got := l.form(d.Value)
		name, doc := x.name, x.doc
		*x = *got
		x.name, x.doc = name, doc
		for _, a := range d.Attrs {
			key, _ := a.Split()
			if !slices.Contains(roles, role(key)) {
				panic("schema.cue: unknown attribute " + a.Text)
			}
			x.role = role(key)
		}
	}
	return l
}

// form compiles a type.
func (l *language) form(e ast.Expr) *form {
	switch e := unparen(e).(type) {
	case *ast.Ident:
		return l.named(e.Name)
	case *ast.StructLit:
		return l.structForm(e)
	case *ast.ListLit:
		return &form{kind: formList, elem: l.form(e.Elts[0].(*ast.Ellipsis).Type)}
	case *ast.BinaryExpr:
		if e.Op == token.OR {
			return l.union(e)
		}
		if e.Op == token.AND {
			return bounded(l.form(e.X), e.Y)
		}
	case *ast.BasicLit:
		switch e.Kind {
		case token.NULL:
			return &form{kind: formNull}
		case token.STRING:
			s, _ := literal.Unquote(e.Value)
			return &form{kind: formEnum, enum: []string{s}}
		}
	}
	panic(fmt.Sprintf("schema.cue:%v: the checker does not know this form", e.Pos()))
}

func (l *language) named(name string) *form {
	switch name {
	case "string":
		return &form{kind: formString}
	case "int":
		return &form{kind: formInt}
	case "bool":
		return &form{kind: formBool}
	case "_":
		return &form{kind: formTop}
	}
	x, ok := l.defs[strings.TrimPrefix(name, "#")]
	if !ok {
		panic("schema.cue: there is no " + name)
	}
	return x
}

// bounded adds >=n or <=n to an int.
func bounded(x *form, e ast.Expr) *form {
	u := e.(*ast.UnaryExpr)
	n, err := strconv.ParseInt(u.X.(*ast.BasicLit).Value, 10, 64)
	if err != nil || x.kind != formInt {
		panic("schema.cue: bounds are for int")
	}
	if u.Op == token.GEQ {
		x.min, x.hasMin = n, true
	} else {
		x.max = n
	}
	return x
}

// union compiles alternatives; those that are strings become one enum, unless
// any string is taken.
func (l *language) union(e *ast.BinaryExpr) *form {
	var alts []*form
	enum := &form{kind: formEnum}
	var walk func(e ast.Expr)
	walk = func(e ast.Expr) {
		if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.OR {
			walk(b.X)
			walk(b.Y)
			return
		}
		e, isDefault := cutDefault(e)
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := literal.Unquote(lit.Value)
			enum.enum = append(enum.enum, s)
			return
		}
		if !isDefault {
			alts = append(alts, l.form(e))
		}
	}
	walk(e)
	// A definition further down is not compiled yet, and counts as a string.
	anyString := slices.ContainsFunc(alts, func(a *form) bool { return a.takes(aString) })
	if len(enum.enum) > 0 && !anyString {
		alts = append([]*form{enum}, alts...)
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return &form{kind: formUnion, alts: alts}
}

func cutDefault(e ast.Expr) (ast.Expr, bool) {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.MUL {
		return u.X, true
	}
	return e, false
}

func (l *language) structForm(s *ast.StructLit) *form {
	x := &form{kind: formStruct, byName: map[string]*formField{}}
	for _, d := range s.Elts {
		f, ok := d.(*ast.Field)
		if !ok {
			panic("schema.cue: only fields are known here")
		}
		if _, ok := f.Label.(*ast.ListLit); ok {
			return &form{kind: formMap, elem: l.form(f.Value)}
		}
		name, _, _ := ast.LabelName(f.Label)
		field := &formField{name: name, form: l.form(f.Value), required: f.Constraint == token.NOT, fallback: fallback(f.Value), doc: comment(f)}
		x.fields = append(x.fields, field)
		x.byName[name] = field
	}
	return x
}

// fallback is the default of a type, as CUE writes it.
func fallback(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op != token.OR {
			return ""
		}
		if s := fallback(e.X); s != "" {
			return s
		}
		return fallback(e.Y)
	case *ast.UnaryExpr:
		if x, ok := cutDefault(e); ok {
			switch x := x.(type) {
			case *ast.BasicLit:
				return x.Value
			case *ast.Ident:
				return x.Name
			}
		}
	}
	return ""
}

// comment is the text of the comment above a field.
func comment(f *ast.Field) string {
	for _, g := range ast.Comments(f) {
		if g.Doc {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}

// names gives the field names of a struct form.
func (x *form) names() []string {
	l := make([]string, len(x.fields))
	for i, f := range x.fields {
		l[i] = f.name
	}
	return l
}

// alt gives the alternative of a union that takes values of a kind.
func (x *form) alt(k valueKind) *form {
	for _, a := range x.alts {
		if a.takes(k) {
			return a
		}
	}
	return nil
}

// takes tells whether a form takes values of a kind.
func (x *form) takes(k valueKind) bool {
	switch x.kind {
	case formString, formEnum:
		return k == aString
	case formInt:
		return k == anInt
	case formBool:
		return k == aBool
	case formNull:
		return k == aNull
	case formStruct, formMap:
		return k == aStruct
	case formList:
		return k == aList
	case formUnion:
		return x.alt(k) != nil
	}
	return true
}

// wants says in words what a form takes.
func (x *form) wants() string {
	switch x.kind {
	case formString, formEnum:
		return "a string"
	case formInt:
		return "a whole number"
	case formBool:
		return "true or false"
	case formNull:
		return "null"
	case formStruct, formMap:
		return "a struct"
	case formList:
		return "a list"
	case formUnion:
		var l []string
		for _, a := range x.alts {
			l = append(l, a.wants())
		}
		return strings.Join(l, " or ")
	}
	return "a value"
}
