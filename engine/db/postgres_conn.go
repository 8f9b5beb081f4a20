package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// pgConn is one connection with its prepared statements. It speaks the
// extended protocol itself: a statement is asked for no more rows than are
// wanted (Execute with a row count), BEGIN goes out with the first statement,
// and cells are copied once, from the read buffer into the answer.
type pgConn struct {
	raw    *pgconn.PgConn
	front  *pgproto3.Frontend
	held   *pgxpool.Conn      // while it is out of the pool
	slots  *slots             // of which it holds one then
	types  *pgTypes           // of all connections
	stmts  map[string]*pgStmt // by text: a statement outlives a reload
	named  int                // names given so far
	reused bool               // it has run statements before it was last taken out of the pool
	state  byte               // of the transaction, as the server last said
	writes bool               // what it runs now may write
	marked bool               // a statement has left something that outlives it
	// broken: the conversation with the server is lost.
	broken bool
	// changed: a statement changed one of sessionParams for the session.
	// Nobody else may have the connection after it.
	changed bool

	// What one run needs, kept to be used again.
	args  pgArgs
	ours  pgArgs   // of asides
	queue []*aside // commands whose answers come before the one that counts
}

// pgStmt is a statement as this connection has prepared it.
type pgStmt struct {
	name   string
	reads  bool     // it may run where nothing may be written
	params []uint32 // OIDs
	fields []pgField
	names  []string
	cells  []*pgType
	format []int16 // of each column: 1 is binary; nil: all are texts
	size   size
	marks  bool // it leaves something on its connection
}

// pgField is a column as the server describes it.
type pgField struct {
	name  string
	oid   uint32
	table uint32 // 0: an expression
	attr  uint16 // number of the column in its table
}

// idleState is that of a connection outside of transactions.
const idleState = 'I'

// flight is what goes out beside a statement, in the same round trip and in
// this order; commit goes behind it.
type flight struct {
	begin  string   // how the transaction begins, "" if it has, or there is none
	login  bool     // the role of the login is taken again
	asides []*aside // statements of ours
	who    *Session // what is set before the statement; nil: nothing
	commit bool     // the transaction ends behind it
	inTx   bool     // the transaction goes on: its rest is worth reading
}

const attachment = "fusion-serve"

// attach puts our state on a new connection.
func attach(raw *pgconn.PgConn, types *pgTypes) {
	raw.CustomData()[attachment] = &pgConn{
		raw: raw, front: raw.Frontend(), types: types, stmts: make(map[string]*pgStmt), state: idleState,
	}
}

func attached(raw *pgconn.PgConn) *pgConn { return raw.CustomData()[attachment].(*pgConn) }

// release gives the connection back. One that is broken, still in a
// transaction, or not as the next caller expects it leaves the pool: the server is told to stop what it may be
// doing, and its place is not given to another before that.
func (c *pgConn) release() {
	held, slots := c.held, c.slots
	c.held, c.writes = nil, false
	if !c.broken && !c.changed && !c.marked && c.state == idleState {
		held.Release()
		slots.free()
		return
	}
	raw := c.raw
	go func() {
		var err error
		defer guard(&err)
		defer slots.free()
		defer held.Release()
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		_ = raw.CancelRequest(ctx) // the server may be gone
		_ = raw.Conn().SetDeadline(time.Now().Add(rollbackTimeout))
		_ = raw.Close(ctx)
	}()
}

// careful marks the connection as broken until the result is called: if the
// driver panics in between, the mark stays.
func (c *pgConn) careful() (done func()) {
	c.broken = true
	return func() { c.broken = c.raw.IsClosed() }
}

// compile prepares a statement under a name.
func (c *pgConn) compile(ctx context.Context, name string, s *Stmt) (*pgStmt, error) {
	st := &pgStmt{name: name, reads: onlyReads(s.SQL)}
	done := c.careful()
	alive, err := c.parse(ctx, st, s.SQL)
	if alive {
		done()
	}
	if err != nil {
		return nil, postgresError(ctx, err)
	}
	if len(st.params) != s.Args {
		return nil, fmt.Errorf("the statement has %d parameters, %d of them are ours: write parameters as @name", len(st.params), s.Args)
	}
	if err := uniqueColumns(st.names); err != nil {
		return nil, err
	}
	if st.cells, err = c.cells(ctx, st.fields); err != nil {
		return nil, err
	}
	st.format = inBinary(st.fields, st.cells)
	st.marks = !s.ours && leavesMarks(s.SQL)
	return st, nil
}

