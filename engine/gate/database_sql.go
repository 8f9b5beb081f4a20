package gate

import (
	"strings"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// stateTable holds the records, historyTable the moves. The primary key of the
// history is the last net under the compare-and-swap: no version is written
// twice.
var (
	stateTable = &db.Table{Name: "fusion_state", Make: [2][]string{
		db.SQLite: {
			`CREATE TABLE IF NOT EXISTS fusion_state (
				fsm text NOT NULL, key text NOT NULL, state text NOT NULL, version integer NOT NULL, entered text,
				hold_call text, hold_tool text, hold_event text, hold_caller text, hold_since text, hold_until text,
				hold_doubt integer NOT NULL DEFAULT 0, expires text, PRIMARY KEY (fsm, key))`,
			`CREATE INDEX IF NOT EXISTS fusion_state_expires ON fusion_state (expires) WHERE expires IS NOT NULL`,
		},
		db.Postgres: {
			`CREATE TABLE IF NOT EXISTS fusion_state (
				fsm text NOT NULL, key text COLLATE "C" NOT NULL, state text NOT NULL, version bigint NOT NULL, entered timestamptz,
				hold_call text, hold_tool text, hold_event text, hold_caller text, hold_since timestamptz, hold_until timestamptz,
				hold_doubt boolean NOT NULL DEFAULT false, expires timestamptz, PRIMARY KEY (fsm, key))`,
			`CREATE INDEX IF NOT EXISTS fusion_state_expires ON fusion_state (expires) WHERE expires IS NOT NULL`,
		},
	}}
	historyTable = &db.Table{Name: "fusion_state_history", Make: [2][]string{
		db.SQLite: {
			`CREATE TABLE IF NOT EXISTS fusion_state_history (
				fsm text NOT NULL, key text NOT NULL, version integer NOT NULL, from_state text NOT NULL, to_state text NOT NULL,
				event text NOT NULL, tool text NOT NULL, call text NOT NULL, caller text NOT NULL, at text NOT NULL,
				PRIMARY KEY (fsm, key, version))`,
			`CREATE INDEX IF NOT EXISTS fusion_state_history_at ON fusion_state_history (fsm, at)`,
		},
		db.Postgres: {
			`CREATE TABLE IF NOT EXISTS fusion_state_history (
				fsm text NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, from_state text NOT NULL, to_state text NOT NULL,
				event text NOT NULL, tool text NOT NULL, call text NOT NULL, caller text NOT NULL, at timestamptz NOT NULL,
				PRIMARY KEY (fsm, key, version))`,
			`CREATE INDEX IF NOT EXISTS fusion_state_history_at ON fusion_state_history (fsm, at)`,
		},
	}}
)

// statements are those of a store, made for where its tables stand.
type statements struct {
	state, history string // names of the tables

	machines                         *db.Stmt
	load, list, pastOfKey, pastOfAll *db.Stmt
	// hold and move have a form for a key that nobody has moved, which may have
	// no row (first), and one for all others (later).
	hold, move, moveIn byVersion
	doubt              *db.Stmt
	// release, forget and sweep are one statement, or several on SQLite.
	release, forget, sweep []*db.Stmt

	lock, share *db.Stmt // of PostgreSQL
	past        *db.Stmt // of SQLite: one row of the history
}

// byVersion are two forms of one statement, with the same parameters.
type byVersion struct{ first, later *db.Stmt }

func (b byVersion) of(version int64) *db.Stmt {
	if version == 0 {
		return b.first
	}
	return b.later
}

const (
	recordColumns = `state, version, entered, hold_call, hold_tool, hold_event, hold_caller, hold_since, hold_until, hold_doubt`
	holdColumns   = `hold_call, hold_tool, hold_event, hold_caller, hold_since, hold_until`
	pastColumns   = `fsm, key, version, from_state, to_state, event, tool, call, caller, at`
	// noHold ends a hold.
	noHold = `hold_call = NULL, hold_tool = NULL, hold_event = NULL, hold_caller = NULL, hold_since = NULL, hold_until = NULL, hold_doubt = false`
)

// sweepKeys is how many keys are forgotten at a time.
const sweepKeys = "50"

func makeStatements(d db.Dialect, state, history string) *statements {
	names := strings.NewReplacer("STATE", state, "HISTORY", history, "RECORD", recordColumns, "HOLD", holdColumns, "PAST", pastColumns,
		"FREE", noHold, "TAKEN", taken, "SWEPT", sweepKeys)
	ours := func(sql string) *db.Stmt { return db.Ours(d, names.Replace(sql)) }
	s := &statements{
		state: state, history: history,
		machines:  ours(`SELECT DISTINCT fsm FROM STATE ORDER BY fsm`),
		load:      ours(`SELECT RECORD FROM STATE WHERE fsm = $1 AND key = $2`),
		list:      ours(`SELECT key, RECORD FROM STATE WHERE fsm = $1 ORDER BY hold_call IS NOT NULL DESC, entered DESC NULLS LAST, key LIMIT $2`),
		pastOfKey: ours(`SELECT PAST FROM HISTORY WHERE fsm = $1 AND key = $2 ORDER BY version DESC LIMIT $3`),
		pastOfAll: ours(`SELECT PAST FROM HISTORY WHERE fsm = $1 ORDER BY at DESC, version DESC LIMIT $2`),
		doubt:     ours(`UPDATE STATE SET hold_doubt = true WHERE fsm = $1 AND key = $2 AND hold_call = $3`),
	}
	if d == db.Postgres {
		s.postgres(ours)
	} else {
		s.sqlite(ours)
	}
	return s
}

// taken tries to take the lock of a key: whoever has it is at work on the key
// in a transaction of his own. A row that was changed while it was taken is
// looked at again (READ COMMITTED), so that a condition on the version holds for
// the newest row.
const taken = `l AS MATERIALIZED (SELECT pg_try_advisory_xact_lock($1) AS free)`

func (s *statements) postgres(ours func(string) *db.Stmt) {
	s.lock = ours(`SELECT pg_try_advisory_xact_lock($1) AS free`)
	s.share = ours(`SELECT pg_try_advisory_xact_lock_shared($1) AS free`)
	// $5 to $10 are the hr. $11 says that the same call may have it already.
	const mine = `(r.hold_call IS NULL OR $11::bool AND r.hold_call = $5)`
	s.hold = byVersion{
		first: ours(`WITH TAKEN INSERT INTO STATE AS r (fsm, key, state, version, HOLD)
			SELECT $2::text, $3::text, '', $4::int8, $5::text, $6::text, $7::text, $8::text, $9::timestamptz, $10::timestamptz FROM l WHERE l.free
			ON CONFLICT (fsm, key) DO UPDATE SET (HOLD) =
				(excluded.hold_call, excluded.hold_tool, excluded.hold_event, excluded.hold_caller, excluded.hold_since, excluded.hold_until)
			WHERE r.version = $4::int8 AND ` + mine),
		later: ours(`WITH TAKEN UPDATE STATE AS r
			SET (HOLD) = ($5::text, $6::text, $7::text, $8::text, $9::timestamptz, $10::timestamptz) FROM l
			WHERE l.free AND r.fsm = $2 AND r.key = $3 AND r.version = $4::int8 AND ` + mine),
	}
	// Whoever holds the key moves it and lets go of it, whoever looks at it
	// meanwhile.
	const first = `WITH TAKEN, moved AS (
			INSERT INTO STATE AS r (fsm, key, version, state, entered, expires)
			SELECT $2::text, $3::text, $4::int8 + $5::int8, $6::text, $7::timestamptz, $8::timestamptz FROM l
			WHERE l.free OR EXISTS (SELECT 1 FROM STATE WHERE fsm = $2 AND key = $3 AND hold_call = $9)
			ON CONFLICT (fsm, key) DO UPDATE
			SET version = excluded.version, state = excluded.state, entered = excluded.entered, expires = excluded.expires, FREE
			WHERE r.version = $4::int8 AND (r.hold_call IS NULL OR r.hold_call = $9)
			RETURNING version)`
	const later = `WITH TAKEN, moved AS (
			UPDATE STATE AS r
			SET version = $4::int8 + $5::int8, state = $6::text, entered = $7::timestamptz, expires = $8::timestamptz, FREE FROM l
			WHERE r.fsm = $2 AND r.key = $3 AND r.version = $4::int8 AND (r.hold_call = $9 OR r.hold_call IS NULL AND l.free)
			RETURNING r.version)`
	const moves = `unnest($10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::timestamptz[])
			WITH ORDINALITY AS m (from_state, to_state, event, tool, call, caller, at, n)`
	const told = ` SELECT pg_notify('` + eventsChannel + `', $17) AS told FROM moved`
	const written = `, written AS (INSERT INTO HISTORY (PAST)
			SELECT $2, $3, $4::int8 + m.n, m.from_state, m.to_state, m.event, m.tool, m.call, m.caller, m.at FROM moved, ` + moves + `)` + told
	// In a transaction nobody looks at the answer before COMMIT: a move that was
	// lost has no version, which the history refuses.
	const forced = `, written AS (INSERT INTO HISTORY (PAST)
			SELECT $2, $3, (SELECT version FROM moved) - $5::int8 + m.n, m.from_state, m.to_state, m.event, m.tool, m.call, m.caller, m.at FROM ` + moves + `)` + told
	s.move = byVersion{first: ours(first + written), later: ours(later + written)}
	s.moveIn = byVersion{first: ours(first + forced), later: ours(later + forced)}
	// A key that was never moved needs no row without its hr.
	s.release = []*db.Stmt{ours(`WITH gone AS (DELETE FROM STATE WHERE fsm = $1 AND key = $2 AND hold_call = $3 AND version = 0 RETURNING 1),
		freed AS (UPDATE STATE SET FREE WHERE fsm = $1 AND key = $2 AND hold_call = $3 AND version > 0 RETURNING 1)
		SELECT 1 AS done FROM gone UNION ALL SELECT 1 FROM freed`)}
	s.forget = []*db.Stmt{ours(`WITH TAKEN,
		gone AS (DELETE FROM STATE USING l WHERE l.free AND fsm = $2 AND key = $3 AND hold_call IS NULL RETURNING 1),
		past AS (DELETE FROM HISTORY USING gone WHERE fsm = $2 AND key = $3)
		SELECT l.free AND (EXISTS (SELECT 1 FROM gone) OR NOT EXISTS (SELECT 1 FROM STATE WHERE fsm = $2 AND key = $3)) AS done,
			(SELECT count(pg_notify('` + eventsChannel + `', $4)) FROM gone) AS told FROM l`)}
	// Rows that another transaction has are left to it.
	s.sweep = []*db.Stmt{ours(`WITH gone AS (DELETE FROM STATE WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM STATE WHERE expires <= $1::timestamptz AND hold_call IS NULL ORDER BY expires LIMIT SWEPT FOR UPDATE SKIP LOCKED))
			RETURNING fsm, key)
		DELETE FROM HISTORY AS h USING gone WHERE h.fsm = gone.fsm AND h.key = gone.key`)}
}

func (s *statements) sqlite(ours func(string) *db.Stmt) {
	s.hold = byVersion{
		first: ours(`INSERT INTO STATE AS r (fsm, key, state, version, HOLD) VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (fsm, key) DO UPDATE SET (HOLD) =
				(excluded.hold_call, excluded.hold_tool, excluded.hold_event, excluded.hold_caller, excluded.hold_since, excluded.hold_until)
			WHERE r.version = $3 AND r.hold_call IS NULL`),
		later: ours(`UPDATE STATE SET (HOLD) = ($4, $5, $6, $7, $8, $9) WHERE fsm = $1 AND key = $2 AND version = $3 AND hold_call IS NULL`),
	}
	s.moveIn = byVersion{
		first: ours(`INSERT INTO STATE AS r (fsm, key, version, state, entered, expires) VALUES ($1, $2, $3 + $4, $5, $6, $7)
			ON CONFLICT (fsm, key) DO UPDATE
			SET version = excluded.version, state = excluded.state, entered = excluded.entered, expires = excluded.expires, FREE
			WHERE r.version = $3 AND (r.hold_call IS NULL OR r.hold_call = $8)`),
		later: ours(`UPDATE STATE SET version = $3 + $4, state = $5, entered = $6, expires = $7, FREE
			WHERE fsm = $1 AND key = $2 AND version = $3 AND (hold_call IS NULL OR hold_call = $8)`),
	}
	// A move that was lost has no version, or one that is taken: the history
	// refuses both.
	s.past = ours(`INSERT INTO HISTORY (PAST)
		VALUES ($1, $2, (SELECT version FROM STATE WHERE fsm = $1 AND key = $2 AND version = $3 AND hold_call IS NULL) - $4, $5, $6, $7, $8, $9, $10, $11)`)
	s.release = []*db.Stmt{
		ours(`DELETE FROM STATE WHERE fsm = $1 AND key = $2 AND hold_call = $3 AND version = 0`),
		ours(`UPDATE STATE SET FREE WHERE fsm = $1 AND key = $2 AND hold_call = $3`),
	}
	s.forget = []*db.Stmt{
		ours(`DELETE FROM STATE WHERE fsm = $1 AND key = $2 AND hold_call IS NULL`),
		ours(`DELETE FROM HISTORY WHERE fsm = $1 AND key = $2`),
	}
	const old = `(SELECT fsm, key FROM STATE WHERE expires <= $1 AND hold_call IS NULL ORDER BY expires LIMIT SWEPT)`
	s.sweep = []*db.Stmt{
		ours(`DELETE FROM HISTORY WHERE (fsm, key) IN ` + old),
		ours(`DELETE FROM STATE WHERE (fsm, key) IN ` + old),
	}
}
