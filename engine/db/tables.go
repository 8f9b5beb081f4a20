package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Table is a table that the program keeps in a database of the spec's. It is
// made on first use, where the login's search_path says. An administrator who
// gives the login no right to make tables makes it by hand, with the same
// statements.
type Table struct {
	Name string
	// Make are the statements of each dialect that make the table and its
	// indexes. None of them fails because something is there already.
	Make [2][]string
}

// tables are those of ours that were seen in a database.
type tables struct {
	names  sync.Map      // *Table -> its name with its schema
	making chan struct{} // one at a time looks for a table, or makes it
}

func newTables() tables { return tables{making: make(chan struct{}, 1)} }

// Ensure gives the name of a table, with its schema and quoted. If there is
// none it makes it, in a short transaction of its own, on PostgreSQL on a
// connection that is not of the pool: whoever has one of those may wait for
// this. A table that turns out to be gone later (see Gone) is made by the next
// call.
func (d *DB) Ensure(ctx context.Context, t *Table) (name string, err error) {
	if name, ok := d.tables.names.Load(t); ok {
		return name.(string), nil
	}
	if err := d.enter(); err != nil {
		return "", err
	}
	defer d.calls.Done()
	defer guard(&err)
	ctx, cancel := context.WithTimeout(ctx, d.patience+connectTimeout)
	defer cancel()
	select {
	case d.tables.making <- struct{}{}:
	case <-ctx.Done():
		return "", ended(ctx, fmt.Errorf("waiting for the table %s", t.Name))
	}
	defer func() { <-d.tables.making }()
	if name, ok := d.tables.names.Load(t); ok {
		return name.(string), nil
	}
	if name, err = d.engine.ensure(ctx, t); err != nil {
		return "", fmt.Errorf("making the table %s: %w", t.Name, err)
	}
	d.tables.names.Store(t, name)
	return name, nil
}

// Ensure is DB.Ensure in a transaction. In one that writes to SQLite the table
// is made in it: there is no other writer.
func (t *Tx) Ensure(ctx context.Context, table *Table) (name string, err error) {
	if name, ok := t.db.tables.names.Load(table); ok {
		return name.(string), nil
	}
	err = t.do(ctx, func(ctx context.Context) (err error) {
		name, err = t.table(ctx, table)
		return err
	})
	return name, err
}

func (t *Tx) table(ctx context.Context, table *Table) (string, error) {
	if t.readOnly || t.db.dialect == Postgres {
		return t.db.Ensure(ctx, table)
	}
	if name, ok := t.db.tables.names.Load(table); ok {
		return name.(string), nil
	}
	a, err := t.own(ctx, findInSQLite, table.Name)
	if err != nil {
		return "", err
	}
	name := qualified("main", table.Name)
	if a.Rows.Len() > 0 {
		if !t.made { // it is not of this transaction, which may be rolled back
			t.db.tables.names.Store(table, name)
		}
		return name, nil
	}
	for _, sql := range table.Make[SQLite] {
		if _, err := t.own(ctx, sql); err != nil {
			return "", fmt.Errorf("making the table %s: %w", table.Name, err)
		}
	}
	t.made = true
	return name, nil
}

// Gone tells whether a statement of ours (see Ours) has failed because its
// table is not there any more. Ensure makes it again.
func Gone(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.ours &&
		(e.SQLState == "42P01" || e.SQLState == "" && strings.Contains(e.Error(), "no such table"))
}

// noticed forgets the tables when one turns out to be gone: the next try makes
// it.
func (d *DB) noticed(err error) error {
	var e *Error
	if Gone(err) && errors.As(err, &e) {
		d.tables.names.Clear()
		e.transient = true
	}
	return err
}

func qualified(schema, name string) string { return pgx.Identifier{schema, name}.Sanitize() }

const findInSQLite = `SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = $1`

// ensure looks for the table and makes it as the one writer.
func (e *sqliteEngine) ensure(ctx context.Context, t *Table) (string, error) {
	name := qualified("main", t.Name)
	find := Ours(SQLite, findInSQLite)
	a, err := e.query(ctx, nil, find, []any{t.Name}, Limit{})
	if err != nil || a.Rows.Len() > 0 {
		return name, err
	}
	return name, e.script(ctx, strings.Join(t.Make[SQLite], ";\n"))
}

// ensure looks for the table on a connection of its own, and makes it while no
// other process does.
func (e *pgEngine) ensure(ctx context.Context, t *Table) (name string, err error) {
	conn, err := pgx.ConnectConfig(ctx, e.pool.Config().ConnConfig)
	if err != nil {
		return "", postgresError(ctx, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if name, err = findTable(ctx, conn, t); err != nil || name != "" {
		return name, postgresError(ctx, err)
	}
	if err := makeTable(ctx, conn, t); err != nil {
		return "", postgresError(ctx, err)
	}
	if name, err = findTable(ctx, conn, t); err == nil && name == "" {
		err = errors.New("it stands in no schema of the search_path")
	}
	return name, postgresError(ctx, err)
}

// findTable gives the name of the table, "" if there is none.
func findTable(ctx context.Context, conn *pgx.Conn, t *Table) (string, error) {
	var schema string
	err := conn.QueryRow(ctx, `SELECT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = to_regclass($1)`, t.Name).Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return qualified(schema, t.Name), err
}

func makeTable(ctx context.Context, conn *pgx.Conn, t *Table) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockNumber(t.Name)); err != nil {
			return err
		}
		for _, sql := range t.Make[Postgres] {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}
