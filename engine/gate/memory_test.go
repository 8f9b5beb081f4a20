package gate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/gate"
)

func TestMemory(t *testing.T) {
	testStore(t, func(t *testing.T) (a, b gate.Store) {
		m := gate.NewMemory(gate.MemoryRecords)
		t.Cleanup(m.Close)
		return m, m
	})
}

// A full store forgets what has expired, the first to expire first, and never
// a record that lives or is held.
func TestMemoryFull(t *testing.T) {
	m := view{gate.NewMemory(4), t}
	id := func(key string) gate.ID { return gate.ID{FSM: "cart", Key: key} }
	move := func(key string, version int64, expires time.Time) error {
		return m.Move(t.Context(), id(key), version, []gate.Move{step("s", "t", "h", began)}, expires)
	}
	hourAgo, minuteAgo := time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	m.want("for ever", move("for ever", 0, time.Time{}), nil)
	m.want("tomorrow", move("tomorrow", 0, time.Now().Add(24*time.Hour)), nil)
	m.want("a minute ago", move("a minute ago", 0, minuteAgo), nil)
	m.want("held", move("held", 0, hourAgo), nil)
	m.hold(id("held"), 1, held("h"), nil)

	// The record that expired first is held, so that the other one goes.
	m.want("one", move("one", 0, time.Time{}), nil)
	m.is(id("a minute ago"), gate.Record{})
	m.want("two", move("two", 0, time.Time{}), gate.ErrFull)
	m.hold(id("two"), 0, held("h2"), gate.ErrFull)
	for _, key := range []string{"for ever", "tomorrow", "held", "one"} {
		if r := m.load(id(key)); r.Version != 1 {
			t.Errorf("%s: %+v", key, r)
		}
	}
	// What is there may move on; a release makes a record one of those that
	// may go.
	m.want("one again", move("one", 1, time.Time{}), nil)
	m.release(id("held"), "h", false, nil)
	m.hold(id("two"), 0, held("h2"), nil)
	m.is(id("held"), gate.Record{})
	if past := m.history(id("held"), 10); len(past) != 0 {
		t.Errorf("the history of a forgotten record: %+v", past)
	}
	// A hold that ends without a move leaves its room.
	m.want("three", move("three", 0, time.Time{}), gate.ErrFull)
	m.release(id("two"), "h2", false, nil)
	m.want("three", move("three", 0, hourAgo), nil)
	// A new time counts from the move on.
	m.want("three again", move("three", 1, time.Time{}), nil)
	m.want("four", move("four", 0, time.Time{}), gate.ErrFull)
	m.want("Forget", m.Forget(t.Context(), id("three")), nil)
	m.want("four", move("four", 0, time.Time{}), nil)
}

// Many records with random times leave in the order of their times.
func TestMemoryOrder(t *testing.T) {
	const n = 200
	m := view{gate.NewMemory(n), t}
	id := func(i int) gate.ID { return gate.ID{FSM: "cart", Key: fmt.Sprint(i)} }
	rank := func(i int) int { return i * 37 % n } // every number once
	// The time of the last move counts.
	for version := range int64(2) {
		for i := range n {
			at := began.Add(-time.Hour + time.Duration(rank(i))*time.Second)
			if version == 0 {
				at = began.Add(-2*time.Hour - time.Duration(rank(i)*7%n)*time.Second)
			}
			m.want("Move", m.Move(t.Context(), id(i), version, []gate.Move{step("s", "t", "c", began)}, at), nil)
		}
	}
	for k := range n {
		m.want("Move", m.Move(t.Context(), gate.ID{FSM: "new", Key: fmt.Sprint(k)}, 0, []gate.Move{step("s", "t", "c", began)}, time.Time{}), nil)
		for i := range n {
			if gone := m.load(id(i)).Version == 0; gone != (rank(i) <= k) {
				t.Fatalf("after %d new keys: record of rank %d gone: %t", k+1, rank(i), gone)
			}
		}
	}
	if err := m.Move(t.Context(), gate.ID{FSM: "new", Key: "more"}, 0, []gate.Move{step("s", "t", "c", began)}, time.Time{}); !errors.Is(err, gate.ErrFull) {
		t.Errorf("error %v", err)
	}
}

// The history is bounded, whatever the number of keys.
func TestMemoryHistoryBounded(t *testing.T) {
	m := view{gate.NewMemory(10), t}
	x, y := gate.ID{FSM: "cart", Key: "x"}, gate.ID{FSM: "cart", Key: "y"}
	m.move(x, 0, nil, step("s", "t", "first", began))
	for i := range int64(20_000) {
		m.move(y, i, nil, step("s", "t", "c", began))
	}
	if past := m.history(x, 10); len(past) != 0 {
		t.Errorf("%+v", past)
	}
	past := m.history(gate.ID{FSM: "cart"}, 30_000)
	if len(past) != 20_000 || past[0].Version != 20_000 || past[19_999].Version != 1 {
		t.Errorf("%d moves", len(past))
	}
	m.is(x, gate.Record{State: "t", Version: 1, Entered: began})
}

func BenchmarkMemoryLoad(b *testing.B) {
	m := gate.NewMemory(gate.MemoryRecords)
	ids := make([]gate.ID, 10_000)
	for i := range ids {
		ids[i] = gate.ID{FSM: "cart", Key: fmt.Sprintf("customer-%06d", i)}
		if err := m.Move(b.Context(), ids[i], 0, []gate.Move{step("s", "t", "c", began)}, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	ctx := b.Context()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r, err := m.Load(ctx, ids[i%len(ids)])
		if err != nil || r.Version != 1 {
			b.Fatal(r, err)
		}
		i++
	}
}

func BenchmarkMemoryMove(b *testing.B) {
	m := gate.NewMemory(gate.MemoryRecords)
	ctx, id := b.Context(), gate.ID{FSM: "cart", Key: "customer"}
	moves := []gate.Move{step("s", "t", "c", began)}
	b.ReportAllocs()
	version := int64(0)
	for b.Loop() {
		if err := m.Move(ctx, id, version, moves, after(time.Hour)); err != nil {
			b.Fatal(err)
		}
		version++
	}
}
