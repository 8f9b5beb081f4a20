package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const reviewSchema = `
CREATE TABLE invoices (id text PRIMARY KEY, status text NOT NULL);
CREATE TABLE effects (id integer, what text NOT NULL);
INSERT INTO invoices VALUES ('A', 'draft'), ('B', 'draft');
`

// review is a machine whose tools write to the database of its states.
const review = `
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
fsms: review: {
	initial: "draft"
	states: {
		draft: on: APPROVE: "approved"
		approved: on: {
			DISCHARGE: [{when: "result.what == 'back'", to: "approved"}, {to: "draft"}]
		}
	}
	key: "{{ ctx.session }}"
	store: database: "main"
}
presenters: Done: {
	schema: what: string
	rules: [{when: "state.review == 'approved'", text: "It waits for its discharge."}]
	suggest: [{tool: "review.approve", reason: "Next"}, {tool: "review.discharge", reason: "Discharge"}]
}
tools: {
	"review.look": {kind: "query", description: "d", value: {what: "look"}, returns: "Done"}
	"review.approve": {
		kind: "action", description: "d", state: {in: ["draft"], send: "APPROVE"}
		params: id?: string
		sql: {query: "INSERT INTO effects (what) VALUES ('approve') RETURNING what", one: true}
		errors: [{when: "args.id == 'bad'", code: "CONFLICT", message: "No."}, {when: "args.id == 'hm'", code: "ODD", message: "Hm.", severity: "warning"}]
		returns: "Done"
	}
	"review.discharge": {
		kind: "mutation", description: "d", state: {in: ["approved"], send: "DISCHARGE"}
		params: what: string | *"discharge"
		sql: {query: "INSERT INTO effects (what) VALUES (@what) RETURNING what", one: true}
		returns: "Done"
	}
	"review.note": {
		kind: "action", description: "d", state: in: ["approved"]
		sql: query: "INSERT INTO effects (what) VALUES ('note')"
	}
	"review.effects": {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM effects", one: true}}
}
`

func menu(t *testing.T, p *engine.Program, c *engine.Caller) string {
	t.Helper()
	l, err := p.List(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names(l), " ")
}

func as(session string) *engine.Caller { return &engine.Caller{Session: session} }

func callAs(t *testing.T, p *engine.Program, c *engine.Caller, tool, args string) *presenters.Response {
	t.Helper()
	resp, err := p.Traced(context.Background(), c, tool, []byte(args), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// stores are the stores of a machine: the database of its tools, and those
// that are elsewhere.
var stores = map[string]func(t *testing.T) string{
	"database": func(*testing.T) string { return `{database: "main"}` },
	"memory":   func(*testing.T) string { return `"memory"` },
	"redis":    func(t *testing.T) string { return fmt.Sprintf("{redis: %q}", servers.Redis(t)) },
}

// TestGate walks a machine. In the database of the tools its moves are made in
// their own transactions.
func TestGate(t *testing.T) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			testGate(t, strings.Replace(review, `store: database: "main"`, "store: "+store(t), 1))
		})
	}
}

