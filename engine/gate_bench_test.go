package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// gatedSpec has each tool twice: free, and bound to a machine.
const gatedSpec = `package bench

server: {name: "bench", version: "1", local: claims: sub: "me"}
env: {DATABASE_URL: string, REDIS_URL: string}
databases: main: {url: env.DATABASE_URL, init: ["bench.sql"]}
fsms: work: {
	initial: "open"
	states: {
		open: on: GO: "open"
		shut: on: GO: "open"
	}
	key: "{{ ctx.claims.sub }}"
	store: %s
}
_get: {
	kind: "query", description: "d", params: id: int
	sql: {query: "SELECT id, name FROM bench WHERE id = @id", one: true}
}
_set: {
	kind: "action", description: "d", params: id: int
	sql: {query: "UPDATE bench SET name = 'x' WHERE id = @id RETURNING id, name", one: true}
}
tools: {
	get: _get
	get_gated: {_get, state: in: ["open"]}
	set: _set
	set_gated: {_set, state: {in: ["open"], send: "GO"}}
	say: {kind: "action", description: "d", value: "ok"}
	say_gated: {kind: "action", description: "d", value: "ok", state: {in: ["open"], send: "GO"}}
	shut: {kind: "action", description: "d", value: "ok", state: in: ["shut"]}
}
`

// BenchmarkGates is what a gate costs: a call of a free tool beside one of a
// bound tool that does the same, on each store.
func BenchmarkGates(b *testing.B) {
	for _, c := range []struct{ name, store string }{
		{"memory", `"memory"`}, {"postgres", `{database: "main"}`}, {"redis", "{redis: env.REDIS_URL}"},
	} {
		p := gatedProgram(b, c.store)
		who := &engine.Caller{Claims: value.Of("sub", "me")}
		b.Run(c.name+"/list", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.List(b.Context(), who); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, tool := range []string{"say", "get", "set"} {
			for _, bound := range []string{"", "_gated"} {
				b.Run(c.name+"/"+tool+bound, func(b *testing.B) {
					args := []byte(`{"id": 7}`)
					if tool == "say" {
						args = nil
					}
					b.ReportAllocs()
					for b.Loop() {
						if r, err := p.Call(b.Context(), who, tool+bound, args); err != nil || r.Code != "" {
							b.Fatal(err, r.Code, string(r.Blocks[0].Text))
						}
					}
				})
			}
		}
	}
}

func gatedProgram(b *testing.B, store string) *engine.Program {
	b.Helper()
	dir := b.TempDir()
	for name, text := range map[string]string{"bench.sql": benchSQL, "spec.cue": fmt.Sprintf(gatedSpec, store)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	url, redis := servers.Postgres(b), servers.Redis(b)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"DATABASE_URL": url, "REDIS_URL": redis}[name]
		return v, ok
	}
	graphs, faults := dsl.Load([]string{filepath.Join(dir, "spec.cue")}, dsl.Options{Env: env})
	if faults.Fatal() {
		b.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		b.Fatal(faults)
	}
	if err := p.Open(context.Background(), engine.Options{Env: env, Log: slog.New(slog.DiscardHandler)}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Close(context.Background()) })
	for _, f := range graphs[0].Databases {
		if err := p.Seed(context.Background(), f.Name, f.Init); err != nil {
			b.Fatal(err)
		}
	}
	return p
}
