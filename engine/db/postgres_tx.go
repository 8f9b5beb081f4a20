package db

import (
	"context"
	"time"
)

func (e *pgEngine) begin(ctx context.Context, who *Session, readOnly bool) (tx, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	if readOnly {
		begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}
	c.writes = !readOnly
	return &pgTx{engine: e, conn: c, begin: begin, who: who}, nil
}

// pgTx is a transaction. BEGIN and the session's settings go with its first
// statement.
type pgTx struct {
	engine *pgEngine
	conn   *pgConn
	begin  string
	who    *Session
	begun  bool
	set    bool // the session's settings hold
}

// ahead is what must go out before the next statement of the session.
func (t *pgTx) ahead() flight {
	f := flight{inTx: true}
	if !t.begun {
		f.begin = t.begin
	}
	if !t.set {
		f.who = t.who
	}
	return f
}

// sent notes that a flight went out.
func (t *pgTx) sent(f flight) {
	t.begun = true
	t.set = t.set || f.who != nil
}

func (t *pgTx) query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	if !t.begun {
		return t.first(ctx, s, args, l)
	}
	a, err := t.run(ctx, s, args, l)
	if err != nil {
		t.conn.stale(s, err)
	}
	return a, err
}

// first runs the first statement, once more on another connection or with
// another plan if these were out of date: without COMMIT nothing has happened.
func (t *pgTx) first(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	a, err := t.run(ctx, s, args, l)
	if err == nil || ctx.Err() != nil || !t.conn.stale(s, err) && !(t.conn.broken && t.conn.reused) {
		return a, err
	}
	if err := t.renew(ctx); err != nil {
		return nil, err
	}
	return t.run(ctx, s, args, l)
}

func (t *pgTx) run(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	f := t.ahead()
	switch {
	case f.who == nil:
		if _, err := t.conn.prepared(ctx, s); err != nil { // before BEGIN goes out
			return nil, err
		}
	case !t.conn.knows(s) || !t.conn.knows(f.who.stmt()):
		// The statement is prepared as the session: the login may not see its
		// tables.
		if err := t.open(ctx); err != nil {
			return nil, err
		}
		f = t.ahead()
	}
	t.sent(f)
	return t.conn.run(ctx, f, s, args, l)
}

// open sends what must go out before a statement by itself.
func (t *pgTx) open(ctx context.Context) error {
	f := t.ahead()
	t.sent(f)
	return t.conn.open(ctx, f)
}

// asLogin is the session that takes the role of the login again.
var asLogin = &Session{Role: noRole}

// own runs a statement as the login; the next one of the caller sets the
// session's role again.
func (t *pgTx) own(ctx context.Context, s *Stmt, args []any) (*Answer, error) {
	f := flight{inTx: true}
	if !t.begun {
		f.begin = t.begin
	}
	if t.set && t.who.Role != "" {
		f.who = asLogin
	}
	if f.begin != "" || f.who != nil {
		t.begun = true
		if err := t.conn.open(ctx, f); err != nil {
			return nil, err
		}
		if f.who != nil {
			t.set = false
		}
	}
	a, err := t.conn.run(ctx, flight{inTx: true}, s, args, Limit{})
	if err != nil {
		t.conn.stale(s, err)
	}
	return a, err
}

func (t *pgTx) save(ctx context.Context) error {
	if !t.begun || !t.set && t.who != nil {
		if err := t.open(ctx); err != nil {
			return err
		}
	}
	return t.conn.end(ctx, "SAVEPOINT fusion", "SAVEPOINT")
}

// undo also takes back what own has set since save: it was the session's then.
func (t *pgTx) undo(ctx context.Context) error {
	if err := t.conn.end(ctx, "ROLLBACK TO SAVEPOINT fusion", "ROLLBACK"); err != nil {
		return err
	}
	t.set = t.who != nil
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

func (t *pgTx) commit(ctx context.Context) error {
	defer t.giveUp()
	if !t.begun {
		return nil
	}
	return t.conn.end(ctx, "COMMIT", "COMMIT")
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
