package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const twoSchema = `CREATE TABLE notes (id integer PRIMARY KEY, text text NOT NULL);`

// two has two databases and steps in both.
const two = `
databases: {
	a: {url: "sqlite::memory:", init: ["schema.sql"]}
	b: {url: "sqlite::memory:", init: ["schema.sql"]}
}
tools: {
	"notes.add": {
		kind: "action", description: "d"
		params: {id: int, text: string, again: bool | *false}
		steps: [
			{name: "in_a", sql: {database: "a", query: "INSERT INTO notes (id, text) VALUES (@id, @text) RETURNING id", one: true}},
			{name: "in_b", sql: {database: "b", query: "INSERT INTO notes (id, text) VALUES (@id, @in_a.id) RETURNING id, text", one: true}},
			{when: "args.again", sql: {database: "a", query: "INSERT INTO notes (id, text) VALUES (@id, @text)"}},
			{sql: {database: "a", query: "UPDATE notes SET text = @in_b.text WHERE id = @id RETURNING id, text", one: true}},
		]
	}
	"notes.a": {kind: "query", description: "d", sql: {database: "a", query: "SELECT id, text FROM notes ORDER BY id"}}
	"notes.b": {kind: "query", description: "d", sql: {database: "b", query: "SELECT id, text FROM notes ORDER BY id"}}
}
`

func TestTwoDatabases(t *testing.T) {
	onBoth(t, two, twoSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		gives(t, p, "notes.add", `{"id":1,"text":"x"}`, `{"id":1,"text":"1"}`)
		gives(t, p, "notes.a", ``, `[{"id":1,"text":"1"}]`)
		gives(t, p, "notes.b", ``, `[{"id":1,"text":"1"}]`)
		conflict := failure("CONFLICT", "There is an entry with these values already.", "Look it up, or send other values.")
		ends(t, p, "notes.add", `{"id":2,"text":"x","again":true}`, "CONFLICT", conflict)
		gives(t, p, "notes.a", ``, `[{"id":1,"text":"1"}]`)
		gives(t, p, "notes.b", ``, `[{"id":1,"text":"1"}]`)
	})
}

// Of two databases, one commits and the other does not: the log and the
// answer say so.
func TestHalfCommitted(t *testing.T) {
	urls := map[string]string{}
	p, log := programWith(t, `
databases: {
	a: {url: "sqlite::memory:", init: ["schema.sql"]}
	b: {url: "sqlite::memory:", init: ["schema.sql"]}
}
tools: {
	"notes.add": {
		kind: "action", description: "d"
		steps: [
			{sql: {database: "a", query: "INSERT INTO late (id) VALUES (1)"}},
			{sql: {database: "b", query: "INSERT INTO notes (id, text) VALUES (1, 'x')"}},
		]
	}
	"notes.b": {kind: "query", description: "d", sql: {database: "b", query: "SELECT id FROM notes"}}
}
`, `CREATE TABLE notes (id integer PRIMARY KEY, text text NOT NULL);
CREATE TABLE late (id integer REFERENCES notes DEFERRABLE INITIALLY DEFERRED);`, engine.Options{Fresh: true, URL: func(d string) string {
		if urls[d] == "" {
			urls[d] = servers.Postgres(t)
		}
		return urls[d]
	}})
	r := call(t, p, "notes.add", ``)
	if r.Code != "INTERNAL_ERROR" || !strings.Contains(text(r), "The call ended in CONFLICT, and a part of what it had done could not be undone. Incident i1.") {
		t.Errorf("%s", text(r))
	}
	if got, want := log.String(), "database a was not committed, after another one of the same call was: "; !strings.Contains(got, want) {
		t.Errorf("log %s", got)
	}
	gives(t, p, "notes.b", ``, `[{"id":1}]`)
}

