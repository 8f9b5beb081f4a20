package dsl

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Secrets are markers while a spec is loaded, and opening puts their values
// into a few texts only. In any other place the marker would go out as it is,
// so that every other string of the graph is looked at: whatever the language
// gets later is looked at too.

// secretPlaces tells every string that a secret went into and that opening
// does not reveal.
func (d *doc) secretPlaces() {
	w := secretWalk{doc: d, seen: map[any]bool{}, told: map[string]bool{}}
	for _, f := range d.faults {
		w.told[f.Path] = true
	}
	w.walk(reflect.ValueOf(d.g).Elem(), spot{})
}

// revealed are the fields that opening puts the values of secrets into. What
// env declares is read before there are markers.
var revealed = map[reflect.Type][]string{
	reflect.TypeFor[graph.Graph]():      {"Env"},
	reflect.TypeFor[graph.Database]():   {"URL"},
	reflect.TypeFor[graph.API]():        {"BaseURL", "Headers"},
	reflect.TypeFor[graph.Auth]():       {"Bearer"},
	reflect.TypeFor[graph.Basic]():      {"User", "Password"},
	reflect.TypeFor[graph.HeaderAuth](): {"Name", "Value"},
	reflect.TypeFor[graph.OAuth2]():     {"TokenURL", "ClientID", "ClientSecret"},
	reflect.TypeFor[graph.Store]():      {"URL"},
}

// looked are the names that resolving has looked up: a secret is none, and this
// was told.
var looked = map[reflect.Type][]string{
	reflect.TypeFor[graph.Target]():    {"To"},
	reflect.TypeFor[graph.After]():     {"To"},
	reflect.TypeFor[graph.TestState](): {"FSM", "State"},
}

// unnamed are the structs whose own fields are no fields of a spec.
var unnamed = []reflect.Type{reflect.TypeFor[graph.Text](), reflect.TypeFor[graph.Node](), reflect.TypeFor[shape.Shape](), reflect.TypeFor[shape.Field](), reflect.TypeFor[shape.Pattern](), reflect.TypeFor[shape.PatternField]()}

// spot is where a value of the graph stands in the spec, as far as it says so.
type spot struct {
	at   graph.Place
	path string
}

func (s spot) below(name string) spot {
	s.path = joinPath(s.path, name)
	return s
}

type secretWalk struct {
	doc  *doc
	seen map[any]bool // pointers: shapes may hold themselves
	told map[string]bool
}

func (w *secretWalk) walk(v reflect.Value, s spot) {
	switch v.Kind() {
	case reflect.String:
		w.text(v.String(), s)
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.Interface()] {
			w.seen[v.Interface()] = true
			w.pointer(v, s)
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.walk(v.Elem(), s)
		}
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(v.Index(i), s)
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			w.walk(i.Key(), s)
			w.walk(i.Value(), s)
		}
	case reflect.Struct:
		w.fields(v, s)
	}
}

func (w *secretWalk) pointer(v reflect.Value, s spot) {
	switch x := v.Interface().(type) {
	case *value.Object:
		for i := range x.Len() {
			name, y := x.At(i)
			w.text(name, s)
			w.walk(reflect.ValueOf(&y).Elem(), s.below(name))
		}
	case *regexp.Regexp:
		w.text(x.String(), s)
	default:
		w.walk(v.Elem(), s)
	}
}

func (w *secretWalk) fields(v reflect.Value, s spot) {
	t := v.Type()
	if t == reflect.TypeFor[graph.Place]() {
		return
	}
	s = w.spotOf(v, s)
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Name == "Path" || slices.Contains(revealed[t], f.Name) || slices.Contains(looked[t], f.Name) {
			continue
		}
		inner := s
		if !f.Anonymous && !slices.Contains(unnamed, t) && f.Name != "Name" && f.Name != "Node" {
			inner = s.below(fieldName(f.Name))
		}
		w.walk(v.Field(i), inner)
	}
}

// fieldName is the name in a spec of a field of the graph.
func fieldName(name string) string {
	if name == "OAuth2" {
		return "oauth2"
	}
	return string(unicode.ToLower(rune(name[0]))) + name[1:]
}

// spotOf takes the place that a struct of the graph gives for itself.
func (w *secretWalk) spotOf(v reflect.Value, s spot) spot {
	if at := v.FieldByName("At"); at.IsValid() {
		if p, ok := at.Interface().(graph.Place); ok && !p.IsZero() {
			s.at = p
		}
	}
	path, name := v.FieldByName("Path"), v.FieldByName("Name")
	switch {
	case path.IsValid() && path.Kind() == reflect.String && path.String() != "":
		s.path = path.String()
	case name.IsValid() && name.Kind() == reflect.String && name.String() != "" && v.Type() != reflect.TypeFor[graph.Server]():
		s = s.below(name.String())
	}
	return s
}

func (w *secretWalk) text(text string, s spot) {
	if !graph.HasSecret(text) || w.told[s.path] {
		return
	}
	w.told[s.path] = true
	w.doc.faults.Add(s.at, s.path, "%s is secret and cannot stand here: it may be used in databases.*.url, in fsms.*.store.redis and in baseURL, auth and headers of apis.*",
		strings.Join(secretsIn(text), ", "))
}

// secretsIn names the secrets in a text.
func secretsIn(text string) []string {
	var names []string
	graph.Reveal(text, func(name string) string {
		names = append(names, "env."+name)
		return ""
	})
	return names
}

// comparisons are the operators of CUE that look at a text.
var comparisons = []token.Token{token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ, token.MAT, token.NMAT}

// secretComparisons tells CUE's comparisons with a secret: they would see its
// marker, and never hold.
func (d *doc) secretComparisons() {
	for _, f := range d.inst.Files {
		ast.Walk(f, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && slices.Contains(comparisons, b.Op) {
				for _, side := range []ast.Expr{b.X, b.Y} {
					if name := d.secretIn(side); name != "" {
						d.faults.Add(d.at(side.Pos()), "", "env.%s is secret, so that its value is not known while the spec is read: it cannot be compared", name)
					}
				}
			}
			return true
		}, nil)
	}
}

// secretIn gives the name of a secret variable that an expression refers to.
func (d *doc) secretIn(e ast.Expr) (name string) {
	ast.Walk(e, func(n ast.Node) bool {
		var x ast.Expr
		var field string
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x = n.X
			field, _, _ = ast.LabelName(n.Sel)
		case *ast.IndexExpr:
			x = n.X
			if lit, ok := n.Index.(*ast.BasicLit); ok {
				field, _ = literal.Unquote(lit.Value)
			}
		}
		if id, ok := x.(*ast.Ident); ok && id.Name == "env" &&
			slices.ContainsFunc(d.g.Env, func(v *graph.EnvVar) bool { return v.Secret && v.Name == field }) {
			name = field
		}
		return name == ""
	}, nil)
	return name
}
