package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// errCallEnded says that the caller's own time was over, not the service's.
var errCallEnded = errors.New("the call ended first")

// errOpen is what a caller gets while the circuit is open.
var errOpen = errors.New("the service failed too often just now: no request is made until it had time to come back")

// Do makes the request, with the tries that are allowed. An answer of status
// 400 or more is a Response; no answer is an *Error.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	u, err := c.target(r.Target)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	header, err := c.header(r)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	tries := 1
	if mayTryAgain(r.Method) {
		tries += c.retry
	}
	renewed := false
	for n := 1; ; n++ {
		resp, err := c.guarded(ctx, r, u, header, &renewed)
		asked, again := worthATry(resp, err)
		if !again || n >= tries {
			return resp, err
		}
		d, worth := pause(ctx, n, asked)
		if !worth {
			return resp, err
		}
		if err := c.wait(ctx, d); err != nil {
			return nil, c.failure(ctx, err)
		}
	}
}

// guarded makes one try unless the circuit is open.
func (c *Client) guarded(ctx context.Context, r *Request, u *url.URL, header http.Header, renewed *bool) (*Response, error) {
	resp, err := c.breaker.Execute(func() (*Response, error) {
		resp, err := c.authorized(ctx, r, u, header, renewed)
		if err == nil && resp.Status >= http.StatusBadGateway && resp.Status <= http.StatusGatewayTimeout {
			err = errAway
		}
		return resp, err
	})
	switch {
	case isOpen(err):
		return nil, &Error{Unavailable: true, Err: fmt.Errorf("service %s: %w", c.name, errOpen)}
	case errors.Is(err, errAway):
		return resp, nil
	}
	return resp, err
}

// authorized makes one try with a token, if the service wants one. A token
// that it does not accept any more is renewed once: nothing was done yet.
func (c *Client) authorized(ctx context.Context, r *Request, u *url.URL, header http.Header, renewed *bool) (*Response, error) {
	if c.tokens == nil {
		return c.try(ctx, r, u, header)
	}
	for {
		token, err := c.tokens.token(ctx)
		if err != nil {
			return nil, c.failure(ctx, err)
		}
		header = header.Clone()
		header.Set("Authorization", "Bearer "+token)
		resp, err := c.try(ctx, r, u, header)
		if err != nil || resp.Status != http.StatusUnauthorized || *renewed {
			return resp, err
		}
		*renewed = true
		c.tokens.drop(token)
	}
}

// try makes the request once.
func (c *Client) try(ctx context.Context, r *Request, u *url.URL, header http.Header) (*Response, error) {
	inTime, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var sent atomic.Bool // written by net/http's own goroutines
	sent.Store(!c.traced)
	inTime = httptrace.WithClientTrace(inTime, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { sent.Store(true) }})
	failed := func(err error) error {
		e := c.failure(ctx, err)
		e.Sent = sent.Load()
		return e
	}
	target := *u
	req := (&http.Request{Method: r.Method, URL: &target, Host: u.Host, Header: header.Clone()}).WithContext(inTime)
	if len(r.Body) > 0 { // an empty one would go out chunked, which not all servers read
		req.ContentLength = int64(len(r.Body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		req.Body, _ = req.GetBody() // never fails
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = answer.Body.Close() }() // what is left of it is of no use
	raw, err := readAll(answer.Body, c.maxBody)
	if err != nil {
		return nil, failed(err)
	}
	resp, err := newResponse(answer, raw)
	if err != nil {
		return nil, failed(err)
	}
	return resp, nil
}

// header gives the header of a request: the service's own, then the
// request's instead of those of the same name.
func (c *Client) header(r *Request) (http.Header, error) {
	h := http.Header{"User-Agent": {"fusion-serve"}}
	for _, x := range c.headers {
		h.Set(x[0], x[1])
	}
	if c.basic != [2]string{} {
		basic := http.Request{Header: h}
		basic.SetBasicAuth(c.basic[0], c.basic[1])
	}
	if r.ContentType != "" {
		h.Set("Content-Type", r.ContentType)
	}
	for _, x := range r.Headers {
		if problem := HeaderNameProblem(x[0]); problem != "" {
			return nil, refusal(fmt.Sprintf("the header %q %s", x[0], problem))
		}
		if !ValidHeaderValue(x[1]) {
			return nil, refusal(fmt.Sprintf("the value of the header %s has a control character in it", x[0]))
		}
		h.Set(x[0], x[1])
	}
	return h, nil
}
