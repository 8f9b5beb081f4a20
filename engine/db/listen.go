package db

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The pauses between two tries to listen, and how long a connection may be
// silent before it is asked whether it lives.
const (
	listenPause    = 100 * time.Millisecond
	listenMaxPause = 30 * time.Second
	listenSilence  = 30 * time.Second
)

// Listen tells of the notifications of a channel (SELECT pg_notify(channel,
// payload)) until ctx ends or the database is closed. It has a connection of its
// own, beside the pool. again is called whenever it is connected: what was
// notified before is not told any more. tell and again are called one after the
// other, and should be quick: nothing is read meanwhile. A channel is of a whole
// database: who shares it tells its payloads apart. Nobody notifies on SQLite:
// there again is called whenever somebody has changed the file, half a second
// later at most, and Listen returns at once for a database in memory. Through a proxy that gives connections to transactions (PgBouncer's
// transaction mode) PostgreSQL tells nothing: Listen needs a session.
func (d *DB) Listen(ctx context.Context, channel string, tell func(payload string), again func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-d.shut:
			cancel()
		case <-ctx.Done():
		}
	}()
	pause := listenPause
	for ctx.Err() == nil {
		err := d.listen(ctx, channel, tell, func() {
			pause = listenPause
			again()
		})
		if errors.Is(err, errUnshared) {
			return
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
		}
		pause = min(2*pause, listenMaxPause)
	}
}

// errUnshared is what listen gives where there are no other processes.
var errUnshared = errors.New("nobody shares this database")

// filePoll is how often a file is asked whether it has changed.
const filePoll = 500 * time.Millisecond

func (e *sqliteEngine) listen(ctx context.Context, _ string, _ func(string), changed func()) error {
	if e.memory != "" {
		return errUnshared
	}
	c, err := e.connect(ctx, true)
	if err != nil {
		return sqliteError(ctx, err)
	}
	defer c.discard()
	version := &Stmt{SQL: "PRAGMA data_version", ours: true} // another one after every commit of another connection
	var last any
	for {
		a, err := c.run(ctx, version, nil, Limit{}, true)
		if err != nil {
			return err
		}
		if v := a.Rows.Value(0, 0); v != last {
			last = v
			changed()
		}
		select {
		case <-time.After(filePoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *DB) listen(ctx context.Context, channel string, tell func(string), ready func()) (err error) {
	defer guard(&err)
	return d.engine.listen(ctx, channel, tell, ready)
}

func (e *pgEngine) listen(ctx context.Context, channel string, tell func(string), ready func()) error {
	conn, err := pgx.ConnectConfig(ctx, e.pool.Config().ConnConfig)
	if err != nil {
		return postgresError(ctx, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return postgresError(ctx, err)
	}
	ready()
	for {
		n, err := notification(ctx, conn)
		switch {
		case err != nil:
			return postgresError(ctx, err)
		case n == nil: // a peer that went away without a word does not answer
			if err := alive(ctx, conn); err != nil {
				return postgresError(ctx, err)
			}
		default:
			tell(n.Payload)
		}
	}
}

// notification waits for the next one; nil after a long silence.
func notification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	wait, cancel := context.WithTimeout(ctx, listenSilence)
	defer cancel()
	n, err := conn.WaitForNotification(wait)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() == nil && errors.Is(wait.Err(), context.DeadlineExceeded) && !conn.IsClosed():
		return nil, nil
	}
	return nil, err
}

func alive(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return conn.Ping(ctx)
}