func (c *pgConn) parse(ctx context.Context, st *pgStmt, sql string) (alive bool, err error) {
	defer c.deadline(ctx)(&alive)
	c.front.SendParse(&pgproto3.Parse{Name: st.name, Query: sql})
	c.front.SendDescribe(&pgproto3.Describe{ObjectType: 'S', Name: st.name})
	c.front.SendSync(&pgproto3.Sync{})
	if err := c.front.Flush(); err != nil {
		return false, err
	}
	r := reader{conn: c, st: st, answer: &Answer{}}
	return r.read()
}

// describe takes in what the server says of the columns.
func (st *pgStmt) describe(fields []pgproto3.FieldDescription) {
	for _, f := range fields {
		st.names = append(st.names, string(f.Name))
		st.fields = append(st.fields, pgField{
			name: string(f.Name), oid: f.DataTypeOID, table: f.TableOID, attr: f.TableAttributeNumber,
		})
	}
}

// knows tells whether a statement is prepared here.
func (c *pgConn) knows(s *Stmt) bool { return s == nil || c.stmts[s.SQL] != nil }

// prepared gives the statement of this connection.
func (c *pgConn) prepared(ctx context.Context, s *Stmt) (*pgStmt, error) {
	if st := c.stmts[s.SQL]; st != nil {
		return st, nil
	}
	if err := c.room(ctx, 1); err != nil {
		return nil, err
	}
	c.named++
	st, err := c.compile(ctx, "fs"+strconv.Itoa(c.named), s)
	if err != nil {
		return nil, err
	}
	c.stmts[s.SQL] = st
	return st, nil
}

// room makes room for so many more statements.
func (c *pgConn) room(ctx context.Context, n int) error {
	if len(c.stmts)+n <= maxStmts {
		return nil
	}
	if err := c.end(ctx, "DEALLOCATE ALL", "DEALLOCATE ALL"); err != nil {
		return err
	}
	clear(c.stmts)
	return nil
}

// stale forgets a statement that the server no longer runs as it was prepared
// (a column of its table was added or changed, or a proxy dropped it), or
// whose types have changed.
func (c *pgConn) stale(s *Stmt, err error) bool {
	if errors.Is(err, errStaleType) {
		delete(c.stmts, s.SQL)
		c.types.forget()
		return true
	}
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	replanned := refused.Code == "0A000" && refused.Routine == "RevalidateCachedQuery"
	if !replanned && refused.Code != "26000" {
		return false
	}
	delete(c.stmts, s.SQL)
	return true
}

// run runs a statement.
func (c *pgConn) run(ctx context.Context, f flight, s *Stmt, args []any, l Limit) (*Answer, error) {
	if err := c.ready(ctx, f); err != nil {
		return nil, err
	}
	st, err := c.prepared(ctx, s)
	if err != nil {
		return nil, err
	}
	if !c.writes && !st.reads {
		return nil, &Error{SQLState: readOnlyState, Err: errWrites}
	}
	if err := c.args.encode(st, args); err != nil {
		return nil, err
	}
	c.marked = c.marked || st.marks
	done := c.careful()
	a, alive, err := c.converse(ctx, f, st, l)
	if alive {
		done()
	}
	if err != nil {
		return nil, postgresError(ctx, err)
	}
	return a, nil
}

// converse sends what is ahead and the statement in one flight and reads the
// answer. alive: server and connection agree where they are.
func (c *pgConn) converse(ctx context.Context, f flight, st *pgStmt, l Limit) (a *Answer, alive bool, err error) {
	defer c.deadline(ctx)(&alive)
	if err := c.ahead(f); err != nil {
		return nil, false, err
	}
	c.front.SendBind(&pgproto3.Bind{PreparedStatement: st.name, Parameters: c.args.params, ResultFormatCodes: st.format})
	// One more tells whether there are more. A statement of which one row is
	// wanted hardly ever has more, and a count would keep the server from
	// working on it in parallel.
	var rows uint32
	if l.Rows > 1 {
		rows = uint32(l.Rows) + 1
	}
	c.front.SendExecute(&pgproto3.Execute{MaxRows: rows})
	if f.commit {
		c.verb("COMMIT")
	}
	c.front.SendSync(&pgproto3.Sync{})
	if err := c.front.Flush(); err != nil {
		return nil, false, err
	}
	r := reader{conn: c, st: st, limit: l, queue: c.queue, whole: f.inTx, answer: &Answer{}}
	if len(st.names) > 0 {
		r.answer.Rows = value.NewRows(st.names)
		st.size.room(r.answer.Rows)
	}
	alive, err = r.read()
	st.size.note(r.answer.Rows)
	if err == nil && f.commit && alive {
		err = committed(r.tag)
	}
	if err != nil {
		return nil, alive, err
	}
	return r.answer, alive, nil
}

