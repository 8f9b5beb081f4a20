package gate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// patience is how long a test waits for what another goroutine or a server
// has to do.
const patience = 30 * time.Second

// testStore runs what store.go says of every Store. open gives two views of
// one empty store, as two processes have it.
func testStore(t *testing.T, open func(t *testing.T) (a, b gate.Store)) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, a, b view)
	}{
		{"a record that was never moved is the zero one", testNeverMoved},
		{"a move is seen by everybody", testMove},
		{"several moves are stored in order", testMoves},
		{"keys and machines are apart", testApart},
		{"a hold keeps everybody else off", testHold},
		{"a hold of a key that was never moved", testHoldFirst},
		{"doubt stays until it is settled", testDoubt},
		{"forget", testForget},
		{"a held record is not forgotten", testExpires},
		{"list", testList},
		{"history", testHistory},
		{"one winner for each version", testWinner},
		{"one holder for each version", testHolder},
		{"feed", testFeed},
		{"a context that has ended", testContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			c.run(t, view{a, t}, view{b, t})
		})
	}
}

// view is a store whose unexpected errors end the test.
type view struct {
	gate.Store
	t *testing.T
}

// began is the time of all tests; stores keep microseconds at least.
var began = time.Now().UTC().Truncate(time.Microsecond)

func after(d time.Duration) time.Time { return began.Add(d) }

func (v view) load(id gate.ID) gate.Record {
	v.t.Helper()
	r, err := v.Load(v.t.Context(), id)
	if err != nil {
		v.t.Fatalf("Load %v: %v", id, err)
	}
	return inUTC(r)
}

// inUTC makes records comparable: a time zone is not part of a time.
func inUTC(r gate.Record) gate.Record {
	if !r.Entered.IsZero() {
		r.Entered = r.Entered.UTC()
	}
	if r.Hold != nil {
		h := *r.Hold
		h.Since, h.Until = h.Since.UTC(), h.Until.UTC()
		r.Hold = &h
	}
	return r
}

func (v view) is(id gate.ID, want gate.Record) {
	v.t.Helper()
	if got := v.load(id); !reflect.DeepEqual(got, want) {
		v.t.Errorf("record of %v:\n got %s\nwant %s", id, shown(got), shown(want))
	}
}

func shown(r gate.Record) string {
	if r.Hold == nil {
		return fmt.Sprintf("%+v", r)
	}
	return fmt.Sprintf("%s %d %s held %+v", r.State, r.Version, r.Entered, *r.Hold)
}

// want checks the error of an act.
func (v view) want(act string, err, want error) {
	v.t.Helper()
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		v.t.Fatalf("%s: error %v, want %v", act, err, want)
	}
}

func (v view) move(id gate.ID, version int64, want error, moves ...gate.Move) {
	v.t.Helper()
	v.want("Move", v.Move(v.t.Context(), id, version, moves, time.Time{}), want)
}

func (v view) hold(id gate.ID, version int64, h gate.Hold, want error) {
	v.t.Helper()
	v.want("Hold", v.Hold(v.t.Context(), id, version, h), want)
}

func (v view) release(id gate.ID, call string, doubt bool, want error) {
	v.t.Helper()
	v.want("Release", v.Release(v.t.Context(), id, call, doubt), want)
}

// odd are the texts that a store must keep as they are.
const odd = `a/b:c{d}'e"f\g%h ü → ` + "\n"

var cart = gate.ID{FSM: "cart", Key: odd}

func step(from, to, call string, at time.Time) gate.Move {
	return gate.Move{From: from, To: to, Event: "GO", Tool: "cart.go", Call: call, Caller: odd, At: at}
}

func held(call string) gate.Hold {
	return gate.Hold{Call: call, Tool: "cart.pay", Event: "PAY", Caller: odd, Since: after(time.Second), Until: after(time.Minute)}
}

