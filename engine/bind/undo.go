package bind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
)

// done is what a step has done that can be undone.
type done struct {
	step  *step
	env   *expr.Env // the names as they were after the step, item of each too
	sends int       // the requests that the undo takes back
	// database is where the step's statement ran, "" for one without.
	database string
}

// rolledBack drops the undos, from the n-th on, of statements whose
// transaction on a database was rolled back, or nobody knows whether it was:
// what is gone already must not be taken back once more.
func (w *work) rolledBack(database string, n int) {
	kept := slices.DeleteFunc(w.done[n:], func(d done) bool { return d.database == database })
	w.done = w.done[:n+len(kept)]
}

// undoTimeout bounds one undo, undoTotal all of a call. A caller who goes away,
// or whose time is over, does not break them off.
const (
	undoTimeout = 30 * time.Second
	undoTotal   = 2 * time.Minute
)

// undo takes back what cannot be rolled back, the last first. All
// transactions are over by then. One that fails does not keep the others from
// being done.
func (w *work) undo() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), undoTotal)
	defer cancel()
	for i := len(w.done) - 1; i >= 0; i-- {
		d := &w.done[i]
		if err := w.undoOne(ctx, d); err != nil {
			w.stuck = append(w.stuck, fmt.Errorf("%s.undo: %w", d.step.path, err))
			continue
		}
		w.sends -= d.sends
	}
	w.done = nil
}

func (w *work) undoOne(ctx context.Context, d *done) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	h := &Host{DB: w.host.DB, API: w.host.API, Visible: w.host.Visible}
	err = d.step.undo.Run(ctx, h, d.env).Err
	var refused *Refused
	if errors.As(err, &refused) && d.step.undo.http.method == http.MethodDelete &&
		(refused.Status == http.StatusNotFound || refused.Status == http.StatusGone) {
		return nil // what was to go is not there
	}
	return err
}