// ahead puts what goes before a statement into the flight, and in c.queue
// whose answers these will be; nil for what only has to be done.
func (c *pgConn) ahead(f flight) error {
	c.queue = c.queue[:0]
	if f.begin != "" {
		c.verb(f.begin)
		c.queue = append(c.queue, nil)
	}
	if f.login {
		c.set(asLogin)
	}
	for _, a := range f.asides {
		if err := c.aside(a); err != nil {
			return err
		}
	}
	if f.who.stmt() != nil {
		c.set(f.who)
	}
	return nil
}

// set sets a session.
func (c *pgConn) set(who *Session) {
	c.front.SendBind(&pgproto3.Bind{PreparedStatement: c.stmts[who.stmt().SQL].name, Parameters: who.params()})
	c.front.SendExecute(&pgproto3.Execute{})
	c.queue = append(c.queue, nil)
}

func (c *pgConn) verb(sql string) {
	c.front.SendParse(&pgproto3.Parse{Query: sql})
	c.front.SendBind(&pgproto3.Bind{})
	c.front.SendExecute(&pgproto3.Execute{})
}

// ready prepares what goes before a statement, while it is not yet on its way.
func (c *pgConn) ready(ctx context.Context, f flight) error {
	if f.who == nil && !f.login && f.asides == nil {
		return nil
	}
	for _, a := range f.asides {
		a.done, a.err = false, nil // it may go out again
	}
	if err := c.room(ctx, len(f.asides)+3); err != nil { // with both sessions and the statement
		return err
	}
	for _, a := range f.asides {
		if _, a.err = c.prepared(ctx, a.s); a.err != nil {
			return a.err
		}
	}
	if f.login {
		if _, err := c.prepared(ctx, asLogin.stmt()); err != nil {
			return err
		}
	}
	if s := f.who.stmt(); s != nil {
		_, err := c.prepared(ctx, s)
		return err
	}
	return nil
}

// open sends a flight without a statement: one that begins a transaction, sets
// a session in it, or ends it.
func (c *pgConn) open(ctx context.Context, f flight) error {
	if err := c.ready(ctx, f); err != nil {
		return err
	}
	done := c.careful()
	alive, err := c.lead(ctx, f)
	if alive {
		done()
	}
	return postgresError(ctx, err)
}

func (c *pgConn) lead(ctx context.Context, f flight) (alive bool, err error) {
	defer c.deadline(ctx)(&alive)
	if err := c.ahead(f); err != nil {
		return false, err
	}
	if f.commit {
		c.verb("COMMIT")
	}
	c.front.SendSync(&pgproto3.Sync{})
	if err := c.front.Flush(); err != nil {
		return false, err
	}
	r := reader{conn: c, queue: c.queue, answer: &Answer{}}
	if alive, err = r.read(); err == nil && f.commit {
		err = committed(r.tag)
	}
	return alive, err
}

// committed looks at what the server says to COMMIT: it rolls a transaction
// back that has failed, and calls that no error.
func committed(tag string) error {
	if tag == "COMMIT" {
		return nil
	}
	return &Error{SQLState: "25P02", Err: fmt.Errorf("COMMIT was answered by %s", tag)}
}

// deadline lets the end of ctx break off reading and writing. The result ends
// that; when the conversation was broken off it takes alive back.
func (c *pgConn) deadline(ctx context.Context) func(alive *bool) {
	if ctx.Done() == nil {
		return func(*bool) {}
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.raw.Conn().SetDeadline(time.Unix(1, 0))
		close(fired)
	})
	return func(alive *bool) {
		if stop() {
			return
		}
		<-fired
		if *alive && c.raw.Conn().SetDeadline(time.Time{}) != nil {
			*alive = false
		}
	}
}

// end sends COMMIT, ROLLBACK or another verb that is answered by a tag alone.
func (c *pgConn) end(ctx context.Context, sql, tag string) error {
	done := c.careful()
	alive, got, err := c.simple(ctx, sql)
	if alive {
		done()
	}
	switch {
	case err != nil:
		return postgresError(ctx, err)
	case got != tag:
		return &Error{SQLState: "25P02", Err: fmt.Errorf("%s was answered by %s", sql, got)}
	}
	return nil
}

func (c *pgConn) simple(ctx context.Context, sql string) (alive bool, tag string, err error) {
	defer c.deadline(ctx)(&alive)
	c.front.SendQuery(&pgproto3.Query{String: sql})
	if err := c.front.Flush(); err != nil {
		return false, "", err
	}
	r := reader{conn: c, answer: &Answer{}}
	alive, err = r.read()
	return alive, r.tag, err
}
