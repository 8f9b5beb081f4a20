package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// use is what a statement's text is there for.
type use struct {
	sql *graph.SQL
	// schema is the type that the rows leave as; nil: something stands between,
	// or nothing is said.
	schema *shape.Shape
	nests  []*graph.Nest // beside the columns
	by     string        // of a nest: its column that holds the key above
}

// usesOf gives the uses of the statements of a tool by their texts.
func usesOf(t *graph.Tool) map[*graph.Text]use {
	uses := make(map[*graph.Text]use)
	var schema *shape.Shape
	if t.Returns != nil && t.From == nil && t.Result == nil && t.Content == nil {
		schema = t.Returns.Schema
	}
	addUses(uses, t.SQL, schema)
	for i, s := range t.Steps {
		var leaves *shape.Shape
		if i == len(t.Steps)-1 && s.From == nil && s.Result == nil && s.Each == nil {
			leaves = schema
		}
		addUses(uses, s.SQL, leaves)
		if s.Undo != nil {
			addUses(uses, s.Undo.SQL, nil)
		}
	}
	return uses
}

func addUses(uses map[*graph.Text]use, sql *graph.SQL, schema *shape.Shape) {
	if sql == nil {
		return
	}
	uses[&sql.Query] = use{sql: sql, schema: structOf(schema), nests: sql.Nest}
	var nested func(nests []*graph.Nest, parent *shape.Shape)
	nested = func(nests []*graph.Nest, parent *shape.Shape) {
		for _, n := range nests {
			var child *shape.Shape
			if f := parent.Field(n.Key); f != nil {
				child = structOf(f.Shape)
			}
			uses[&n.Query] = use{sql: sql, schema: child, nests: n.Nest, by: n.By}
			nested(n.Nest, child)
		}
	}
	nested(sql.Nest, structOf(schema))
}

// structOf gives the struct that a row becomes: the type itself, that of a
// list's elements, or the one that may be null; nil if there is no single one.
func structOf(s *shape.Shape) *shape.Shape {
	switch {
	case s == nil:
		return nil
	case s.Kind == shape.Struct:
		return s
	case s.Kind == shape.List && len(s.Prefix) == 0:
		return structOf(s.Items)
	case s.Kind == shape.Union:
		var only *shape.Shape
		for _, alt := range s.Alts {
			if alt.Kind == shape.Null {
				continue
			}
			if only != nil {
				return nil
			}
			only = alt
		}
		return structOf(only)
	}
	return nil
}

// statement is a statement as one engine has it.
type statement struct {
	bind.Statement
	dialect db.Dialect
	use     use
	params  *shape.Shape // of the tool
}

// number finds $1 or ?1.
var number = regexp.MustCompile(`[$?][0-9]+`)

// names writes @name for the engine's own parameters in a message.
func (s *statement) names(message string) string {
	params := s.Params[s.dialect]
	return number.ReplaceAllStringFunc(message, func(native string) string {
		n, err := strconv.Atoi(native[1:])
		if err != nil || n < 1 || n > len(params) {
			return native
		}
		return "@" + params[n-1].Name
	})
}

// mentioned gives the place of the first parameter in a message; 0 for none.
func (s *statement) mentioned(message string) int {
	return max(0, s.offset(number.FindString(message)))
}

// offset gives the byte where a parameter first stands, or -1.
func (s *statement) offset(native string) int {
	sql := s.Stmt[s.dialect].SQL
	tokens, _ := db.Lex(s.dialect, sql)
	for _, t := range tokens {
		if t.Kind == db.Native && sql[t.Start:t.End] == native {
			return t.Start
		}
	}
	return -1
}

// compare holds what the server knows of a statement against the spec.
func (s *statement) compare(d *db.Description) graph.Faults {
	var faults graph.Faults
	for i, p := range s.Params[s.dialect] {
		if i >= len(d.Params) || p.Null {
			continue
		}
		if problem := s.parameter(p, &d.Params[i]); problem != "" {
			at := s.Place(s.dialect, s.offset("$"+strconv.Itoa(i+1)))
			faults.Add(at, s.Source.Path, "%s", problem)
		}
	}
	if s.use.schema != nil {
		faults = append(faults, s.columns(d.Columns)...)
	}
	return faults
}

