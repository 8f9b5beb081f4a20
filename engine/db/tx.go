package db

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// TxOptions say how a transaction runs.
type TxOptions struct {
	ReadOnly bool
	// Retry is asked after the database gave up the transaction for another
	// one's sake (a serialization failure, a deadlock, a locked SQLite file):
	// may the function run again, because nothing outside of this database has
	// happened? nil: no.
	Retry func() bool
}

// Always is a TxOptions.Retry for functions that do nothing outside of the
// transaction.
func Always() bool { return true }

// maxTries is how often a transaction runs that is given up by the database.
const maxTries = 3

// again tells whether to try once more what failed with err, after a pause, so
// that two who met do not meet again.
func (d *DB) again(ctx context.Context, start time.Time, try int, err error) bool {
	var e *Error
	if try == maxTries || !errors.As(err, &e) || !e.transient {
		return false
	}
	if e.Busy && time.Since(start) > d.patience { // it has waited inside SQLite
		return false
	}
	timer := time.NewTimer(time.Duration(try) * (5*time.Millisecond + rand.N(20*time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Tx runs f in one transaction (PostgreSQL: REPEATABLE READ READ ONLY if
// read-only, else READ COMMITTED; SQLite: a snapshot, or the one writer) and
// commits when f gives nil. When f gives an error or panics it is rolled
// back. The Tx must not be used after f, nor by two goroutines.
func (a *Access) Tx(ctx context.Context, o TxOptions, f func(*Tx) error) error {
	leave, err := a.enter()
	if err != nil {
		return err
	}
	defer leave()
	start := time.Now()
	for try := 1; ; try++ {
		err, cause := a.db.inTx(ctx, a.who, o.ReadOnly, f)
		if err == nil || o.Retry == nil || !o.Retry() || !a.db.again(ctx, start, try, cause) {
			return err
		}
	}
}

// inTx gives, beside the error of the call, what the database said.
func (d *DB) inTx(ctx context.Context, who *Session, readOnly bool, f func(*Tx) error) (err, cause error) {
	inner, err := d.begin(ctx, who, readOnly)
	if err != nil { // it has waited as long as it may
		return err, nil
	}
	t := &Tx{db: d, tx: inner, readOnly: readOnly}
	done := false
	defer func() {
		if !done { // f failed or panics
			t.rollback()
		}
	}()
	if err := f(t); err != nil {
		return err, t.failed
	}
	switch {
	case t.failed != nil:
		return t.failed, t.failed
	case ctx.Err() != nil:
		err := ended(ctx, errors.New("not committed"))
		return err, err
	}
	done = true
	err = d.noticed(t.commit(ctx))
	return err, err
}

func (d *DB) begin(ctx context.Context, who *Session, readOnly bool) (t tx, err error) {
	defer guard(&err)
	return d.engine.begin(ctx, who, readOnly)
}

// Tx is a transaction on its way.
type Tx struct {
	db     *DB
	tx     tx
	failed error // a statement failed: the transaction can only be rolled back
	last   []*aside
	key    *onceKey

	readOnly bool
	made     bool // a table of ours, which others do not see yet
}

// Query runs a statement in the transaction. After one has failed, so do all
// others, unless it failed inside Try.
func (t *Tx) Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	var a *Answer
	err := t.do(ctx, func(ctx context.Context) (err error) {
		if err = s.fits(args); err == nil {
			a, err = t.tx.query(ctx, s, args, l)
		}
		return t.db.ofOurs(s, err)
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Ahead runs a statement of ours (see Ours) as the login. On PostgreSQL it goes
// out in one flight with BEGIN and the next statement of the transaction, or by
// itself before COMMIT, if no statement follows. took is given its answer before
// the caller has that of the next statement; it may be called again with another
// answer, after a connection was lost. Its error, or that of the statement,
// becomes the one of the next statement, or of the commit, and the transaction
// is rolled back. What the next statement waits for, it waits for whatever took
// will say. On SQLite it runs at once.
func (t *Tx) Ahead(ctx context.Context, s *Stmt, args []any, took func(*Answer) error) error {
	return t.do(ctx, func(ctx context.Context) error {
		if err := s.fits(args); err != nil {
			return err
		}
		return t.tx.aside(ctx, s, args, took)
	})
}

// Flush sends what Ahead has put before the next statement, if no statement has
// come since. took has been called when it gives nil.
func (t *Tx) Flush(ctx context.Context) error { return t.do(ctx, t.tx.flush) }

// Last runs a statement of ours (see Ours) as the login when the transaction is
// committed: on PostgreSQL in one flight with COMMIT. If it fails the
// transaction is rolled back, and the error of the commit is what failed makes
// of it. One that is added in a Try is undone with it.
func (t *Tx) Last(s *Stmt, args []any, failed func(error) error) error {
	if t.failed != nil {
		return t.failed
	}
	if t.failed = s.fits(args); t.failed == nil {
		t.last = append(t.last, &aside{s: s, args: args, failed: failed})
	}
	return t.failed
}

// do runs one statement's worth of work and remembers its failure.
func (t *Tx) do(ctx context.Context, f func(context.Context) error) (err error) {
	if t.failed != nil {
		return t.failed
	}
	defer func() { t.failed = err }()
	defer guard(&err)
	ctx, cancel := t.db.limit.within(ctx)
	defer cancel()
	return t.db.noticed(f(ctx))
}

// Try runs f so that its failure does not fail the transaction: what f did in
// the database is undone, the rest stays. It gives f's error. A transaction
// that is lost as a whole (the connection broke, ctx ended, a deadlock) stays
// lost.
func (t *Tx) Try(ctx context.Context, f func() error) error {
	if err := t.do(ctx, t.tx.save); err != nil {
		return err
	}
	last := len(t.last)
	err := f()
	if err == nil && t.failed == nil {
		return t.do(ctx, t.tx.release)
	}
	if err == nil {
		err = t.failed
	}
	if transient(t.failed) || ctx.Err() != nil {
		if t.failed == nil {
			t.failed = ended(ctx, err)
		}
		return err
	}
	failed := t.failed
	t.failed, t.last = nil, t.last[:last]
	if undone := t.do(ctx, t.tx.undo); undone != nil && failed != nil {
		t.failed = failed // says more than that it cannot be undone
	}
	return err
}

// commitTimeout bounds a COMMIT. A caller who goes away does not break it
// off: nobody would know whether it was done.
const commitTimeout = 30 * time.Second

func (t *Tx) commit(ctx context.Context) (err error) {
	defer guard(&err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return t.tx.commit(ctx, t.last)
}

func (t *Tx) rollback() {
	var err error
	defer guard(&err)
	t.tx.rollback()
}
