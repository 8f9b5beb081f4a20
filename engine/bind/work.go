package bind

import (
	"context"
	"errors"
	"net/http"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// work is one call on its way through a binding.
type work struct {
	ctx  context.Context
	host *Host
	env  *expr.Env     // args, ctx, env and the answers of finished steps
	args *value.Object // for @names
	out  *Outcome

	open      map[string]on // of steps: the transactions that have begun
	accepted  bool          // the answer is: what is left is to commit
	committed bool          // a transaction of steps is committed
	sends     int           // requests that may have changed something
	done      []done        // what can be undone, in order
	stuck     []error
	skipped   []error
}

// on is where statements run.
type on struct {
	db.Querier
	dialect db.Dialect
	tx      *db.Tx // nil outside of a transaction
}

// sent notes that a request goes out which may change something.
func (w *work) sent() { w.sends++ }

// answer runs one binding that is no list of steps and shapes its answer. env
// belongs to this binding alone; its statements run on q.
func (w *work) answer(b *Binding, q on, env *expr.Env, o *Outcome) error {
	var v any
	var err error
	switch {
	case b.query != nil:
		r := &run{binding: b, ctx: w.ctx, env: env, args: w.args, dialect: q.dialect}
		v, err = r.answer(q.Querier, o)
		o.Missing = err == nil && v == nil && b.one
	case b.http != nil:
		sends := w.sends
		if v, o.More, err = b.http.do(w, env, b.from); err != nil {
			if w.sends > sends && declinedBy(err) {
				w.sends-- // it has done nothing
			}
			return err
		}
		status, _ := env.Get("status").(int64)
		o.API, o.Status, o.Item = b.http.api, int(status), v
		if err := b.count(env, env.Get("body"), o); err != nil { // of the last page
			return err
		}
		return b.shape(env, v, o)
	case b.expr != nil:
		v, err = b.expr.Eval(env)
	default:
		v, err = b.value.Value(env)
	}
	if err != nil {
		return err
	}
	return b.finish(env, v, o)
}

// runSQL runs one query alone, or everything in one transaction.
func (w *work) runSQL(b *Binding) error {
	name, err := b.database.pick(w.env)
	if err != nil {
		return err
	}
	d, err := w.connect(b.database, name)
	if err != nil {
		return err
	}
	if !b.writes && len(b.nests) == 0 {
		return w.answer(b, on{Querier: d, dialect: d.Dialect()}, w.env, w.out)
	}
	return d.Tx(w.ctx, db.TxOptions{ReadOnly: !b.writes, Retry: db.Always}, func(t *db.Tx) error {
		*w.out, w.accepted = Outcome{Total: -1}, false
		if b.writes && w.host.First != nil {
			if err := w.host.First(t); err != nil {
				return err
			}
		}
		if err := w.answer(b, on{t, d.Dialect(), t}, w.env, w.out); err != nil {
			return err
		}
		return w.accept(b)
	})
}

// accept asks whether the answer may be committed, or left as it is by undos.
func (w *work) accept(b *Binding) error {
	if w.host.Accept != nil && (b.writes || b.undoes) {
		if err := w.host.Accept(w.out); err != nil {
			return err
		}
	}
	w.accepted = true
	return nil
}

// lostCommit tells whether err leaves open how a commit ended: the server
// answered nothing, or that it goes away.
func (w *work) lostCommit(err error) bool {
	var e *db.Error
	return w.accepted && errors.As(err, &e) && (e.SQLState == "" || e.Unavailable)
}

// declinedBy tells whether a service has refused to do what it was asked.
func declinedBy(err error) bool {
	var r *Refused
	return errors.As(err, &r) && r.Status < http.StatusInternalServerError
}

// begun notes that the transaction of a database has begun.
func (w *work) begun(name string, t *db.Tx, d db.Dialect) { w.open[name] = on{t, d, t} }
