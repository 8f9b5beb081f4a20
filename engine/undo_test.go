package engine_test

import (
	"testing"

	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// What a rollback has taken back is not taken back once more: of two
// databases, only the one that is committed has something to undo.
func TestUndoOfStatements(t *testing.T) {
	urls := map[string]string{}
	p, _ := programWith(t, `
databases: {
	a: {url: "sqlite::memory:", init: ["schema.sql"]}
	b: {url: "sqlite::memory:", init: ["schema.sql"]}
}
_count: {
	sql: {database: string, query: "UPDATE counts SET n = n + 1"}
	undo: sql: {database: string, query: "UPDATE counts SET n = n - 1"}
}
tools: {
	"counts.refused": {
		kind: "action", description: "d"
		steps: [_count & {sql: database: "a", undo: sql: database: "a"}]
		errors: [{when: "true", code: "NO", message: "No."}]
	}
	"counts.uncommitted": {
		kind: "action", description: "d"
		steps: [
			_count & {sql: database: "a", undo: sql: database: "a"},
			_count & {sql: database: "b", undo: sql: database: "b"},
			{sql: {database: "a", query: "INSERT INTO late (id) VALUES (1)"}},
		]
	}
	"counts.a": {kind: "query", description: "d", sql: {database: "a", query: "SELECT n FROM counts", one: true}}
	"counts.b": {kind: "query", description: "d", sql: {database: "b", query: "SELECT n FROM counts", one: true}}
}
`, `CREATE TABLE counts (id integer PRIMARY KEY, n integer NOT NULL);
INSERT INTO counts VALUES (1, 5);
CREATE TABLE notes (id integer PRIMARY KEY);
CREATE TABLE late (id integer REFERENCES notes DEFERRABLE INITIALLY DEFERRED);`, engine.Options{Fresh: true, URL: func(d string) string {
		if urls[d] == "" {
			urls[d] = servers.Postgres(t)
		}
		return urls[d]
	}})
	same := func() {
		t.Helper()
		gives(t, p, "counts.a", ``, `{"n":5}`)
		gives(t, p, "counts.b", ``, `{"n":5}`)
	}
	ends(t, p, "counts.refused", ``, "NO", failure("NO", "No.", ""))
	same()
	if r := call(t, p, "counts.uncommitted", ``); r.Code != "INTERNAL_ERROR" {
		t.Errorf("%s", text(r))
	}
	same()
}