// A commit that fails is a failure like any other: undone, declared.
func TestFailedCommit(t *testing.T) {
	u := newUpstream(t, map[string]answer{"POST /made": {}, "DELETE /made": {}})
	p, _ := programWith(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: baseURL: %q
tools: "notes.add": {
	kind: "action", description: "d"
	params: other: int
	steps: [
		{http: {api: "hooks", post: "/made"}, undo: http: {api: "hooks", delete: "/made"}},
		{sql: query: "INSERT INTO late (id) VALUES (@other)"},
	]
	errors: [{sqlstate: "23503", code: "NOT_FOUND", message: "There is no {{ args.other }}."}]
}
`, u.URL), `CREATE TABLE notes (id integer PRIMARY KEY);
CREATE TABLE late (id integer REFERENCES notes DEFERRABLE INITIALLY DEFERRED);`, engine.Options{Fresh: true, URL: postgres(t)})
	ends(t, p, "notes.add", `{"other":5}`, "NOT_FOUND", failure("NOT_FOUND", "There is no 5.", ""))
	wantRequests(t, u, "POST /made", "DELETE /made")
}

// postgres gives the URL of one fresh database.
func postgres(t *testing.T) func(string) string {
	url := servers.Postgres(t)
	return func(string) string { return url }
}

// together holds back the first two requests until both are there.
func together() func(*http.Request) {
	var n atomic.Int32
	both := make(chan struct{})
	return func(*http.Request) {
		if n.Add(1) == 2 {
			close(both)
		}
		<-both
	}
}

// Two callers who lock each other out: the server ends one of them, which
// begins anew, and both are answered.
func TestDeadlock(t *testing.T) {
	u := newUpstream(t, map[string]answer{"GET /wait": {before: together()}})
	p, _ := programWith(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: baseURL: %q
tools: {
	"notes.swap": {
		kind: "action", description: "d"
		params: {a: int, b: int}
		steps: [
			{sql: query: "UPDATE notes SET text = text || 'x' WHERE id = @a"},
			{http: {api: "hooks", get: "/wait"}},
			{sql: query: "UPDATE notes SET text = text || 'y' WHERE id = @b"},
		]
	}
	"notes.all": {kind: "query", description: "d", sql: query: "SELECT id, length(text) AS n FROM notes ORDER BY id"}
}
`, u.URL), `CREATE TABLE notes (id integer PRIMARY KEY, text text NOT NULL); INSERT INTO notes VALUES (1, ''), (2, '');`, engine.Options{Fresh: true, URL: postgres(t)})
	var wg sync.WaitGroup
	for _, args := range []string{`{"a":1,"b":2}`, `{"a":2,"b":1}`} {
		wg.Go(func() { gives(t, p, "notes.swap", args, `{"affected":1}`) })
	}
	wg.Wait()
	gives(t, p, "notes.all", ``, `[{"id":1,"n":2},{"id":2,"n":2}]`)
	wantRequests(t, u, "GET /wait", "GET /wait", "GET /wait")
}

