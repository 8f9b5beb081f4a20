// Package gate keeps the states of state machines: what a machine does, and
// the stores that hold the state of each key. It knows nothing of tools, MCP
// and callers.
package gate

import (
	"context"
	"errors"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// ID names one state: that of a key of a machine.
type ID struct{ FSM, Key string }

// Record is what a store holds of an ID. The zero Record is that of an ID
// nobody has moved: the machine is in its initial state.
type Record struct {
	State   string
	Version int64     // counts the moves; a store never goes back
	Entered time.Time // when State was entered
	Hold    *Hold     // the call that has taken the key; nil: none
}

// Hold is a call that has taken a key: its effect may happen before its move
// is stored, so that nobody else may act on this version. A hold never ends by
// time. One of a call that is over is a key in doubt: only Move or Release end
// it.
type Hold struct {
	Call   string // a random id
	Tool   string
	Event  string
	Caller string // who called, for people
	Since  time.Time
	// Until is when the call has ended for certain, one way or another. The key
	// is in doubt after it.
	Until time.Time
	// Doubt says that the call ended and nobody knows whether it took effect.
	Doubt bool
}

// Uncertain tells whether the call of the hold is over and its effect unknown.
func (h *Hold) Uncertain(now time.Time) bool { return h != nil && (h.Doubt || now.After(h.Until)) }

// Move is one transition, as the history keeps it.
type Move struct {
	From, To string
	Event    string // "" for one that time made
	Tool     string // "" for one that time, a test or a person made
	Call     string // id of the call; that of the hold, if there is one
	Caller   string
	At       time.Time
}

// Past is a move of the history.
type Past struct {
	ID
	Version int64 // after the move
	Move
}

// Entry is a record with its ID.
type Entry struct {
	ID
	Record
}

// ErrConflict is what Hold, Move and Release give when the record is not as
// the caller has seen it: another call was faster, or holds the key.
var ErrConflict = errors.New("the state was moved or taken by another call")

// ErrFull is what a bounded store gives when it has no room for a new key.
var ErrFull = errors.New("the store has no room for another key")

// Store keeps records. All of its calls are atomic, across processes too if
// the store is shared. Errors other than ErrConflict and ErrFull mean that the
// store could not be asked.
type Store interface {
	// Load gives the record of an ID; the zero one if it was never moved.
	Load(ctx context.Context, id ID) (Record, error)
	// Hold takes the key for a call, if its version is still that one and
	// nobody holds it.
	Hold(ctx context.Context, id ID, version int64, h Hold) error
	// Move stores moves (at least one), in order, if the version is still that
	// one and the key is free or held by moves' Call; the hold ends. expires is
	// when the record may be forgotten; zero: never.
	Move(ctx context.Context, id ID, version int64, moves []Move, expires time.Time) error
	// Release ends the hold of a call without a move; with doubt it stays, and
	// says that its call is over.
	Release(ctx context.Context, id ID, call string, doubt bool) error
	// Forget removes an ID with its history, if nobody holds it.
	Forget(ctx context.Context, id ID) error
	// List gives the records of a machine, held ones first, then the ones moved
	// last; at most limit.
	List(ctx context.Context, fsm string, limit int) ([]Entry, error)
	// Machines gives the names of the machines that have records, sorted.
	Machines(ctx context.Context) ([]string, error)
	// History gives the last moves of a machine, or of one key ("": of all),
	// newest first; at most limit.
	History(ctx context.Context, id ID, limit int) ([]Past, error)
	// Feed tells of the moves that any process makes (of this one too, maybe)
	// until ctx ends. It connects again by itself, and then says All. A store
	// that other processes do not share returns at once; one that cannot tell
	// what was moved only says All.
	Feed(ctx context.Context, tell func(Change))
	// Close ends what the store has opened by itself.
	Close()
}

// Change says that a record may have changed.
type Change struct {
	ID
	// All says that changes may have been missed: every record may have changed.
	All bool
}

// Sharing is a store in a database that handlers may use too: there a move is
// made in the handler's own transaction.
type Sharing interface {
	Store
	// Database is where it keeps its records.
	Database() *db.DB
	// Claim asks, with the first statement of the transaction, for the record,
	// and keeps every other call off the key until the transaction ends
	// (exclusive) or off moving it (not exclusive: the call only reads). took is
	// called when the answer is there, before any statement of the caller gives
	// one; free false means that another call has the key right now. Its error
	// becomes that of the transaction.
	Claim(ctx context.Context, t *db.Tx, id ID, exclusive bool, took func(r Record, free bool) error) error
	// MoveIn stores moves with the COMMIT of the transaction, which fails with
	// ErrConflict if the version is not that one any more.
	MoveIn(ctx context.Context, t *db.Tx, id ID, version int64, moves []Move, expires time.Time) error
}
