package db_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const benchTable = `CREATE TABLE bench (id integer PRIMARY KEY, name text NOT NULL, cents bigint NOT NULL, paid boolean NOT NULL, price numeric(10,2) NOT NULL,
	ratio double precision NOT NULL, day date NOT NULL, at timestamptz NOT NULL, note text, tag text NOT NULL);
	INSERT INTO bench WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000)
	SELECT i, 'name of ' || i, i * 100, i % 2 = 0, i * 1.25, i * 0.5, '2026-03-01', '2026-03-01T09:00:00Z', NULL, 'tag' FROM c`

const byID, thousand = "SELECT * FROM bench WHERE id = $1", "SELECT * FROM bench ORDER BY id LIMIT $1"

// benchOurs runs a statement of ours.
func benchOurs(b *testing.B, d *db.DB, sql string, arg int64, rows int) {
	s := stmt(d, sql)
	b.ReportAllocs()
	for b.Loop() {
		a, err := d.Query(context.Background(), s, []any{arg}, db.Limit{})
		if err != nil || a.Rows.Len() != rows {
			b.Fatal(a, err)
		}
	}
}

// benchPgx runs it through pgx alone, rows as pgx users read them: values, or
// only the bytes.
func benchPgx(b *testing.B, url, sql string, arg int64, rows int, values bool) {
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	b.ReportAllocs()
	for b.Loop() {
		r, err := pool.Query(context.Background(), sql, arg)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if values {
			l, err := pgx.CollectRows(r, pgx.RowToMap)
			if err != nil {
				b.Fatal(err)
			}
			n = len(l)
		} else {
			for r.Next() {
				n += min(1, len(r.RawValues()))
			}
			if r.Err() != nil {
				b.Fatal(r.Err())
			}
		}
		if n != rows {
			b.Fatal(n)
		}
	}
}

func BenchmarkPostgres(b *testing.B) {
	url := servers.Postgres(b)
	d := open(b, db.Config{URL: url})
	script(b, d, benchTable)
	for _, c := range []struct {
		name, sql string
		arg       int64
		rows      int
	}{{"id", byID, 77, 1}, {"1000rows", thousand, 1000, 1000}} {
		b.Run(c.name+"/ours", func(b *testing.B) { benchOurs(b, d, c.sql, c.arg, c.rows) })
		b.Run(c.name+"/pgx-bytes", func(b *testing.B) { benchPgx(b, url, c.sql, c.arg, c.rows, false) })
		b.Run(c.name+"/pgx-maps", func(b *testing.B) { benchPgx(b, url, c.sql, c.arg, c.rows, true) })
	}
}

func BenchmarkSQLite(b *testing.B) {
	d := open(b, db.Config{URL: "sqlite:bench.db", Dir: b.TempDir()})
	script(b, d, benchTable)
	b.Run("id", func(b *testing.B) { benchOurs(b, d, byID, 77, 1) })
	b.Run("1000rows", func(b *testing.B) { benchOurs(b, d, thousand, 1000, 1000) })
}
