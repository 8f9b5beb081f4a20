package db

import "context"

func (e *sqliteEngine) begin(ctx context.Context, _ *Session, readOnly bool) (tx, error) {
	t := &sqliteTx{engine: e, readOnly: readOnly}
	var err error
	begin := "BEGIN"
	if readOnly {
		t.conn, err = e.reader(ctx)
	} else {
		begin = "BEGIN IMMEDIATE"
		t.conn, err = e.takeWriter(ctx)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	if err := t.conn.exec(ctx, begin); err != nil {
		t.giveBack()
		return nil, err
	}
	return t, nil
}

// sqliteTx is a transaction on a connection that it gives back at its end.
type sqliteTx struct {
	engine   *sqliteEngine
	conn     *sqliteConn
	readOnly bool
}

func (t *sqliteTx) query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	return t.conn.run(ctx, s, args, l, t.readOnly)
}

func (t *sqliteTx) own(ctx context.Context, s *Stmt, args []any) (*Answer, error) {
	return t.conn.run(ctx, s, args, Limit{}, t.readOnly)
}

func (t *sqliteTx) aside(ctx context.Context, s *Stmt, args []any, took func(*Answer) error) error {
	a, err := t.own(ctx, s, args)
	if err != nil {
		return markOurs(err)
	}
	return took(a)
}

func (t *sqliteTx) save(ctx context.Context) error {
	return t.conn.exec(ctx, "SAVEPOINT fusion")
}

func (t *sqliteTx) undo(ctx context.Context) error {
	return t.conn.exec(ctx, "ROLLBACK TO fusion; RELEASE fusion")
}

func (t *sqliteTx) release(ctx context.Context) error {
	return t.conn.exec(ctx, "RELEASE fusion")
}

func (t *sqliteTx) flush(context.Context) error { return nil }

func (t *sqliteTx) commit(ctx context.Context, last []*aside) error {
	defer t.giveBack()
	for _, a := range last {
		if _, a.err = t.own(ctx, a.s, a.args); a.err != nil {
			t.end()
			return settle([]*aside{a}, a.err)
		}
	}
	err := t.conn.exec(ctx, "COMMIT")
	if err != nil {
		t.end()
	}
	return err
}

func (t *sqliteTx) rollback() {
	defer t.giveBack()
	t.end()
}

// end rolls back what is still open. It runs on a context of its own: the
// caller's may have ended.
func (t *sqliteTx) end() {
	if t.conn.broken || t.conn.raw.GetAutocommit() {
		return
	}
	if err := t.conn.exec(context.Background(), "ROLLBACK"); err != nil {
		t.conn.broken = true
	}
}

func (t *sqliteTx) giveBack() {
	if t.readOnly {
		t.engine.giveBack(t.conn)
		return
	}
	t.engine.giveWriterBack(t.conn)
}
