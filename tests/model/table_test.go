package model

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// engine is a kind of database.
type engine int

const (
	none engine = iota
	postgres
	sqlite
)

// table is where effects are written down that are SQL. It holds nothing back:
// no key, nothing unique.
type table struct {
	t      *testing.T
	engine engine
	url    string
	file   string // of SQLite
}

func newTable(t *testing.T, e engine) *table {
	b := &table{t: t, engine: e}
	serial := "bigserial"
	if e == postgres {
		b.url = servers.Postgres(t)
	} else {
		b.file = filepath.Join(t.TempDir(), "effects.db")
		b.url = "sqlite:" + b.file
		serial = "integer PRIMARY KEY AUTOINCREMENT"
	}
	b.query("CREATE TABLE effects (serial " + serial + ", order_id text, request text, event text, amount bigint, rest bigint)")
	return b
}

// query runs a statement on a connection of its own and gives its rows.
func (b *table) query(sql string) [][]any {
	b.t.Helper()
	run := b.postgres
	if b.engine == sqlite {
		run = b.sqlite
	}
	rows, err := run(sql)
	if err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

func (b *table) postgres(sql string) ([][]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

func (b *table) sqlite(sql string) (rows [][]any, err error) {
	conn, err := sqlite3.Open(b.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.BusyTimeout(patience); err != nil {
		return nil, err
	}
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	for stmt.Step() {
		row := make([]any, stmt.ColumnCount())
		for i := range row {
			if stmt.ColumnType(i) == sqlite3.INTEGER {
				row[i] = stmt.ColumnInt64(i)
			} else {
				row[i] = stmt.ColumnText(i)
			}
		}
		rows = append(rows, row)
	}
	return rows, stmt.Err()
}

// settle waits until the server has ended what killed processes had begun.
func (b *table) settle() {
	b.t.Helper()
	if b.engine == sqlite {
		return // what a process has begun ends with it
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		busy := b.query("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if len(busy) == 0 {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%d connections of killed processes do not end", len(busy))
		}
	}
}

// read gives the effects. PostgreSQL also tells the transaction of each.
func (b *table) read() []effect {
	b.t.Helper()
	tx := "xmin::text"
	if b.engine == sqlite {
		tx = "''"
	}
	var all []effect
	for _, row := range b.query("SELECT serial, order_id, request, event, coalesce(amount, 0), rest, " + tx + " FROM effects ORDER BY serial") {
		all = append(all, effect{
			Serial: row[0].(int64), Order: row[1].(string), Request: row[2].(string), Event: row[3].(string),
			Amount: int(row[4].(int64)), Rest: int(row[5].(int64)), Tx: row[6].(string),
		})
	}
	return all
}

// readTransactions finds the transaction of each move.
func (b *table) readTransactions(moves []move) {
	b.t.Helper()
	type key struct {
		order   string
		version int64
	}
	of := map[key]string{}
	for _, row := range b.query("SELECT key, version, xmin::text FROM fusion_state_history") {
		of[key{row[0].(string), row[1].(int64)}] = row[2].(string)
	}
	for i := range moves {
		m := &moves[i]
		if m.Tx = of[key{m.Order, m.Version}]; m.Tx == "" {
			b.t.Errorf("move %d of %s is shown, and is not in the database", m.Version, m.Order)
		}
	}
}
