package engine_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

const paymentsSchema = `
CREATE TABLE payments (id integer PRIMARY KEY, cents integer NOT NULL CHECK (cents > 0));
`

func paying(url string) string {
	return fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: bank: baseURL: %q
tools: {
	"pay.in": {
		kind: "action", description: "d"
		params: {key?: string, cents: int, more: {a: int | *0, b: int | *0} | *{a: 0, b: 0}}
		idempotency: {key: "{{ args.key }}", ttl: "1h"}
		sql: {query: "INSERT INTO payments (id, cents) SELECT coalesce(max(id), 0) + 1, @cents FROM payments RETURNING id, cents", one: true}
		returns: {schema: {id: int, cents: int}, rules: ["In cents."]}
		structured: true
		invalidates: ["pay.*"]
	}
	"pay.out": {
		kind: "mutation", description: "d"
		params: {key: string, cents: int}
		idempotency: {key: "{{ args.key }}", ttl: "1h"}
		steps: [
			{name: "sent", http: {api: "bank", post: "/transfers", body: cents: "{{ args.cents }}"}},
			{sql: {query: "INSERT INTO payments (id, cents) SELECT coalesce(max(id), 0) + 1, @cents FROM payments RETURNING id", one: true}},
		]
	}
	"pay.list": {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM payments", one: true}}
}
`, url)
}

func same(a, b *presenters.Response) bool {
	return bytes.Equal(a.AppendResult(nil, true), b.AppendResult(nil, true)) && bytes.Equal(a.AppendResult(nil, false), b.AppendResult(nil, false))
}

func TestOnce(t *testing.T) {
	u := newUpstream(t, map[string]answer{"POST /transfers": {}})
	onBoth(t, paying(u.URL), paymentsSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		first := call(t, p, "pay.in", `{"key":"k1","cents":5,"more":{"a":1,"b":2}}`)
		if first.Code != "" {
			t.Fatal(text(first))
		}
		if again := call(t, p, "pay.in", `{"more":{"b":2,"a":1},"cents":5,"key":"k1"}`); !same(first, again) {
			t.Errorf("first\n%s\nthen\n%s", first.AppendResult(nil, true), again.AppendResult(nil, true))
		}
		other := failure("CONFLICT", "This key was used before, with other arguments.", "Send the arguments of the first call to see its answer again, or a new key for a new call.")
		ends(t, p, "pay.in", `{"key":"k1","cents":6}`, "CONFLICT", other)
		gives(t, p, "pay.list", ``, `{"n":1}`)

		// Without a key every call is its own; another caller has other keys.
		for range 2 {
			call(t, p, "pay.in", `{"cents":5}`)
		}
		gives(t, p, "pay.list", ``, `{"n":3}`)
		for _, who := range []*engine.Caller{{Claims: value.Of("sub", "you")}, {Session: "me"}, {Session: "you"}, {}} {
			r, err := p.Traced(t.Context(), who, "pay.in", []byte(`{"key":"k1","cents":6}`), nil)
			if err != nil || r.Code != "" {
				t.Errorf("%v: %s", who, text(r))
			}
		}
		gives(t, p, "pay.list", ``, `{"n":7}`)

		// What failed was not done: the key is free. What is too old is forgotten.
		for range 2 {
			ends(t, p, "pay.in", `{"key":"k2","cents":-1}`, "VALIDATION_ERROR", failure("VALIDATION_ERROR", "A value is not allowed here.", "Send other values."))
		}
		r, _ := p.Traced(t.Context(), &engine.Caller{Session: "s", Claims: p.Server().Local, Now: time.Now().Add(2 * time.Hour)}, "pay.in", []byte(`{"key":"k1","cents":9}`), nil)
		if r.Code != "" {
			t.Errorf("after its time: %s", text(r))
		}

		// A request goes out once.
		u.requests()
		for range 3 {
			if r := call(t, p, "pay.out", `{"key":"k1","cents":5}`); r.Code != "" {
				t.Errorf("%s", text(r))
			}
		}
		wantRequests(t, u, `POST /transfers {"cents":5}`)
	})
}

// Many callers with one key at a time: one of them does it, once.
func TestOnceAtOnce(t *testing.T) {
	entered := make(chan struct{}, 100)
	leave := make(chan struct{})
	u := newUpstream(t, map[string]answer{"POST /transfers": {before: func(*http.Request) {
		entered <- struct{}{}
		<-leave
	}}})
	onBoth(t, paying(u.URL), paymentsSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		const callers = 8
		codes := make(chan string, callers)
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() { codes <- call(t, p, "pay.out", `{"key":"k","cents":5}`).Code })
		}
		<-entered
		time.Sleep(50 * time.Millisecond)
		select {
		case <-entered:
			t.Error("a second request went out")
		default:
		}
		leave <- struct{}{}
		wg.Wait()
		close(codes)
		n := map[string]int{}
		for c := range codes {
			n[c]++
		}
		if n[""] == 0 || n[""]+n["CONFLICT"] != callers {
			t.Errorf("codes: %v", n)
		}
		gives(t, p, "pay.list", ``, `{"n":1}`)
		wantRequests(t, u, `POST /transfers {"cents":5}`)
	})
}
