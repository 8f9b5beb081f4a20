package db

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
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

// onceKey is the key of a transaction that Keep will store.
type onceKey struct {
	tool, caller, key, hash string
	created, expires        time.Time
	table                   string
}

// onceTable is the table of keys.
var onceTable = &Table{Name: "fusion_idempotency", Make: [2][]string{
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
}}

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
		return err
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
	if k.table, err = t.table(ctx, onceTable); err != nil {
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
	a, err := t.tx.own(ctx, Ours(t.db.dialect, sql), args)
	return a, markOurs(err)
}

// Keep stores the answer under the key of Once, as the last thing before the
// transaction is committed. It also removes some of the keys whose time is up.
func (t *Tx) Keep(ctx context.Context, blocks []byte) error {
	k := t.key
	if k == nil {
		return errors.New("there is no idempotency key to keep an answer for")
	}
	err := t.do(ctx, func(ctx context.Context) error {
		return t.keep(ctx, k, string(blocks))
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
