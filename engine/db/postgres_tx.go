package db

import (
	"context"
	"time"
)

// beginWriting begins a transaction that may write.
const beginWriting = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

func (e *pgEngine) begin(ctx context.Context, who *Session, readOnly bool) (tx, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	begin := beginWriting
	if readOnly {
		begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}
	c.writes = !readOnly
	return &pgTx{engine: e, conn: c, begin: begin, who: who}, nil
}

// pgTx is a transaction. BEGIN, asides and the session's settings go with its
// first statement.
type pgTx struct {
	engine *pgEngine
	conn   *pgConn
	begin  string
	who    *Session
	begun  bool
	set    bool     // the session's settings hold
	asides []*aside // that wait for the next flight; none while a role is set
}

// ahead is what must go out before the next statement: one of the session, or
// one of ours.
func (t *pgTx) ahead(own bool) flight {
	f := flight{inTx: true, asides: t.asides}
	if !t.begun {
		f.begin = t.begin
	}
	switch {
	case own:
		f.login = t.inRole()
	case !t.set:
		f.who = t.who
	}
	return f
}

// inRole tells whether the role is not that of the login now.
func (t *pgTx) inRole() bool { return t.set && t.who != nil && t.who.Role != "" }

// sent notes that a flight goes out.
func (t *pgTx) sent(f flight) {
	t.begun, t.asides = true, nil
	t.set = (t.set || f.who != nil) && !f.login
}

func (t *pgTx) query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	return t.try(ctx, false, s, args, l)
}

// own runs a statement as the login; the next one of the caller sets the
// session again.
func (t *pgTx) own(ctx context.Context, s *Stmt, args []any) (*Answer, error) {
	return t.try(ctx, true, s, args, Limit{})
}

// try runs a statement, the first one once more on another connection or with
// another plan if these were out of date: without COMMIT nothing has happened.
func (t *pgTx) try(ctx context.Context, own bool, s *Stmt, args []any, l Limit) (*Answer, error) {
	first, asides := !t.begun, t.asides
	a, err := t.run(ctx, own, s, args, l)
	if err == nil {
		return a, nil
	}
	stale := t.conn.stale(s, err)
	for _, aside := range asides {
		stale = t.conn.stale(aside.s, err) || stale
	}
	if !first || ctx.Err() != nil || !stale && !(t.conn.broken && t.conn.reused) {
		return nil, err
	}
	if err := t.renew(ctx); err != nil {
		return nil, err
	}
	t.asides = asides
	return t.run(ctx, own, s, args, l)
}

func (t *pgTx) run(ctx context.Context, own bool, s *Stmt, args []any, l Limit) (*Answer, error) {
	f := t.ahead(own)
	switch {
	case f.who == nil && !f.login:
		err := t.conn.ready(ctx, f)
		if err == nil {
			_, err = t.conn.prepared(ctx, s) // before BEGIN goes out
		}
		if err != nil {
			return nil, settle(f.asides, err)
		}
	case !t.conn.knows(s) || f.who != nil && !t.conn.knows(f.who.stmt()) || f.login && !t.conn.knows(asLogin.stmt()):
		// The statement is prepared as the session, because the login may not
		// see its tables, or as the login.
		if err := t.open(ctx, f); err != nil {
			return nil, err
		}
		f = t.ahead(own)
	}
	t.sent(f)
	a, err := t.conn.run(ctx, f, s, args, l)
	if err = settle(f.asides, err); err != nil {
		return nil, err
	}
	return a, nil
}

// open sends what must go out before a statement by itself.
func (t *pgTx) open(ctx context.Context, f flight) error {
	t.sent(f)
	return settle(f.asides, t.conn.open(ctx, f))
}

// aside puts a statement of ours before the next flight. While the session's
// role is set it runs at once.
func (t *pgTx) aside(ctx context.Context, s *Stmt, args []any, took func(*Answer) error) error {
	if !t.inRole() {
		t.asides = append(t.asides, &aside{s: s, args: args, took: took})
		return nil
	}
	a, err := t.own(ctx, s, args)
	if err != nil {
		return markOurs(err)
	}
	return took(a)
}

// asLogin is the session that takes the role of the login again.
var asLogin = &Session{Role: noRole}

func (t *pgTx) save(ctx context.Context) error {
	if !t.begun || !t.set && t.who != nil || t.asides != nil {
		if err := t.open(ctx, t.ahead(false)); err != nil {
			return err
		}
	}
	return t.conn.end(ctx, "SAVEPOINT fusion", "SAVEPOINT")
}

// undo also takes back what own has set since save: it was the session's then.
// Asides of before have gone out with save.
func (t *pgTx) undo(ctx context.Context) error {
	if err := t.conn.end(ctx, "ROLLBACK TO SAVEPOINT fusion", "ROLLBACK"); err != nil {
		return err
	}
	t.set, t.asides = t.who != nil, nil
	return t.release(ctx)
}

func (t *pgTx) release(ctx context.Context) error {
	return t.conn.end(ctx, "RELEASE SAVEPOINT fusion", "RELEASE")
}

// renew takes the transaction back to before BEGIN.
func (t *pgTx) renew(ctx context.Context) error {
	begun := t.begun
	t.begun, t.set = false, false
	if !t.conn.broken {
		if begun {
			return t.conn.end(ctx, "ROLLBACK", "ROLLBACK")
		}
		return nil
	}
	writes := t.conn.writes
	t.giveUp()
	fresh, err := t.engine.acquire(ctx)
	if err != nil {
		return err
	}
	fresh.writes = writes
	t.conn = fresh
	return nil
}

func (t *pgTx) giveUp() {
	if t.conn != nil {
		t.conn.release()
		t.conn = nil
	}
}

func (t *pgTx) flush(ctx context.Context) error {
	if t.asides == nil {
		return nil
	}
	return t.open(ctx, t.ahead(true))
}

func (t *pgTx) commit(ctx context.Context, last []*aside) error {
	defer t.giveUp()
	if err := t.flush(ctx); err != nil { // COMMIT may only follow when they have said yes
		t.conn.rollback()
		return err
	}
	switch {
	case last == nil && !t.begun:
		return nil
	case last == nil:
		return t.conn.end(ctx, "COMMIT", "COMMIT")
	}
	err := t.end(ctx, last)
	if err != nil {
		t.conn.rollback()
	}
	return err
}

// end sends the last statements with COMMIT. The server skips what stands
// behind one that fails, COMMIT too.
func (t *pgTx) end(ctx context.Context, last []*aside) error {
	f := t.ahead(true)
	if f.login && (!t.conn.knows(asLogin.stmt()) || !t.conn.know(last)) {
		if err := t.open(ctx, f); err != nil { // they are prepared as the login
			return err
		}
		f = t.ahead(true)
	}
	f.asides, f.commit = last, true
	err := t.open(ctx, f)
	for _, a := range last {
		t.conn.stale(a.s, a.err)
	}
	return err
}

// rollbackTimeout bounds a ROLLBACK; the caller's context may have ended.
const rollbackTimeout = 5 * time.Second

func (t *pgTx) rollback() {
	defer t.giveUp()
	if t.begun && t.conn != nil {
		t.conn.rollback()
	}
}

// rollback ends the transaction that is open; a connection on which that does
// not work is given up.
func (c *pgConn) rollback() {
	if c.broken || c.state == idleState {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()
	if err := c.end(ctx, "ROLLBACK", "ROLLBACK"); err != nil {
		c.broken = true
	}
}
