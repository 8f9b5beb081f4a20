package engine_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const benchSpec = `package bench

server: {name: "bench", version: "1"}
env: DATABASE_URL: string
databases: main: {url: env.DATABASE_URL, init: ["bench.sql"]}

presenters: Item: {
	schema: {
		id:    int
		name:  string
		cents: int
		paid:  bool
		day:   string @format(date)
	}
	rules: ["cents are CENTS.", {when: "data.paid == false", text: "{{ data.name }} is not paid."}]
}

tools: {
	"items.get": {
		kind: "query", description: "d"
		params: id: int
		sql: {query: "SELECT id, name, cents, paid, day FROM bench WHERE id = @id", one: true}
		returns: "Item"
	}
	"items.list": {
		kind: "query", description: "d"
		params: n: int
		sql: query: "SELECT id, name, cents, paid, day FROM bench ORDER BY id LIMIT @n"
		returns: "Item"
	}
}
`

const benchSQL = `
CREATE TABLE bench (id integer PRIMARY KEY, name text NOT NULL, cents integer NOT NULL, paid boolean NOT NULL, day date NOT NULL);
INSERT INTO bench WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000)
SELECT i, 'name of ' || i, i * 100, i % 2 = 0, '2026-03-01' FROM c
`

// BenchmarkCall is a whole tool call in process, arguments as JSON in and
// content blocks as JSON out, beside the same statement through pgx alone with
// its rows as maps marshalled by encoding/json.
func BenchmarkCall(b *testing.B) {
	url := servers.Postgres(b)
	p := benchProgram(b, url)
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	for _, c := range []struct{ name, tool, args, sql string }{
		{"get-by-id", "items_get", `{"id":7}`, "SELECT id, name, cents, paid, day FROM bench WHERE id = $1"},
		{"list-1000", "items_list", `{"n":1000}`, "SELECT id, name, cents, paid, day FROM bench ORDER BY id LIMIT $1"},
	} {
		arg := 7
		if c.name == "list-1000" {
			arg = 1000
		}
		b.Run(c.name+"/call", func(b *testing.B) {
			b.ReportAllocs()
			var out []byte
			for b.Loop() {
				resp, err := p.Call(b.Context(), &engine.Caller{}, c.tool, []byte(c.args))
				if err != nil || resp.Code != "" {
					b.Fatal(err, resp.Code)
				}
				out = resp.AppendResult(out[:0], false)
			}
		})
		b.Run(c.name+"/pgx", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rows, err := pool.Query(context.Background(), c.sql, arg)
				if err != nil {
					b.Fatal(err)
				}
				l, err := pgx.CollectRows(rows, pgx.RowToMap)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := json.MarshalIndent(l, "", "  "); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchProgram(b *testing.B, url string) *engine.Program {
	b.Helper()
	dir := b.TempDir()
	for name, text := range map[string]string{"bench.cue": benchSpec, "bench.sql": benchSQL} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	env := func(name string) (string, bool) { return url, name == "DATABASE_URL" }
	graphs, faults := dsl.Load([]string{filepath.Join(dir, "bench.cue")}, dsl.Options{Env: env})
	if faults.Fatal() {
		b.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		b.Fatal(faults)
	}
	if err := p.Open(b.Context(), engine.Options{Env: env, Fresh: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close(context.Background()) })
	return p
}
