package bind

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// runSteps runs the steps of a tool. Those that run on one database share one
// transaction, which begins with the first of them. What cannot be rolled
// back is undone when anything fails, a panic included.
func (w *work) runSteps(b *Binding) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %v\n%s", r, debug.Stack())
		}
		if err != nil {
			w.undo()
		}
	}()
	w.open = map[string]on{}
	if !b.writes || w.host.First == nil {
		return w.from(b, 0)
	}
	return w.claimed(b)
}

// claimed runs the steps inside the transaction of the first one that has a
// database: it begins before any step, with what is to be done first.
func (w *work) claimed(b *Binding) error {
	for _, s := range b.steps {
		if s.binding.query == nil {
			continue
		}
		return w.within(b, s.binding.database, 0, func(t *db.Tx) error {
			if err := w.host.First(t); err != nil {
				return err
			}
			return w.from(b, 0)
		})
	}
	return errors.New("no step has a database")
}

// from runs the steps from the i-th on, and then what is made of them. The
// transaction of a database that none before has used begins around the rest,
// so that the last one to begin is the first to be committed.
func (w *work) from(b *Binding, i int) error {
	for ; i < len(b.steps); i++ {
		s := b.steps[i]
		if s.when != nil && !s.perItem {
			wanted, err := s.when.Bool(w.env)
			if err != nil {
				return inStep(s, err)
			}
			if !wanted {
				continue
			}
		}
		if s.binding.query != nil {
			ready, err := w.ready(b, s)
			if err != nil {
				return err
			}
			if !ready {
				return w.within(b, s.binding.database, i, func(*db.Tx) error { return w.from(b, i) })
			}
		}
		if err := w.step(b, s, i == len(b.steps)-1); err != nil {
			return err
		}
	}
	return w.conclude(b)
}

// ready tells whether the statements of a step have where to run: in a
// transaction that has begun, or, if the one statement of a query is all that
// runs, without one.
func (w *work) ready(b *Binding, s *step) (bool, error) {
	name, err := s.binding.database.pick(w.env)
	if err != nil {
		return false, err
	}
	if _, open := w.open[name]; open || !b.lone {
		return open, nil
	}
	d, err := w.connect(s.binding.database, name)
	if err != nil {
		return false, err
	}
	w.open[name] = on{Querier: d, dialect: d.Dialect()}
	return true, nil
}

// within runs rest, which begins with the i-th step, inside a transaction of
// a database.
func (w *work) within(b *Binding, on *database, i int, rest func(*db.Tx) error) error {
	name, err := on.pick(w.env)
	if err != nil {
		return err
	}
	d, err := w.connect(on, name)
	if err != nil {
		return err
	}
	sends, undos, skipped := w.sends, len(w.done), len(w.skipped)
	// Only this transaction is done once more: nothing else may have happened.
	retry := func() bool { return w.sends == sends && len(w.open) == 0 && !w.committed }
	defer delete(w.open, name)
	err = d.Tx(w.ctx, db.TxOptions{ReadOnly: !b.writes, Retry: retry}, func(t *db.Tx) error {
		*w.out, w.accepted = Outcome{Total: -1}, false
		w.done, w.skipped = w.done[:undos], w.skipped[:skipped]
		for _, s := range b.steps[i:] {
			if s.name != "" {
				w.env.Set(s.name, nil)
			}
		}
		w.begun(name, t, d.Dialect())
		defer delete(w.open, name)
		return rest(t)
	})
	if err != nil {
		w.rolledBack(name, undos)
	}
	switch {
	case err == nil:
		w.committed = b.writes
	case w.committed:
		w.committed = false // said once
		w.stuck = append(w.stuck, fmt.Errorf("database %s was not committed, after another one of the same call was: %w", name, err))
	}
	return err
}

// step runs one step, once or for each element, and sets its answer.
func (w *work) step(b *Binding, s *step, last bool) error {
	o := &Outcome{Total: -1}
	var err error
	if s.each == nil {
		err = w.once(s, w.env, o)
	} else {
		err = w.all(s, o)
	}
	if err != nil {
		return err
	}
	if s.name != "" {
		w.env.Set(s.name, o.Result)
	}
	if last && b.last {
		*w.out = *o
	}
	return nil
}

// all runs a step for each element. An element whose when does not hold has
// nil in its place.
func (w *work) all(s *step, o *Outcome) error {
	list, err := w.elements(s)
	if err != nil {
		return err
	}
	answers := make([]any, len(list))
	for i, x := range list {
		env := w.env.Fork()
		env.Set("item", x)
		if s.perItem {
			wanted, err := s.when.Bool(env)
			if err != nil {
				return inStep(s, err)
			}
			if !wanted {
				continue
			}
		}
		one := &Outcome{Total: -1}
		if err := w.once(s, env, one); err != nil {
			return err
		}
		answers[i] = one.Result
	}
	o.Item, o.Result = answers, answers
	return nil
}

