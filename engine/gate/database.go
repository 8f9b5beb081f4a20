package gate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Database is a store in a database of the spec's, in two tables that it makes
// on first use.
//
// On PostgreSQL a key has an advisory lock besides its row, because a row that
// is not there cannot be locked: Claim takes it until its transaction ends, and
// who finds it taken is told ErrConflict at once and does not wait. On SQLite
// there is one writer at a time.
type Database struct {
	db    *db.DB
	made  atomic.Pointer[statements]
	moves atomic.Uint64 // counted for sweeping
}

var _ Sharing = (*Database)(nil)

// NewDatabase makes a store in a database. It does not ask it for anything yet.
func NewDatabase(d *db.DB) *Database { return &Database{db: d} }

// Database is where the records are kept.
func (s *Database) Database() *db.DB { return s.db }

// Close leaves the database to whoever has opened it.
func (s *Database) Close() {}

// statements gives those for the tables as they stand; ensure finds the tables
// or makes them.
func (s *Database) statements(ctx context.Context, ensure func(context.Context, *db.Table) (string, error)) (*statements, error) {
	state, err := ensure(ctx, stateTable)
	if err != nil {
		return nil, err
	}
	history, err := ensure(ctx, historyTable)
	if err != nil {
		return nil, err
	}
	if m := s.made.Load(); m != nil && m.state == state && m.history == history {
		return m, nil
	}
	m := makeStatements(s.db.Dialect(), state, history)
	s.made.Store(m)
	return m, nil
}

// try runs f, and once more if a table turned out to be gone or the connection
// to be lost. f is told of the latter: then what it did may have been done.
func (s *Database) try(ctx context.Context, f func(m *statements, again bool) error) error {
	lost := false
	for first := true; ; first = false {
		m, err := s.statements(ctx, s.db.Ensure)
		if err != nil {
			return err
		}
		if err = f(m, lost); err == nil || !first || ctx.Err() != nil {
			return err
		}
		var e *db.Error
		lost = errors.As(err, &e) && e.Unavailable
		if !lost && !db.Gone(err) {
			return err
		}
	}
}

// read gives the rows of a query.
func (s *Database) read(ctx context.Context, pick func(*statements) *db.Stmt, args ...any) (rows *value.Rows, err error) {
	err = s.try(ctx, func(m *statements, _ bool) error {
		a, err := s.db.Query(ctx, pick(m), args, db.Limit{})
		if err == nil {
			rows = a.Rows
		}
		return err
	})
	return rows, err
}

// inTx runs f in a transaction on SQLite.
func (s *Database) inTx(ctx context.Context, f func(t *db.Tx, m *statements) error) error {
	return s.db.Tx(ctx, db.TxOptions{Retry: db.Always}, func(t *db.Tx) error {
		m, err := s.statements(ctx, t.Ensure)
		if err != nil {
			return err
		}
		return f(t, m)
	})
}

// all runs statements and tells how many rows they have changed.
func all(ctx context.Context, t *db.Tx, statements []*db.Stmt, args ...any) (changed int64, err error) {
	for _, stmt := range statements {
		a, err := t.Query(ctx, stmt, args, db.Limit{})
		if err != nil {
			return 0, err
		}
		changed += a.Affected
	}
	return changed, nil
}

// conflict is ErrConflict unless something was done.
func conflict(done bool) error {
	if done {
		return nil
	}
	return ErrConflict
}

// one runs statements that together change one row, or it is a conflict.
func one(ctx context.Context, t *db.Tx, statements []*db.Stmt, args ...any) error {
	n, err := all(ctx, t, statements, args...)
	if err != nil {
		return err
	}
	return conflict(n == 1)
}

// Load gives the record of an ID.
func (s *Database) Load(ctx context.Context, id ID) (Record, error) {
	rows, err := s.read(ctx, func(m *statements) *db.Stmt { return m.load }, id.FSM, id.Key)
	if err != nil {
		return Record{}, fmt.Errorf("loading a state: %w", err)
	}
	return loaded(rows)
}

// loaded gives the record of an answer to load.
func loaded(rows *value.Rows) (Record, error) {
	if rows.Len() == 0 {
		return Record{}, nil
	}
	return record(rows, 0, 0)
}

// Hold takes the key for a call.
func (s *Database) Hold(ctx context.Context, id ID, version int64, h Hold) error {
	args := []any{id.FSM, id.Key, version, h.Call, h.Tool, h.Event, h.Caller, stamp(h.Since), stamp(h.Until)}
	var err error
	if s.db.Dialect() == db.SQLite {
		err = s.inTx(ctx, func(t *db.Tx, m *statements) error {
			return one(ctx, t, []*db.Stmt{m.hold.of(version)}, args...)
		})
	} else {
		err = s.try(ctx, func(m *statements, again bool) error {
			a, err := s.db.Write(ctx, m.hold.of(version), append([]any{lockNumber(id)}, append(args, again)...))
			if err != nil {
				return err
			}
			return conflict(a.Affected == 1)
		})
	}
	return wrapped("holding a state", err)
}

