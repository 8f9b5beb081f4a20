// Package db opens databases and runs prepared statements on them: pools,
// dialects, transactions, row reading. It is the only importer of database
// drivers.
package db

import (
	"context"
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

// Config says what to open.
type Config struct {
	Name    string // of the spec, for the log
	URL     string // postgres://…, postgresql://…, sqlite:path, sqlite::memory:
	Pool    int
	Timeout time.Duration // of a statement; 0: none
	Dir     string        // relative sqlite paths start here
}

// DialectOf gives the engine of a URL, or an error that says which URLs there are.
func DialectOf(url string) (Dialect, error) { panic("db.DialectOf") }

// DB is one open database. It may be used by many goroutines.
type DB struct{}

// Open makes the pool. A PostgreSQL server that is down is no error: calls
// fail until it is back.
func Open(ctx context.Context, c Config) (*DB, error) { panic("db.Open") }

// Dialect tells the engine.
func (d *DB) Dialect() Dialect { panic("db.Dialect") }

// Close ends the pool, waiting for calls in progress until ctx ends.
func (d *DB) Close(ctx context.Context) error { panic("db.Close") }

// Empty tells whether the database has no table of its own.
func (d *DB) Empty(ctx context.Context) (bool, error) { panic("db.Empty") }

// Script runs a file of statements, in one transaction. The error names the
// line of the script.
func (d *DB) Script(ctx context.Context, sql string) error { panic("db.Script") }

// Stmt is a statement rewritten for one engine, made once at start.
type Stmt struct {
	SQL string // with $1 or ?1
	// Args is the number of parameters.
	Args int
}

// Answer is what a statement gave.
type Answer struct {
	Rows     *value.Rows // nil for a statement without rows
	Affected int64
	More     bool // reading stopped at the limit
}

// Limit bounds reading; 0 is no bound.
type Limit struct {
	Rows  int
	Bytes int64
}

// Querier runs statements: a DB (each statement alone) or a Tx.
type Querier interface {
	// Query runs a statement with arguments of package value. A lone
	// statement on a DB runs read-only.
	Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error)
}

// Query runs one statement alone, read-only.
func (d *DB) Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	panic("db.Query")
}

// Tx runs f in one transaction (PostgreSQL: REPEATABLE READ READ ONLY if
// readOnly, else READ COMMITTED) and commits when f gives nil, else rolls back.
func (d *DB) Tx(ctx context.Context, readOnly bool, f func(Querier) error) error { panic("db.Tx") }

// Error is a database's refusal.
type Error struct {
	SQLState string // SQLite's constraint errors are mapped to 23505, 23503, 23502, 23514
	Err      error  // the driver's, for the log only
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Describe prepares a statement without running it, for check --online: it
// tells what the server says of it. Offset is the byte in Stmt.SQL or -1.
func (d *DB) Describe(ctx context.Context, s *Stmt) (offset int, hint string, err error) {
	panic("db.Describe")
}
