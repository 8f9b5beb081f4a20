package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// Prove has the open databases prepare every statement of the spec, without
// running any, and compares what they say with the params and the schemas
// that the presenters have. The faults have their places inside the SQL. A
// database that cannot be reached is a fault: `check --online`.
func (p *Program) Prove(ctx context.Context) graph.Faults {
	f := &proof{program: p}
	for _, d := range p.graph.Databases {
		if err := f.database(ctx, d.Name); err != nil {
			f.faults.Add(d.At, "databases."+d.Name, "its statements cannot be proven: %s", p.scrub(nil, err.Error()))
		}
	}
	for _, m := range p.machines {
		if r, ok := p.stores[m.index].(*gate.Redis); ok {
			f.redis(ctx, m.graph, r)
		}
	}
	return f.faults.Sorted()
}

// redis tells what is wrong with the Redis server that keeps a machine's
// states.
func (f *proof) redis(ctx context.Context, m *graph.FSM, r *gate.Redis) {
	path := m.Path + ".store.redis"
	warnings, err := r.Check(ctx)
	if err != nil {
		f.faults.Add(m.Store.At, path, "the server cannot be reached: %s", f.program.scrub(nil, err.Error()))
	}
	for _, w := range warnings {
		f.faults = append(f.faults, graph.Fault{At: m.Store.At, Path: path, Message: w, Warning: true})
	}
}

// Start is Prove for a server. A database that cannot be reached does not
// stop the start: the log says so, and its statements are proven when it is
// back, whose faults go to the log. Close ends the waiting.
func (p *Program) Start(ctx context.Context) graph.Faults {
	f := &proof{program: p}
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.later = &proofs{stop: stop}
	for _, d := range p.graph.Databases {
		if err := f.database(ctx, d.Name); err != nil {
			p.log.Warn("a database cannot be reached: its tools answer with an error until it is back",
				"database", d.Name, "cause", p.scrub(nil, err.Error()))
			p.later.running.Go(func() { p.proveLater(waiting, d.Name) })
		}
	}
	p.checkStores(waiting)
	return f.faults.Sorted()
}

// checkStores looks, beside the start, whether stores keep what they are given.
func (p *Program) checkStores(ctx context.Context) {
	for _, s := range p.opened {
		r, ok := s.(*gate.Redis)
		if !ok {
			continue
		}
		p.later.running.Go(func() {
			warnings, err := r.Check(ctx)
			if err != nil && ctx.Err() == nil {
				p.log.Warn("the Redis server that keeps states cannot be reached: gated tools answer with an error until it is back", "cause", p.scrub(nil, err.Error()))
			}
			for _, w := range warnings {
				p.log.Warn("the Redis server may lose states", "cause", w)
			}
		})
	}
}

// proofs are those that wait for a database.
type proofs struct {
	stop    context.CancelFunc
	running sync.WaitGroup
}

// end stops the waiting.
func (p *proofs) end() {
	if p != nil {
		p.stop()
		p.running.Wait()
	}
}

// The first and the longest pause between two looks at a database that is
// down.
const (
	firstLook   = 500 * time.Millisecond
	longestLook = 30 * time.Second
)

// proveLater waits for a database and proves its statements.
func (p *Program) proveLater(ctx context.Context, name string) {
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		f := &proof{program: p}
		if f.database(ctx, name) != nil {
			continue
		}
		p.log.Info("a database is back", "database", name, "faults", len(f.faults))
		for _, x := range f.faults.Sorted() {
			if x.Warning {
				p.log.Warn("a statement is doubtful", "database", name, "fault", x.String())
			} else {
				p.log.Error("a statement is wrong: its tool cannot work", "database", name, "fault", x.String())
			}
		}
		return
	}
}

// proof gathers what is wrong with the statements of a program.
type proof struct {
	program *Program
	faults  graph.Faults
}

// database proves all statements of one database; the error is that it cannot
// be reached.
func (f *proof) database(ctx context.Context, name string) error {
	d := f.program.dbs[name]
	var who *db.Session
	fixed := true // the role is that of every call
	if g := f.program.graph.Database(name); g.Session != nil {
		who, fixed = provingSession(g.Session)
	}
	for t, b := range f.program.proven() {
		who, fixed := who, fixed
		if f.program.settles(b) {
			who, fixed = nil, true
		}
		uses := usesOf(t)
		columns := map[*graph.Text][]db.Column{} // what each query gives
		partly := map[*graph.Text]bool{}         // of which not all that it may give is known
		for _, s := range b.Statements() {
			if s.Database != name {
				partly[s.Source] = true // where another database may be chosen
				continue
			}
			x := &statement{Statement: s, dialect: d.Dialect(), use: uses[s.Source], params: t.Params}
			description, err := d.As(who).Describe(ctx, s.Stmt[x.dialect])
			var refused *db.Refusal
			switch {
			case errors.As(err, &refused):
				partly[s.Source] = true
				f.refused(x, refused, fixed)
			case err != nil:
				return err
			default:
				before, again := columns[s.Source]
				if again && (len(before) == 0) != (len(description.Columns) == 0) {
					partly[s.Source] = true // rows with one piece of choose, a count with another
				}
				columns[s.Source] = merged(before, description.Columns)
				f.faults = append(f.faults, x.compare(description)...)
				if above, known := columns[s.Above]; known {
					f.faults = append(f.faults, x.tied(above, description.Columns)...)
				}
			}
		}
		maps.DeleteFunc(columns, func(text *graph.Text, _ []db.Column) bool { return partly[text] })
		f.faults = append(f.faults, f.program.recheck(t, columns)...)
	}
	return nil
}