// wrapped says what was done, of an error that is no conflict.
func wrapped(what string, err error) error {
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Move stores moves.
func (s *Database) Move(ctx context.Context, id ID, version int64, moves []Move, expires time.Time) error {
	if s.db.Dialect() == db.SQLite {
		err := s.db.Tx(ctx, db.TxOptions{Retry: db.Always}, func(t *db.Tx) error {
			return s.MoveIn(ctx, t, id, version, moves, expires)
		})
		return wrapped("moving a state", err)
	}
	args := moveArgs(id, version, moves, expires)
	err := s.try(ctx, func(m *statements, again bool) error {
		a, err := s.db.Write(ctx, m.move.of(version), args)
		if err == nil && a.Rows.Len() == 0 && again {
			return s.movedBefore(ctx, m, id, version, moves)
		}
		if err != nil {
			return refused(err)
		}
		return conflict(a.Rows.Len() == 1)
	})
	if err == nil && s.sweeps(expires) {
		// What is left over is swept another time; the move is made.
		if m := s.made.Load(); m != nil {
			_, _ = s.db.Write(ctx, m.sweep[0], []any{stamp(moves[len(moves)-1].At)})
		}
	}
	return wrapped("moving a state", err)
}

// movedBefore tells whether a call's moves are those in the history: the
// connection was lost after they were stored, before that was told.
func (s *Database) movedBefore(ctx context.Context, m *statements, id ID, version int64, moves []Move) error {
	a, err := s.db.Query(ctx, m.pastOfKey, []any{id.FSM, id.Key, int64(len(moves))}, db.Limit{})
	if err != nil {
		return err
	}
	l, err := pasts(a.Rows)
	if err != nil {
		return err
	}
	for i, past := range l {
		want := moves[len(moves)-1-i]
		want.At = want.At.UTC().Truncate(time.Microsecond)
		if past.Version != version+int64(len(moves)-i) || past.Move != want {
			return ErrConflict
		}
	}
	return conflict(len(l) == len(moves))
}

// refused is ErrConflict for what the tables say to a move that was lost.
func refused(err error) error {
	var e *db.Error
	if errors.As(err, &e) && (e.SQLState == "23505" || e.SQLState == "23502") {
		return ErrConflict
	}
	return err
}

// MoveIn stores moves with the COMMIT of a transaction.
func (s *Database) MoveIn(ctx context.Context, t *db.Tx, id ID, version int64, moves []Move, expires time.Time) error {
	m, err := s.statements(ctx, t.Ensure)
	if err != nil {
		return err
	}
	if s.db.Dialect() == db.Postgres {
		err = t.Last(m.moveIn.of(version), moveArgs(id, version, moves, expires), refused)
	} else {
		err = moveInSQLite(t, m, id, version, moves, expires)
	}
	if err != nil || !s.sweeps(expires) {
		return err
	}
	for _, stmt := range m.sweep {
		if err := t.Last(stmt, []any{stamp(moves[len(moves)-1].At)}, nil); err != nil {
			return err
		}
	}
	return nil
}

func moveInSQLite(t *db.Tx, m *statements, id ID, version int64, moves []Move, expires time.Time) error {
	n := int64(len(moves))
	last := moves[n-1]
	err := t.Last(m.moveIn.of(version), []any{id.FSM, id.Key, version, n, last.To, stamp(last.At), stamp(expires), last.Call}, refused)
	for i, x := range moves {
		if err != nil {
			return err
		}
		err = t.Last(m.past, []any{id.FSM, id.Key, version + n, n - 1 - int64(i), x.From, x.To, x.Event, x.Tool, x.Call, x.Caller, stamp(x.At)}, refused)
	}
	return err
}

// moveArgs are the parameters of the moves of PostgreSQL.
func moveArgs(id ID, version int64, moves []Move, expires time.Time) []any {
	last := moves[len(moves)-1]
	args := []any{lockNumber(id), id.FSM, id.Key, version, int64(len(moves)), last.To, stamp(last.At), stamp(expires), last.Call}
	for _, column := range []func(*Move) any{
		func(m *Move) any { return m.From }, func(m *Move) any { return m.To }, func(m *Move) any { return m.Event },
		func(m *Move) any { return m.Tool }, func(m *Move) any { return m.Call }, func(m *Move) any { return m.Caller },
		func(m *Move) any { return stamp(m.At) },
	} {
		list := make([]any, len(moves))
		for i := range moves {
			list[i] = column(&moves[i])
		}
		args = append(args, list)
	}
	return append(args, eventOf(id))
}

// sweepEvery is after how many moves records are swept whose time is up. So
// more are swept than can be new.
const sweepEvery = 16

// sweeps tells whether a move should sweep. Where records are kept for ever
// there is nothing to sweep.
func (s *Database) sweeps(expires time.Time) bool {
	return !expires.IsZero() && s.moves.Add(1)%sweepEvery == 1
}

// Release ends the hold of a call, or notes that the call is over.
func (s *Database) Release(ctx context.Context, id ID, call string, doubt bool) error {
	pick := func(m *statements) []*db.Stmt { return m.release }
	if doubt {
		pick = func(m *statements) []*db.Stmt { return []*db.Stmt{m.doubt} }
	}
	var err error
	if s.db.Dialect() == db.SQLite {
		err = s.inTx(ctx, func(t *db.Tx, m *statements) error {
			return one(ctx, t, pick(m), id.FSM, id.Key, call)
		})
	} else {
		err = s.try(ctx, func(m *statements, again bool) error {
			a, err := s.db.Write(ctx, pick(m)[0], []any{id.FSM, id.Key, call})
			if err != nil {
				return err
			}
			// Without a hold the first try has ended it, whatever became of its answer.
			return conflict(again || a.Affected == 1 || a.Rows != nil && a.Rows.Len() == 1)
		})
	}
	return wrapped("releasing a state", err)
}

// Forget removes an ID with its history.
func (s *Database) Forget(ctx context.Context, id ID) error {
	var err error
	if s.db.Dialect() == db.SQLite {
		err = s.inTx(ctx, func(t *db.Tx, m *statements) error {
			a, err := t.Query(ctx, m.load, []any{id.FSM, id.Key}, db.Limit{})
			if err != nil {
				return err
			}
			if r, err := loaded(a.Rows); err != nil {
				return err
			} else if r.Hold != nil {
				return ErrConflict
			}
			_, err = all(ctx, t, m.forget, id.FSM, id.Key)
			return err
		})
	} else {
		err = s.try(ctx, func(m *statements, _ bool) error {
			a, err := s.db.Write(ctx, m.forget[0], []any{lockNumber(id), id.FSM, id.Key, eventOf(id)})
			if err != nil {
				return err
			}
			return conflict(a.Rows.Value(0, 0) == true)
		})
	}
	return wrapped("forgetting a state", err)
}

// Claim asks for the record with the first statement of the transaction. On
// PostgreSQL the lock is taken by a statement before the one that reads, so that
// the record is the newest one; in a transaction that only reads, it is that of
// the snapshot in which the caller reads.
func (s *Database) Claim(ctx context.Context, t *db.Tx, id ID, exclusive bool, took func(r Record, free bool) error) error {
	m, err := s.statements(ctx, t.Ensure)
	if err != nil {
		return err
	}
	free := true
	if s.db.Dialect() == db.Postgres {
		lock := m.lock
		if !exclusive {
			lock = m.share
		}
		err := t.Ahead(ctx, lock, []any{lockNumber(id)}, func(a *db.Answer) error {
			free = a.Rows.Value(0, 0) == true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return t.Ahead(ctx, m.load, []any{id.FSM, id.Key}, func(a *db.Answer) error {
		r, err := loaded(a.Rows)
		if err != nil {
			return err
		}
		return took(r, free)
	})
}

// lockNumber gives the number of a key's advisory lock.
func lockNumber(id ID) int64 {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "fusion_state %d %s%s", len(id.FSM), id.FSM, id.Key)
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// List gives the records of a machine.
func (s *Database) List(ctx context.Context, fsm string, limit int) ([]Entry, error) {
	rows, err := s.read(ctx, func(m *statements) *db.Stmt { return m.list }, fsm, int64(max(limit, 0)))
	if err != nil {
		return nil, fmt.Errorf("listing states: %w", err)
	}
	l := make([]Entry, rows.Len())
	for i := range l {
		l[i].ID = ID{FSM: fsm, Key: cellText(rows, i, 0)}
		if l[i].Record, err = record(rows, i, 1); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Machines gives the machines that have records.
func (s *Database) Machines(ctx context.Context) ([]string, error) {
	rows, err := s.read(ctx, func(m *statements) *db.Stmt { return m.machines })
	if err != nil {
		return nil, err
	}
	names := make([]string, rows.Len())
	for i := range names {
		names[i] = cellText(rows, i, 0)
	}
	return names, nil
}

// History gives the last moves of a machine or of one key.
func (s *Database) History(ctx context.Context, id ID, limit int) ([]Past, error) {
	n := int64(max(limit, 0))
	pick, args := func(m *statements) *db.Stmt { return m.pastOfAll }, []any{id.FSM, n}
	if id.Key != "" {
		pick, args = func(m *statements) *db.Stmt { return m.pastOfKey }, []any{id.FSM, id.Key, n}
	}
	rows, err := s.read(ctx, pick, args...)
	if err != nil {
		return nil, fmt.Errorf("reading the history of states: %w", err)
	}
	return pasts(rows)
}