func testGate(t *testing.T, spec string) {
	onBoth(t, spec, reviewSchema, func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		ann, bob := as("ann "+t.Name()), as("bob "+t.Name()) // of one Redis server both engines have the same states
		const draft, approved = "review_look review_approve review_effects", "review_look review_discharge review_note review_effects"
		step := func(who *engine.Caller, tool, args, code, annSees string) string {
			t.Helper()
			r := callAs(t, p, who, tool, args)
			if r.Code != code {
				t.Errorf("%s %s ended in %q: %s%s", tool, args, r.Code, text(r), log)
			}
			if got := menu(t, p, ann); got != annSees {
				t.Errorf("after %s %s the menu is %s", tool, args, got)
			}
			return text(r)
		}
		if got := menu(t, p, ann); got != draft {
			t.Errorf("at first the menu is %s", got)
		}
		forbidden := step(ann, "review.discharge", "{}", "FORBIDDEN", draft)
		if want := "<available_actions>\n  <action>review_look</action>\n  <action>review_approve</action>\n  <action>review_effects</action>\n"; !strings.Contains(forbidden, want) {
			t.Errorf("it offers other tools: %s", forbidden)
		}
		step(ann, "review.note", "{}", "FORBIDDEN", draft)
		step(ann, "review.discharge", `{"nonsense": 1}`, "FORBIDDEN", draft) // not what is wrong with the arguments
		step(ann, "review.approve", `{"id": "bad"}`, "CONFLICT", draft)      // the move goes with the rest
		step(ann, "review.approve", `{"id": 5}`, "VALIDATION_ERROR", draft)
		done := step(ann, "review.approve", "{}", "", approved)
		if !strings.Contains(done, "It waits for its discharge.") || !strings.Contains(done, "review_discharge: Discharge") || strings.Contains(done, "review_approve") {
			t.Errorf("the answer is not of the state after the transition: %s", done)
		}
		if looked := step(ann, "review.look", "{}", "", approved); !strings.Contains(looked, "It waits for its discharge.") || strings.Contains(looked, "review_approve") {
			t.Errorf("a tool without a gate does not see the state: %s", looked)
		}
		step(bob, "review.discharge", "{}", "FORBIDDEN", approved)
		step(ann, "review.note", "{}", "", approved)
		step(ann, "review.discharge", `{"what": "back"}`, "", approved)
		step(ann, "review.discharge", "{}", "", draft)
		step(ann, "review.approve", `{"id": "hm"}`, "ODD", approved) // a warning is a success
		if n := step(ann, "review.effects", "{}", "", approved); !strings.Contains(n, `"n": 5`) {
			t.Errorf("effects: %s", n)
		}
		past, err := p.History(context.Background(), "review", "", 10)
		var moves []string
		for _, m := range slices.Backward(past) {
			moves = append(moves, fmt.Sprintf("%d %s %s>%s", m.Version, m.Event, m.From, m.To))
		}
		if got := strings.Join(moves, ", "); err != nil || got != "1 APPROVE draft>approved, 2 DISCHARGE approved>approved, 3 DISCHARGE approved>draft, 4 APPROVE draft>approved" {
			t.Errorf("history: %s %v", got, err)
		}
		if log.Len() > 0 {
			t.Errorf("log: %s", log)
		}
	})
}

// TestGateAtOnce holds that of many calls in one state exactly one moves it.
func TestGateAtOnce(t *testing.T) {
	onBoth(t, review, reviewSchema, func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		for round := range 10 {
			who := as(fmt.Sprint("s", round))
			if r := callAs(t, p, who, "review.approve", "{}"); r.Code != "" {
				t.Fatal(text(r))
			}
			var won, busy, late, other atomic.Int64
			var calls sync.WaitGroup
			for range 8 {
				calls.Go(func() {
					r, err := p.Traced(context.Background(), who, "review.discharge", nil, nil)
					switch {
					case err != nil:
						other.Add(1)
					case r.Code == "":
						won.Add(1)
					case r.Code == "CONFLICT":
						busy.Add(1)
					case r.Code == "FORBIDDEN":
						late.Add(1)
					default:
						other.Add(1)
					}
				})
			}
			calls.Wait()
			if won.Load() != 1 || other.Load() != 0 {
				t.Fatalf("%d discharged, %d conflicts, %d came late, %d others\n%s", won.Load(), busy.Load(), late.Load(), other.Load(), log)
			}
		}
		if r := call(t, p, "review.effects", "{}"); !strings.Contains(text(r), `"n": 20`) {
			t.Errorf("effects: %s", text(r))
		}
	})
}

// elsewhere is a machine whose effects are in a service.
func elsewhere(url, store, more string) string {
	return `
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: bank: {baseURL: "` + url + `", timeout: "300ms"}
fsms: pay: {
	initial: "open"
	states: {open: on: PAY: "paid", paid: on: UNDO: "open"}
	key: "{{ args.order }}"
	store: ` + store + more + `
}
tools: {
	"pay.pay": {
		kind: "mutation", description: "d", state: {in: ["open"], send: "PAY"}
		params: {order: string, how: string | *"ok"}
		http: {post: "/{{ args.how }}"}
		errors: [{status: 422, code: "CONFLICT", message: "Declined."}]
	}
	"pay.undo": {kind: "action", description: "d", state: {in: ["paid"], send: "UNDO"}, params: order: string, value: "undone"}
	"pay.see": {kind: "query", description: "d", state: in: ["paid"], params: order: string, value: "paid"}
}
`
}

type bank struct {
	*httptest.Server
	paid atomic.Int64
	hold chan struct{} // a payment waits for it
	in   chan struct{} // a payment has come
}

