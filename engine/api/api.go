// Package api makes requests to the HTTP services that a spec declares: with
// their auth, time limits, retries and circuit breaker, and to no other host.
// It is the only code that makes requests to the outside.
//
// What a request may reach is decided in three places: its target stands
// below the service's own scheme, host and port (target.go), a redirect is
// followed only there (redirect.go), and every address is looked at when it
// is dialled, after the name was resolved (guard.go). Proxies of the
// environment (HTTP_PROXY and the like) are not used: they would dial for us.
//
// No error holds a part of an answer, a URL with its query, or a secret.
package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Config says what a service is. All texts are revealed.
type Config struct {
	Name    string
	BaseURL string // scheme, host and maybe a path; no user, query or fragment
	Auth    Auth
	Headers [][2]string
	Timeout time.Duration // of one try, body included; 0: 10s
	Retry   int           // more tries of a GET after no connection, 429, 502-504
	MaxBody int64         // bytes of an answer, uncompressed; 0: 10 MiB
	// Transport replaces the network; for tests. Between two tries there is
	// no wait then. nil: the real one, guarded.
	Transport http.RoundTripper
}

// Auth is how the service knows us; at most one kind is set.
type Auth struct {
	Bearer                           string
	User, Password                   string // basic
	Header, Value                    string
	TokenURL, ClientID, ClientSecret string // OAuth 2 client credentials
	Scopes                           []string
}

const (
	defaultTimeout = 10 * time.Second
	defaultMaxBody = 10 << 20
)

// Client is one open service. It may be used by many goroutines.
type Client struct {
	name    string
	base    *url.URL // its path without the slash at the end
	headers [][2]string
	basic   [2]string
	tokens  *tokens // nil: no OAuth 2
	http    *http.Client
	traced  bool // the transport is net/http's, which tells when it writes
	timeout time.Duration
	retry   int
	maxBody int64
	breaker *gobreaker.CircuitBreaker[*Response]
	wait    func(ctx context.Context, d time.Duration) error
}

// New checks the configuration and makes the client; it makes no request.
func New(c Config) (*Client, error) {
	base, err := parseBase(c.BaseURL)
	if err != nil {
		return nil, err
	}
	headers, err := c.fixedHeaders()
	if err != nil {
		return nil, err
	}
	out := &Client{
		name: c.Name, base: base, headers: headers, basic: [2]string{c.Auth.User, c.Auth.Password},
		timeout: c.Timeout, retry: c.Retry, maxBody: c.MaxBody, breaker: newBreaker(c.Name), wait: wait,
	}
	if out.timeout <= 0 {
		out.timeout = defaultTimeout
	}
	if out.maxBody <= 0 {
		out.maxBody = defaultMaxBody
	}
	transport := c.Transport
	if out.traced = transport == nil; out.traced {
		transport = newTransport(base.Hostname(), nil)
	} else {
		out.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	}
	out.http = &http.Client{Transport: transport, CheckRedirect: followHere}
	if c.Auth.TokenURL != "" {
		if out.tokens, err = newTokens(&c.Auth, out.timeout, c.Transport); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Request is one request. Target is the escaped path, below the base URL's
// path, with the query; or, for a next page, an absolute URL of the same host.
type Request struct {
	Method      string
	Target      string
	Headers     [][2]string // instead of the service's own of the same name
	Body        []byte
	ContentType string
}

// Response is an answer of any status.
type Response struct {
	Status  int
	Headers *value.Object // lower-case names, sorted; several values joined by ", "
	Body    any           // as value: JSON parsed, CSV a list of objects, text a string, anything else nil
	Binary  bool          // the body is neither JSON, CSV nor text
	Raw     []byte        // the body as it came, for images and binary content
	Type    string        // media type without parameters, lower case; "" if the service did not say
	URL     string        // where the answer came from, after redirects
}

// Error is a request without an answer that could be read. With none of the
// flags set the answer was no JSON, CSV or text though it said so, or the
// service's auth does not work.
type Error struct {
	Timeout     bool // no answer in time
	Unavailable bool // no connection, or the circuit is open
	Refused     bool // by us: another host, a private address, too large an answer
	// Sent: a part of the request went out, so that the service may have done
	// what it was asked.
	Sent bool
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the context's error where the caller gave up.
func (e *Error) Unwrap() error { return e.Err }

// Close ends idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	if c.tokens != nil {
		c.tokens.http.CloseIdleConnections()
	}
}
