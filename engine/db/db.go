// Package db opens databases and runs prepared statements on them: pools,
// dialects, transactions, row reading. It is the only importer of database
// drivers.
package db

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Dialect names an engine.
type Dialect uint8

// The engines, chosen by the URL.
const (
	SQLite Dialect = iota
	Postgres
)

func (d Dialect) String() string {
	if d == Postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}

// Config says what to open.
type Config struct {
	Name    string        // of the spec, for messages
	URL     string        // postgres://…, postgresql://…, sqlite:path, sqlite::memory:
	Pool    Pool          // its zero members are defaults
	Timeout time.Duration // of a statement; 0: none
	Dir     string        // relative sqlite paths start here
	// Session says that callers will have sessions (DB.As), which only
	// PostgreSQL knows.
	Session bool
}

// DialectOf gives the engine of a URL, or an error that says which URLs there
// are. The error does not quote the URL: it may hold a password.
func DialectOf(url string) (Dialect, error) {
	switch {
	case strings.HasPrefix(url, "postgres://"), strings.HasPrefix(url, "postgresql://"):
		return Postgres, nil
	case strings.HasPrefix(url, "sqlite:") && len(url) > len("sqlite:"):
		return SQLite, nil
	}
	return 0, errors.New("the URL must begin with postgres:// or sqlite: (sqlite::memory: is a database in memory)")
}

// engine is what a dialect does. Its calls may panic; DB sees to that. A nil
// session is none.
type engine interface {
	query(ctx context.Context, who *Session, s *Stmt, args []any, l Limit) (*Answer, error)
	begin(ctx context.Context, who *Session, readOnly bool) (tx, error)
	empty(ctx context.Context) (bool, error)
	script(ctx context.Context, sql string) error
	describe(ctx context.Context, who *Session, s *Stmt) (*Description, error)
	// write runs a statement of ours in a transaction of its own.
	write(ctx context.Context, s *Stmt, args []any) (*Answer, error)
	// ensure gives the name of a table, and makes it if there is none.
	ensure(ctx context.Context, t *Table) (string, error)
	// listen tells of notifications until ctx ends or the connection does.
	listen(ctx context.Context, channel string, tell func(string), ready func()) error
	close()
}

// tx is one transaction. After commit or rollback nothing else may be called.
type tx interface {
	query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error)
	// own runs a statement of this package, without the session's role.
	own(ctx context.Context, s *Stmt, args []any) (*Answer, error)
	// aside runs one too, now or with the next statement; see Tx.Ahead.
	aside(ctx context.Context, s *Stmt, args []any, took func(*Answer) error) error
	// save sets a savepoint; undo goes back to the last one and release
	// forgets it, both take it away.
	save(ctx context.Context) error
	undo(ctx context.Context) error
	release(ctx context.Context) error
	// commit runs the last statements before; see Tx.Last.
	// flush sends what waits for the next statement.
	flush(ctx context.Context) error
	commit(ctx context.Context, last []*aside) error
	// rollback never fails: a connection that cannot roll back is given up.
	rollback()
}

// DB is one open database. It may be used by many goroutines.
type DB struct {
	name    string
	dialect Dialect
	limit   limit
	// patience is how long a call waits for its turn.
	patience time.Duration
	engine   engine
	tables   tables
	shut     chan struct{} // closed when the DB is

	// gate counts calls in progress, so that Close can wait for them.
	gate   sync.RWMutex
	closed bool
	calls  sync.WaitGroup
}

