package db

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Bounds of the conversation with a Redis server. A call's own deadline may be
// shorter.
const (
	redisConnect = 5 * time.Second
	redisAnswer  = 5 * time.Second
	// redisIdle is when a connection is closed that nobody uses; servers and
	// what lies between close them too, without a word.
	redisIdle = 5 * time.Minute
)

// RedisConfig says which Redis server to use.
type RedisConfig struct {
	// URL is redis://user:password@host:port/number, with rediss for TLS. Only
	// the host is needed: the port is 6379 and the database 0 without them. A
	// user alone is a password.
	URL  string
	Pool Pool // Min is not used: connections are made when they are needed
}

// Redis is a client of a Redis server. It may be used by many goroutines. Its
// errors are *Error, as those of a database; they name neither the server nor
// the user.
//
// A command whose connection broke is sent once more on a new one, because
// nothing else tells an old connection that the server has closed. It may
// therefore run twice, and must be one that does no harm then.
type Redis struct {
	slots    *slots
	pool     *redis.Pool
	address  string
	options  []redis.DialOption
	database int
}

// OpenRedis makes the client. A server that is down is no error: calls fail
// until it is back. The error does not quote the URL.
func OpenRedis(c RedisConfig) (*Redis, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		return nil, errors.New("the URL must be redis://host:port/number, or rediss:// for TLS")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a Redis server has no query and no fragment")
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	r := &Redis{address: net.JoinHostPort(u.Hostname(), port)}
	if number := strings.Trim(u.Path, "/"); number != "" {
		if r.database, err = strconv.Atoi(number); err != nil || r.database < 0 {
			return nil, errors.New("the path of a Redis URL is the number of a database")
		}
	}
	user, password := u.User.Username(), ""
	if p, ok := u.User.Password(); ok {
		password = p
	} else { // as redis-cli does
		user, password = "", user
	}
	r.options = []redis.DialOption{
		redis.DialConnectTimeout(redisConnect), redis.DialTLSHandshakeTimeout(redisConnect),
		redis.DialReadTimeout(redisAnswer), redis.DialWriteTimeout(redisAnswer),
		redis.DialUsername(user), redis.DialPassword(password), redis.DialDatabase(r.database),
	}
	if u.Scheme == "rediss" {
		r.options = append(r.options, redis.DialUseTLS(true),
			redis.DialTLSConfig(&tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}))
	}
	p := c.Pool.withDefaults()
	r.slots = newSlots(p)
	r.pool = &redis.Pool{DialContext: r.dial, MaxIdle: p.Max, IdleTimeout: min(p.MaxIdle, redisIdle), MaxConnLifetime: p.MaxLifetime}
	return r, nil
}

func (r *Redis) dial(ctx context.Context) (redis.Conn, error) {
	return redis.DialContext(ctx, "tcp", r.address, r.options...)
}

// Database is the number of the logical database.
func (r *Redis) Database() int { return r.database }

// Close closes the connections that nobody uses, and those in use after their
// command.
func (r *Redis) Close() { _ = r.pool.Close() }

// Do runs a command. Its answer is nil, an int64, a []byte, a string (of a
// status) or an []any of these.
func (r *Redis) Do(ctx context.Context, command string, args ...any) (any, error) {
	return r.run(ctx, func(c redis.Conn) (any, error) { return redis.DoContext(c, ctx, command, args...) })
}

// RedisScript is a Lua script, which runs as one step that nothing interrupts.
type RedisScript struct{ script *redis.Script }

// NewRedisScript makes a script that gets that many keys.
func NewRedisScript(keys int, lua string) *RedisScript {
	return &RedisScript{redis.NewScript(keys, lua)}
}

// Eval runs a script with its keys and arguments; a server that does not know
// the script is sent it.
func (r *Redis) Eval(ctx context.Context, s *RedisScript, keysAndArgs ...any) (any, error) {
	return r.run(ctx, func(c redis.Conn) (any, error) { return s.script.DoContext(ctx, c, keysAndArgs...) })
}

func (r *Redis) run(ctx context.Context, do func(redis.Conn) (any, error)) (any, error) {
	if err := r.slots.take(ctx); err != nil {
		return nil, err
	}
	defer r.slots.free()
	conn, err := r.pool.GetContext(ctx)
	if err != nil {
		return nil, redisError(ctx, err)
	}
	answer, err := do(conn)
	broken := conn.Err() != nil
	_ = conn.Close()
	if err == nil || !broken || ctx.Err() != nil || isTimeout(err) {
		return answer, redisError(ctx, err)
	}
	if conn, err = r.dial(ctx); err != nil {
		return nil, redisError(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	answer, err = do(conn)
	return answer, redisError(ctx, err)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// redisStates says what the first word of a refusal means that is about the
// server, not about the command.
var redisStates = map[string]Error{
	"LOADING":     {Unavailable: true},
	"MASTERDOWN":  {Unavailable: true},
	"CLUSTERDOWN": {Unavailable: true},
	"READONLY":    {Unavailable: true}, // a replica: the primary has moved
	"MISCONF":     {Unavailable: true}, // it cannot save and takes no writes
	"NOREPLICAS":  {Unavailable: true},
	"OOM":         {Unavailable: true},
	"NOAUTH":      {Unavailable: true},
	"WRONGPASS":   {Unavailable: true},
	"NOPERM":      {Unavailable: true},
	"BUSY":        {Busy: true},
}

// redisError wraps an error of the driver. Its text is without the names of
// hosts, which belong to a URL that may be secret.
func redisError(ctx context.Context, err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var refused redis.Error
	if errors.As(err, &refused) {
		word, _, _ := strings.Cut(string(refused), " ")
		e := redisStates[word]
		e.Busy = e.Busy || strings.Contains(string(refused), "max number of clients")
		e.Err = refused
		return &e
	}
	var dns *net.DNSError
	var network *net.OpError
	switch {
	case errors.As(err, &dns):
		err = &worded{"finding the Redis server: " + dns.Err, err}
	case errors.As(err, &network):
		err = &worded{fmt.Sprintf("%s: %v", network.Op, network.Err), err}
	}
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	if isTimeout(err) {
		return &Error{Err: err, Timeout: true, Unavailable: true}
	}
	var certificate *tls.CertificateVerificationError
	return &Error{Err: err, Unavailable: network != nil || dns != nil || errors.As(err, &certificate) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)}
}
