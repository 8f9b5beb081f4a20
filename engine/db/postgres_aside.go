package db

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// aside is a statement of ours that goes out in the flight of another one, or
// with COMMIT.
type aside struct {
	s      *Stmt
	args   []any
	took   func(*Answer) error // nil: the answer says nothing
	failed func(error) error   // what its own error is to the caller; nil: itself

	st     *pgStmt
	answer *Answer
	done   bool  // the answer is whole
	err    error // the server refused it
}

// aside puts one into the flight.
func (c *pgConn) aside(a *aside) error {
	a.st, a.done, a.err = c.stmts[a.s.SQL], false, nil
	a.answer = &Answer{}
	if len(a.st.names) > 0 {
		a.answer.Rows = value.NewRows(a.st.names)
	}
	if err := c.ours.encode(a.st, a.args); err != nil {
		return err
	}
	c.front.SendBind(&pgproto3.Bind{PreparedStatement: a.st.name, Parameters: c.ours.params, ResultFormatCodes: a.st.format})
	c.front.SendExecute(&pgproto3.Execute{})
	c.queue = append(c.queue, a)
	return nil
}

// know tells whether statements are prepared here.
func (c *pgConn) know(asides []*aside) bool {
	return !slices.ContainsFunc(asides, func(a *aside) bool { return !c.knows(a.s) })
}

// row takes a row in; nil drops it.
func (a *aside) row(cells [][]byte) error {
	if a == nil {
		return nil
	}
	if len(cells) != len(a.st.cells) {
		return fmt.Errorf("a row has %d columns, the statement %d", len(cells), len(a.st.cells))
	}
	for i, b := range cells {
		if err := a.st.cells[i].read(a.answer.Rows, b); err != nil {
			return err
		}
	}
	return nil
}

func (a *aside) complete(tag string) {
	if a != nil {
		a.done, a.answer.Affected = true, affected(tag)
	}
}

// settle gives the answers of a flight to those who wait for them, and the
// error of the flight: one of theirs says more than that of the statement
// behind, which saw what they refuse.
func settle(asides []*aside, err error) error {
	for _, a := range asides {
		switch {
		case a.err != nil:
			err = markOurs(err)
			if a.failed != nil {
				err = a.failed(err)
			}
			return err
		case a.done && a.took != nil:
			if refused := a.took(a.answer); refused != nil {
				return refused
			}
		}
	}
	return err
}