func testNeverMoved(t *testing.T, a, b view) {
	a.is(cart, gate.Record{})
	a.move(cart, 1, gate.ErrConflict, step("x", "y", "c1", began))
	a.hold(cart, 1, held("c1"), gate.ErrConflict)
	a.release(cart, "c1", false, gate.ErrConflict)
	a.release(cart, "c1", true, gate.ErrConflict)
	b.is(cart, gate.Record{})
}

func testMove(t *testing.T, a, b view) {
	a.move(cart, 0, nil, step("empty", "filled", "c1", after(time.Second)))
	want := gate.Record{State: "filled", Version: 1, Entered: after(time.Second)}
	a.is(cart, want)
	b.is(cart, want)
	b.move(cart, 0, gate.ErrConflict, step("empty", "filled", "c2", after(2*time.Second)))
	b.move(cart, 2, gate.ErrConflict, step("empty", "filled", "c2", after(2*time.Second)))
	a.is(cart, want)
	// A move to the same state is one.
	b.move(cart, 1, nil, step("filled", "filled", "c2", after(2*time.Second)))
	a.is(cart, gate.Record{State: "filled", Version: 2, Entered: after(2 * time.Second)})
	// A person's has no call.
	a.move(cart, 2, nil, gate.Move{From: "filled", To: odd, At: after(3 * time.Second)})
	b.is(cart, gate.Record{State: odd, Version: 3, Entered: after(3 * time.Second)})
	b.move(cart, 2, gate.ErrConflict, gate.Move{From: "filled", To: odd, At: after(3 * time.Second)})
}

func testMoves(t *testing.T, a, b view) {
	a.move(cart, 0, nil, gate.Move{From: "payment", To: "filled", At: after(time.Second)}, step("filled", "empty", "c1", after(2*time.Second)))
	b.is(cart, gate.Record{State: "empty", Version: 2, Entered: after(2 * time.Second)})
	a.move(cart, 1, gate.ErrConflict, step("empty", "filled", "c2", after(3*time.Second)))
	past := b.history(cart, 10)
	if len(past) != 2 || past[0].Version != 2 || past[1].Version != 1 || past[1].To != "filled" || past[1].Event != "" || past[0].Event != "GO" {
		t.Errorf("history %+v", past)
	}
}

func testApart(t *testing.T, a, b view) {
	ids := []gate.ID{{FSM: "cart", Key: ""}, {FSM: "cart", Key: "x"}, {FSM: "cart", Key: "X"}, {FSM: "cart", Key: "x "}, {FSM: "cart2", Key: "x"}, {FSM: "cart", Key: "2x"}, {FSM: "cart", Key: strings.Repeat("k", 260)}}
	for i, id := range ids {
		a.is(id, gate.Record{})
		a.move(id, 0, nil, step("empty", fmt.Sprint("s", i), "c", began))
	}
	for i, id := range ids {
		b.is(id, gate.Record{State: fmt.Sprint("s", i), Version: 1, Entered: began})
	}
}

func testHold(t *testing.T, a, b view) {
	a.move(cart, 0, nil, step("filled", "payment", "c1", began))
	b.hold(cart, 0, held("c2"), gate.ErrConflict)
	a.hold(cart, 1, held("c2"), nil)
	h := held("c2")
	taken := gate.Record{State: "payment", Version: 1, Entered: began, Hold: &h}
	a.is(cart, taken)
	b.is(cart, taken)

	b.hold(cart, 1, held("c3"), gate.ErrConflict)
	b.move(cart, 1, gate.ErrConflict, step("payment", "empty", "c3", after(time.Second)))
	b.move(cart, 1, gate.ErrConflict, gate.Move{From: "payment", To: "filled", At: after(time.Second)})
	b.release(cart, "c3", false, gate.ErrConflict)
	b.release(cart, "c3", true, gate.ErrConflict)
	a.is(cart, taken)

	a.release(cart, "c2", false, nil)
	free := gate.Record{State: "payment", Version: 1, Entered: began}
	b.is(cart, free)
	b.hold(cart, 1, held("c4"), nil)
	// The hold is that of the last move's call; a move by time comes before it.
	b.move(cart, 0, gate.ErrConflict, step("payment", "empty", "c4", after(time.Second)))
	b.move(cart, 1, nil, gate.Move{From: "payment", To: "filled", At: after(time.Second)}, step("filled", "empty", "c4", after(2*time.Second)))
	a.is(cart, gate.Record{State: "empty", Version: 3, Entered: after(2 * time.Second)})
	a.release(cart, "c4", false, gate.ErrConflict)
	a.hold(cart, 3, held("c5"), nil)
}