func newBank(t *testing.T) *bank {
	b := &bank{hold: make(chan struct{}), in: make(chan struct{}, 10)}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/decline":
			w.WriteHeader(422)
			return
		case "/wait":
			b.in <- struct{}{}
			<-b.hold
		case "/cut":
			b.paid.Add(1)
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
			return
		}
		b.paid.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok": true}`))
	}))
	t.Cleanup(b.Close)
	return b
}

// TestGateElsewhere walks a machine whose effects no transaction can undo.
func TestGateElsewhere(t *testing.T) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			b := newBank(t)
			onBoth(t, elsewhere(b.URL, store(t), ""), "CREATE TABLE unused (n integer);", func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
				b.paid.Store(0)
				step := func(tool, args, code string) string {
					t.Helper()
					r := callAs(t, p, as("s"), tool, args)
					if r.Code != code {
						t.Errorf("%s %s ended in %q: %s%s", tool, args, r.Code, text(r), log)
					}
					return text(r)
				}
				if got := menu(t, p, as("s")); got != "pay_pay pay_undo pay_see" {
					t.Errorf("a machine keyed by an argument changes lists: %s", got)
				}
				step("pay.undo", `{"order": "1"}`, "FORBIDDEN")
				step("pay.pay", `{"order": "1", "how": "decline"}`, "CONFLICT")
				step("pay.pay", `{"order": "1"}`, "")
				step("pay.pay", `{"order": "1"}`, "FORBIDDEN")
				step("pay.see", `{"order": "1"}`, "")
				step("pay.see", `{"order": "2"}`, "FORBIDDEN")
				step("pay.undo", `{"order": "1"}`, "")
				step("pay.pay", `{"order": "1"}`, "")
				if n := b.paid.Load(); n != 2 {
					t.Errorf("%d payments", n)
				}

				// Nobody knows what became of a payment: nobody may pay again.
				log.Reset()
				step("pay.pay", `{"order": "3", "how": "cut"}`, "SERVER_BUSY")
				if !strings.Contains(log.String(), "a key of a state machine is in doubt") {
					t.Errorf("the log does not tell of the doubt: %s", log)
				}
				doubt := step("pay.pay", `{"order": "3"}`, "CONFLICT")
				if !strings.Contains(doubt, "nobody knows whether it took effect") {
					t.Error(doubt)
				}
				step("pay.see", `{"order": "3"}`, "CONFLICT")
				if n := b.paid.Load(); n != 3 {
					t.Errorf("%d payments", n)
				}
				if from, err := p.Settle(context.Background(), "pay", "3", "paid", "operator"); err != nil || from != "open" {
					t.Errorf("settled from %s: %v", from, err)
				}
				step("pay.see", `{"order": "3"}`, "")

				// While a payment is on its way nobody else pays.
				ended := make(chan *presenters.Response)
				go func() { ended <- callAs(t, p, as("s"), "pay.pay", `{"order": "4", "how": "wait"}`) }()
				<-b.in
				if busy := step("pay.pay", `{"order": "4"}`, "CONFLICT"); !strings.Contains(busy, "Another call is moving this workflow") {
					t.Error(busy)
				}
				step("pay.see", `{"order": "4"}`, "FORBIDDEN")
				b.hold <- struct{}{}
				r := <-ended
				if r.Code != "" && r.Code != "TIMEOUT" { // on a slow day it waited for longer than the service may take
					t.Error(text(r))
				}
			})
		})
	}
}

// TestGateResolve holds that the machine's own query settles a doubt.
func TestGateResolve(t *testing.T) {
	b := newBank(t)
	spec := elsewhere(b.URL, `{database: "main"}`, `
	resolve: query: "SELECT state FROM outcomes WHERE order_id = @key AND @event = 'PAY' AND @tool = 'pay.pay' AND @state = 'open'"`)
	onBoth(t, spec, "CREATE TABLE outcomes (order_id text, state text); INSERT INTO outcomes VALUES ('1', 'paid'), ('2', 'open'), ('3', 'nowhere'), ('5%', 'paid'), ('5%25', 'open');", func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		for order, then := range map[string]string{"1": "FORBIDDEN", "2": "", "3": "CONFLICT", "5%": "FORBIDDEN"} {
			args := `{"order": "` + order + `"`
			if r := callAs(t, p, as("s"), "pay.pay", args+`, "how": "cut"}`); r.Code != "SERVER_BUSY" {
				t.Fatal(text(r))
			}
			if r := callAs(t, p, as("s"), "pay.pay", args+"}"); r.Code != then {
				t.Errorf("order %s: %s\n%s", order, text(r), log)
			}
		}
	})
}

