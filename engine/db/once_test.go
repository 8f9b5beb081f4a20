package db_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

var onceNow = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// once makes a call with an idempotency key: it adds a row to `effects` if the
// key is new.
func once(t *testing.T, d *db.Access, caller, key, hash string, now time.Time, end error) (stored string, state db.OnceState, err error) {
	t.Helper()
	err = d.Tx(t.Context(), db.TxOptions{Retry: db.Always}, func(tx *db.Tx) error {
		b, s, err := tx.Once(t.Context(), "t.pay", caller, key, []byte(hash), time.Hour, now)
		stored, state = string(b), s
		if err != nil || s != db.OnceNew {
			return err
		}
		sql := "INSERT INTO effects (k) VALUES ($1)"
		if d.Dialect() == db.SQLite {
			sql = "INSERT INTO effects (k) VALUES (?1)"
		}
		if _, err := tx.Query(t.Context(), &db.Stmt{SQL: sql, Args: 1}, []any{key}, db.Limit{}); err != nil {
			return err
		}
		if end != nil {
			return end
		}
		return tx.Keep(t.Context(), []byte("answer\x00\xff to "+key))
	})
	return stored, state, err
}

func TestOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE effects (k text)")
		declined := errors.New("declined")
		for i, c := range []struct {
			caller, key, hash string
			now               time.Time
			end               error
			stored            string
			state             db.OnceState
			effects           string
		}{
			{"ann", "k1", "h1", onceNow, declined, "", db.OnceNew, "0"}, // rolled back with the table
			{"ann", "k1", "h1", onceNow, nil, "", db.OnceNew, "1"},
			{"ann", "k1", "h1", onceNow.Add(time.Minute), nil, "answer\x00\xff to k1", db.OnceSame, "1"},
			{"ann", "k1", "h2", onceNow, nil, "", db.OnceDifferent, "1"},
			{"bob", "k1", "h2", onceNow, nil, "", db.OnceNew, "2"},
			{"ann", "k2", "h1", onceNow, declined, "", db.OnceNew, "2"},
			{"ann", "k2", "h2", onceNow, nil, "", db.OnceNew, "3"},
			{"ann", "k1", "h1", onceNow.Add(time.Hour), nil, "", db.OnceNew, "4"}, // its time was up
			{"ann", "k1", "h1", onceNow.Add(time.Hour), nil, "answer\x00\xff to k1", db.OnceSame, "4"},
		} {
			stored, state, err := once(t, d.As(nil), c.caller, c.key, c.hash, c.now, c.end)
			if err != c.end || stored != c.stored || state != c.state {
				t.Errorf("%d: got %q, %d, %v; want %q, %d, %v", i, stored, state, err, c.stored, c.state, c.end)
			}
			if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM effects"))); got != `[{"n":`+c.effects+`}]` {
				t.Errorf("%d: effects %s, want %s", i, got, c.effects)
			}
		}
		// The keys whose time was up are gone: only the last one is left.
		if got := asJSON(query(t, d, stmt(d, "SELECT caller, key FROM fusion_idempotency"))); got != `[{"caller":"ann","key":"k1"}]` {
			t.Errorf("left: %s", got)
		}
		// A table that somebody drops is made again.
		script(t, d, "DROP TABLE fusion_idempotency")
		if _, state, err := once(t, d.As(nil), "ann", "k1", "h1", onceNow, nil); err != nil || state != db.OnceNew {
			t.Errorf("without its table: %d, %v", state, err)
		}
	})
}

// Twenty callers with one key, from the first use on: one effect, and nobody
// waits for ever.
func TestOnceTogether(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE effects (k text)")
		for _, key := range []string{"first", "second"} {
			var answers [4]atomic.Int32
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					stored, state, err := once(t, d.As(nil), "ann", key, "h", onceNow, nil)
					if err != nil || state == db.OnceSame && stored != "answer\x00\xff to "+key {
						t.Errorf("got %q, %d, %v", stored, state, err)
					}
					answers[state].Add(1)
				})
			}
			callers.Wait()
			if answers[db.OnceNew].Load() != 1 || answers[db.OnceDifferent].Load() != 0 {
				t.Errorf("%s: new, same, different, running: %v", key, &answers)
			}
		}
		if got := asJSON(query(t, d, stmt(d, "SELECT count(*) AS n FROM effects"))); got != `[{"n":2}]` {
			t.Errorf("effects: %s, want 2", got)
		}
	})
}

// While a call runs, another one with its key is told so at once.
func TestOnceRunning(t *testing.T) {
	d := postgres(t, 0)
	script(t, d, "CREATE TABLE effects (k text)")
	if _, _, err := once(t, d.As(nil), "ann", "made", "h", onceNow, nil); err != nil {
		t.Fatal(err)
	}
	err := d.Tx(t.Context(), db.TxOptions{}, func(tx *db.Tx) error {
		if _, state, err := tx.Once(t.Context(), "t.pay", "ann", "k", []byte("h"), time.Hour, onceNow); state != db.OnceNew || err != nil {
			t.Errorf("got %d, %v", state, err)
		}
		start := time.Now()
		if _, state, err := once(t, d.As(nil), "ann", "k", "h", onceNow, nil); state != db.OnceRunning || err != nil {
			t.Errorf("the second caller: %d, %v", state, err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the second caller waited %v", took)
		}
		if _, state, err := once(t, d.As(nil), "ann", "other", "h", onceNow, nil); state != db.OnceNew || err != nil {
			t.Errorf("another key: %d, %v", state, err)
		}
		return tx.Keep(t.Context(), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if stored, state, err := once(t, d.As(nil), "ann", "k", "h", onceNow, nil); stored != "" || state != db.OnceSame || err != nil {
		t.Errorf("afterwards: %q, %d, %v", stored, state, err)
	}
}

// The table of keys is the login's: a session's role needs no right to it, and
// its statements run under the role all the same.
func TestOnceWithSession(t *testing.T) {
	d := postgres(t, 0)
	tenants(t, d)
	script(t, d, "CREATE TABLE effects (k text, who text DEFAULT current_user); GRANT INSERT ON effects TO "+tenantRole)
	for _, want := range []db.OnceState{db.OnceNew, db.OnceSame} {
		stored, state, err := once(t, d.As(&db.Session{Role: tenantRole}), "ann", "k", "h", onceNow, nil)
		if err != nil || state != want {
			t.Errorf("got %q, %d, %v; want %d", stored, state, err, want)
		}
	}
	if got, want := asJSON(query(t, d, stmt(d, "SELECT k, who FROM effects"))), `[{"k":"k","who":"`+tenantRole+`"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKeepNeedsOnce(t *testing.T) {
	d := open(t, db.Config{URL: "sqlite::memory:"})
	err := d.Tx(context.Background(), db.TxOptions{}, func(tx *db.Tx) error { return tx.Keep(t.Context(), nil) })
	if want := "there is no idempotency key to keep an answer for"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