func testHoldFirst(t *testing.T, a, b view) {
	a.hold(cart, 0, held("c1"), nil)
	h := held("c1")
	b.is(cart, gate.Record{Hold: &h})
	b.hold(cart, 0, held("c2"), gate.ErrConflict)
	if l := b.list("cart", 10); len(l) != 1 || l[0].ID != cart || !reflect.DeepEqual(l[0].Record, gate.Record{Hold: &h}) {
		t.Errorf("list %+v", l)
	}
	b.want("Forget", b.Forget(t.Context(), cart), gate.ErrConflict)
	a.release(cart, "c1", false, nil)
	b.is(cart, gate.Record{})
	if l := b.list("cart", 10); len(l) != 0 {
		t.Errorf("list %+v", l)
	}
	b.hold(cart, 0, held("c3"), nil)
	b.move(cart, 0, nil, step("empty", "filled", "c3", began))
	a.is(cart, gate.Record{State: "filled", Version: 1, Entered: began})
}

func testDoubt(t *testing.T, a, b view) {
	a.move(cart, 0, nil, step("filled", "payment", "c1", began))
	a.hold(cart, 1, held("c2"), nil)
	before, err := a.Load(t.Context(), cart)
	a.want("Load", err, nil)
	a.release(cart, "c2", true, nil)
	if before.Hold.Doubt {
		t.Error("a record that was loaded has changed")
	}
	h := held("c2")
	h.Doubt = true
	doubt := gate.Record{State: "payment", Version: 1, Entered: began, Hold: &h}
	b.is(cart, doubt)
	if !b.load(cart).Hold.Uncertain(began) {
		t.Error("the hold is not uncertain")
	}
	a.release(cart, "c2", true, nil)
	b.hold(cart, 1, held("c3"), gate.ErrConflict)
	b.move(cart, 1, gate.ErrConflict, step("payment", "empty", "c3", began))
	b.want("Forget", b.Forget(t.Context(), cart), gate.ErrConflict)
	b.is(cart, doubt)
	// One who settles it moves with the call, or releases it, from anywhere.
	b.move(cart, 1, nil, gate.Move{From: "payment", To: "empty", Event: "PAY", Call: "c2", Caller: "a person", At: after(time.Second)})
	a.is(cart, gate.Record{State: "empty", Version: 2, Entered: after(time.Second)})

	a.hold(cart, 2, held("c4"), nil)
	h = held("c4") // without the doubt of the last one
	b.is(cart, gate.Record{State: "empty", Version: 2, Entered: after(time.Second), Hold: &h})
	a.release(cart, "c4", true, nil)
	b.release(cart, "c4", false, nil)
	a.is(cart, gate.Record{State: "empty", Version: 2, Entered: after(time.Second)})
	// The next hold is not in doubt.
	a.hold(cart, 2, held("c5"), nil)
	if b.load(cart).Hold.Doubt {
		t.Error("doubt outlived its hold")
	}
}

func testForget(t *testing.T, a, b view) {
	a.want("Forget of nothing", a.Forget(t.Context(), cart), nil)
	other := gate.ID{FSM: "cart", Key: "other"}
	a.move(cart, 0, nil, step("empty", "filled", "c1", began))
	a.move(other, 0, nil, step("empty", "filled", "c2", began))
	b.want("Forget", b.Forget(t.Context(), cart), nil)
	a.is(cart, gate.Record{})
	a.is(other, gate.Record{State: "filled", Version: 1, Entered: began})
	if past := a.history(cart, 10); len(past) != 0 {
		t.Errorf("the history outlived its record: %+v", past)
	}
	if l := b.list("cart", 10); len(l) != 1 {
		t.Errorf("list %+v", l)
	}
	// It begins anew, with its history.
	b.move(cart, 0, nil, step("empty", "filled", "c3", after(time.Second)))
	if past := a.history(cart, 10); len(past) != 1 || past[0].Version != 1 || past[0].Call != "c3" {
		t.Errorf("history %+v", past)
	}
}

