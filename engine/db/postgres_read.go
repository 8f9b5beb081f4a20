package db

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// reader reads the answer to one flight of messages, up to ReadyForQuery.
type reader struct {
	conn   *pgConn
	st     *pgStmt
	limit  Limit
	queue  []*aside // commands before the one whose answer counts
	whole  bool     // the connection is needed on: all rows are read, wanted or not
	done   bool     // the command whose answer counts has ended
	answer *Answer
	tag    string // of the last command
	rows   int
	spare  int64 // bytes read after the limit
	failed error
}

// errAbandoned ends a conversation whose rest would cost more than a new
// connection.
var errAbandoned = errors.New("the rest of the answer is not wanted")

// maxSpare is how many bytes behind the limit are read and thrown away before
// the connection is given up instead.
const maxSpare = 1 << 20

// read gives the server's error, if there is one. alive is false when the
// connection cannot be used again.
func (r *reader) read() (alive bool, err error) {
	for {
		m, err := r.conn.front.Receive()
		if err != nil {
			return false, err
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			if r.failed != nil {
				continue
			}
			if len(r.queue) > 0 {
				if err := r.queue[0].row(m.Values); err != nil {
					return false, err
				}
				continue
			}
			switch err := r.row(m.Values); {
			case errors.Is(err, errStaleType):
				r.failed = err
			case errors.Is(err, errAbandoned):
				return false, nil // the answer is good as far as it goes
			case err != nil:
				return false, err
			}
		case *pgproto3.ParameterDescription:
			r.st.params = slices.Clone(m.ParameterOIDs)
		case *pgproto3.RowDescription:
			r.st.describe(m.Fields)
		case *pgproto3.CommandComplete:
			r.complete(string(m.CommandTag))
		case *pgproto3.PortalSuspended:
			r.done = true // Limit.Rows + 1 rows came: row has cut the last one
		case *pgproto3.ErrorResponse:
			refused := pgconn.ErrorResponseToPgError(m)
			if r.failed == nil {
				r.failed = refused
				if len(r.queue) > 0 && r.queue[0] != nil {
					r.queue[0].err = refused
				}
			}
			if m.Severity == "FATAL" || m.SeverityUnlocalized == "FATAL" || m.SeverityUnlocalized == "PANIC" {
				return false, r.failed
			}
		case *pgproto3.ParameterStatus:
			if _, ours := sessionParams[strings.ToLower(m.Name)]; ours {
				r.conn.changed = true
			}
		case *pgproto3.ReadyForQuery:
			r.conn.state = m.TxStatus
			return true, r.failed
		}
	}
}

// row takes one row in, or notes that there is one more.
func (r *reader) row(cells [][]byte) error {
	a := r.answer
	if a.More {
		return r.drop(cells)
	}
	if r.limit.Rows > 0 && r.rows == r.limit.Rows {
		a.More = true
		return r.drop(cells)
	}
	if len(cells) != len(r.st.cells) {
		return fmt.Errorf("a row has %d columns, the statement %d", len(cells), len(r.st.cells))
	}
	for i, b := range cells {
		if err := r.st.cells[i].read(a.Rows, b); err != nil {
			return err
		}
	}
	if r.rows++; r.limit.Bytes > 0 && r.rows > 1 && int64(a.Rows.Size()) > r.limit.Bytes {
		a.Rows.Cut(r.rows - 1)
		a.More = true
	}
	return nil
}

// drop counts what is thrown away.
func (r *reader) drop(cells [][]byte) error {
	if r.whole {
		return nil
	}
	for _, b := range cells {
		r.spare += int64(len(b))
	}
	if r.spare > maxSpare {
		return errAbandoned
	}
	return nil
}

func (r *reader) complete(tag string) {
	if len(r.queue) > 0 {
		r.queue[0].complete(tag)
		r.queue = r.queue[1:]
		return
	}
	r.tag = tag
	if r.done { // COMMIT
		return
	}
	r.done = true
	r.answer.Affected = affected(tag)
}

// affected is how many rows a command has changed, by its tag.
func affected(tag string) int64 {
	if t := pgconn.NewCommandTag(tag); !t.Select() {
		return t.RowsAffected()
	}
	return 0
}
