package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// sqliteConn is one connection with its prepared statements. One goroutine
// has it at a time.
type sqliteConn struct {
	raw   *sqlite3.Conn
	stmts map[string]*sqliteStmt // by text: a statement outlives a reload
	own   bool                   // a statement of this package or of the owner runs
	made  time.Time
	idle  time.Time // since when nobody uses it
	// broken: its state is not known, it must not be used again.
	broken bool
}

// maxStmts is how many prepared statements a connection keeps; when there are
// more all are dropped, which a reload that changes every statement reaches
// and a running spec does not.
const maxStmts = 4000

type sqliteStmt struct {
	raw      *sqlite3.Stmt
	readOnly bool
	cols     []sqliteCol
	names    []string
	size     size
	compiled int // how often SQLite had recompiled it when cols was made
}

// interruptible lets the context interrupt what runs; the result ends that.
func (c *sqliteConn) interruptible(ctx context.Context) func() {
	c.raw.SetInterrupt(ctx)
	return func() { c.raw.SetInterrupt(context.Background()) }
}

// discard closes the connection, whatever state it is in.
func (c *sqliteConn) discard() {
	var err error
	defer guard(&err)
	for _, s := range c.stmts {
		_ = s.raw.Close() // reports the statement's last error, known already
	}
	_ = c.raw.Close()
}

// exec runs a statement of this package.
func (c *sqliteConn) exec(ctx context.Context, sql string) error {
	done := c.careful()
	defer c.interruptible(ctx)()
	c.own = true
	err := c.raw.Exec(sql)
	c.own = false
	done()
	return sqliteError(ctx, err)
}

// careful marks the connection as broken until the result is called: if the
// driver panics in between, the mark stays.
func (c *sqliteConn) careful() (done func()) {
	before := c.broken
	c.broken = true
	return func() { c.broken = before }
}

// compile prepares a statement and compares its parameters with ours.
func (c *sqliteConn) compile(s *Stmt) (*sqliteStmt, error) {
	raw, tail, err := c.raw.PrepareFlags(s.SQL, sqlite3.PREPARE_PERSISTENT)
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		return nil, errors.New("there is no statement")
	}
	if err := c.whole(raw, tail, s); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	st := &sqliteStmt{raw: raw, readOnly: raw.ReadOnly()}
	if err := st.describe(); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return st, nil
}

func (c *sqliteConn) whole(raw *sqlite3.Stmt, tail string, s *Stmt) error {
	if strings.TrimSpace(tail) != "" {
		second, _, err := c.raw.Prepare(tail)
		if second != nil {
			_ = second.Close()
		}
		if second != nil || err != nil {
			return errors.New("there is more than one statement")
		}
	}
	if n := raw.BindCount(); n != s.Args {
		// A bare ? or :name, which SQLite would take for NULL.
		return fmt.Errorf("the statement has %d parameters, %d of them are ours: write parameters as @name", n, s.Args)
	}
	return nil
}

// describe plans how the columns are read.
func (st *sqliteStmt) describe() error {
	st.cols = make([]sqliteCol, st.raw.ColumnCount())
	st.names = make([]string, len(st.cols))
	for i := range st.cols {
		st.names[i] = st.raw.ColumnName(i)
		st.cols[i] = sqliteColumn(st.raw.ColumnDeclType(i))
	}
	for i, json := range jsonItems(st.raw.SQL()) {
		if at := len(st.cols) - 1 - i; json && at >= 0 {
			st.cols[at].class = asJSON
		}
	}
	st.compiled = st.raw.Status(sqlite3.STMTSTATUS_REPREPARE, false)
	return uniqueColumns(st.names)
}

// uniqueColumns refuses an answer in which a name would mean two columns.
func uniqueColumns(names []string) error {
	for i, n := range names {
		for _, m := range names[:i] {
			if n == m {
				return fmt.Errorf("two columns of the answer are named %q: rename one with AS", n)
			}
		}
	}
	return nil
}

// prepared gives the statement of this connection.
func (c *sqliteConn) prepared(s *Stmt) (*sqliteStmt, error) {
	if st := c.stmts[s.SQL]; st != nil {
		return st, nil
	}
	if len(c.stmts) >= maxStmts {
		for _, st := range c.stmts {
			_ = st.raw.Close()
		}
		clear(c.stmts)
	}
	st, err := c.compile(s)
	if err != nil {
		return nil, err
	}
	c.stmts[s.SQL] = st
	return st, nil
}

// run runs one statement to its end or to the limit.
func (c *sqliteConn) run(ctx context.Context, s *Stmt, args []any, l Limit, readOnly bool) (*Answer, error) {
	done := c.careful()
	defer c.interruptible(ctx)()
	a, err := c.execute(s, args, l, readOnly)
	done()
	if err != nil {
		return nil, sqliteError(ctx, err)
	}
	return a, nil
}

