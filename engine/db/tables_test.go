package db_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func newTable() *db.Table {
	const sql = "CREATE TABLE IF NOT EXISTS fusion_notes (n integer PRIMARY KEY)"
	return &db.Table{Name: "fusion_notes", Make: [2][]string{
		{sql, "CREATE INDEX IF NOT EXISTS fusion_notes_n ON fusion_notes (n)"},
		{sql, "CREATE INDEX IF NOT EXISTS fusion_notes_n ON fusion_notes (n)"},
	}}
}

// add writes to a table of ours in a transaction, which makes it if need be.
func add(ctx context.Context, d *db.DB, table *db.Table, n int64, end error) error {
	return d.Tx(ctx, db.TxOptions{Retry: db.Always}, func(q *db.Tx) error {
		name, err := q.Ensure(ctx, table)
		if err != nil {
			return err
		}
		if _, err = q.Query(ctx, ours(d, "INSERT INTO "+name+" (n) VALUES ($1)"), []any{n}, db.Limit{}); err != nil {
			return err
		}
		return end
	})
}

func TestEnsure(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		table, declined := newTable(), errors.New("declined")
		if err := add(t.Context(), d, table, 1, declined); err != declined {
			t.Fatal(err)
		}
		if err := add(t.Context(), d, table, 1, nil); err != nil {
			t.Fatal(err)
		}
		name, err := d.Ensure(t.Context(), table)
		if err != nil || !strings.HasSuffix(name, `"."fusion_notes"`) {
			t.Errorf("%s, %v", name, err)
		}
		// One that somebody drops is made again: in a transaction by its retry, for
		// others by the next call.
		script(t, d, "DROP TABLE fusion_notes")
		if err := add(t.Context(), d, table, 2, nil); err != nil {
			t.Error(err)
		}
		script(t, d, "DROP TABLE fusion_notes")
		for _, call := range []func() error{
			func() error {
				_, err := d.Query(t.Context(), ours(d, "SELECT n FROM "+name), nil, db.Limit{})
				return err
			},
			func() error { _, err := d.Write(t.Context(), ours(d, "DELETE FROM "+name), nil); return err },
			func() error {
				return d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error { return q.Last(ours(d, "DELETE FROM "+name), nil, nil) })
			},
			func() error {
				return d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
					return errors.Join(q.Ahead(t.Context(), ours(d, "SELECT n FROM "+name), nil, yes), run(t, q, stmt(d, "SELECT 1 AS i")))
				})
			},
		} {
			if err := call(); !db.Gone(err) {
				t.Errorf("got %v", err)
			}
			if _, err := d.Ensure(t.Context(), table); err != nil {
				t.Error(err)
			}
			if err := call(); err != nil {
				t.Errorf("made again: %v", err)
			}
			script(t, d, "DROP TABLE fusion_notes")
		}
		if _, err := d.Query(t.Context(), stmt(d, "SELECT n FROM fusion_notes"), nil, db.Limit{}); err == nil || db.Gone(err) {
			t.Errorf("a table of the caller's is not ours: %v", err)
		}
	})
}

// First calls do not wait for each other, nor for a connection of a pool in
// which there is only theirs.
func TestEnsureInTransaction(t *testing.T) {
	url := servers.Postgres(t)
	d := open(t, db.Config{URL: url, Pool: db.Pool{Max: 1, Acquire: 30 * time.Second}})
	other := open(t, db.Config{URL: url})
	table := newTable()
	err := d.Tx(t.Context(), db.TxOptions{}, func(q *db.Tx) error {
		if _, err := q.Ensure(t.Context(), table); err != nil {
			return err
		}
		return add(t.Context(), other, newTable(), 1, nil) // this one is not committed yet
	})
	if err != nil {
		t.Error(err)
	}
	var callers sync.WaitGroup
	crowd := open(t, db.Config{URL: servers.Postgres(t)})
	for i := range int64(20) {
		callers.Go(func() {
			if err := add(t.Context(), crowd, table, i, nil); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if got := asJSON(query(t, crowd, stmt(crowd, "SELECT count(*) AS n FROM fusion_notes"))); got != `[{"n":20}]` {
		t.Error(got)
	}
}

// A login that may not make tables uses one that an administrator has made,
// wherever its search_path finds it.
func TestEnsureOfPoorLogin(t *testing.T) {
	url := servers.Postgres(t)
	owner := open(t, db.Config{URL: url})
	const login = "fusion_test_tables"
	script(t, owner, `DO $$ BEGIN CREATE ROLE `+login+` LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	script(t, owner, `REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE SCHEMA "my own"; GRANT USAGE ON SCHEMA "my own" TO `+login)
	d := open(t, db.Config{URL: strings.Replace(url, "postgres@", login+"@", 1) + `?search_path="my%20own"`})
	table := newTable()
	if _, err := d.Ensure(t.Context(), table); state(err) != "42501" || !strings.HasPrefix(err.Error(), "making the table fusion_notes: ") {
		t.Errorf("without a table: %v", err)
	}
	script(t, owner, `SET search_path = "my own"; `+strings.Join(table.Make[db.Postgres], ";")+`; GRANT SELECT, INSERT ON fusion_notes TO `+login)
	if name, err := d.Ensure(t.Context(), table); err != nil || name != `"my own"."fusion_notes"` {
		t.Errorf("%s, %v", name, err)
	}
	if err := add(t.Context(), d, table, 1, nil); err != nil {
		t.Error(err)
	}
}