// Open makes the pool. A PostgreSQL server that is down is no error: calls
// fail until it is back. An SQLite file that cannot be opened is one.
func Open(ctx context.Context, c Config) (*DB, error) {
	d, err := DialectOf(c.URL)
	if err != nil {
		return nil, err
	}
	if c.Session && d != Postgres {
		return nil, errors.New("session (row-level security) needs a PostgreSQL database")
	}
	c.Pool = c.Pool.withDefaults()
	db := &DB{name: c.Name, dialect: d, limit: limit(c.Timeout), patience: c.Pool.Acquire, tables: newTables(), shut: make(chan struct{})}
	if d == Postgres && db.limit > 0 {
		db.limit += limit(serversMoment)
	}
	if d == Postgres {
		db.engine, err = openPostgres(ctx, c, db.limit)
	} else {
		db.engine, err = openSQLite(ctx, c, db.limit)
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Dialect tells the engine.
func (d *DB) Dialect() Dialect { return d.dialect }

// ErrClosed is what calls on a closed DB give.
var ErrClosed = errors.New("the database is closed")

// Close ends the pool, waiting for calls in progress until ctx ends. Then the
// connections are closed all the same, and the error says so.
func (d *DB) Close(ctx context.Context) error {
	d.gate.Lock()
	already := d.closed
	d.closed = true
	d.gate.Unlock()
	if already {
		return nil
	}
	close(d.shut)
	idle := make(chan struct{})
	go func() {
		d.calls.Wait()
		d.engine.close()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("closing database %s: calls are still running: %w", d.name, ctx.Err())
	}
}

// enter registers a call; leave must follow if the error is nil.
func (d *DB) enter() error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.closed {
		return &Error{Err: ErrClosed, Unavailable: true}
	}
	d.calls.Add(1)
	return nil
}

// guard turns a panic of driver code into an error.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = &Error{Err: fmt.Errorf("the database driver panicked: %v", r)}
	}
}

// limit is the time of a statement; 0: none.
type limit time.Duration

// within gives the context of one statement.
func (l limit) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if l <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(l))
}

// serversMoment is what a server gets to end a statement itself, which saves
// the connection.
const serversMoment = time.Second

// Empty tells whether the database has no table of its own.
func (d *DB) Empty(ctx context.Context) (empty bool, err error) {
	if err := d.enter(); err != nil {
		return false, err
	}
	defer d.calls.Done()
	defer guard(&err)
	return d.engine.empty(ctx)
}

// Script runs a file of statements as the owner, in one transaction that the
// script must not end itself. The statement timeout does not count. The error
// names the line of the script.
func (d *DB) Script(ctx context.Context, sql string) (err error) {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.calls.Done()
	defer guard(&err)
	return d.engine.script(ctx, sql)
}

// Stmt is a statement rewritten for one engine, made once at start and not
// changed after. Each connection prepares it once.
type Stmt struct {
	SQL string // with $1 or ?1
	// Args is the number of parameters.
	Args int

	ours bool // of this package: it leaves nothing on its connection
}

// Ours makes a statement of this program's own, its parameters written $1, $2, …
// on either engine. It leaves nothing on its connection.
func Ours(d Dialect, sql string) *Stmt {
	s := &Stmt{SQL: sql, ours: true}
	for strings.Contains(sql, "$"+strconv.Itoa(s.Args+1)) {
		s.Args++
	}
	if d == SQLite {
		s.SQL = strings.ReplaceAll(sql, "$", "?")
	}
	return s
}

// Answer is what a statement gave.
type Answer struct {
	Rows     *value.Rows // nil for a statement without rows
	Affected int64       // rows that a write changed; 0 for a read
	More     bool        // reading stopped at the limit: there is at least one row more
}

// Limit bounds reading; 0 is no bound. Both hold while rows are read: of
// PostgreSQL not more rows than these are asked for.
type Limit struct {
	Rows int
	// Bytes bounds the cells' text. A first row is given whatever its size.
	Bytes int64
}

// Querier runs statements: a DB or an Access (each statement alone), or a Tx.
type Querier interface {
	// Query runs a statement with arguments of package value. Outside of a
	// transaction it runs read-only.
	Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error)
}

func (s *Stmt) fits(args []any) error {
	if len(args) != s.Args {
		return fmt.Errorf("the statement has %d parameters and was given %d", s.Args, len(args))
	}
	return nil
}
