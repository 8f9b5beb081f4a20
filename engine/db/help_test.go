package db_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// onBoth runs a test on a fresh database of each engine.
func onBoth(t *testing.T, f func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, open(t, db.Config{URL: "sqlite::memory:"})) })
	t.Run("sqlite file", func(t *testing.T) { f(t, open(t, db.Config{URL: "sqlite:a.db", Dir: t.TempDir()})) })
	t.Run("postgres", func(t *testing.T) { f(t, open(t, db.Config{URL: servers.Postgres(t)})) })
}

func open(t testing.TB, c db.Config) *db.DB {
	t.Helper()
	c.Name = "main"
	d, err := db.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}

func script(t testing.TB, d *db.DB, sql string) {
	t.Helper()
	if err := d.Script(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

// stmt makes a statement; its parameters are written $1.
func stmt(d *db.DB, sql string) *db.Stmt {
	s := &db.Stmt{SQL: sql}
	for strings.Contains(sql, "$"+string(rune('1'+s.Args))) {
		s.Args++
	}
	if d.Dialect() == db.SQLite {
		s.SQL = strings.ReplaceAll(sql, "$", "?")
	}
	return s
}

func query(t testing.TB, q db.Querier, s *db.Stmt, args ...any) *db.Answer {
	t.Helper()
	a, err := q.Query(context.Background(), s, args, db.Limit{})
	if err != nil {
		t.Fatalf("%s: %v", s.SQL, err)
	}
	return a
}

// asJSON gives the rows of an answer as compact JSON.
func asJSON(a *db.Answer) string { return string(value.AppendJSON(nil, a.Rows)) }
