package db

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs/mvcc"
)

// sqliteEngine is a small pool: several readers that cannot write, and one
// writer, because SQLite has one writer at a time.
type sqliteEngine struct {
	file   string
	flags  sqlite3.OpenFlag
	memory string // name of the memory database, "" for a file

	slots chan struct{} // one token a reader that is out
	mu    sync.Mutex
	idle  []*sqliteConn
	shut  bool
	// writer holds the writer while nobody has it: nil after it broke.
	writer chan *sqliteConn
}

// busyTimeout is how long SQLite waits for another process's lock; a call's
// context ends the wait earlier.
const busyTimeout = 5 * time.Second

func openSQLite(ctx context.Context, c Config) (*sqliteEngine, error) {
	e := &sqliteEngine{
		slots:  make(chan struct{}, c.Pool),
		writer: make(chan *sqliteConn, 1),
		flags:  sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE,
	}
	path := strings.TrimPrefix(strings.TrimPrefix(c.URL, "sqlite:"), "//")
	if path == ":memory:" {
		// One database for all connections of this DB and for nobody else.
		// The mvcc file system keeps readers and the writer out of each
		// other's way.
		e.memory = "/" + rand.Text()
		mvcc.Create(e.memory[1:], mvcc.Snapshot{})
		e.file, e.flags = "file:"+e.memory+"?vfs=mvcc", e.flags|sqlite3.OPEN_URI
	} else {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		abs, err := filepath.Abs(path) // never looks like a "file:" URI
		if err != nil {
			return nil, err
		}
		e.file = abs
	}
	w, err := e.connect(ctx, false)
	if err != nil {
		e.close()
		return nil, fmt.Errorf("opening %s: %w", path, sqliteError(ctx, err))
	}
	e.writer <- w
	return e, nil
}

// connect opens one connection.
func (e *sqliteEngine) connect(ctx context.Context, reader bool) (*sqliteConn, error) {
	raw, err := sqlite3.OpenFlags(e.file, e.flags)
	if err != nil {
		return nil, err
	}
	raw.SetInterrupt(ctx)
	defer raw.SetInterrupt(context.Background())
	c := &sqliteConn{raw: raw, stmts: make(map[string]*sqliteStmt)}
	if err := c.setUp(e.memory == "", reader); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

func (c *sqliteConn) setUp(file, reader bool) error {
	// "name" is a name here, as in PostgreSQL, never a text.
	for _, o := range []sqlite3.DBConfig{sqlite3.DBCONFIG_DQS_DML, sqlite3.DBCONFIG_DQS_DDL} {
		if _, err := c.raw.Config(o, false); err != nil {
			return err
		}
	}
	if err := c.raw.BusyTimeout(busyTimeout); err != nil {
		return err
	}
	if file && !reader {
		// A file that we may not write still serves queries.
		if err := c.raw.Exec("PRAGMA journal_mode=wal"); err != nil && !errors.Is(err, sqlite3.READONLY) {
			return err
		}
	}
	if !reader {
		return c.raw.Exec("PRAGMA foreign_keys=on")
	}
	if err := c.raw.Exec("PRAGMA query_only=on"); err != nil {
		return err
	}
	return c.raw.SetAuthorizer(c.authorize)
}

// readPragmas only tell something, so that queries may use their table
// functions.
var readPragmas = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_info": true, "index_xinfo": true,
	"index_list": true, "foreign_key_list": true, "foreign_key_check": true,
}

// authorize keeps a query from leaving the cage: the statements that
// query_only does not stop.
func (c *sqliteConn) authorize(action sqlite3.AuthorizerActionCode, name3, name4, _, _ string) sqlite3.AuthorizerReturnCode {
	if c.own {
		return sqlite3.AUTH_OK
	}
	switch action {
	case sqlite3.AUTH_TRANSACTION, sqlite3.AUTH_SAVEPOINT, sqlite3.AUTH_ATTACH, sqlite3.AUTH_DETACH:
		return sqlite3.AUTH_DENY
	case sqlite3.AUTH_PRAGMA:
		if name4 != "" && !readPragmas[strings.ToLower(name3)] {
			return sqlite3.AUTH_DENY
		}
	}
	return sqlite3.AUTH_OK
}

