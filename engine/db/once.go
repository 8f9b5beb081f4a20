package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// OnceState says what is known of an idempotency key.
type OnceState uint8

// The states of a key.
const (
	OnceNew       OnceState = iota // nobody has used it: go on, and Keep the answer
	OnceSame                       // it was used with the same arguments: give the stored answer
	OnceDifferent                  // it was used with other arguments
	OnceRunning                    // a call with it is still running
)

// onceTable is what is known of the table of keys in a database.
type onceTable struct {
	// schema is where the table stands, once it was seen there.
	schema atomic.Pointer[string]
}

// onceKey is the key of a transaction that Keep will store.
type onceKey struct {
	tool, caller, key, hash string
	created, expires        time.Time
	table                   string
}

// onceName is the table of keys. An administrator who gives the login no right
// to make tables makes it with these statements.
const onceName = "fusion_idempotency"

var onceSchema = [2][]string{
	SQLite: {
		`CREATE TABLE IF NOT EXISTS fusion_idempotency (
			tool text NOT NULL, caller text NOT NULL, key text NOT NULL, hash blob NOT NULL, blocks blob NOT NULL,
			created text NOT NULL, expires text NOT NULL, PRIMARY KEY (tool, caller, key))`,
		`CREATE INDEX IF NOT EXISTS fusion_idempotency_expires ON fusion_idempotency (expires)`,
	},
	Postgres: {
		`CREATE TABLE IF NOT EXISTS fusion_idempotency (
			tool text NOT NULL, caller text NOT NULL, key text NOT NULL, hash bytea NOT NULL, blocks bytea NOT NULL,
			created timestamptz NOT NULL, expires timestamptz NOT NULL, PRIMARY KEY (tool, caller, key))`,
		`CREATE INDEX IF NOT EXISTS fusion_idempotency_expires ON fusion_idempotency (expires)`,
	},
}

// onceTime is a form of times that sorts as they do.
const onceTime = "2006-01-02T15:04:05.000000Z"

