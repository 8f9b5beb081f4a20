package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/ncruces/go-sqlite3"
)

// Error is a database's refusal, or trouble on the way to it.
type Error struct {
	// SQLState is the code of the SQL standard, "" if there is none. SQLite's
	// constraint errors are mapped to 23505, 23503, 23502, 23514, a write in
	// a query to 25006.
	SQLState string
	// Unavailable: the database cannot be reached or takes no work now.
	Unavailable bool
	// Busy: no connection was free in time, that of the pool or the caller's
	// own, neither in the pool nor on the server, or an SQLite file stayed locked.
	Busy bool
	// Timeout: no answer in time. errors.Is(err, context.DeadlineExceeded)
	// then tells whether the time was the caller's or the statement's own.
	Timeout bool
	Err     error // the driver's, for the log only

	// transient: the database gave up the transaction for another one's sake.
	transient bool
	// ours: it is that of a statement of ours, not of the caller's.
	ours bool
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// transient tells whether the same transaction may succeed when it runs again.
func transient(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.transient
}

// markOurs notes that the error is that of a statement of ours.
func markOurs(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.ours = true
	}
	return err
}

// busy is the error of a call that waited in vain.
func busy(wait time.Duration, what string) error {
	return &Error{Busy: true, Err: fmt.Errorf("no %s was free within %s", what, wait)}
}

// waited is the error of a call that ended before it had a connection. If its
// time was up it was not slow: there was no room for it.
func waited(ctx context.Context) error {
	err := ended(ctx, errors.New("waiting for a connection"))
	var e *Error
	if errors.As(err, &e) {
		e.Busy = e.Timeout
	}
	return err
}

// worded is a driver's error in the words of the server alone, for an author.
type worded struct {
	words string
	err   error
}

func (w *worded) Error() string { return w.words }
func (w *worded) Unwrap() error { return w.err }

// inServersWords takes the driver's own words from an error about a statement.
func inServersWords(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	words := err.Error()
	var lite *sqlite3.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		words = pg.Message
	case errors.As(err, &lite):
		words = strings.TrimPrefix(words, lite.ExtendedCode().Error()+": ")
	}
	told := *e
	told.Err = &worded{words, e.Err}
	return &told
}

const (
	canceledState = "57014" // a statement was stopped: its time was up
	fullState     = "53300" // the server has no connection left
)

// readOnlyState is what PostgreSQL says to a write in a read-only transaction.
const readOnlyState = "25006"

// errWrites is what both engines say to a statement that is no query where
// nothing may be written.
var errWrites = errors.New("a query cannot write")

// sqliteStates maps SQLite's extended result codes to those of the standard.
var sqliteStates = map[sqlite3.ExtendedErrorCode]string{
	sqlite3.CONSTRAINT_UNIQUE:     "23505",
	sqlite3.CONSTRAINT_PRIMARYKEY: "23505",
	sqlite3.CONSTRAINT_ROWID:      "23505",
	sqlite3.CONSTRAINT_FOREIGNKEY: "23503",
	sqlite3.CONSTRAINT_NOTNULL:    "23502",
	sqlite3.CONSTRAINT_CHECK:      "23514",
}

// sqliteError wraps an error of the SQLite driver.
func sqliteError(ctx context.Context, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &Error{Err: err}
	var code sqlite3.ExtendedErrorCode
	var primary sqlite3.ErrorCode
	if errors.As(err, &code) {
		e.SQLState = sqliteStates[code]
		primary = code.Code()
	} else {
		errors.As(err, &primary)
	}
	switch primary {
	case sqlite3.INTERRUPT:
		return ended(ctx, err)
	case sqlite3.READONLY:
		e.SQLState = readOnlyState
	case sqlite3.BUSY, sqlite3.LOCKED:
		e.Busy, e.transient = true, true
	case sqlite3.CANTOPEN, sqlite3.IOERR, sqlite3.NOTADB, sqlite3.CORRUPT:
		e.Unavailable = true
	}
	return e
}

// ended is the error of a call whose context ended.
func ended(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil {
		return &Error{Err: err}
	}
	return &Error{Err: fmt.Errorf("%w (%w)", cause, err), Timeout: errors.Is(cause, context.DeadlineExceeded)}
}

// postgresError wraps an error of the PostgreSQL driver.
func postgresError(ctx context.Context, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		err = &worded{oneLine(connect), err}
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		if strings.HasPrefix(refused.Code, "22") {
			err = &worded{withoutValue(err.Error()), err}
		}
		return &Error{
			SQLState:    refused.Code,
			Timeout:     refused.Code == canceledState,
			Busy:        refused.Code == fullState,
			Unavailable: unavailable(refused.Code),
			Err:         err,
			transient:   refused.Code == "40001" || refused.Code == "40P01",
		}
	}
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	var network net.Error
	return &Error{Err: err, Unavailable: errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)}
}

// withoutValue takes out what stands between quotes. Data exceptions (class 22)
// quote the value that did not fit, which may be an argument, or a column that
// no answer would show.
func withoutValue(words string) string {
	from, to := strings.IndexByte(words, '"'), strings.LastIndexByte(words, '"')
	if from == to {
		return words
	}
	return words[:from+1] + "…" + words[to:]
}

// oneLine gives an error of several lines as one, each line once: one server
// is tried with and without TLS.
func oneLine(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// unavailable tells whether a SQLSTATE says that the server takes no work
// now: connection trouble, a refused login, shutting down or starting, a
// connection that was idle for too long.
func unavailable(code string) bool {
	if len(code) != 5 {
		return false
	}
	switch code[:2] {
	case "08", "28":
		return true
	}
	switch code {
	case "57P01", "57P02", "57P03", "57P05", "25P03", "3D000":
		return true
	}
	return false
}