func (c *sqliteConn) execute(s *Stmt, args []any, l Limit, readOnly bool) (*Answer, error) {
	st, err := c.prepared(s)
	if err != nil {
		return nil, err
	}
	if readOnly && !st.readOnly {
		return nil, &Error{SQLState: readOnlyState, Err: errWrites}
	}
	for i, v := range args {
		if err := bindSQLite(st.raw, i+1, v); err != nil {
			return nil, err
		}
	}
	before := c.raw.TotalChanges()
	a, err := st.read(l)
	_ = st.raw.Reset() // reports the error of Step again
	_ = st.raw.ClearBindings()
	if err != nil {
		return nil, err
	}
	// Changes keeps the count of an earlier statement when this one changes
	// nothing.
	if !st.readOnly && c.raw.TotalChanges() != before {
		a.Affected = c.raw.Changes()
	}
	return a, nil
}

// read steps through the rows.
func (st *sqliteStmt) read(l Limit) (*Answer, error) {
	a := &Answer{}
	more := st.raw.Step()
	// SQLite recompiles a statement after a change of the schema.
	if st.raw.Status(sqlite3.STMTSTATUS_REPREPARE, false) != st.compiled {
		if err := st.describe(); err != nil {
			return nil, err
		}
	}
	if len(st.cols) == 0 {
		return a, st.raw.Err()
	}
	a.Rows = value.NewRows(st.names)
	st.size.room(a.Rows)
	defer func() { st.size.note(a.Rows) }()
	n := 0
	for ; more; more = st.raw.Step() {
		if l.Rows > 0 && n == l.Rows {
			a.More = true
			break
		}
		for i := range st.cols {
			st.cols[i].read(a.Rows, st.raw, i)
		}
		if n++; l.Bytes > 0 && n > 1 && int64(a.Rows.Size()) > l.Bytes {
			a.Rows.Cut(n - 1)
			a.More = true
			break
		}
	}
	if a.More && !st.readOnly {
		// A write goes on to its end, whatever of its rows is wanted.
		for st.raw.Step() {
		}
	}
	return a, st.raw.Err()
}

// script runs all statements of a text.
func (c *sqliteConn) script(ctx context.Context, sql string) error {
	done := c.careful()
	defer c.interruptible(ctx)()
	c.own = true // a file of the owner's
	err := c.statements(sql)
	c.own = false
	done()
	return sqliteError(ctx, err)
}

func (c *sqliteConn) statements(sql string) error {
	for rest := sql; strings.TrimSpace(rest) != ""; {
		raw, tail, err := c.raw.Prepare(rest)
		if err != nil {
			return fmt.Errorf("line %d: %w", lineOf(sql, startOf(sql, len(sql)-len(rest), err)), err)
		}
		if raw == nil { // comments
			return nil
		}
		err = raw.Exec()
		_ = raw.Close()
		if err != nil {
			return fmt.Errorf("line %d: %w", lineOf(sql, startOf(sql, len(sql)-len(rest), nil)), err)
		}
		rest = tail
	}
	return nil
}

// startOf is where a statement that begins at off is wrong: where the error
// says, else at its first token.
func startOf(sql string, off int, err error) int {
	var refused *sqlite3.Error
	if errors.As(err, &refused) && refused.SQL() != "" {
		return len(sql) - len(refused.SQL())
	}
	return off + firstToken(sql[off:])
}

func lineOf(sql string, off int) int {
	return 1 + strings.Count(sql[:min(off, len(sql))], "\n")
}

// bindSQLite binds one argument. Parameters have no type in SQLite, so that a
// value goes in as what it is.
func bindSQLite(st *sqlite3.Stmt, i int, v any) error {
	switch v := v.(type) {
	case nil:
		return st.BindNull(i)
	case bool:
		return st.BindBool(i, v)
	case int64:
		return st.BindInt64(i, v)
	case int:
		return st.BindInt(i, v)
	case float64:
		return st.BindFloat(i, v)
	case value.Number:
		return bindNumber(st, i, string(v))
	case string:
		return st.BindText(i, v)
	}
	return st.BindText(i, string(value.AppendJSON(nil, v)))
}

// bindNumber binds exact digits as the number that holds them all, or else as
// text, which a numeric column turns into what it can keep.
func bindNumber(st *sqlite3.Stmt, i int, digits string) error {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return st.BindInt64(i, n)
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || strconv.FormatFloat(f, 'f', -1, 64) != trimZeros(digits) {
		return st.BindText(i, digits)
	}
	return st.BindFloat(i, f)
}

// trimZeros takes zeros from the end of a fraction.
func trimZeros(digits string) string {
	if !strings.Contains(digits, ".") {
		return digits
	}
	return strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
}