// TestGateOfNobody holds what callers get of whom nothing is known, and that a
// request without a session is its subject's.
func TestGateOfNobody(t *testing.T) {
	p, _ := program(t, review, reviewSchema)
	nobody := &engine.Caller{}
	if got := menu(t, p, nobody); got != "review_look review_effects" {
		t.Errorf("the menu of nobody is %s", got)
	}
	if r := callAs(t, p, nobody, "review.approve", "{}"); r.Code != "AUTH_REQUIRED" || !strings.Contains(text(r), `Tool "review_approve" works on a state of the caller's own`) {
		t.Error(text(r))
	}
	ann := &engine.Caller{Claims: value.Of("sub", "ann")}
	if r := callAs(t, p, ann, "review.approve", "{}"); r.Code != "" {
		t.Error(text(r))
	}
	if got := menu(t, p, &engine.Caller{Claims: value.Of("sub", "ann")}); !strings.Contains(got, "review_discharge") {
		t.Errorf("the menu of ann is %s", got)
	}
	if got := menu(t, p, &engine.Caller{Claims: value.Of("sub", "bob")}); strings.Contains(got, "review_discharge") {
		t.Errorf("the menu of bob is %s", got)
	}
}

// TestGateOnce holds that a repeated call gets its first answer, though the
// state has moved on.
func TestGateOnce(t *testing.T) {
	spec := strings.Replace(review, `params: id?: string`, `params: {id?: string, request?: string}
		idempotency: {key: "{{ args.request }}", ttl: "1h"}`, 1)
	onBoth(t, spec, reviewSchema, func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		first := callAs(t, p, as("ann"), "review.approve", `{"request": "r1"}`)
		again := callAs(t, p, as("ann"), "review.approve", `{"request": "r1"}`)
		if first.Code != "" || !same(first, again) {
			t.Errorf("first %s, again %s\n%s", text(first), text(again), log)
		}
		for _, args := range []string{`{"request": "r2"}`, `{}`} { // with a new key, and without one
			if r := callAs(t, p, as("ann"), "review.approve", args); r.Code != "FORBIDDEN" {
				t.Errorf("%s: %s", args, text(r))
			}
		}
		if r := call(t, p, "review.effects", "{}"); !strings.Contains(text(r), `"n": 1`) {
			t.Errorf("effects: %s", text(r))
		}
	})
}

