// Package api makes requests to the HTTP services that a spec declares: with
// their auth, time limits, retries and circuit breaker, and to no other host.
// It is the only code that makes requests to the outside.
package api

import (
	"context"
	"net/http"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Config says what a service is. All texts are revealed.
type Config struct {
	Name    string
	BaseURL string
	Auth    Auth
	Headers [][2]string
	Timeout time.Duration // of one try
	Retry   int           // more tries of a GET
	MaxBody int64         // bytes of an answer
	// Transport replaces the network; for tests. nil: the real one, guarded.
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

// Client is one open service. It may be used by many goroutines.
type Client struct{}

// New checks the configuration and makes the client; it makes no request.
func New(c Config) (*Client, error) { panic("api.New") }

// Request is one request. Target is the escaped path, below the base URL's
// path, with the query; or, for a next page, an absolute URL of the same host.
type Request struct {
	Method      string
	Target      string
	Headers     [][2]string
	Body        []byte
	ContentType string
}

// Response is an answer of any status.
type Response struct {
	Status  int
	Headers *value.Object // lower-case names; several values joined by ", "
	Body    any           // as value: JSON parsed, CSV a list of objects, text a string, anything else nil
	Raw     []byte        // the body as it came, for images and binary content
	Type    string        // media type without parameters
}

// Error is a request without an answer.
type Error struct {
	Timeout     bool // no answer in time
	Unavailable bool // no connection, or the circuit is open
	Refused     bool // we did not make it: another host, a private address, too large an answer
	Err         error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Do makes the request, with the tries that are allowed. An answer of status
// 400 or more is a Response; no answer is an *Error.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) { panic("api.Do") }

// Close ends idle connections.
func (c *Client) Close() {}
