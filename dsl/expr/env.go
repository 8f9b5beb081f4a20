package expr

import (
	"context"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Env holds the values of one evaluation's names: made once a call, filled as
// the call goes on. Values are those of package value and are not copied. An
// Env belongs to one goroutine; programs are shared.
type Env struct {
	names []string
	vals  []any
	run   run
}

// NewEnv makes an empty Env; an unset name is nil.
func NewEnv() *Env { return &Env{names: make([]string, 0, usualNames), vals: make([]any, 0, usualNames)} }

// usualNames is how many names most calls set.
const usualNames = 8

// SetContext gives the context whose end stops an evaluation; nil: none.
func (e *Env) SetContext(ctx context.Context) { e.run.ctx = ctx }

// Set gives a name its value.
func (e *Env) Set(name string, v any) {
	switch x := v.(type) {
	case int:
		v = int64(x)
	case *value.Object:
		if x == nil {
			v = nil
		}
	case *value.Rows:
		if x == nil {
			v = nil
		}
	}
	for i, n := range e.names {
		if n == name {
			e.vals[i] = v
			return
		}
	}
	e.names = append(e.names, name)
	e.vals = append(e.vals, v)
}

// SetRow gives a name the i-th row of rows as its value, as Set of
// rows.Object(i) does, but only the columns that an expression reads are ever
// made into values.
func (e *Env) SetRow(name string, rows *value.Rows, i int) {
	for k, n := range e.names {
		if n != name {
			continue
		}
		if r, ok := e.vals[k].(*row); ok {
			r.rows, r.i = rows, i
			return
		}
	}
	e.Set(name, &row{rows, i})
}

// Get gives the value of a name, nil if it is not set.
func (e *Env) Get(name string) any {
	v := e.look(name)
	if r, ok := v.(*row); ok {
		return r.object()
	}
	return v
}

func (e *Env) look(name string) any {
	for i, n := range e.names {
		if n == name {
			return e.vals[i]
		}
	}
	return nil
}

// Fork copies the names, so that a nested place can set its own.
func (e *Env) Fork() *Env {
	n := max(usualNames, len(e.names)+usualNames/2) // a fork sets names of its own
	f := &Env{names: append(make([]string, 0, n), e.names...), vals: append(make([]any, 0, n), e.vals...)}
	for i, v := range f.vals {
		if r, ok := v.(*row); ok {
			f.vals[i] = &row{r.rows, r.i}
		}
	}
	f.run.ctx = e.run.ctx
	return f
}

// run is the state of the evaluation that an Env is in.
type run struct {
	env   *Env
	ctx   context.Context // of the Env: it outlives one evaluation
	slots []any           // variables and the elements of closures
	steps int             // of this evaluation
	since int             // steps since the last look at ctx, over evaluations
	texts int
	cells int
	buf   []byte // for the text of holes
}

func (e *Env) begin(slots int) *run {
	r := &e.run
	r.env = e
	r.steps, r.texts, r.cells = 0, 0, 0
	if cap(r.slots) < slots {
		r.slots = make([]any, slots)
	}
	r.slots = r.slots[:slots]
	return r
}

// row is one row of an answer, read column by column.
type row struct {
	rows *value.Rows
	i    int
}

func (r *row) field(name string) any {
	if c := r.rows.Col(name); c >= 0 {
		return r.rows.Value(r.i, c)
	}
	return nil
}

func (r *row) object() *value.Object { return r.rows.Object(r.i) }

// seq is a list of any form.
type seq struct {
	list []any
	rows *value.Rows
	refs []row // rows of an answer are handed out from here
	once bool  // nobody keeps an element beyond the next one
}

func seqOf(v any) (seq, bool) {
	switch v := v.(type) {
	case []any:
		return seq{list: v}, true
	case *value.Rows:
		return seq{rows: v}, true
	}
	return seq{}, false
}

func (s *seq) len() int {
	if s.rows != nil {
		return s.rows.Len()
	}
	return len(s.list)
}

func (s *seq) at(i int) any {
	if s.rows == nil {
		return s.list[i]
	}
	if len(s.refs) == 0 {
		s.refs = make([]row, s.block())
	}
	r := &s.refs[0]
	if !s.once {
		s.refs = s.refs[1:]
	}
	r.rows, r.i = s.rows, i
	return r
}

// block is how many rows are made at once.
func (s *seq) block() int {
	if s.once {
		return 1
	}
	return min(32, s.rows.Len())
}

// all gives the elements as a list; it may be the original one and must not
// be changed.
func (s *seq) all() []any {
	if s.rows == nil {
		return s.list
	}
	l := make([]any, s.rows.Len())
	refs := make([]row, len(l))
	for i := range l {
		refs[i] = row{s.rows, i}
		l[i] = &refs[i]
	}
	return l
}