// TestWatch holds who hears of a change: whose tools are others now, by a call,
// by time, and nobody else.
func TestWatch(t *testing.T) {
	p, _ := program(t, `
fsms: door: {
	initial: "shut"
	states: {
		shut: on: OPEN: "open"
		open: {on: {SHUT: "shut", OPEN: "open"}, after: "1s": "shut"}
	}
	key: "{{ ctx.session }}"
}
tools: {
	open: {kind: "action", description: "d", state: {in: ["shut", "open"], send: "OPEN"}, value: "ok"}
	shut: {kind: "action", description: "d", state: {in: ["open"], send: "SHUT"}, value: "ok"}
}
`, "")
	heard := make(chan string, 100)
	stopAnn := p.Watch(as("ann"), func() { heard <- "ann" })
	defer p.Watch(as("bob"), func() { heard <- "bob" })()
	wait := func(who string) {
		t.Helper()
		select {
		case got := <-heard:
			if got != who {
				t.Errorf("%s heard of it, not %s", got, who)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s has not heard of it", who)
		}
	}
	callAs(t, p, as("ann"), "open", "")
	wait("ann")
	callAs(t, p, as("ann"), "open", "") // the same tools
	callAs(t, p, as("ann"), "shut", "")
	wait("ann")
	callAs(t, p, as("bob"), "open", "")
	wait("bob")
	wait("bob") // the door shuts by itself
	stopAnn()
	callAs(t, p, as("ann"), "open", "")
	callAs(t, p, as("bob"), "open", "")
	wait("bob")
	p.Ended("ann")
	if got := menu(t, p, as("ann")); got != "open" {
		t.Errorf("a session that is over is still %s", got)
	}
}

// TestGateProven holds that the query which settles doubts is proven as those
// of tools are, and that a Redis server is looked for.
func TestGateProven(t *testing.T) {
	p, _ := program(t, elsewhere("https://bank.example.com", `{database: "main"}`, `
	resolve: query: "SELECT stat FROM outcomes WHERE id = @key"`), "CREATE TABLE outcomes (id text, state text);")
	faults := p.Prove(context.Background())
	if len(faults) != 1 || !strings.Contains(faults[0].String(), "fsms.pay.resolve") || !strings.Contains(faults[0].String(), "stat") {
		t.Errorf("faults: %v", faults)
	}
	p, _ = program(t, elsewhere("https://bank.example.com", `{redis: "redis://127.0.0.1:9"}`, ""), "CREATE TABLE outcomes (id text, state text);")
	if faults := p.Prove(context.Background()); len(faults) != 1 || !strings.Contains(faults[0].String(), "fsms.pay.store.redis: the server cannot be reached") {
		t.Errorf("faults: %v", faults)
	}
}

// TestGateKeys holds that lists, which read plain keys by a shorter way, and
// calls find the same state.
func TestGateKeys(t *testing.T) {
	p, _ := program(t, `
fsms: m: {
	initial: "off"
	states: {off: on: ON: "on", on: on: OFF: "off"}
	key: "{{ ctx.claims.sub }}"
}
tools: {
	on: {kind: "action", description: "d", state: {in: ["off"], send: "ON"}, value: "ok"}
	off: {kind: "action", description: "d", state: {in: ["on"], send: "OFF"}, value: "ok"}
}
`, "")
	long := strings.Repeat("ü", 400)
	for _, sub := range []any{"ann", "a%2Fb", "a\x00b", long, int64(7), 1.5, 1e21, value.Number("12.50"), value.Number("123456789012345678901234567890"), true, []any{"a"}} {
		c := &engine.Caller{Claims: value.Of("sub", sub)}
		if got := menu(t, p, c); got != "on" {
			t.Errorf("%v: at first the menu is %s", sub, got)
		}
		if r := callAs(t, p, c, "on", ""); r.Code != "" {
			t.Errorf("%v: %s", sub, text(r))
		}
		if got := menu(t, p, c); got != "off" {
			t.Errorf("%v: the list is of another key than the call", sub)
		}
	}
	for _, sub := range []any{nil, ""} {
		c := &engine.Caller{Claims: value.Of("sub", sub)}
		if r := callAs(t, p, c, "on", ""); menu(t, p, c) != "" || r.Code != "AUTH_REQUIRED" {
			t.Errorf("%v: %s", sub, text(r))
		}
	}
}

// TestGateResolveLogin holds that a query which settles a doubt sees the tables
// and the rows that a caller who comes by does not, and is proven so.
func TestGateResolveLogin(t *testing.T) {
	b := newBank(t)
	url := servers.Postgres(t)
	role := "gate_" + strings.ToLower(rand.Text()[:12])
	spec := strings.Replace(elsewhere(b.URL, `{database: "main"}`, `
	resolve: query: "SELECT CASE WHEN EXISTS (SELECT 1 FROM outcomes JOIN hidden.all_of_them USING (order_id) WHERE order_id = @key) THEN 'paid' ELSE 'open' END AS state"`),
		`{url: "sqlite::memory:", init: ["schema.sql"]}`,
		fmt.Sprintf(`{url: %q, init: ["schema.sql"], session: {role: %q, settings: "app.who": "{{ ctx.claims.sub }}"}}`, url, role), 1)
	p, log := programWith(t, spec, `CREATE ROLE `+role+` NOLOGIN;
		CREATE TABLE outcomes (order_id text, who text); INSERT INTO outcomes VALUES ('1', 'ann');
		CREATE SCHEMA hidden; CREATE TABLE hidden.all_of_them AS SELECT order_id FROM outcomes;
		GRANT SELECT ON outcomes TO `+role+`; ALTER TABLE outcomes ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON outcomes USING (who = current_setting('app.who'));`, engine.Options{Fresh: true})
	t.Cleanup(func() {
		if err := p.Seed(context.Background(), "main", []graph.File{script(t, "DROP OWNED BY "+role+"; DROP ROLE "+role)}); err != nil {
			t.Error(err)
		}
	})
	if faults := p.Prove(context.Background()); len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
	ann := &engine.Caller{Session: "a", Claims: value.Of("sub", "ann")}
	bob := &engine.Caller{Session: "b", Claims: value.Of("sub", "bob")}
	if r := callAs(t, p, ann, "pay.pay", `{"order": "1", "how": "cut"}`); r.Code != "SERVER_BUSY" {
		t.Fatal(text(r))
	}
	if r := callAs(t, p, bob, "pay.see", `{"order": "1"}`); r.Code != "" {
		t.Errorf("it was settled otherwise: %s%s", text(r), log)
	}
	if r := callAs(t, p, ann, "pay.pay", `{"order": "1"}`); r.Code != "FORBIDDEN" || b.paid.Load() != 1 {
		t.Errorf("%d payments: %s", b.paid.Load(), text(r))
	}
}

func script(t *testing.T, sql string) graph.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(path, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	return graph.File{Name: "script.sql", Path: path}
}

// TestGateResolveSession holds that a query which settles a doubt is given the
// session as data know it, which have it from ctx.session.
func TestGateResolveSession(t *testing.T) {
	b := newBank(t)
	spec := strings.Replace(elsewhere(b.URL, `"memory"`, `
	resolve: query: "SELECT state FROM outcomes WHERE session = @key"`), "{{ args.order }}", "{{ ctx.session }}", 1)
	p, log := program(t, spec, "CREATE TABLE outcomes (session text, state text); INSERT INTO outcomes VALUES ('s', 'paid'), ('ann', 'paid');")
	for _, c := range []*engine.Caller{as("s"), {Claims: value.Of("sub", "ann")}} {
		if r := callAs(t, p, c, "pay.pay", `{"order": "1", "how": "cut"}`); r.Code != "SERVER_BUSY" {
			t.Fatal(text(r))
		}
		if r := callAs(t, p, c, "pay.see", `{"order": "1"}`); r.Code != "" {
			t.Errorf("%s%s", text(r), log)
		}
	}
}

// TestGateHidesSessions holds that a store never has the id of a session, and
// that no user is taken for one.
func TestGateHidesSessions(t *testing.T) {
	p, _ := program(t, strings.Replace(review, "sqlite::memory:", "sqlite:a.db", 1), reviewSchema)
	const id = "SESSIONID1234567890ABCDEF"
	callAs(t, p, as(id), "review.approve", "{}")
	l, err := p.States(context.Background(), "review", "", 10)
	if err != nil || len(l.Entries) != 1 || !strings.HasPrefix(l.Entries[0].Key, "session-") || strings.Contains(fmt.Sprint(l.Entries), id) {
		t.Fatalf("stored: %+v %v", l, err)
	}
	past, err := p.History(context.Background(), "review", "", 10)
	if err != nil || strings.Contains(fmt.Sprint(past), id) {
		t.Errorf("history: %+v %v", past, err)
	}
	thief := &engine.Caller{Claims: value.Of("sub", l.Entries[0].Key)}
	if got := menu(t, p, thief); strings.Contains(got, "review_discharge") {
		t.Errorf("a user by the name of a session's key sees %s", got)
	}
	if list, err := p.List(context.Background(), thief); err != nil || !list.ByState {
		t.Errorf("the list does not say that it changes by state (%v)", err)
	}
}

// TestWatchFile holds that a client of one process hears of what another one
// moves in the same SQLite file.
func TestWatchFile(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	o := engine.Options{URL: func(string) string { return file }}
	spec := strings.Replace(review, "{{ ctx.session }}", "{{ ctx.claims.sub }}", 1)
	here, _ := programWith(t, spec, reviewSchema, o)
	there, _ := programWith(t, spec, reviewSchema, o)
	ann, bob := &engine.Caller{Claims: value.Of("sub", "ann")}, &engine.Caller{Claims: value.Of("sub", "bob")}
	heard := make(chan string, 10)
	defer here.Watch(ann, func() { heard <- menu(t, here, ann) })()
	callAs(t, there, bob, "review.approve", "{}") // changes the file, and nothing that ann sees
	for _, tool := range []string{"review.approve", "review.discharge"} {
		callAs(t, there, ann, tool, "{}")
		want := menu(t, there, ann)
		select {
		case got := <-heard:
			if got != want {
				t.Errorf("after %s ann hears of %s, and has %s", tool, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("ann has not heard of %s", tool)
		}
	}
}