// testExpires holds records whose time has passed: whatever a store forgets,
// it is not a held one.
func testExpires(t *testing.T, a, b view) {
	id := func(i int) gate.ID { return gate.ID{FSM: "cart", Key: fmt.Sprint("k", i)} }
	for i := range 20 {
		a.want("Move", a.Move(t.Context(), id(i), 0, []gate.Move{step("empty", "filled", "c1", began)}, after(time.Hour)), nil)
		a.hold(id(i), 1, held("c2"), nil)
	}
	for i := range 20 {
		h := held("c2")
		b.is(id(i), gate.Record{State: "filled", Version: 1, Entered: began, Hold: &h})
		// A move ends the hold; its time is long over.
		b.want("Move", b.Move(t.Context(), id(i), 1, []gate.Move{step("filled", "empty", "c2", began)}, began.Add(-time.Hour)), nil)
		switch r := a.load(id(i)); r.Version {
		case 0: // forgotten
			a.is(id(i), gate.Record{})
			a.move(id(i), 0, nil, step("empty", "filled", "c3", began))
		case 2: // not yet
			a.move(id(i), 2, nil, step("empty", "filled", "c3", began))
		default:
			t.Errorf("%+v", r)
		}
	}
}

func (v view) list(fsm string, limit int) []gate.Entry {
	v.t.Helper()
	l, err := v.List(v.t.Context(), fsm, limit)
	if err != nil {
		v.t.Fatalf("List: %v", err)
	}
	for i := range l {
		l[i].Record = inUTC(l[i].Record)
	}
	return l
}

func (v view) history(id gate.ID, limit int) []gate.Past {
	v.t.Helper()
	l, err := v.History(v.t.Context(), id, limit)
	if err != nil {
		v.t.Fatalf("History: %v", err)
	}
	for i := range l {
		l[i].At = l[i].At.UTC()
	}
	return l
}

func testList(t *testing.T, a, b view) {
	for i, key := range []string{"a", "b", "c", "d", "e"} {
		a.move(gate.ID{FSM: "cart", Key: key}, 0, nil, step("empty", "filled", "c", after(time.Duration(i)*time.Second)))
	}
	a.move(gate.ID{FSM: "order", Key: "o"}, 0, nil, step("x", "y", "c", after(time.Minute)))
	a.move(gate.ID{FSM: "cart", Key: "a"}, 1, nil, step("filled", "empty", "c", after(time.Minute)))
	a.hold(gate.ID{FSM: "cart", Key: "b"}, 1, held("h"), nil)
	// What was held and is free again stands where its moves put it.
	a.hold(gate.ID{FSM: "cart", Key: "c"}, 1, held("h"), nil)
	a.move(gate.ID{FSM: "cart", Key: "c"}, 1, nil, step("filled", "empty", "h", after(2*time.Second)))
	a.hold(gate.ID{FSM: "cart", Key: "d"}, 1, held("h"), nil)
	a.release(gate.ID{FSM: "cart", Key: "d"}, "h", false, nil)
	if l, err := b.Machines(t.Context()); err != nil || !slices.Equal(l, []string{"cart", "order"}) {
		t.Errorf("machines %q (%v)", l, err)
	}
	for _, c := range []struct {
		limit int
		want  string
	}{{100, "b a e d c"}, {5, "b a e d c"}, {3, "b a e"}, {1, "b"}, {0, ""}} {
		var keys []string
		for _, e := range b.list("cart", c.limit) {
			keys = append(keys, e.Key)
			if want := b.load(e.ID); !reflect.DeepEqual(e.Record, want) {
				t.Errorf("%v: listed %s, loaded %s", e.ID, shown(e.Record), shown(want))
			}
		}
		if got := strings.Join(keys, " "); got != c.want {
			t.Errorf("at most %d: %s, want %s", c.limit, got, c.want)
		}
	}
	// The clock of one process may be ahead; what may be forgotten by it, and is
	// not yet, is listed.
	a.want("Move", a.Move(t.Context(), gate.ID{FSM: "cart", Key: "e"}, 1, []gate.Move{step("s", "t", "c", after(2*time.Minute))}, after(time.Hour)), nil)
	a.move(gate.ID{FSM: "cart", Key: "d"}, 1, nil, step("s", "t", "c", after(2*time.Hour)))
	if l := b.list("cart", 10); len(l) != 5 {
		t.Errorf("list %+v", l)
	}
	if l := b.list("nothing", 10); len(l) != 0 {
		t.Errorf("list of an unknown machine: %+v", l)
	}
}