// merged adds the columns that another piece of choose gives.
func merged(all, more []db.Column) []db.Column {
	if all == nil {
		return more
	}
	for _, c := range more {
		if columnOf(all, c.Name) == nil {
			all = append(slices.Clip(all), c)
		}
	}
	return all
}

// recheck looks at the tool's texts again, knowing what its statements give: a
// name that no column has would only ever be nil.
func (p *Program) recheck(t *graph.Tool, known map[*graph.Text][]db.Column) graph.Faults {
	columns := make(bind.Columns, len(known))
	for text, l := range known {
		names := []string{}
		for _, c := range l {
			names = append(names, c.Name)
		}
		columns[text] = names
	}
	if len(columns) == 0 || t.Steps == nil && t.From == nil && t.Result == nil && t.Total == nil && t.Errors == nil {
		return nil
	}
	c := newToolCompiler(p.spec, t, p.base)
	c.columns = columns
	c.errorRules()
	faults := append(bind.Recheck(p.spec, t, c.scope, columns), c.faults...)
	return slices.DeleteFunc(faults, func(f graph.Fault) bool { return f.Warning }) // those are told already
}

// proven gives what has statements: the tools, and the queries that settle keys
// in doubt.
func (p *Program) proven() iter.Seq2[*graph.Tool, *bind.Binding] {
	return func(yield func(*graph.Tool, *bind.Binding) bool) {
		for _, t := range p.graph.Tools {
			if !yield(t, p.tools[t.Name].binding) {
				return
			}
		}
		for _, m := range p.machines {
			if m.resolve != nil && !yield(resolveTool(m.graph), m.resolve) {
				return
			}
		}
	}
}

// settles tells whether a binding settles keys in doubt: it runs as the login.
func (p *Program) settles(b *bind.Binding) bool {
	return slices.ContainsFunc(p.machines, func(m *machine) bool { return m.resolve == b })
}

// provingSession is the session that statements are prepared as: the role and
// the settings that are the same for every caller. fixed is false if others
// decide over what a statement may see: the role, or search_path.
func provingSession(s *graph.Session) (who *db.Session, fixed bool) {
	varies := func(t *graph.Text) bool { return strings.Contains(t.S, "{{") || graph.HasSecret(t.S) }
	who, fixed = &db.Session{}, true
	switch {
	case s.Role == nil:
	case varies(s.Role):
		fixed = false
	default:
		who.Role = s.Role.S
	}
	for _, x := range s.Settings {
		switch {
		case x.Node.Kind == graph.String && !varies(&x.Node.Text):
			who.Settings = append(who.Settings, [2]string{x.Name, x.Node.Text.S})
		case strings.EqualFold(x.Name, "search_path"):
			fixed = false
		}
	}
	return who, fixed
}

// refused tells what the server has against a statement.
func (f *proof) refused(s *statement, r *db.Refusal, fixed bool) {
	off := r.Offset
	message := s.names(f.program.withoutSecrets(r.Error()))
	var e *db.Error
	state := ""
	if errors.As(r, &e) {
		state = e.SQLState
	}
	if off < 0 {
		off = s.mentioned(r.Error())
	}
	if r.Hint != "" {
		message = fmt.Sprintf("%s (%s)", message, s.names(r.Hint))
	}
	if state == undeterminedType || state == ambiguousType {
		message += fmt.Sprintf(": write CAST(%s AS its type)", s.names(number.FindString(r.Error())))
	}
	x := graph.Fault{At: s.Place(s.dialect, off), Path: s.Source.Path, Message: message}
	if !fixed && slices.Contains(hiddenStates, state) {
		x.Warning = true
		x.Message += ": it cannot be prepared as the login, a caller's session may be able to; it is not proven"
	}
	f.faults = append(f.faults, x)
}

const (
	undeterminedType = "42P18" // could not determine data type of parameter $1
	ambiguousType    = "42P08" // inconsistent types deduced for parameter $1
)

// hiddenStates are what a server says of what a session may not see: access
// denied; no such table, function, type or schema.
var hiddenStates = []string{"42501", "42P01", "42883", "42704", "3F000"}
