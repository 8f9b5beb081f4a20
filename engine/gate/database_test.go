package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// noon has microseconds, which every database keeps.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

var (
	ward  = gate.ID{FSM: "ward", Key: `ann "x" \ ü`}
	admit = gate.Move{From: "waiting", To: "admitted", Event: "ADMIT", Tool: "ward.admit", Call: "c1", Caller: "sub ann", At: noon}
	never time.Time
)

// openDB opens a database until the end of the test.
func openDB(t testing.TB, url, dir string) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{Name: "main", URL: url, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}

// onDatabases runs a test on a store of each engine. open gives another one on
// the same database, as another process would have it.
func onDatabases(t *testing.T, f func(t *testing.T, open func() *gate.Database)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		f(t, func() *gate.Database { return gate.NewDatabase(openDB(t, "sqlite:a.db", dir)) })
	})
	t.Run("postgres", func(t *testing.T) {
		url := servers.Postgres(t)
		f(t, func() *gate.Database { return gate.NewDatabase(openDB(t, url, "")) })
	})
}

func script(t testing.TB, s *gate.Database, sql string) {
	t.Helper()
	if err := s.Database().Script(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// rows gives what a query of a table finds, as JSON.
func rows(t testing.TB, s *gate.Database, sql string) string {
	t.Helper()
	a, err := s.Database().Query(t.Context(), &db.Stmt{SQL: sql}, nil, db.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	return string(value.AppendJSON(nil, a.Rows))
}

// is checks the record of an ID.
func is(t testing.TB, s gate.Store, id gate.ID, want gate.Record) {
	t.Helper()
	got, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	a, b := fmt.Sprintf("%+v %+v", got, got.Hold), fmt.Sprintf("%+v %+v", want, want.Hold)
	got.Hold, want.Hold = nil, nil
	if _, a, _ = strings.Cut(a, "} "); got != want || !strings.HasSuffix(b, a) {
		t.Errorf("the record is %+v %s, want %+v %s", got, a, want, b)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func conflicts(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, gate.ErrConflict) {
		t.Errorf("%s: %v, want a conflict", what, err)
	}
}

func hold(call string) gate.Hold {
	return gate.Hold{
		Call: call, Tool: "ward.admit", Event: "ADMIT", Caller: "sub ann", Since: noon, Until: noon.Add(time.Minute),
	}
}

func move(call, to string) []gate.Move {
	return []gate.Move{{From: "a", To: to, Event: "E", Tool: "t.t", Call: call, Caller: "sub x", At: noon}}
}

// The whole life of a record, and what is left of it in the tables.
func TestDatabase(t *testing.T) {
	onDatabases(t, func(t *testing.T, open func() *gate.Database) {
		s := open()
		ctx := t.Context()
		is(t, s, ward, gate.Record{})
		h := hold("c1")
		must(t, s.Hold(ctx, ward, 0, h))
		is(t, open(), ward, gate.Record{Hold: &h})
		conflicts(t, "a second hold", s.Hold(ctx, ward, 0, hold("c2")))
		conflicts(t, "the same hold", s.Hold(ctx, ward, 0, h))
		conflicts(t, "a move of another call", s.Move(ctx, ward, 0, move("c2", "b"), never))
		conflicts(t, "a release of another call", s.Release(ctx, ward, "c2", false))
		conflicts(t, "forgetting what is held", s.Forget(ctx, ward))
		must(t, s.Release(ctx, ward, "c1", true))
		h.Doubt = true
		is(t, s, ward, gate.Record{Hold: &h})
		must(t, s.Release(ctx, ward, "c1", false))
		is(t, s, ward, gate.Record{})
		if got := rows(t, s, "SELECT count(*) AS n FROM fusion_state"); got != `[{"n":0}]` {
			t.Errorf("a release leaves %s rows", got)
		}
		conflicts(t, "a release of nothing", s.Release(ctx, ward, "c1", false))
		conflicts(t, "a version that is not yet", s.Hold(ctx, ward, 1, hold("c1")))
		conflicts(t, "a move of a version that is not yet", s.Move(ctx, ward, 1, move("c1", "b"), never))

		must(t, s.Hold(ctx, ward, 0, hold("c1")))
		must(t, s.Move(ctx, ward, 0, []gate.Move{admit}, never))
		is(t, s, ward, gate.Record{State: "admitted", Version: 1, Entered: noon})
		later := gate.Move{From: "admitted", To: "late", At: noon.Add(time.Hour)}
		out := gate.Move{From: "late", To: "out", Event: "OUT", Tool: "ward.out", Call: "c3", Caller: "sub bob", At: noon.Add(2 * time.Hour)}
		conflicts(t, "an old version", s.Move(ctx, ward, 0, []gate.Move{later, out}, never))
		must(t, s.Hold(ctx, ward, 1, hold("c3")))
		must(t, s.Move(ctx, ward, 1, []gate.Move{later, out}, never))
		is(t, s, ward, gate.Record{State: "out", Version: 3, Entered: noon.Add(2 * time.Hour)})

		other := gate.ID{FSM: "ward", Key: "bob"}
		must(t, s.Hold(ctx, other, 0, hold("c9")))
		must(t, s.Move(ctx, gate.ID{FSM: "other", Key: ward.Key}, 0, move("c5", "b"), never))
		past, err := s.History(ctx, ward, 2)
		must(t, err)
		if want := []gate.Past{{ID: ward, Version: 3, Move: out}, {ID: ward, Version: 2, Move: later}}; !slices.Equal(past, want) {
			t.Errorf("history\n%+v, want\n%+v", past, want)
		}
		past, err = s.History(ctx, gate.ID{FSM: "ward"}, 9)
		must(t, err)
		if len(past) != 3 || past[2] != (gate.Past{ID: ward, Version: 1, Move: admit}) {
			t.Errorf("history of all %+v", past)
		}
		l, err := s.List(ctx, "ward", 9)
		must(t, err)
		if len(l) != 2 || l[0].ID != other || l[0].Hold == nil || *l[0].Hold != hold("c9") || l[1].ID != ward || l[1].State != "out" {
			t.Errorf("list %+v", l)
		}
		must(t, s.Forget(ctx, ward))
		must(t, s.Forget(ctx, ward))
		is(t, s, ward, gate.Record{})
		if got := rows(t, s, "SELECT fsm, version FROM fusion_state_history"); got != `[{"fsm":"other","version":1}]` {
			t.Errorf("left of the history: %s", got)
		}
	})
}

// Tables that somebody drops are made again.
func TestDatabaseTablesGone(t *testing.T) {
	onDatabases(t, func(t *testing.T, open func() *gate.Database) {
		s := open()
		ctx := t.Context()
		must(t, s.Move(ctx, ward, 0, []gate.Move{admit}, never))
		for name, call := range map[string]func() error{
			"Load":  func() error { is(t, s, ward, gate.Record{}); return nil },
			"Hold":  func() error { return s.Hold(ctx, ward, 0, hold("c1")) },
			"Move":  func() error { return s.Move(ctx, ward, 0, []gate.Move{admit}, never) },
			"claim": func() error { return within(t, s, ward, "c1", true, nil) },
		} {
			script(t, s, "DROP TABLE fusion_state; DROP TABLE fusion_state_history")
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The history is the last net: what a record has lost it still refuses.
func TestDatabaseHistoryRefuses(t *testing.T) {
	onDatabases(t, func(t *testing.T, open func() *gate.Database) {
		s := open()
		must(t, s.Move(t.Context(), ward, 0, []gate.Move{admit}, never))
		script(t, s, "DELETE FROM fusion_state")
		conflicts(t, "a move", s.Move(t.Context(), ward, 0, move("c2", "b"), never))
		conflicts(t, "a move in a transaction", within(t, s, ward, "c2", true, nil))
		is(t, s, ward, gate.Record{})
	})
}

var errBusy = errors.New("another call has the key")

// within makes a call that writes a row and moves, in one transaction, what it
// has claimed.
func within(t testing.TB, s *gate.Database, id gate.ID, call string, moves bool, between func(q *db.Tx) error) error {
	return s.Database().Tx(t.Context(), db.TxOptions{Retry: db.Always}, func(q *db.Tx) error {
		var version int64
		err := s.Claim(t.Context(), q, id, true, func(r gate.Record, free bool) error {
			if !free || r.Hold != nil {
				return errBusy
			}
			version = r.Version
			return nil
		})
		if err != nil {
			return err
		}
		insert := db.Ours(s.Database().Dialect(), "INSERT INTO effects (version) VALUES ($1)")
		if between == nil {
			insert = db.Ours(s.Database().Dialect(), "SELECT $1 AS version")
		}
		if _, err := q.Query(t.Context(), insert, []any{call}, db.Limit{}); err != nil {
			return err
		}
		if between != nil {
			if err := between(q); err != nil {
				return err
			}
		}
		if !moves {
			return nil
		}
		return s.MoveIn(t.Context(), q, id, version, move(call, "s"+call), never)
	})
}

func nothing(*db.Tx) error { return nil }

// Fifty callers over two processes: each version has one winner, and whoever
// lost was told so.
func TestDatabaseCompareAndSwap(t *testing.T) {
	onDatabases(t, func(t *testing.T, open func() *gate.Database) {
		stores := []*gate.Database{open(), open()}
		ctx := t.Context()
		for version := range int64(5) {
			var won, lost atomic.Int32
			together(50, func(i int) {
				s, call := stores[i%2], fmt.Sprint(i)
				var err error
				if i%3 == 0 {
					if err = s.Hold(ctx, ward, version, hold(call)); err == nil {
						err = s.Move(ctx, ward, version, move(call, "s"+call), never)
						if err != nil {
							t.Errorf("the move of a holder: %v", err)
						}
					}
				} else {
					err = s.Move(ctx, ward, version, move(call, "s"+call), never)
				}
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, gate.ErrConflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
			if won.Load() != 1 || lost.Load() != 49 {
				t.Errorf("version %d: %d have won and %d lost", version, won.Load(), lost.Load())
			}
		}
		inOrder(t, stores[0], 5)
	})
}

// together runs n calls at the same time.
func together(n int, call func(i int)) {
	var callers sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		callers.Go(func() { <-start; call(i) })
	}
	close(start)
	callers.Wait()
}

// inOrder checks that the history of ward has each version once and ends where
// the record is.
func inOrder(t testing.TB, s *gate.Database, want int) {
	t.Helper()
	past, err := s.History(t.Context(), ward, 1000)
	must(t, err)
	if len(past) != want {
		t.Errorf("the history has %d moves, want %d", len(past), want)
	}
	for i, p := range past {
		if p.Version != int64(want-i) {
			t.Errorf("move %d has version %d", i, p.Version)
		}
	}
	r, err := s.Load(t.Context(), ward)
	must(t, err)
	if r.Version != int64(want) || r.Hold != nil || len(past) > 0 && r.State != past[0].To {
		t.Errorf("the record is %+v", r)
	}
}

// Calls whose effect and move are one transaction, over two processes: as many
// effects as moves, each version once, whatever some of them do in the end.
func TestDatabaseClaims(t *testing.T) {
	onDatabases(t, func(t *testing.T, open func() *gate.Database) {
		stores := []*gate.Database{open(), open()}
		script(t, stores[0], "CREATE TABLE effects (version text NOT NULL)")
		declined := errors.New("declined")
		var won atomic.Int32
		together(50, func(i int) {
			for n := range 6 {
				between := nothing
				if n == 3 {
					between = func(*db.Tx) error { return declined }
				}
				err := within(t, stores[i%2], ward, fmt.Sprint(i, n), true, between)
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, declined), errors.Is(err, errBusy), errors.Is(err, gate.ErrConflict):
				default:
					t.Error(err)
				}
			}
		})
		if won.Load() == 0 {
			t.Error("nobody has won")
		}
		inOrder(t, stores[0], int(won.Load()))
		if got, want := rows(t, stores[0], "SELECT count(*) AS n FROM effects JOIN fusion_state_history ON call = effects.version"), fmt.Sprintf(`[{"n":%d}]`, won.Load()); got != want {
			t.Errorf("effects with their move: %s, want %s", got, want)
		}
		if got, want := rows(t, stores[0], "SELECT count(*) AS n FROM effects"), fmt.Sprintf(`[{"n":%d}]`, won.Load()); got != want {
			t.Errorf("effects: %s, want %s", got, want)
		}
	})
}

// While a transaction has the key, nobody else takes or moves it, and nobody
// waits; whoever holds it is not disturbed by one that only looks.
func TestDatabaseClaimKeepsOthersOff(t *testing.T) {
	url := servers.Postgres(t)
	s, other := gate.NewDatabase(openDB(t, url, "")), gate.NewDatabase(openDB(t, url, ""))
	script(t, s, "CREATE TABLE effects (version text NOT NULL)")
	ctx := t.Context()
	refused := func(id gate.ID) {
		t.Helper()
		conflicts(t, "Hold", other.Hold(ctx, id, 0, hold("c2")))
		conflicts(t, "Move", other.Move(ctx, id, 0, move("c2", "b"), never))
		conflicts(t, "Forget", other.Forget(ctx, id))
	}
	must(t, within(t, s, ward, "c1", true, func(*db.Tx) error {
		refused(ward)
		if err := within(t, other, ward, "c2", true, nothing); !errors.Is(err, errBusy) {
			t.Errorf("a second claim: %v", err)
		}
		must(t, other.Move(ctx, gate.ID{FSM: "ward", Key: "bob"}, 0, move("c2", "b"), never))
		return nil
	}))
	is(t, other, ward, gate.Record{State: "sc1", Version: 1, Entered: noon})

	// Those that only read are in nobody's way but a mover's.
	share := func(s *gate.Database, id gate.ID, f func()) error {
		return s.Database().Tx(ctx, db.TxOptions{}, func(q *db.Tx) error {
			var free bool
			err := s.Claim(ctx, q, id, false, func(_ gate.Record, f bool) error { free = f; return nil })
			if err == nil {
				_, err = q.Query(ctx, &db.Stmt{SQL: "SELECT 1 AS i"}, nil, db.Limit{})
			}
			if !free {
				t.Error("a reader is refused")
			}
			f()
			return err
		})
	}
	fresh := gate.ID{FSM: "ward", Key: "fresh"}
	must(t, share(s, fresh, func() { must(t, share(other, fresh, func() { refused(fresh) })) }))

	held := gate.ID{FSM: "ward", Key: "held"}
	must(t, other.Hold(ctx, held, 0, hold("c4")))
	must(t, share(s, held, func() { must(t, other.Move(ctx, held, 0, move("c4", "b"), never)) }))
	must(t, other.Hold(ctx, held, 1, hold("c5")))
	must(t, share(s, held, func() { must(t, other.Release(ctx, held, "c5", false)) }))
	must(t, other.Forget(ctx, held))
	must(t, other.Hold(ctx, held, 0, hold("c6")))
	must(t, share(s, held, func() { must(t, other.Release(ctx, held, "c6", false)) }))
	is(t, s, held, gate.Record{})
}

// Somebody who asks for no lock moves what a transaction has claimed: the
// transaction fails as a whole.
func TestDatabaseClaimIsOverrun(t *testing.T) {
	url := servers.Postgres(t)
	s, other := gate.NewDatabase(openDB(t, url, "")), gate.NewDatabase(openDB(t, url, ""))
	script(t, s, "CREATE TABLE effects (version text NOT NULL)")
	for n, sql := range []string{
		"INSERT INTO fusion_state (fsm, key, state, version) VALUES ('ward', 'k', 'b', 1)",
		"UPDATE fusion_state SET version = version + 1",
		"UPDATE fusion_state SET hold_call = 'c7'",
		"DELETE FROM fusion_state",
	} {
		id := gate.ID{FSM: "ward", Key: "k"}
		conflicts(t, sql, within(t, s, id, "c1", true, func(*db.Tx) error { script(t, other, sql); return nil }))
		if n == 2 {
			must(t, s.Release(t.Context(), id, "c7", false))
		}
	}
	if got := rows(t, s, "SELECT (SELECT count(*) FROM effects) AS effects, (SELECT count(*) FROM fusion_state_history) AS moves"); got != `[{"effects":0,"moves":0}]` {
		t.Errorf("left: %s", got)
	}
}

// A session's role needs no right to the tables.
func TestDatabaseOfSession(t *testing.T) {
	s := gate.NewDatabase(openDB(t, servers.Postgres(t), ""))
	const role = "fusion_test_gate"
	script(t, s, `DO $$ BEGIN CREATE ROLE `+role+` NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	script(t, s, "CREATE TABLE effects (who text DEFAULT current_user, version text); GRANT INSERT ON effects TO "+role)
	for version := range int64(3) {
		err := s.Database().As(&db.Session{Role: role}).Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
			err := s.Claim(t.Context(), q, ward, true, func(r gate.Record, free bool) error {
				if r.Version != version || !free {
					t.Errorf("claimed %+v, free %v", r, free)
				}
				return nil
			})
			must(t, err)
			_, err = q.Query(t.Context(), &db.Stmt{SQL: "INSERT INTO effects (version) VALUES ('x')"}, nil, db.Limit{})
			must(t, err)
			return s.MoveIn(t.Context(), q, ward, version, move("c1", "b"), never)
		})
		must(t, err)
	}
	inOrder(t, s, 3)
	if got := rows(t, s, "SELECT DISTINCT who FROM effects"); got != `[{"who":"`+role+`"}]` {
		t.Errorf("the handler ran as %s", got)
	}
}

// Records whose time is up go with their history; held ones stay.
func TestDatabaseSweeps(t *testing.T) {
	onDatabases(t, func(t *testing.T, open func() *gate.Database) {
		s := open()
		ctx := t.Context()
		at := func(key string) gate.ID { return gate.ID{FSM: "ward", Key: key} }
		must(t, s.Move(ctx, at("old"), 0, move("c1", "b"), noon.Add(-time.Second)))
		must(t, s.Move(ctx, at("held"), 0, move("c1", "b"), noon.Add(-time.Second)))
		must(t, s.Hold(ctx, at("held"), 1, hold("c2")))
		must(t, s.Move(ctx, at("new"), 0, move("c1", "b"), noon.Add(time.Second)))
		must(t, s.Move(ctx, at("kept"), 0, move("c1", "b"), never))
		for i := range 16 {
			must(t, s.Move(ctx, at(fmt.Sprint("later", i)), 0, move("c1", "b"), noon.Add(time.Hour)))
		}
		for _, table := range []string{"fusion_state", "fusion_state_history"} {
			if got, want := rows(t, s, "SELECT key FROM "+table+" WHERE key NOT LIKE 'later%' ORDER BY key"), `[{"key":"held"},{"key":"kept"},{"key":"new"}]`; got != want {
				t.Errorf("left in %s: %s, want %s", table, got, want)
			}
		}
	})
}

// A server that was restarted between two calls is nobody's trouble.
func TestDatabaseRestarted(t *testing.T) {
	server := servers.PrivatePostgres(t)
	s := gate.NewDatabase(openDB(t, server.URL, ""))
	ctx := t.Context()
	is(t, s, ward, gate.Record{})
	for _, call := range []func() error{
		func() error { return s.Hold(ctx, ward, 0, hold("c1")) },
		func() error { return s.Move(ctx, ward, 0, move("c1", "b"), never) },
		func() error { return s.Hold(ctx, ward, 1, hold("c2")) },
		func() error { return s.Release(ctx, ward, "c2", false) },
		func() error { return within(t, s, ward, "c3", true, nil) },
		func() error { return s.Forget(ctx, ward) },
	} {
		server.Kill()
		server.Start()
		must(t, call())
	}
	server.Kill()
	var e *db.Error
	if _, err := s.Load(ctx, ward); !errors.As(err, &e) || !e.Unavailable {
		t.Errorf("without a server: %v", err)
	}
	server.Start()
}

// Every process is told what was moved, and that it may have missed something
// after the connection was lost.
func TestDatabaseFeed(t *testing.T) {
	server := servers.PrivatePostgres(t)
	s, other := gate.NewDatabase(openDB(t, server.URL, "")), gate.NewDatabase(openDB(t, server.URL, ""))
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan gate.Change, 100), make(chan struct{})
	go func() { defer close(ended); s.Feed(ctx, func(c gate.Change) { changes <- c }) }()
	next := func(want gate.Change) {
		t.Helper()
		select {
		case got := <-changes:
			if got != want {
				t.Errorf("told %+v, want %+v", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("not told %+v", want)
		}
	}
	next(gate.Change{All: true})
	must(t, other.Hold(t.Context(), ward, 0, hold("c1"))) // says nothing
	must(t, other.Move(t.Context(), ward, 0, move("c1", "b"), never))
	next(gate.Change{ID: ward})
	conflicts(t, "a lost move", other.Move(t.Context(), ward, 0, move("c1", "b"), never))
	must(t, within(t, other, ward, "c2", true, nil))
	next(gate.Change{ID: ward})
	if err := within(t, other, ward, "c2", true, func(*db.Tx) error { return errBusy }); err == nil {
		t.Error("declined, and no error")
	}
	must(t, other.Forget(t.Context(), ward))
	next(gate.Change{ID: ward})
	must(t, other.Database().Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		_, err := q.Query(t.Context(), &db.Stmt{SQL: `SELECT pg_notify('fusion_events', '{"topic":"other","fsm":"x"}') AS a, pg_notify('fusion_events', 'what') AS b`}, nil, db.Limit{})
		return err
	}))
	must(t, other.Move(t.Context(), gate.ID{FSM: "ward"}, 0, move("c1", "b"), never))
	next(gate.Change{ID: gate.ID{FSM: "ward"}})
	server.Exec("CREATE TABLE before_the_end (i int)")
	server.Kill()
	server.Start()
	next(gate.Change{All: true})
	is(t, other, ward, gate.Record{})
	cancel()
	<-ended
}