func testHistory(t *testing.T, a, b view) {
	x, y := gate.ID{FSM: "cart", Key: "x"}, gate.ID{FSM: "cart", Key: "y"}
	first, second := step("empty", "filled", "c1", after(time.Second)), step("filled", "payment", "c2", after(3*time.Second))
	between := step("empty", "filled", "c3", after(2*time.Second))
	time1 := gate.Move{From: "payment", To: "filled", At: after(4 * time.Second)}
	third := step("filled", "empty", "c4", after(5*time.Second))
	a.move(x, 0, nil, first)
	b.move(y, 0, nil, between)
	a.move(x, 1, nil, second)
	b.move(x, 2, nil, time1, third)
	a.move(gate.ID{FSM: "order", Key: "x"}, 0, nil, step("p", "q", "c5", after(6*time.Second)))
	// What is refused leaves no trace.
	a.move(x, 1, gate.ErrConflict, step("filled", "payment", "c6", after(7*time.Second)))

	all := []gate.Past{{ID: x, Version: 4, Move: third}, {ID: x, Version: 3, Move: time1}, {ID: x, Version: 2, Move: second}, {ID: y, Version: 1, Move: between}, {ID: x, Version: 1, Move: first}}
	ofX := []gate.Past{all[0], all[1], all[2], all[4]}
	for _, c := range []struct {
		id    gate.ID
		limit int
		want  []gate.Past
	}{
		{x, 100, ofX}, {x, 2, ofX[:2]}, {x, 0, nil}, {y, 100, all[3:4]},
		{gate.ID{FSM: "cart"}, 100, all}, {gate.ID{FSM: "cart"}, 4, all[:4]},
		{gate.ID{FSM: "cart", Key: "z"}, 100, nil}, {gate.ID{FSM: "none"}, 100, nil},
	} {
		got := a.history(c.id, c.limit)
		if len(got) == 0 && len(c.want) == 0 {
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("history of %v, at most %d:\n got %+v\nwant %+v", c.id, c.limit, got, c.want)
		}
	}
	// A long one keeps its last moves.
	for i := int64(1); i < 30; i++ {
		b.move(y, i, nil, step("filled", "filled", fmt.Sprint("m", i), after(time.Duration(i)*time.Minute)))
	}
	past := a.history(y, 20)
	if len(past) != 20 || past[0].Version != 30 || past[19].Version != 11 || past[0].Call != "m29" {
		t.Errorf("%d moves of a long history: %+v", len(past), past)
	}
}

// crowd runs 50 calls at once for each of several versions, and checks that
// act went well for one of them and was a conflict for all others.
func crowd(t *testing.T, a, b view, act func(v view, version int64, call string) error, done func(version int64, winner string)) {
	t.Helper()
	for version := range int64(8) {
		var won atomic.Int32
		var winner atomic.Value
		start := make(chan struct{})
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() {
				v := a
				if n%2 == 1 {
					v = b
				}
				call := fmt.Sprintf("v%d-%d", version, n)
				<-start
				switch err := act(v, version, call); {
				case err == nil:
					won.Add(1)
					winner.Store(call)
				case !errors.Is(err, gate.ErrConflict):
					t.Errorf("call %s: %v", call, err)
				}
			})
		}
		close(start)
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("version %d has %d winners", version, won.Load())
		}
		done(version, winner.Load().(string))
	}
}

