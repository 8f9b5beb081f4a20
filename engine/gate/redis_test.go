package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func openRedis(t *testing.T, url, name string) *gate.Redis {
	t.Helper()
	r, err := gate.OpenRedis(db.RedisConfig{URL: url}, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestRedis(t *testing.T) {
	testStore(t, func(t *testing.T) (a, b gate.Store) {
		url := servers.Redis(t)
		return openRedis(t, url, "shop"), openRedis(t, url, "shop")
	})
}

// Servers of another name have states of their own.
func TestRedisNames(t *testing.T) {
	url := servers.Redis(t)
	a, b := view{openRedis(t, url, "shop"), t}, view{openRedis(t, url, "other"), t}
	a.move(cart, 0, nil, step("s", "t", "c", began))
	b.is(cart, gate.Record{})
	if l := b.list("cart", 10); len(l) != 0 {
		t.Errorf("list %+v", l)
	}
}

// What a store forgets by time it forgets whole: the record, its history and
// its place in the list; never while it is held.
func TestRedisExpiry(t *testing.T) {
	own := servers.PrivateRedis(t)
	a := view{openRedis(t, own.URL, "shop"), t}
	soon := func() time.Time { return time.Now().Add(50 * time.Millisecond) }
	a.want("Move", a.Move(t.Context(), cart, 0, []gate.Move{step("s", "t", "c", began)}, soon()), nil)
	kept := gate.ID{FSM: "cart", Key: "held"}
	a.want("Move", a.Move(t.Context(), kept, 0, []gate.Move{step("s", "t", "c", began)}, time.Now().Add(time.Hour)), nil)
	a.hold(kept, 1, held("h"), nil)
	for name, left := range a.left(own) {
		if name == "moves" || name == "state" {
			t.Errorf("%s of a held record goes in %d ms", name, left)
		}
	}
	a.until("the record is forgotten", func() bool { return a.load(cart).Version == 0 })
	a.until("its history is forgotten", func() bool { return len(a.history(cart, 10)) == 0 })
	if l := a.list("cart", 10); len(l) != 1 || l[0].ID != kept {
		t.Errorf("list %+v", l)
	}
	if r := a.load(kept); r.Version != 1 || r.Hold == nil {
		t.Errorf("the held record: %s", shown(r))
	}
	a.release(kept, "h", false, nil)
	if left := a.left(own); left["state"] <= 0 || left["moves"] <= 0 || left["state"] > time.Hour.Milliseconds() {
		t.Errorf("a released record is kept for ever: %v", left)
	}
	// Its version begins at 0 again. What is left of forgotten keys goes with
	// the moves of others.
	a.move(kept, 1, nil, step("s", "t", "c", time.Now()))
	a.move(kept, 2, nil, step("s", "t", "c", time.Now()))
	if n := own.Do("ZCARD", "fusion:shop:{cart}:moved"); n != int64(1) {
		t.Errorf("%v keys are listed, want 1", n)
	}
	if n := own.Do("ZCARD", "fusion:shop:{cart}:expiry"); n != int64(0) {
		t.Errorf("%v keys are to be forgotten, want none", n)
	}
	a.move(cart, 0, nil, step("s", "t", "c", began))
	// A record whose time passed while it was held goes when the hold ends.
	a.want("Move", a.Move(t.Context(), cart, 1, []gate.Move{step("s", "t", "c", began)}, time.Now().Add(time.Hour)), nil)
	a.hold(cart, 2, held("h"), nil)
	own.Do("HSET", "fusion:shop:{cart}:state:"+cart.Key, "expires", fmt.Sprint(time.Now().Add(-time.Second).UnixMicro()))
	if r := a.load(cart); r.Version != 2 {
		t.Errorf("%s", shown(r))
	}
	a.release(cart, "h", false, nil)
	a.is(cart, gate.Record{})
}

// left gives in how many milliseconds the keys of the held record are
// forgotten, if they are.
func (v view) left(own *servers.OwnRedis) map[string]int64 {
	out := map[string]int64{}
	for _, name := range []string{"state", "moves"} {
		if ms := own.Do("PTTL", "fusion:shop:{cart}:"+name+":held"); ms != int64(-1) {
			out[name] = ms.(int64)
		}
	}
	return out
}

// until waits for something.
func (v view) until(what string, holds func() bool) {
	v.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// A server that goes and comes back: calls say so in the meantime, and go on
// after it; the feed tells that it has missed something.
func TestRedisRestart(t *testing.T) {
	own := servers.PrivateRedis(t, "appendonly", "yes", "appendfsync", "always")
	a, b := view{openRedis(t, own.URL, "shop"), t}, view{openRedis(t, own.URL, "shop"), t}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan gate.Change, 1000)
	go b.Feed(ctx, func(c gate.Change) { told <- c })
	waitFor(t, told, gate.Change{All: true})
	a.move(cart, 0, nil, step("s", "t", "c1", began))
	waitFor(t, told, gate.Change{ID: cart})
	a.hold(cart, 1, held("c2"), nil)

	own.Kill()
	_, err := a.Load(t.Context(), cart)
	var unavailable *db.Error
	if !errors.As(err, &unavailable) || !unavailable.Unavailable {
		t.Errorf("Load: %v", err)
	}
	if err := b.Move(t.Context(), cart, 1, []gate.Move{step("t", "s", "c2", began)}, time.Time{}); err == nil || errors.Is(err, gate.ErrConflict) {
		t.Errorf("Move: %v", err)
	}
	own.Start()
	h := held("c2")
	a.is(cart, gate.Record{State: "t", Version: 1, Entered: began, Hold: &h})
	waitFor(t, told, gate.Change{All: true})
	a.move(cart, 1, nil, step("t", "s", "c2", began))
	waitFor(t, told, gate.Change{ID: cart})
}

// Scripts that ran and whose answer was lost are sent again, and know it.
func TestRedisTwice(t *testing.T) {
	url := servers.Redis(t)
	a := view{openRedis(t, url, "shop"), t}
	a.hold(cart, 0, held("c1"), nil)
	a.hold(cart, 0, held("c1"), nil)
	a.move(cart, 0, nil, step("s", "t", "c1", began))
	a.move(cart, 0, nil, step("s", "t", "c1", began))
	a.is(cart, gate.Record{State: "t", Version: 1, Entered: began})
	if past := a.history(cart, 10); len(past) != 1 {
		t.Errorf("history %+v", past)
	}
}

// A server that may lose states says so when it is opened.
func TestRedisCheck(t *testing.T) {
	evicts := "the Redis server drops states when its memory is full (maxmemory-policy is allkeys-lru): set maxmemory-policy to noeviction"
	forgets := "the Redis server forgets the last moves when it starts again (appendonly is no): set appendonly to yes"
	for _, c := range []struct {
		settings []string
		want     []string
	}{
		{[]string{"appendonly", "yes"}, nil},
		{nil, []string{forgets}},
		{[]string{"appendonly", "yes", "maxmemory-policy", "allkeys-lru"}, []string{evicts}},
	} {
		own := servers.PrivateRedis(t, c.settings...)
		r := openRedis(t, own.URL, "shop")
		got, err := r.Check(t.Context())
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, error %v; want %q", c.settings, got, err, c.want)
		}
		own.Kill()
		if _, err := r.Check(t.Context()); err == nil {
			t.Errorf("%v: a server that is gone passes the check", c.settings)
		}
	}
}

// A user who may not see the settings is no trouble.
func TestRedisHosted(t *testing.T) {
	own := servers.PrivateRedis(t, "maxmemory-policy", "allkeys-lru")
	own.Do("ACL", "SETUSER", "app", "on", ">secret", "~fusion:*", "&fusion:*", "+@all", "-config")
	r := openRedis(t, strings.Replace(own.URL, "//", "//app:secret@", 1), "shop")
	if warnings, err := r.Check(t.Context()); err != nil || warnings != nil {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
	a := view{r, t}
	a.move(cart, 0, nil, step("s", "t", "c", began))
	a.is(cart, gate.Record{State: "t", Version: 1, Entered: began})
}

func BenchmarkRedis(b *testing.B) {
	r, err := gate.OpenRedis(db.RedisConfig{URL: servers.Redis(b)}, "shop")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	ctx, id := b.Context(), gate.ID{FSM: "cart", Key: "customer"}
	moves := []gate.Move{step("s", "t", "c", began)}
	version := int64(0)
	b.Run("move", func(b *testing.B) {
		for b.Loop() {
			if err := r.Move(ctx, id, version, moves, time.Now().Add(time.Hour)); err != nil {
				b.Fatal(err)
			}
			version++
		}
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Load(ctx, id); err != nil {
				b.Fatal(err)
			}
		}
	})
}
