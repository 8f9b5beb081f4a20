package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgEngine is a pgx pool whose connections are read-only unless a transaction
// says otherwise.
type pgEngine struct {
	pool  *pgxpool.Pool
	slots *slots
	limit limit
	types *pgTypes
}

// sessionParams are fixed for every connection: the rewriter and the reading
// of cells rely on them. They are sent with the login and win over what is
// set for a role or a database.
var sessionParams = map[string]string{
	"default_transaction_read_only": "on",
	"timezone":                      "UTC",
	"datestyle":                     "ISO",
	"intervalstyle":                 "iso_8601",
	"bytea_output":                  "hex",
	"extra_float_digits":            "1",
	"client_encoding":               "UTF8",
	"standard_conforming_strings":   "on",
}

// connectTimeout bounds a login when the URL does not say connect_timeout.
const connectTimeout = 5 * time.Second

func openPostgres(ctx context.Context, c Config, l limit) (*pgEngine, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("the URL is no PostgreSQL URL: " + withoutSecret(c.URL, err))
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	params := config.ConnConfig.RuntimeParams
	for name := range params { // the names of settings know no case
		if _, ours := sessionParams[strings.ToLower(name)]; ours {
			delete(params, name)
		}
	}
	for name, v := range sessionParams {
		params[name] = v
	}
	if params["application_name"] == "" {
		params["application_name"] = "fusion-serve"
	}
	if c.Timeout > 0 {
		// The server ends a statement itself, so that the connection lives on.
		params["statement_timeout"] = strconv.FormatInt(max(1, c.Timeout.Milliseconds()), 10)
	}
	config.MaxConns, config.MinConns = int32(c.Pool.Max), int32(c.Pool.Min)
	config.MaxConnLifetime, config.MaxConnIdleTime = c.Pool.MaxLifetime, c.Pool.MaxIdle
	config.MaxConnLifetimeJitter = c.Pool.MaxLifetime / 10
	config.HealthCheckPeriod = min(time.Minute, max(time.Second/10, min(c.Pool.MaxIdle, c.Pool.MaxLifetime)/2))
	// A dead connection shows itself at its first statement, which is then
	// tried on another one.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	types := &pgTypes{}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		attach(conn.PgConn(), types)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("making the pool: %s", withoutSecret(c.URL, err))
	}
	return &pgEngine{pool: pool, slots: newSlots(c.Pool), limit: l, types: types}, nil
}

// withoutSecret gives the reason of an error about a URL if it shows nothing
// of the URL's user part.
func withoutSecret(raw string, err error) string {
	var parse *url.Error
	for errors.Unwrap(err) != nil && !errors.As(err, &parse) {
		err = errors.Unwrap(err)
	}
	if parse != nil {
		err = parse.Err
	}
	reason := err.Error()
	_, rest, _ := strings.Cut(raw, "://")
	user, _, _ := strings.Cut(rest, "@")
	_, password, _ := strings.Cut(user, ":")
	if unescaped, e := url.PathUnescape(password); e == nil && unescaped != "" && strings.Contains(reason, unescaped) {
		return "write postgres://USER:PASSWORD@HOST:PORT/NAME, special characters percent-encoded"
	}
	if password != "" && strings.Contains(reason, password) {
		return "write postgres://USER:PASSWORD@HOST:PORT/NAME, special characters percent-encoded"
	}
	return reason
}

// acquire takes a connection out of the pool.
func (e *pgEngine) acquire(ctx context.Context) (*pgConn, error) {
	if err := e.slots.take(ctx); err != nil {
		return nil, err
	}
	held, err := e.connection(ctx)
	if err != nil {
		e.slots.free()
		return nil, postgresError(ctx, err)
	}
	c := attached(held.Conn().PgConn())
	c.held, c.slots, c.reused = held, e.slots, len(c.stmts) > 0
	return c, nil
}

// connection takes a connection that is idle, or makes one. While the server
// has none left for us, one of ours may become free.
func (e *pgEngine) connection(ctx context.Context) (*pgxpool.Conn, error) {
	start := time.Now()
	for {
		held, err := e.pool.Acquire(ctx)
		var refused *pgconn.PgError
		if err == nil || !errors.As(err, &refused) || refused.Code != fullState || time.Since(start) > e.slots.wait {
			return held, err
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(40*time.Millisecond)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// query runs a statement alone. It is tried again when the connection turned
// out to be dead, or the statement's plan out of date: a read-only statement
// may run twice.
func (e *pgEngine) query(ctx context.Context, who *Session, s *Stmt, args []any, l Limit) (*Answer, error) {
	for again := true; ; again = false {
		a, retry, err := e.single(ctx, who, s, args, l)
		if err == nil || !again || !retry || ctx.Err() != nil {
			return a, err
		}
	}
}

func (e *pgEngine) single(ctx context.Context, who *Session, s *Stmt, args []any, l Limit) (a *Answer, retry bool, err error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() { c.release() }()
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	if who == nil {
		a, err = c.run(ctx, flight{}, s, args, l)
	} else {
		a, err = c.alone(ctx, who, s, args, l)
	}
	return a, err != nil && (c.stale(s, err) || c.reused && c.broken), err
}

// alone runs a statement as a session, in a read-only transaction that ends
// with it.
func (c *pgConn) alone(ctx context.Context, who *Session, s *Stmt, args []any, l Limit) (a *Answer, err error) {
	defer func() {
		if err != nil {
			c.rollback()
		}
	}()
	f := flight{begin: "BEGIN READ ONLY", who: who, commit: true}
	if !c.knows(s) || !c.knows(who.stmt()) {
		// The statement is prepared as the session: the login may not see its
		// tables.
		if err := c.open(ctx, flight{begin: f.begin, who: who}); err != nil {
			return nil, err
		}
		f = flight{commit: true}
	}
	return c.run(ctx, f, s, args, l)
}

// write runs a statement of ours in one flight with BEGIN and COMMIT. The
// statement runs once more if its plan was out of date, never after the
// connection was lost.
func (e *pgEngine) write(ctx context.Context, s *Stmt, args []any) (*Answer, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { c.release() }()
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	c.writes = true
	for again := true; ; again = false {
		a, err := c.run(ctx, flight{begin: beginWriting, commit: true}, s, args, Limit{})
		if err == nil {
			return a, nil
		}
		c.rollback()
		if !again || !c.stale(s, err) || c.broken {
			return nil, err
		}
	}
}

func (e *pgEngine) empty(ctx context.Context) (bool, error) {
	a, err := e.query(ctx, nil, &Stmt{SQL: `SELECT EXISTS (
		SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
		  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
		  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))`}, nil, Limit{})
	if err != nil {
		return false, err
	}
	return a.Rows.Value(0, 0) == false, nil
}

func (e *pgEngine) close() { e.pool.Close() }