func testWinner(t *testing.T, a, b view) {
	crowd(t, a, b, func(v view, version int64, call string) error {
		return v.Move(context.Background(), cart, version, []gate.Move{step("s", call, call, after(time.Duration(version)*time.Second))}, time.Time{})
	}, func(version int64, winner string) {
		a.is(cart, gate.Record{State: winner, Version: version + 1, Entered: after(time.Duration(version) * time.Second)})
	})
	if past := b.history(cart, 100); len(past) != 8 {
		t.Errorf("%d moves in the history, want 8", len(past))
	}
}

func testHolder(t *testing.T, a, b view) {
	crowd(t, a, b, func(v view, version int64, call string) error {
		return v.Hold(context.Background(), cart, version, held(call))
	}, func(version int64, winner string) {
		if h := b.load(cart).Hold; h == nil || h.Call != winner {
			t.Fatalf("version %d: hold %+v, want that of %s", version, h, winner)
		}
		b.move(cart, version, nil, step("s", "t", winner, began))
	})
}

// testFeed checks that moves of one view reach the other, if the store is
// shared, and that Feed ends with its context.
func testFeed(t *testing.T, a, b view) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan gate.Change, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Feed(ctx, func(c gate.Change) { told <- c })
	}()
	if a.Store == b.Store { // nobody shares it
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("Feed of a store that is not shared did not return")
		}
		return
	}
	// Moves reach the feed once it is there; one of a move that went before may
	// be missing.
	other := gate.ID{FSM: "cart", Key: "other"}
	version := int64(0)
	for seen := false; !seen; {
		a.move(other, version, nil, step("s", "s", fmt.Sprint(version), began))
		version++
		select {
		case c := <-told:
			seen = c.ID == other || c.All && onFile(a.Store)
		case <-time.After(20 * time.Millisecond):
		}
		if version > int64(patience/(20*time.Millisecond)) {
			t.Fatal("no move reached the feed")
		}
	}
	wanted := gate.Change{ID: cart}
	if onFile(a.Store) { // that something has changed is all that a file tells
		wanted = gate.Change{All: true}
	}
	a.move(cart, 0, nil, step("s", "t", "c", began))
	waitFor(t, told, wanted)
	a.hold(cart, 1, held("h"), nil)
	a.move(cart, 1, nil, step("t", "s", "h", began))
	waitFor(t, told, wanted)
	b.want("Forget", b.Forget(t.Context(), cart), nil)
	waitFor(t, told, wanted)
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("Feed outlived its context")
	}
}

// onFile tells whether a store is a file.
func onFile(s gate.Store) bool {
	d, ok := s.(*gate.Database)
	return ok && d.Database().Dialect() == db.SQLite
}

// waitFor waits until a change is told, whatever else is.
func waitFor(t *testing.T, told <-chan gate.Change, want gate.Change) {
	t.Helper()
	for end := time.After(patience); ; {
		select {
		case c := <-told:
			if c == want {
				return
			}
		case <-end:
			t.Fatalf("the feed did not tell %+v", want)
		}
	}
}

func testContext(t *testing.T, a, b view) {
	if a.Store == b.Store {
		t.Skip("a store that nobody shares never waits")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Load(ctx, cart); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: %v", err)
	}
	if err := a.Move(ctx, cart, 0, []gate.Move{step("s", "t", "c", began)}, time.Time{}); err == nil || errors.Is(err, gate.ErrConflict) {
		t.Errorf("Move: %v", err)
	}
	b.is(gate.ID{FSM: "cart", Key: "untouched"}, gate.Record{})
}
