package bind

import (
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// database is the database that a binding's statements run on.
type database struct {
	name     string         // or
	choice   *expr.Template // gives the name
	all      []string       // the names that there are
	sessions map[string]*session
}

func (c *compiler) databaseOf(s *graph.SQL) *database {
	d := &database{name: s.Database, sessions: c.spec.sessions}
	if s.Choice == nil {
		return d
	}
	d.choice = c.template(s.Choice, c.base)
	for _, x := range c.spec.Graph.Databases {
		d.all = append(d.all, x.Name)
	}
	return d
}

// names are the databases on which the statements may run.
func (d *database) names() []string {
	if d.choice == nil {
		return []string{d.name}
	}
	return d.all
}

// noDatabase answers a caller for whom the spec chooses no declared database.
var noDatabase = &Declared{&presenters.Failure{
	Code: "FORBIDDEN", Message: "No database is set up for this caller.",
	Suggestion: "Do not retry. Tell the user that the operator must set it up.", Severity: "error",
}}

// pick gives the name of the database for this caller.
func (d *database) pick(env *expr.Env) (string, error) {
	if d.choice == nil {
		return d.name, nil
	}
	v, err := d.choice.Value(env)
	if err != nil {
		return "", fmt.Errorf("database: %w", err)
	}
	for _, name := range d.all {
		if v == any(name) {
			return name, nil
		}
	}
	return "", noDatabase
}

// session is a compiled graph.Session.
type session struct {
	role     *expr.Template
	names    []string
	settings []*expr.Tree
}

func compileSession(d *graph.Database, scope *expr.Scope) (*session, graph.Faults) {
	s := &session{}
	var faults graph.Faults
	if d.Session.Role != nil {
		role, f := expr.CompileTemplate(d.Session.Role, scope)
		faults = append(faults, f...)
		s.role = role
	}
	for _, x := range d.Session.Settings {
		if err := db.CheckSetting(x.Name); err != nil {
			faults.Add(x.At, "databases."+d.Name+".session.settings", "%s", err)
		}
		tree, f := expr.CompileTree(x.Node, scope)
		faults = append(faults, f...)
		s.names = append(s.names, x.Name)
		s.settings = append(s.settings, tree)
	}
	return s, faults
}

// unknownCaller answers a caller who lacks what a session needs.
var unknownCaller = &Declared{&presenters.Failure{
	Code: "UNAUTHORIZED", Message: "This needs a caller who is known, and something is not known of this one.",
	Suggestion: "Do not retry. Tell the user to sign in with an account that may do this.", Severity: "error",
}}

// of evaluates the session for a caller. Nil is never an empty setting.
func (s *session) of(env *expr.Env) (*db.Session, error) {
	out := &db.Session{}
	if s.role != nil {
		v, err := s.role.Value(env)
		if err != nil {
			return nil, fmt.Errorf("session: role: %w", err)
		}
		if out.Role = string(value.AppendText(nil, v)); out.Role == "" {
			return nil, unknownCaller
		}
	}
	for i, t := range s.settings {
		v, err := t.Value(env)
		if err != nil {
			return nil, fmt.Errorf("session: %s: %w", s.names[i], err)
		}
		text := string(value.AppendText(nil, v))
		if text == "" { // nil, or a text around nil
			return nil, unknownCaller
		}
		out.Settings = append(out.Settings, [2]string{s.names[i], text})
	}
	return out, nil
}

// connect finds the open database for this caller, as its session.
func (w *work) connect(d *database, name string) (*db.Access, error) {
	opened := w.host.DB(name)
	if opened == nil {
		return nil, &db.Error{Err: errors.New("database " + name + " is not open"), Unavailable: true}
	}
	s := d.sessions[name]
	if s == nil || w.host.Login {
		return opened.As(nil), nil
	}
	as, err := s.of(w.env)
	if err != nil {
		return nil, err
	}
	return opened.As(as), nil
}