// reader takes a reader out of the pool.
func (e *sqliteEngine) reader(ctx context.Context) (*sqliteConn, error) {
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx, errors.New("waiting for a connection"))
	}
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		c := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return c, nil
	}
	e.mu.Unlock()
	c, err := e.connect(ctx, true)
	if err != nil {
		<-e.slots
		return nil, sqliteError(ctx, err)
	}
	return c, nil
}

func (e *sqliteEngine) giveBack(c *sqliteConn) {
	e.mu.Lock()
	keep := !c.broken && !e.shut
	if keep {
		e.idle = append(e.idle, c)
	}
	e.mu.Unlock()
	if !keep {
		c.discard()
	}
	<-e.slots
}

// takeWriter waits for the writer, and opens a new one if the last one broke.
func (e *sqliteEngine) takeWriter(ctx context.Context) (*sqliteConn, error) {
	var c *sqliteConn
	select {
	case c = <-e.writer:
	case <-ctx.Done():
		return nil, ended(ctx, errors.New("waiting for the writer"))
	}
	if c != nil {
		return c, nil
	}
	c, err := e.connect(ctx, false)
	if err != nil {
		e.writer <- nil
		return nil, sqliteError(ctx, err)
	}
	return c, nil
}

func (e *sqliteEngine) giveWriterBack(c *sqliteConn) {
	if c.broken {
		c.discard()
		c = nil
	}
	e.writer <- c
}

func (e *sqliteEngine) query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	c, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer e.giveBack(c)
	return c.run(ctx, s, args, l, true)
}

func (e *sqliteEngine) empty(ctx context.Context) (bool, error) {
	a, err := e.query(ctx, &Stmt{SQL: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\')"}, nil, Limit{})
	if err != nil {
		return false, err
	}
	return a.Rows.Value(0, 0) == int64(0), nil
}

func (e *sqliteEngine) describe(ctx context.Context, s *Stmt) (int, string, error) {
	c, err := e.reader(ctx)
	if err != nil {
		return -1, "", err
	}
	defer e.giveBack(c)
	defer c.interruptible(ctx)()
	st, err := c.compile(s)
	if err == nil {
		return -1, "", st.raw.Close()
	}
	offset := -1
	var refused *sqlite3.Error
	if errors.As(err, &refused) && refused.SQL() != "" {
		offset = len(s.SQL) - len(refused.SQL())
	}
	return offset, "", sqliteError(ctx, err)
}

// script runs the statements one after the other, so that an error has its line.
func (e *sqliteEngine) script(ctx context.Context, sql string) error {
	c, err := e.takeWriter(ctx)
	if err != nil {
		return err
	}
	defer e.giveWriterBack(c)
	t := &sqliteTx{engine: e, conn: c}
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := c.script(ctx, sql); err != nil {
		t.end()
		return err
	}
	if err := c.exec(ctx, "COMMIT"); err != nil {
		t.end()
		return err
	}
	return nil
}

func (e *sqliteEngine) begin(ctx context.Context, readOnly bool) (tx, error) {
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
	if err := t.conn.exec(ctx, begin); err != nil {
		t.release()
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

func (t *sqliteTx) commit(ctx context.Context) error {
	defer t.release()
	err := t.conn.exec(ctx, "COMMIT")
	if err != nil {
		t.end()
	}
	return err
}

func (t *sqliteTx) rollback() {
	defer t.release()
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

func (t *sqliteTx) release() {
	if t.readOnly {
		t.engine.giveBack(t.conn)
		return
	}
	t.engine.giveWriterBack(t.conn)
}

// close closes the connections; nobody has one any more.
func (e *sqliteEngine) close() {
	e.mu.Lock()
	e.shut = true
	idle := e.idle
	e.idle = nil
	e.mu.Unlock()
	for _, c := range idle {
		c.discard()
	}
	select {
	case c := <-e.writer:
		if c != nil {
			c.discard()
		}
	default:
	}
	if e.memory != "" {
		mvcc.Delete(e.memory[1:])
	}
}