// With something outside done, a deadlock ends the call instead.
func TestDeadlockAfterRequest(t *testing.T) {
	u := newUpstream(t, map[string]answer{"POST /made": {before: together()}, "DELETE /made": {}, "POST /left": {before: together()}})
	p, _ := programWith(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: baseURL: %q
#swap: {
	kind: "action", description: "d"
	params: {a: int, b: int}
	_between: {...}
	steps: [
		{sql: query: "UPDATE notes SET text = text || 'x' WHERE id = @a"},
		_between,
		{sql: query: "UPDATE notes SET text = text || 'y' WHERE id = @b"},
	]
}
tools: {
	"notes.undone": #swap & {_between: {http: {api: "hooks", post: "/made"}, undo: http: {api: "hooks", delete: "/made"}}}
	"notes.left": #swap & {_between: http: {api: "hooks", post: "/left"}}
}
`, u.URL), `CREATE TABLE notes (id integer PRIMARY KEY, text text NOT NULL); INSERT INTO notes VALUES (1, ''), (2, '');`, engine.Options{Fresh: true, URL: postgres(t)})
	for tool, want := range map[string]string{
		"notes.undone": failure("CONFLICT", "Others changed the same data at the same time. Nothing was changed.", "Retry after a short delay."),
		"notes.left":   failure("CONFLICT", "Others changed the same data at the same time. A part of the call may have taken effect.", "Do not repeat this call. Tell the user what happened."),
	} {
		got := make(chan string, 2)
		for _, args := range []string{`{"a":1,"b":2}`, `{"a":2,"b":1}`} {
			go func() { got <- text(call(t, p, tool, args)) }()
		}
		a, b := <-got, <-got
		if a != want {
			a, b = b, a
		}
		if a != want || !strings.Contains(b, `"affected": 1`) {
			t.Errorf("%s:\n%s\n%s\nwant one\n%s", tool, a, b, want)
		}
	}
	if got := u.requests(); strings.Count(got, "/made") != 3 || strings.Count(got, "POST /left") != 2 {
		t.Errorf("requests:\n%s", got)
	}
}

// A database that the caller's claims choose; and no other.
func TestChosenDatabase(t *testing.T) {
	spec := strings.Replace(`
databases: {
	north: {url: "sqlite::memory:", init: ["schema.sql"]}
	south: {url: "sqlite::memory:", init: ["schema.sql"]}
}
tools: {
	"notes.add": {kind: "action", description: "d", params: id: int, sql: {database: DB, query: "INSERT INTO notes (id, text) VALUES (@id, @ctx.claims.sub)"}}
	"notes.all": {kind: "query", description: "d", sql: {database: DB, query: "SELECT id, text FROM notes ORDER BY id"}}
	"notes.steps": {kind: "action", description: "d", params: id: int, steps: [
		{name: "x", sql: {database: DB, query: "INSERT INTO notes (id, text) VALUES (@id, 's') RETURNING id", one: true}},
		{sql: {database: DB, query: "SELECT count(*) AS n FROM notes WHERE id <= @x.id", one: true}},
	]}
}
`, "DB", `"{{ ctx.claims.sub }}"`, -1)
	onBoth(t, spec, twoSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		as := func(sub any, tool, args string) string {
			r, _ := p.Traced(t.Context(), &engine.Caller{Claims: value.Of("sub", sub)}, tool, []byte(args), nil)
			return strings.Join(strings.Fields(text(r)), " ")
		}
		as("north", "notes.add", `{"id":1}`)
		as("south", "notes.add", `{"id":2}`)
		as("south", "notes.steps", `{"id":3}`)
		for sub, want := range map[any]string{
			"north":                     `[ { "id": 1, "text": "north" } ]`,
			"south":                     `[ { "id": 2, "text": "south" }, { "id": 3, "text": "s" } ]`,
			"west":                      strings.Join(strings.Fields(failure("FORBIDDEN", "No database is set up for this caller.", "Do not retry. Tell the user that the operator must set it up.")), " "),
			nil:                         strings.Join(strings.Fields(failure("FORBIDDEN", "No database is set up for this caller.", "Do not retry. Tell the user that the operator must set it up.")), " "),
			"north'; DROP TABLE notes;": strings.Join(strings.Fields(failure("FORBIDDEN", "No database is set up for this caller.", "Do not retry. Tell the user that the operator must set it up.")), " "),
		} {
			if got := as(sub, "notes.all", ``); got != want {
				t.Errorf("%v: %s\nwant %s", sub, got, want)
			}
		}
	})
}

// What a caller's session says decides what PostgreSQL shows, in reads,
// writes and steps; a caller of whom it is not known sees nothing at all.
func TestRowLevelSecurity(t *testing.T) {
	role := "fusion_rls_" + strings.ToLower(t.Name())
	p, log := programWith(t, fmt.Sprintf(`
databases: main: {
	url: "postgres://nowhere/x"
	init: ["schema.sql"]
	pool: 2
	session: {role: %q, settings: "app.tenant": "{{ ctx.claims.sub }}"}
}
tools: {
	"notes.all": {kind: "query", description: "d", sql: query: "SELECT id, tenant FROM notes ORDER BY id"}
	"notes.add": {kind: "action", description: "d", params: {id: int, tenant: string}, sql: {query: "INSERT INTO notes VALUES (@id, @tenant) RETURNING id", one: true}}
	"notes.steps": {kind: "query", description: "d", steps: [{name: "a", sql: query: "SELECT id FROM notes"}, {name: "b", sql: query: "SELECT tenant FROM notes"}], result: "{{ len(a) + len(b) }}"}
	"notes.once": {kind: "action", description: "d", params: {id: int, key: string}, idempotency: {key: "{{ args.key }}", ttl: "1h"}, sql: {query: "INSERT INTO notes VALUES (@id, @ctx.claims.sub) RETURNING id", one: true}}
}
`, role), `
CREATE TABLE notes (id integer PRIMARY KEY, tenant text NOT NULL);
INSERT INTO notes VALUES (1, 'ann'), (2, 'bob'), (3, 'bob');
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON notes USING (tenant = current_setting('app.tenant')) WITH CHECK (tenant = current_setting('app.tenant'));
DO $$ BEGIN CREATE ROLE `+role+`; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT, INSERT ON notes TO `+role+`;
`, engine.Options{Fresh: true, URL: postgres(t)})
	as := func(claims *value.Object, tool, args string) string {
		r, _ := p.Traced(context.Background(), &engine.Caller{Claims: claims}, tool, []byte(args), nil)
		return strings.Join(strings.Fields(text(r)), " ")
	}
	ann, bob := value.Of("sub", "ann"), value.Of("sub", "bob")
	unknown := strings.Join(strings.Fields(failure("UNAUTHORIZED", "This needs a caller who is known, and something is not known of this one.", "Do not retry. Tell the user to sign in with an account that may do this.")), " ")
	forbidden := strings.Join(strings.Fields(failure("FORBIDDEN", "This may not be done here.", "Do not retry. Tell the user that the permission is missing.")), " ")
	for range 5 { // connections go from caller to caller
		for _, c := range []struct {
			who        *value.Object
			tool, args string
			want       string
		}{
			{ann, "notes.all", ``, `[ { "id": 1, "tenant": "ann" } ]`},
			{bob, "notes.all", ``, `[ { "id": 2, "tenant": "bob" }, { "id": 3, "tenant": "bob" } ]`},
			{ann, "notes.steps", ``, `2`},
			{bob, "notes.steps", ``, `4`},
			{nil, "notes.all", ``, unknown},
			{value.Of("sub", ""), "notes.all", ``, unknown},
			{nil, "notes.steps", ``, unknown},
			{ann, "notes.add", `{"id":9,"tenant":"bob"}`, forbidden},
			{nil, "notes.add", `{"id":9,"tenant":"bob"}`, unknown},
		} {
			if got := as(c.who, c.tool, c.args); got != c.want {
				t.Errorf("%v %s: %s\nwant %s", c.who, c.tool, got, c.want)
			}
		}
	}
	for range 2 {
		if got := as(ann, "notes.once", `{"id":20,"key":"k"}`); got != `{ "id": 20 }` {
			t.Errorf("%s", got)
		}
	}
	if !strings.Contains(log.String(), `msg="call refused" tool=notes.add code=FORBIDDEN`) {
		t.Errorf("log: %s", log)
	}
}

// No time left: what was done is rolled back, and the statement ends on the
// server too.
func TestTimeout(t *testing.T) {
	u := newUpstream(t, map[string]answer{"POST /made": {}, "DELETE /made": {}, "POST /slow": {before: func(r *http.Request) { <-r.Context().Done() }}})
	url := postgres(t)
	p, _ := programWith(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"], timeout: "3s"}
apis: {
	hooks: {baseURL: %q, timeout: "1s"}
}
#t: {kind: "action", description: "d", timeout: string | *"30s", steps: [...]}
_made: {http: {api: "hooks", post: "/made"}, undo: http: {api: "hooks", delete: "/made"}}
_note: sql: query: "INSERT INTO notes (id, text) VALUES (1, 'x')"
tools: {
	"x.call": #t & {timeout: "1s", steps: [_note, _made, {sql: query: "SELECT 1 AS n FROM pg_sleep(60)"}]}
	"x.statement": #t & {steps: [_note, _made, {sql: query: "SELECT 1 AS n FROM pg_sleep(60)"}]}
	"x.service": #t & {steps: [_note, _made, {http: {api: "hooks", post: "/slow"}}]}
	"x.optional": #t & {steps: [{optional: true, http: {api: "hooks", post: "/slow"}}, {expr: "1"}]}
	"x.running": {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%%pg_sleep(60)%%' AND pid <> pg_backend_pid()", one: true}}
	"x.notes": {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM notes", one: true}}
}
`, u.URL), twoSchema, engine.Options{Fresh: true, URL: url})
	for _, c := range []struct{ tool, message, suggestion string }{
		{"x.call", "[x/call] There was no answer within 1s.", "Nothing was changed. Tell the user before you try again."},
		{"x.statement", "The database did not answer in time. Nothing was changed.", "Ask for less at a time."},
		{"x.service", "The service behind this did not answer in time. A part of the call may have taken effect.", "Do not repeat this call. Tell the user what happened."},
	} {
		start := time.Now()
		ends(t, p, c.tool, ``, "TIMEOUT", failure("TIMEOUT", c.message, c.suggestion))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s", c.tool, took)
		}
		if got := u.requests(); !strings.HasSuffix(got, "DELETE /made") {
			t.Errorf("%s: requests %s", c.tool, got)
		}
		gives(t, p, "x.notes", ``, `{"n":0}`)
	}
	gives(t, p, "x.optional", ``, `1`)
	for range 50 {
		if text(call(t, p, "x.running", ``)) == "{\n  \"n\": 0\n}\n" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("still running: %s", text(call(t, p, "x.running", ``)))
}

// TestNoRoom holds that a call whose time ends while it waits for a connection
// is told that there was no room, not that it was slow.
func TestNoRoom(t *testing.T) {
	came, goOn := make(chan struct{}), make(chan struct{})
	u := newUpstream(t, map[string]answer{"POST /hold": {before: func(*http.Request) { close(came); <-goOn }}})
	p, _ := program(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: hooks: {baseURL: %q, timeout: "60s"}
_note: sql: query: "INSERT INTO notes (id, text) VALUES (@id, 'x')"
tools: {
	"x.long": {kind: "action", description: "d", params: id: int, steps: [_note, {http: {api: "hooks", post: "/hold"}}]}
	"x.short": {kind: "action", description: "d", params: id: int, timeout: "50ms", _note}
}
`, u.URL), twoSchema)
	ended := make(chan *presenters.Response)
	go func() { ended <- call(t, p, "x.long", `{"id":1}`) }()
	<-came
	ends(t, p, "x.short", `{"id":2}`, "SERVER_BUSY", failure("SERVER_BUSY", "The database is at capacity. Nothing was changed.",
		"Retry after a short delay. Send requests sequentially or in smaller batches."))
	close(goOn)
	if r := <-ended; r.Code != "" {
		t.Error(text(r))
	}
}
