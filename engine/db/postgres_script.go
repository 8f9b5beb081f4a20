package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// script sends the whole text as one simple query inside a transaction that
// may write. What it may have set for the session ends with its connection.
func (e *pgEngine) script(ctx context.Context, sql string) error {
	c, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	c.broken = true
	err = scriptOn(ctx, c.raw, sql)
	return postgresError(ctx, err)
}

func scriptOn(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	if _, err := conn.Exec(ctx, "BEGIN READ WRITE; SET LOCAL statement_timeout = 0").ReadAll(); err != nil {
		return err
	}
	results := conn.Exec(ctx, sql)
	n := 0
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err == nil {
			n++
		}
	}
	if err := results.Close(); err != nil {
		_, undo := conn.Exec(ctx, "ROLLBACK").ReadAll()
		return errors.Join(fmt.Errorf("line %d: %w", scriptLine(sql, n, err), err), undo)
	}
	_, err := conn.Exec(ctx, "COMMIT").ReadAll()
	return err
}

// scriptLine is the line of the place that the server names, or of the
// statement after the n that ran.
func scriptLine(sql string, n int, err error) int {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Position > 0 {
		return lineOf(sql, byteOffset(sql, int(refused.Position)))
	}
	return lineOf(sql, statementStart(sql, n))
}

// byteOffset turns a place that counts characters from 1 into a byte; -1 for
// none.
func byteOffset(s string, position int) int {
	if position < 1 {
		return -1
	}
	for i := range s {
		if position--; position == 0 {
			return i
		}
	}
	return len(s)
}
