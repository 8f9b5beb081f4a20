package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// What a server may do to a call: each time a clear answer, nothing
// half-done, and the next call works.
func TestServerFails(t *testing.T) {
	server := servers.PrivatePostgres(t, "max_connections=20", "superuser_reserved_connections=0")
	u := newUpstream(t, map[string]answer{"POST /made": {}, "DELETE /made": {}})
	p, log := programWith(t, fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"], pool: {max: 4, acquire: "1s"}}
apis: hooks: baseURL: %q
_insert: sql: query: "INSERT INTO notes (id, text) VALUES (@id, 'x')"
_sleep: sql: query: "SELECT 1 AS n FROM pg_sleep(60)"
_made: {http: {api: "hooks", post: "/made"}, undo: http: {api: "hooks", delete: "/made"}}
tools: {
	"notes.add": {kind: "action", description: "d", params: id: int, _insert}
	"notes.slow": {kind: "action", description: "d", params: id: int, steps: [_insert, _made, _sleep]}
	"notes.read": {kind: "query", description: "d", sql: query: "SELECT 1 AS n FROM pg_sleep(60)"}
	"notes.hold": {kind: "query", description: "d", sql: query: "SELECT 1 AS n FROM pg_sleep(1.5)"}
	"notes.count": {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM notes", one: true}}
	"notes.gone": {kind: "action", description: "d", params: id: int, steps: [_insert, {sql: query: "INSERT INTO other (id) VALUES (@id)"}]}
}
`, u.URL), twoSchema+`CREATE TABLE other (id integer);`, engine.Options{Fresh: true, URL: func(string) string { return server.URL }})
	const unreachable = "The database cannot be reached at the moment."
	const tell = "Retry after a short delay. Tell the user if it stays so."
	added := 0
	works := func() {
		t.Helper()
		added++
		gives(t, p, "notes.add", fmt.Sprintf(`{"id":%d}`, added), `{"affected":1}`)
		gives(t, p, "notes.count", ``, fmt.Sprintf(`{"n":%d}`, added))
	}
	works()

	// Killed in the middle of a write and a read.
	var wg sync.WaitGroup
	wg.Go(func() {
		ends(t, p, "notes.slow", `{"id":1000}`, "SERVER_BUSY", failure("SERVER_BUSY", unreachable+" Nothing was changed.", tell))
	})
	wg.Go(func() { ends(t, p, "notes.read", ``, "SERVER_BUSY", failure("SERVER_BUSY", unreachable, tell)) })
	asleep(t, server, 2)
	server.Kill()
	wg.Wait()
	wantRequests(t, u, "POST /made", "DELETE /made")
	ends(t, p, "notes.count", ``, "SERVER_BUSY", failure("SERVER_BUSY", unreachable, tell))
	ends(t, p, "notes.add", `{"id":1000}`, "SERVER_BUSY", failure("SERVER_BUSY", unreachable+" Nothing was changed.", tell))
	if strings.Contains(text(call(t, p, "notes.count", ``)), "127.0.0.1") || !strings.Contains(log.String(), `msg="call refused" tool=notes.count code=SERVER_BUSY`) {
		t.Errorf("log: %s", log)
	}
	server.Start()
	works()

	// An administrator ends the connection.
	wg.Go(func() {
		ends(t, p, "notes.slow", `{"id":1000}`, "SERVER_BUSY", failure("SERVER_BUSY", unreachable+" Nothing was changed.", tell))
	})
	asleep(t, server, 1)
	server.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()")
	wg.Wait()
	u.requests()
	works()

	// The pool is used up.
	codes := make(chan string, 12)
	for range cap(codes) {
		wg.Go(func() { codes <- call(t, p, "notes.hold", ``).Code })
	}
	wg.Wait()
	close(codes)
	n := map[string]int{}
	for c := range codes {
		n[c]++
	}
	if n[""] < 4 || n["SERVER_BUSY"] == 0 || n[""]+n["SERVER_BUSY"] != cap(codes) {
		t.Errorf("codes: %v", n)
	}
	works()

	// A table is dropped.
	server.Exec("DROP TABLE other")
	for range 2 {
		ends(t, p, "notes.gone", `{"id":1000}`, "INTERNAL_ERROR", failure("INTERNAL_ERROR", "[notes/gone] Something went wrong. Incident i1.", "Nothing was changed. Give the incident id to the user."))
	}
	works()
	server.Exec("CREATE TABLE other (id integer)")
	gives(t, p, "notes.gone", `{"id":1000}`, `{"affected":1}`)
}

// asleep waits until n statements sleep on the server.
func asleep(t *testing.T, server *servers.Private, n int) {
	t.Helper()
	p, _ := programWith(t, `
databases: main: url: "sqlite::memory:"
tools: asleep: {kind: "query", description: "d", sql: {query: "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()", one: true}}
`, "", engine.Options{URL: func(string) string { return server.URL }})
	want := fmt.Sprintf("{\n  \"n\": %d\n}\n", n)
	for range 200 {
		if text(call(t, p, "asleep", ``)) == want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%d statements do not sleep", n)
}
