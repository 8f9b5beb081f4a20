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

	pool  Pool
	limit limit
	slots *slots // one for each reader that is out
	mu    sync.Mutex
	idle  []*sqliteConn // used last at the end
	shut  bool
	reap  *time.Timer // closes readers that are idle for too long; nil: none is set
	// writer holds the writer while nobody has it: nil after it broke.
	writer chan *sqliteConn
}

func openSQLite(ctx context.Context, c Config, l limit) (*sqliteEngine, error) {
	e := &sqliteEngine{
		pool:   c.Pool,
		limit:  l,
		slots:  newSlots(c.Pool),
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
	for range c.Pool.Min {
		r, err := e.connect(ctx, true)
		if err != nil {
			e.close()
			return nil, fmt.Errorf("opening %s: %w", path, sqliteError(ctx, err))
		}
		e.idle = append(e.idle, r)
	}
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
	c := &sqliteConn{raw: raw, stmts: make(map[string]*sqliteStmt), made: time.Now()}
	// Another process may hold the file's lock; a call's context ends the wait
	// earlier.
	if err := errors.Join(raw.BusyTimeout(e.pool.Acquire), c.setUp(e.memory == "", reader)); err != nil {
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
	if file && !reader {
		// A file that we may not write still serves queries.
		if err := c.raw.Exec("PRAGMA journal_mode=wal"); err != nil && !errors.Is(err, sqlite3.READONLY) {
			return err
		}
	}
	// What was committed must outlive a power cut: a write-ahead log is not
	// synced at a COMMIT otherwise.
	pragma := "PRAGMA foreign_keys=on; PRAGMA synchronous=full"
	if reader {
		pragma = "PRAGMA query_only=on"
	}
	if err := c.raw.Exec(pragma); err != nil {
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

// authorize keeps a statement from leaving the cage: what query_only does not
// stop, and what would change the connection for the calls that have it next.
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

func (e *sqliteEngine) query(ctx context.Context, _ *Session, s *Stmt, args []any, l Limit) (*Answer, error) {
	c, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer e.giveBack(c)
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	return c.run(ctx, s, args, l, true)
}

func (e *sqliteEngine) write(ctx context.Context, s *Stmt, args []any) (*Answer, error) {
	t, err := e.begin(ctx, nil, false)
	if err != nil {
		return nil, err
	}
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	a, err := t.own(ctx, s, args)
	if err != nil {
		t.rollback()
		return nil, err
	}
	return a, t.commit(ctx, nil)
}

func (e *sqliteEngine) empty(ctx context.Context) (bool, error) {
	a, err := e.query(ctx, nil, &Stmt{SQL: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\')"}, nil, Limit{})
	if err != nil {
		return false, err
	}
	return a.Rows.Value(0, 0) == int64(0), nil
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

// close closes the connections; nobody has one any more.
func (e *sqliteEngine) close() {
	e.mu.Lock()
	e.shut = true
	if e.reap != nil {
		e.reap.Stop()
	}
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
