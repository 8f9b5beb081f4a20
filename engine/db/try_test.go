package db_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// What fails inside Try is undone, and the transaction goes on.
func TestTry(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		script(t, d, "CREATE TABLE a (i int PRIMARY KEY)")
		insert := stmt(d, "INSERT INTO a VALUES ($1)")
		add := func(q *db.Tx, i int64) error {
			_, err := q.Query(t.Context(), insert, []any{i}, db.Limit{})
			return err
		}
		declined := errors.New("declined")
		try := func(q *db.Tx, want string, f func() error) {
			t.Helper()
			err := q.Try(t.Context(), f)
			if got := state(err); got != want && (err == nil || err.Error() != want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		write(t, d, func(q *db.Tx) error {
			try(q, "", func() error { return add(q, 1) })
			try(q, "23505", func() error { return errors.Join(add(q, 2), add(q, 1)) })
			try(q, "23505", func() error { _ = add(q, 1); return nil }) // forgotten
			try(q, "declined", func() error { _ = add(q, 2); return declined })
			try(q, "", func() error {
				try(q, "23505", func() error { return add(q, 1) })
				try(q, "", func() error { return add(q, 3) })
				return add(q, 4)
			})
			try(q, "declined", func() error {
				try(q, "", func() error { return add(q, 5) })
				return declined
			})
			return add(q, 6)
		})
		want := `[{"i":1},{"i":3},{"i":4},{"i":6}]`
		if got := asJSON(query(t, d, stmt(d, "SELECT i FROM a ORDER BY i"))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		err := d.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
			try(q, "25006", func() error { return add(q, 9) })
			_, err := q.Query(t.Context(), stmt(d, "SELECT i FROM a"), nil, db.Limit{})
			return err
		})
		if err != nil {
			t.Errorf("read-only: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err = d.Tx(ctx, db.TxOptions{}, func(q *db.Tx) error {
			_ = q.Try(ctx, func() error { _, err := q.Query(ctx, slow(d), nil, db.Limit{}); return err })
			return add(q, 9)
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a transaction whose time was up gives %v", err)
		}
		if got := asJSON(query(t, d, stmt(d, "SELECT i FROM a ORDER BY i"))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