// Once asks for an idempotency key, as the first thing in a transaction that
// may write. It never waits for a call with the same key on PostgreSQL, which
// is OnceRunning; SQLite has one writer, so that the other call has ended
// before this transaction began. stored is the answer that was kept, for
// OnceSame. The table is made on first use.
func (t *Tx) Once(ctx context.Context, tool, caller, key string, hash []byte, ttl time.Duration, now time.Time) (stored []byte, state OnceState, err error) {
	k := &onceKey{tool: tool, caller: caller, key: key, hash: string(hash), created: now.UTC(), expires: now.UTC().Add(ttl)}
	err = t.do(ctx, func(ctx context.Context) (err error) {
		stored, state, err = t.lookUp(ctx, k)
		return t.db.once.noticed(err)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("asking for the idempotency key: %w", err)
	}
	if state == OnceNew {
		t.key = k
	}
	return stored, state, nil
}

func (t *Tx) lookUp(ctx context.Context, k *onceKey) ([]byte, OnceState, error) {
	var err error
	if k.table, err = t.onceTable(ctx); err != nil {
		return nil, 0, err
	}
	if t.db.dialect == Postgres {
		// Whoever holds the lock is at work on this key, and nobody sees its
		// row before it has let go.
		free, err := t.lock(ctx, lockNumber(k.tool, k.caller, k.key))
		if err != nil || !free {
			return nil, OnceRunning, err
		}
	}
	a, err := t.own(ctx, `SELECT hash, blocks FROM `+k.table+` WHERE tool = $1 AND caller = $2 AND key = $3 AND expires > $4`,
		k.tool, k.caller, k.key, k.created.Format(onceTime))
	if err != nil || a.Rows.Len() == 0 {
		return nil, OnceNew, err
	}
	hash, err := bytesOf(a, 0)
	if err != nil {
		return nil, 0, err
	}
	if !bytes.Equal(hash, []byte(k.hash)) {
		return nil, OnceDifferent, nil
	}
	stored, err := bytesOf(a, 1)
	return stored, OnceSame, err
}

// bytesOf gives the bytes of a column of the first row.
func bytesOf(a *Answer, col int) ([]byte, error) {
	s, _ := a.Rows.Value(0, col).(string)
	return base64.StdEncoding.DecodeString(s)
}

// lockNumber gives the number of a key's lock.
func lockNumber(parts ...string) int64 {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// lock takes a lock that ends with the transaction, if it is free.
func (t *Tx) lock(ctx context.Context, n int64) (bool, error) {
	a, err := t.own(ctx, `SELECT pg_try_advisory_xact_lock($1) AS free`, n)
	if err != nil {
		return false, err
	}
	return a.Rows.Value(0, 0) == true, nil
}

// own runs a statement of this package, its parameters written $1.
func (t *Tx) own(ctx context.Context, sql string, args ...any) (*Answer, error) {
	if t.db.dialect == SQLite {
		sql = strings.ReplaceAll(sql, "$", "?")
	}
	return t.tx.own(ctx, &Stmt{SQL: sql, Args: len(args), ours: true}, args)
}

// onceTable gives the name of the table, which it makes if there is none.
func (t *Tx) onceTable(ctx context.Context) (string, error) {
	if schema := t.db.once.schema.Load(); schema != nil {
		return qualified(*schema), nil
	}
	schema, err := t.findOnce(ctx)
	if err != nil {
		return "", err
	}
	if schema != "" { // committed by somebody, so that it stays
		t.db.once.schema.Store(&schema)
		return qualified(schema), nil
	}
	if t.db.dialect == Postgres {
		if err := t.alone(ctx); err != nil {
			return "", err
		}
	}
	for _, sql := range onceSchema[t.db.dialect] {
		if _, err := t.own(ctx, sql); err != nil {
			return "", fmt.Errorf("making the table %s: %w", onceName, err)
		}
	}
	schema, err = t.findOnce(ctx)
	return qualified(schema), err
}

// alone waits until no other transaction is making the table.
func (t *Tx) alone(ctx context.Context) error {
	start := time.Now()
	for {
		free, err := t.lock(ctx, lockNumber(onceName))
		if err != nil || free {
			return err
		}
		if time.Since(start) > t.db.patience {
			return busy(t.db.patience, "turn to make the table "+onceName)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ended(ctx, errWaiting)
		}
	}
}

// findOnce gives the schema that the table stands in, "" if there is none.
func (t *Tx) findOnce(ctx context.Context) (string, error) {
	sql := `SELECT 'main' AS s FROM sqlite_schema WHERE type = 'table' AND name = 'fusion_idempotency'`
	if t.db.dialect == Postgres {
		sql = `SELECT n.nspname::text AS s FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE c.oid = to_regclass('fusion_idempotency')`
	}
	a, err := t.own(ctx, sql)
	if err != nil || a.Rows.Len() == 0 {
		return "", err
	}
	return a.Rows.Value(0, 0).(string), nil
}

func qualified(schema string) string { return pgx.Identifier{schema, onceName}.Sanitize() }

// noticed forgets the table when it turns out to be gone: the next try makes
// it.
func (o *onceTable) noticed(err error) error {
	var refused *Error
	if errors.As(err, &refused) && (refused.SQLState == "42P01" || refused.SQLState == "" && strings.Contains(refused.Error(), "no such table")) {
		o.schema.Store(nil)
		refused.transient = true
	}
	return err
}

// Keep stores the answer under the key of Once, as the last thing before the
// transaction is committed. It also removes some of the keys whose time is up.
func (t *Tx) Keep(ctx context.Context, blocks []byte) error {
	k := t.key
	if k == nil {
		return errors.New("there is no idempotency key to keep an answer for")
	}
	err := t.do(ctx, func(ctx context.Context) error {
		return t.db.once.noticed(t.keep(ctx, k, string(blocks)))
	})
	if err != nil {
		return fmt.Errorf("keeping the answer under its idempotency key: %w", err)
	}
	t.key = nil
	return nil
}

func (t *Tx) keep(ctx context.Context, k *onceKey, blocks string) error {
	now := k.created.Format(onceTime)
	a, err := t.own(ctx, `INSERT INTO `+k.table+` AS old (tool, caller, key, hash, blocks, created, expires)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (tool, caller, key) DO UPDATE
		SET hash = excluded.hash, blocks = excluded.blocks, created = excluded.created, expires = excluded.expires
		WHERE old.expires <= excluded.created`,
		k.tool, k.caller, k.key, k.hash, blocks, now, k.expires.Format(onceTime))
	if err != nil {
		return err
	}
	if a.Affected != 1 {
		return errors.New("somebody else has kept an answer under the same key")
	}
	// Rows that another transaction removes are left to it.
	sweep := `DELETE FROM ` + k.table + ` WHERE ctid = ANY (ARRAY(
		SELECT ctid FROM ` + k.table + ` WHERE expires <= $1 ORDER BY expires LIMIT 100 FOR UPDATE SKIP LOCKED))`
	if t.db.dialect == SQLite {
		sweep = `DELETE FROM ` + k.table + ` WHERE rowid IN (SELECT rowid FROM ` + k.table + ` WHERE expires <= $1 ORDER BY expires LIMIT 100)`
	}
	_, err = t.own(ctx, sweep, now)
	return err
}