// elements gives the list of a step with each; nil has none.
func (w *work) elements(s *step) ([]any, error) {
	v, err := s.each.Value(w.env)
	if err != nil {
		return nil, inStep(s, err)
	}
	var list []any
	switch v := v.(type) {
	case nil:
	case []any:
		list = v
	case *value.Rows:
		list = v.List()
	default:
		return nil, inStep(s, errors.New("each: must give a list"))
	}
	if len(list) > MaxEach {
		return nil, &Declared{&presenters.Failure{
			Code:       "VALIDATION_ERROR",
			Message:    fmt.Sprintf("This would go through %d elements one by one: %d are the most.", len(list), MaxEach),
			Suggestion: "Split them over several calls.", Severity: "error",
		}}
	}
	return list, nil
}

// once runs a step for one answer and looks at its error rules. The answer of
// an optional one that fails is nil. What an undo takes back counts as done
// from the moment the binding has answered, whatever the rules say of it.
func (w *work) once(s *step, env *expr.Env, o *Outcome) error {
	own := env.Fork() // item and a service's answer are this step's alone
	sends := w.sends
	database, err := w.attempt(s, own, o)
	own.Set("item", o.Item)
	own.Set("result", o.Result)
	if s.name != "" {
		own.Set(s.name, o.Result)
	}
	if err == nil && s.undo != nil {
		after := env.Fork()
		if s.name != "" {
			after.Set(s.name, o.Result)
		}
		w.done = append(w.done, done{s, after, w.sends - sends, database})
	}
	failure, broken := w.ruled(s, own, o, err)
	switch {
	case broken != nil:
		return inStep(s, broken)
	case failure != nil:
		return &Declared{failure}
	case err == nil:
		return nil
	case s.optional && w.ctx.Err() == nil:
		*o = Outcome{Total: -1}
		w.skipped = append(w.skipped, inStep(s, err))
		return nil
	}
	return inStep(s, err)
}

// attempt runs the binding of a step and gives the database of its statement,
// "" for none. In a transaction the failure of an optional one leaves the
// others as they are.
func (w *work) attempt(s *step, env *expr.Env, o *Outcome) (database string, err error) {
	b := s.binding
	if b.query == nil {
		return "", w.answer(b, on{}, env, o)
	}
	name, err := b.database.pick(w.env)
	if err != nil {
		return "", err
	}
	q := w.open[name]
	run := func() error {
		err := w.answer(b, q, env, o)
		if err == nil && o.More && b.limit.Rows == maxStepRows {
			err = fmt.Errorf("the query gave more than %d rows, which is the most for a step: add a LIMIT", maxStepRows)
		}
		return err
	}
	if s.optional && q.tx != nil {
		return name, q.tx.Try(w.ctx, run)
	}
	return name, run()
}

// ruled looks at the error rules of a step and, if a service has answered, at
// those of the service. The latter do not hold against an optional step.
func (w *work) ruled(s *step, env *expr.Env, o *Outcome, err error) (*presenters.Failure, error) {
	facts := FactsOf(err)
	if err == nil {
		facts.Status = o.Status
	}
	SetAnswer(env, err)
	f, broken := s.errors.First(facts, env, w.host.Visible)
	if f != nil || broken != nil || err != nil || s.optional {
		return f, broken
	}
	return s.binding.api.First(facts, env, w.host.Visible)
}

// conclude makes the answer of the tool from those of its steps, and has it
// accepted.
func (w *work) conclude(b *Binding) error {
	o := w.out
	env := w.env
	if b.from != nil {
		v, err := b.from.Value(env)
		if err != nil {
			return fmt.Errorf("from: %w", err)
		}
		if err := b.count(env, v, o); err != nil {
			return err
		}
		if err := b.shape(env, v, o); err != nil {
			return err
		}
		return w.accept(b)
	}
	if b.total != nil {
		n, err := b.total.Value(env)
		if err == nil {
			err = o.setTotal(n)
		}
		if err != nil {
			return fmt.Errorf("total: %w", err)
		}
	}
	if b.result != nil {
		v, err := b.result.Value(env)
		if err != nil {
			return fmt.Errorf("result: %w", err)
		}
		o.Result = v
	}
	return w.accept(b)
}

// inStep says which step an error is of.
func inStep(s *step, err error) error { return fmt.Errorf("%s: %w", s.path, err) }