// parameter tells that a parameter can never have the type of its place.
func (s *statement) parameter(p bind.Param, t *db.Type) string {
	declared := s.shapeOf(p.Name)
	if declared == nil {
		return ""
	}
	who := "@" + p.Name
	if p.List { // = ANY(…)
		if t.Kind != db.ListType || t.Elem == nil {
			return ""
		}
		t = t.Elem
		if declared.Kind == shape.List {
			declared, who = declared.Items, "each of "+who
		}
	}
	if declared == nil || mayBind(declared, t) {
		return ""
	}
	return fmt.Sprintf("%s is %s, and %s is wanted here: declare it so, or write CAST(@%s AS …)", who, kindOf(declared), t.Name, p.Name)
}

// shapeOf gives the declared type of a parameter, nil if it is not known.
func (s *statement) shapeOf(name string) *shape.Shape {
	if s.use.sql != nil {
		for _, a := range s.use.sql.Args {
			if a.Name == name {
				return nil
			}
		}
	}
	name = strings.TrimPrefix(name, "args.")
	if f := s.params.Field(name); f != nil {
		return f.Shape
	}
	return nil
}

// columns holds the columns of an answer against the type that it leaves as.
func (s *statement) columns(columns []db.Column) graph.Faults {
	var faults graph.Faults
	if len(columns) == 0 {
		columns = []db.Column{{Name: "affected", Type: db.Type{Name: "the number of rows", Kind: db.IntType}}}
	}
	place := func(name string) graph.Place {
		return s.Place(s.dialect, db.ColumnOffset(s.dialect, s.Stmt[s.dialect].SQL, name))
	}
	for _, f := range s.use.schema.Fields {
		c := columnOf(columns, f.Name)
		switch {
		case c == nil && (f.Optional || f.HasDefault || s.nested(f.Name)):
		case c == nil:
			faults.Add(place(f.Name), s.Source.Path, "the answer has no column %q, which the schema wants%s", f.Name, nearColumn(f.Name, columns))
		case !mayLeave(f.Shape, &c.Type):
			faults.Add(place(c.Name), s.Source.Path, "column %q is %s, and the schema wants %s", c.Name, c.Type.Name, kindOf(f.Shape))
		case c.Nullable && !f.Optional && !takesNull(f.Shape):
			faults.Warn(place(c.Name), s.Source.Path, "column %q may be NULL, and the schema takes none: write %s?, or | null", c.Name, f.Name)
		}
	}
	return faults
}

// tied holds what a nest takes of the rows above, and the column that it is
// joined to them by, against the columns that there are.
func (s *statement) tied(above, own []db.Column) graph.Faults {
	var faults graph.Faults
	tokens, _ := db.Lex(s.dialect, s.Source.S)
	for _, t := range tokens {
		name, ofRows := strings.CutPrefix(s.Source.S[t.Start:t.End], "@rows.")
		if t.Kind != db.Param || !ofRows || columnOf(above, name) != nil {
			continue
		}
		faults.Add(s.Source.Place(t.Start), s.Source.Path, "the rows above have no column %q%s", name, nearColumn(name, above))
	}
	if columnOf(own, s.use.by) == nil {
		at := s.Place(s.dialect, db.ColumnOffset(s.dialect, s.Stmt[s.dialect].SQL, s.use.by))
		faults.Add(at, s.Source.Path, "the query gives no column %q, which by names%s", s.use.by, nearColumn(s.use.by, own))
	}
	return faults
}

func (s *statement) nested(key string) bool {
	for _, n := range s.use.nests {
		if n.Key == key {
			return true
		}
	}
	return false
}

func columnOf(columns []db.Column, name string) *db.Column {
	for i := range columns {
		if columns[i].Name == name {
			return &columns[i]
		}
	}
	return nil
}

func nearColumn(name string, columns []db.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	if n := value.Near(name, names); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}
