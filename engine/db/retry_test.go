package db_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// deadlock has two callers take two rows in opposite order.
func deadlock(t *testing.T, d *db.DB, retry func() bool) (errs [2]error, runs int32) {
	t.Helper()
	var ran atomic.Int32
	var met sync.WaitGroup
	met.Add(2)
	var callers sync.WaitGroup
	for i := range 2 {
		callers.Go(func() {
			first := true
			errs[i] = d.Tx(t.Context(), db.TxOptions{Retry: retry}, func(q *db.Tx) error {
				ran.Add(1)
				for n := range 2 {
					id := int64(1 + (i+n)%2)
					if _, err := q.Query(t.Context(), stmt(d, "UPDATE a SET i = i + 1 WHERE id = $1"), []any{id}, db.Limit{}); err != nil {
						return err
					}
					if n == 0 && first {
						first = false
						met.Done()
						met.Wait()
					}
				}
				return nil
			})
		})
	}
	callers.Wait()
	return errs, ran.Load()
}

func TestDeadlock(t *testing.T) {
	d := postgres(t, 0)
	script(t, d, "CREATE TABLE a (id int PRIMARY KEY, i int NOT NULL); INSERT INTO a VALUES (1, 0), (2, 0)")
	errs, runs := deadlock(t, d, nil)
	if (errs[0] == nil) == (errs[1] == nil) || state(errors.Join(errs[:]...)) != "40P01" || runs != 2 {
		t.Errorf("without a retry: %v after %d runs", errs, runs)
	}
	if got := asJSON(query(t, d, stmt(d, "SELECT i FROM a"))); got != `[{"i":1},{"i":1}]` {
		t.Errorf("without a retry the rows are %s", got)
	}
	errs, runs = deadlock(t, d, db.Always)
	if errs[0] != nil || errs[1] != nil || runs != 3 {
		t.Errorf("with a retry: %v after %d runs", errs, runs)
	}
	if got := asJSON(query(t, d, stmt(d, "SELECT i FROM a"))); got != `[{"i":3},{"i":3}]` {
		t.Errorf("with a retry the rows are %s", got)
	}
}

// A serialization failure is tried again, three times in all, and only when
// the caller says that nothing outside has happened.
func TestSerializationFailure(t *testing.T) {
	d := postgres(t, 0)
	script(t, d, `CREATE TABLE a (i int); CREATE SEQUENCE tries;
		CREATE FUNCTION stumble(until bigint) RETURNS bigint LANGUAGE plpgsql AS $$
		DECLARE n bigint := nextval('tries');
		BEGIN
			IF n < until THEN RAISE EXCEPTION 'could not serialize' USING ERRCODE = '40001'; END IF;
			RETURN n;
		END $$`)
	for _, c := range []struct {
		until int64
		retry func() bool
		runs  int
		state string
	}{
		{1, nil, 1, ""}, {2, nil, 1, "40001"}, {2, func() bool { return false }, 1, "40001"},
		{2, db.Always, 2, ""}, {3, db.Always, 3, ""}, {4, db.Always, 3, "40001"},
	} {
		script(t, d, "ALTER SEQUENCE tries RESTART; TRUNCATE a")
		runs := 0
		err := d.Tx(t.Context(), db.TxOptions{Retry: c.retry}, func(q *db.Tx) error {
			runs++
			query(t, q, stmt(d, "INSERT INTO a VALUES (1)"))
			_, err := q.Query(t.Context(), stmt(d, "SELECT stumble($1) AS n"), []any{c.until}, db.Limit{})
			if err != nil {
				return errors.New("in other words")
			}
			return nil
		})
		if c.state == "" && err != nil || c.state != "" && (err == nil || err.Error() != "in other words") || runs != c.runs {
			t.Errorf("until %d: %v after %d runs, want %d", c.until, err, runs, c.runs)
		}
		want := 1
		if c.state != "" {
			want = 0
		}
		has(t, d, want)
	}
	// A ctx that ends ends the trying too.
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	script(t, d, "ALTER SEQUENCE tries RESTART")
	err := d.Tx(ctx, db.TxOptions{Retry: func() bool { cancel(); return true }}, func(q *db.Tx) error {
		runs++
		_, err := q.Query(ctx, stmt(d, "SELECT stumble(9) AS n"), nil, db.Limit{})
		return err
	})
	if state(err) != "40001" || runs != 1 {
		t.Errorf("cancelled: %v after %d runs", err, runs)
	}
}
