// Package db opens databases and runs prepared statements on them: pools,
// dialects, transactions, row reading. It is the only importer of database
// drivers.
package db

import (
	"context"
	"errors"
	"fmt"
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
	Pool    int           // connections; 0: 10
	Timeout time.Duration // of a statement, waiting for a connection included; 0: none
	Dir     string        // relative sqlite paths start here
}

const defaultPool = 10

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

// engine is what a dialect does. Its calls may panic; DB sees to that.
type engine interface {
	query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error)
	begin(ctx context.Context, readOnly bool) (tx, error)
	empty(ctx context.Context) (bool, error)
	script(ctx context.Context, sql string) error
	describe(ctx context.Context, s *Stmt) (offset int, hint string, err error)
	close()
}

// tx is one transaction. After commit or rollback nothing else may be called.
type tx interface {
	query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error)
	commit(ctx context.Context) error
	// rollback never fails: a connection that cannot roll back is given up.
	rollback()
}

// DB is one open database. It may be used by many goroutines.
type DB struct {
	name    string
	dialect Dialect
	timeout time.Duration
	engine  engine

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
	if c.Pool <= 0 {
		c.Pool = defaultPool
	}
	db := &DB{name: c.Name, dialect: d, timeout: c.Timeout}
	if d == Postgres {
		db.engine, err = openPostgres(ctx, c)
	} else {
		db.engine, err = openSQLite(ctx, c)
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

// within gives the context of one statement.
func (d *DB) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.timeout)
}

// Empty tells whether the database has no table of its own.
func (d *DB) Empty(ctx context.Context) (empty bool, err error) {
	if err := d.enter(); err != nil {
		return false, err
	}
	defer d.calls.Done()
	defer guard(&err)
	ctx, cancel := d.within(ctx)
	defer cancel()
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

// Querier runs statements: a DB (each statement alone) or a transaction.
type Querier interface {
	// Query runs a statement with arguments of package value. A lone
	// statement on a DB runs read-only.
	Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error)
}

// Query runs one statement alone, read-only: a statement that writes is
// refused with SQLSTATE 25006 on both engines.
func (d *DB) Query(ctx context.Context, s *Stmt, args []any, l Limit) (a *Answer, err error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.calls.Done()
	defer guard(&err)
	if err := s.fits(args); err != nil {
		return nil, err
	}
	ctx, cancel := d.within(ctx)
	defer cancel()
	return d.engine.query(ctx, s, args, l)
}

func (s *Stmt) fits(args []any) error {
	if len(args) != s.Args {
		return fmt.Errorf("the statement has %d parameters and was given %d", s.Args, len(args))
	}
	return nil
}

// Tx runs f in one transaction (PostgreSQL: REPEATABLE READ READ ONLY if
// readOnly, else READ COMMITTED; SQLite: a snapshot, or the one writer) and
// commits when f gives nil. When f gives an error or panics it is rolled
// back. The Querier must not be used after f, nor by two goroutines.
func (d *DB) Tx(ctx context.Context, readOnly bool, f func(Querier) error) (err error) {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.calls.Done()
	return d.inTx(ctx, readOnly, f)
}

func (d *DB) inTx(ctx context.Context, readOnly bool, f func(Querier) error) error {
	t, err := d.begin(ctx, readOnly)
	if err != nil {
		return err
	}
	q := &txQuerier{db: d, tx: t}
	done := false
	defer func() {
		if !done { // f failed or panics
			q.rollback()
		}
	}()
	if err := f(q); err != nil {
		return err
	}
	switch {
	case q.failed != nil:
		return q.failed
	case ctx.Err() != nil:
		return ended(ctx, errors.New("not committed"))
	}
	done = true
	return q.commit(ctx)
}

func (d *DB) begin(ctx context.Context, readOnly bool) (t tx, err error) {
	defer guard(&err)
	ctx, cancel := d.within(ctx)
	defer cancel()
	return d.engine.begin(ctx, readOnly)
}

// txQuerier is the Querier of a transaction.
type txQuerier struct {
	db     *DB
	tx     tx
	failed error // a statement failed: the transaction can only be rolled back
}

func (q *txQuerier) Query(ctx context.Context, s *Stmt, args []any, l Limit) (a *Answer, err error) {
	if q.failed != nil {
		return nil, q.failed
	}
	defer func() { q.failed = err }()
	defer guard(&err)
	if err := s.fits(args); err != nil {
		return nil, err
	}
	ctx, cancel := q.db.within(ctx)
	defer cancel()
	return q.tx.query(ctx, s, args, l)
}

// commitTimeout bounds a COMMIT. A caller who goes away does not break it
// off: nobody would know whether it was done.
const commitTimeout = 30 * time.Second

func (q *txQuerier) commit(ctx context.Context) (err error) {
	defer guard(&err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return q.tx.commit(ctx)
}

func (q *txQuerier) rollback() {
	var err error
	defer guard(&err)
	q.tx.rollback()
}

// Describe prepares a statement without running it, for check --online: it
// tells what the server says of it, without the driver's words around it.
// Offset is the byte in Stmt.SQL or -1.
func (d *DB) Describe(ctx context.Context, s *Stmt) (offset int, hint string, err error) {
	if err := d.enter(); err != nil {
		return -1, "", err
	}
	defer d.calls.Done()
	defer guard(&err)
	ctx, cancel := d.within(ctx)
	defer cancel()
	offset, hint, err = d.engine.describe(ctx, s)
	return offset, hint, inServersWords(err)
}
