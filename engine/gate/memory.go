package gate

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// MemoryRecords is how many records a store in memory has room for.
const MemoryRecords = 100_000

// memoryMoves is how many moves its history keeps, of all keys together.
const memoryMoves = 20_000

// Memory is a store in the memory of this process. It is bounded: for a new
// key it forgets the one that expired first. It never forgets one that has not
// expired or is held, because its key would fall back to an earlier state;
// without such a record it is full.
type Memory struct {
	max int
	now func() time.Time

	mu      sync.RWMutex
	records map[ID]*kept
	expiry  expiry // of the records that may be forgotten some day
	moves   []moved
	oldest  int // place in moves of the oldest one, once it is full
}

// kept is a record of a Memory.
type kept struct {
	id ID
	Record
	expires time.Time // zero: never
	place   int       // in the heap; -1: it is not there
}

// moved is a move in the history. It counts for as long as its record is the
// one of its ID.
type moved struct {
	of      *kept
	version int64
	Move
}

// NewMemory makes a store with room for that many records.
func NewMemory(records int) *Memory {
	return &Memory{max: records, now: time.Now, records: map[ID]*kept{}}
}

// Load gives the record of an ID.
func (m *Memory) Load(_ context.Context, id ID) (Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if k := m.records[id]; k != nil {
		return k.Record, nil
	}
	return Record{}, nil
}

// at gives the record of an ID if its version is that one; a new one for an ID
// that was never moved.
func (m *Memory) at(id ID, version int64) (*kept, error) {
	k := m.records[id]
	switch {
	case k == nil && version == 0:
		k = &kept{id: id, place: -1}
	case k == nil, k.Version != version:
		return nil, ErrConflict
	}
	return k, nil
}

// room makes room for a record, if it is a new one.
func (m *Memory) room(k *kept) error {
	if m.records[k.id] == k || len(m.records) < m.max {
		return nil
	}
	if len(m.expiry) == 0 || m.expiry[0].expires.After(m.now()) {
		return ErrFull
	}
	m.remove(m.expiry[0])
	return nil
}

func (m *Memory) remove(k *kept) {
	delete(m.records, k.id)
	if k.place >= 0 {
		heap.Remove(&m.expiry, k.place)
	}
}

// put keeps a record, and notes whether it may be forgotten.
func (m *Memory) put(k *kept) {
	m.records[k.id] = k
	switch forget := !k.expires.IsZero() && k.Hold == nil; {
	case forget && k.place < 0:
		heap.Push(&m.expiry, k)
	case forget:
		heap.Fix(&m.expiry, k.place)
	case k.place >= 0:
		heap.Remove(&m.expiry, k.place)
	}
}

// Hold takes the key for a call.
func (m *Memory) Hold(_ context.Context, id ID, version int64, h Hold) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.at(id, version)
	if err != nil {
		return err
	}
	if k.Hold != nil {
		return ErrConflict
	}
	if err := m.room(k); err != nil {
		return err
	}
	k.Hold = &h
	m.put(k)
	return nil
}

// Move stores moves.
func (m *Memory) Move(_ context.Context, id ID, version int64, moves []Move, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.at(id, version)
	if err != nil {
		return err
	}
	last := moves[len(moves)-1]
	if k.Hold != nil && k.Hold.Call != last.Call {
		return ErrConflict
	}
	if err := m.room(k); err != nil {
		return err
	}
	for i, move := range moves {
		m.note(moved{of: k, version: version + int64(i) + 1, Move: move})
	}
	k.Record = Record{State: last.To, Version: version + int64(len(moves)), Entered: last.At}
	k.expires = expires
	m.put(k)
	return nil
}

// note adds to the history; the oldest move gives way.
func (m *Memory) note(move moved) {
	if len(m.moves) < memoryMoves {
		m.moves = append(m.moves, move)
		return
	}
	m.moves[m.oldest] = move
	m.oldest = (m.oldest + 1) % memoryMoves
}

// Release ends the hold of a call, or notes that the call is over.
func (m *Memory) Release(_ context.Context, id ID, call string, doubt bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.records[id]
	if k == nil || k.Hold == nil || k.Hold.Call != call {
		return ErrConflict
	}
	if doubt {
		// Those who have loaded the record may still look at the hold.
		h := *k.Hold
		h.Doubt = true
		k.Hold = &h
		return nil
	}
	k.Hold = nil
	if k.Version == 0 {
		m.remove(k)
		return nil
	}
	m.put(k)
	return nil
}

// Forget removes an ID with its history.
func (m *Memory) Forget(_ context.Context, id ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.records[id]
	if k == nil {
		return nil
	}
	if k.Hold != nil {
		return ErrConflict
	}
	m.remove(k)
	return nil
}

// List gives the records of a machine.
func (m *Memory) List(_ context.Context, fsm string, limit int) ([]Entry, error) {
	m.mu.RLock()
	var l []Entry
	for id, k := range m.records {
		if id.FSM == fsm {
			l = append(l, Entry{ID: id, Record: k.Record})
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(l, inOrder)
	return l[:min(len(l), max(limit, 0))], nil
}

// inOrder puts held records first, by how long they are held, then the ones
// moved last.
func inOrder(a, b Entry) int {
	switch {
	case a.Hold != nil && b.Hold != nil:
		return cmp.Or(a.Hold.Since.Compare(b.Hold.Since), strings.Compare(a.Key, b.Key))
	case a.Hold != nil:
		return -1
	case b.Hold != nil:
		return 1
	}
	return cmp.Or(b.Entered.Compare(a.Entered), strings.Compare(a.Key, b.Key))
}

// Machines gives the machines that have records.
func (m *Memory) Machines(context.Context) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := map[string]bool{}
	for id := range m.records {
		names[id.FSM] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// History gives the last moves of a machine or of one key.
func (m *Memory) History(_ context.Context, id ID, limit int) ([]Past, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var l []Past
	for i := range m.moves {
		if len(l) >= limit {
			break
		}
		n := len(m.moves)
		move := &m.moves[(m.oldest+n-1-i)%n]
		if of := move.of.id; of.FSM == id.FSM && (id.Key == "" || of.Key == id.Key) && m.records[of] == move.of {
			l = append(l, Past{ID: of, Version: move.version, Move: move.Move})
		}
	}
	return l, nil
}

// Feed returns at once: no other process makes moves here.
func (m *Memory) Feed(context.Context, func(Change)) {}

// Close has nothing to close.
func (m *Memory) Close() {}

// expiry is a heap of records, the one that expires first on top.
type expiry []*kept

func (e expiry) Len() int           { return len(e) }
func (e expiry) Less(i, j int) bool { return e[i].expires.Before(e[j].expires) }
func (e expiry) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].place, e[j].place = i, j
}

// Push and Pop are for package heap.
func (e *expiry) Push(x any) {
	k := x.(*kept)
	k.place = len(*e)
	*e = append(*e, k)
}

func (e *expiry) Pop() any {
	old := *e
	k := old[len(old)-1]
	old[len(old)-1] = nil
	*e, k.place = old[:len(old)-1], -1
	return k
}
