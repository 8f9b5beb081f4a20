package db

import (
	"context"
	"errors"
	"fmt"
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
	pool *pgxpool.Pool
}

// sessionParams are fixed for every connection: the rewriter and the reading
// of cells rely on them. They are sent with the login and win over what is
// set for a role or a database.
var sessionParams = map[string]string{
	"default_transaction_read_only": "on",
	"timezone":                      "UTC",
	"datestyle":                     "ISO",
	"intervalstyle":                 "postgres",
	"bytea_output":                  "hex",
	"extra_float_digits":            "1",
	"client_encoding":               "UTF8",
	"standard_conforming_strings":   "on",
}

// connectTimeout bounds a login when the URL does not say connect_timeout.
const connectTimeout = 5 * time.Second

func openPostgres(ctx context.Context, c Config) (*pgEngine, error) {
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
	config.MaxConns = int32(min(c.Pool, 10_000))
	config.MinConns = 0
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		attach(conn.PgConn())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("making the pool: %s", withoutSecret(c.URL, err))
	}
	return &pgEngine{pool: pool}, nil
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
	held, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, postgresError(ctx, err)
	}
	c := attached(held.Conn().PgConn())
	c.held, c.reused = held, len(c.stmts) > 0
	return c, nil
}

// query runs a statement alone. It is tried again when the connection turned
// out to be dead, or the statement's plan out of date: a read-only statement
// may run twice.
func (e *pgEngine) query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	for again := true; ; again = false {
		a, retry, err := e.once(ctx, s, args, l)
		if err == nil || !again || !retry || ctx.Err() != nil {
			return a, err
		}
	}
}

func (e *pgEngine) once(ctx context.Context, s *Stmt, args []any, l Limit) (a *Answer, retry bool, err error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer c.release()
	a, err = c.run(ctx, "", s, args, l)
	return a, err != nil && (c.stale(s, err) || c.reused && c.broken), err
}

func (e *pgEngine) empty(ctx context.Context) (bool, error) {
	a, err := e.query(ctx, &Stmt{SQL: `SELECT EXISTS (
		SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
		  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
		  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'))`}, nil, Limit{})
	if err != nil {
		return false, err
	}
	return a.Rows.Value(0, 0) == false, nil
}

func (e *pgEngine) describe(ctx context.Context, s *Stmt) (int, string, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return -1, "", err
	}
	defer c.release()
	_, err = c.compile(ctx, "", s)
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return byteOffset(s.SQL, int(refused.Position)), refused.Hint, postgresError(ctx, err)
	}
	return -1, "", err
}

// byteOffset turns a place that counts characters from 1 into a byte; -1 for
// none.
func byteOffset(s string, position int) int {
	if position < 1 {
		return -1
	}
	for i := range s {
		if position--; position == 0 {
			return i
		}
	}
	return len(s)
}

// script sends the whole text as one simple query inside a transaction that
// may write.
func (e *pgEngine) script(ctx context.Context, sql string) error {
	c, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.release()
	done := c.careful()
	err = scriptOn(ctx, c.raw, sql)
	done()
	return postgresError(ctx, err)
}

func scriptOn(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	if _, err := conn.Exec(ctx, "BEGIN READ WRITE; SET LOCAL statement_timeout = 0").ReadAll(); err != nil {
		return err
	}
	results := conn.Exec(ctx, sql)
	n := 0
	for results.NextResult() {
		if _, err := results.ResultReader().Close(); err == nil {
			n++
		}
	}
	if err := results.Close(); err != nil {
		_, undo := conn.Exec(ctx, "ROLLBACK").ReadAll()
		return errors.Join(fmt.Errorf("line %d: %w", scriptLine(sql, n, err), err), undo)
	}
	_, err := conn.Exec(ctx, "COMMIT").ReadAll()
	return err
}

// scriptLine is the line of the place that the server names, or of the
// statement after the n that ran.
func scriptLine(sql string, n int, err error) int {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Position > 0 {
		return lineOf(sql, byteOffset(sql, int(refused.Position)))
	}
	return lineOf(sql, statementStart(sql, n))
}

func (e *pgEngine) begin(ctx context.Context, readOnly bool) (tx, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	if readOnly {
		begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	}
	c.inTx, c.writes = true, !readOnly
	return &pgTx{engine: e, conn: c, begin: begin}, nil
}

// pgTx is a transaction. BEGIN goes with its first statement.
type pgTx struct {
	engine *pgEngine
	conn   *pgConn
	begin  string
	begun  bool
}

func (t *pgTx) query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	if t.begun {
		a, err := t.conn.run(ctx, "", s, args, l)
		if err != nil {
			t.conn.stale(s, err)
		}
		return a, err
	}
	return t.first(ctx, s, args, l)
}

// first runs the first statement, once more on another connection or with
// another plan if these were out of date: without COMMIT nothing has happened.
func (t *pgTx) first(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	a, err := t.start(ctx, s, args, l)
	if err == nil || ctx.Err() != nil || !t.conn.stale(s, err) && !(t.conn.broken && t.conn.reused) {
		return a, err
	}
	if err := t.renew(ctx); err != nil {
		return nil, err
	}
	return t.start(ctx, s, args, l)
}

func (t *pgTx) start(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	if _, err := t.conn.prepared(ctx, s); err != nil { // before BEGIN goes out
		return nil, err
	}
	t.begun = true
	return t.conn.run(ctx, t.begin, s, args, l)
}

// renew takes the transaction back to before BEGIN.
func (t *pgTx) renew(ctx context.Context) error {
	if !t.conn.broken {
		if t.begun {
			t.begun = false
			return t.conn.end(ctx, "ROLLBACK")
		}
		return nil
	}
	t.begun = false
	writes := t.conn.writes
	t.release()
	fresh, err := t.engine.acquire(ctx)
	if err != nil {
		return err
	}
	fresh.inTx, fresh.writes = true, writes
	t.conn = fresh
	return nil
}

func (t *pgTx) release() {
	if t.conn != nil {
		t.conn.release()
		t.conn = nil
	}
}

func (t *pgTx) commit(ctx context.Context) error {
	defer t.release()
	if !t.begun {
		return nil
	}
	return t.conn.end(ctx, "COMMIT")
}

// rollbackTimeout bounds a ROLLBACK; the caller's context may have ended.
const rollbackTimeout = 5 * time.Second

func (t *pgTx) rollback() {
	defer t.release()
	if !t.begun || t.conn == nil || t.conn.broken {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()
	if err := t.conn.end(ctx, "ROLLBACK"); err != nil {
		t.conn.broken = true
	}
}

func (e *pgEngine) close() { e.pool.Close() }
