package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

const (
	firstWait = 200 * time.Millisecond // before the second try; doubled each time
	mostWait  = 5 * time.Second
	// mostAsked is the longest wait that a service may ask for by Retry-After;
	// its answer is given at once where it asks for more.
	mostAsked = 20 * time.Second
)

// mayTryAgain tells whether a request may be made again by its method: one
// that may have changed something is made once.
func mayTryAgain(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// worthATry tells whether another try may end otherwise, and what the service
// asks to wait (-1: nothing).
func worthATry(r *Response, err error) (asked time.Duration, again bool) {
	if err != nil {
		var e *Error
		return -1, errors.As(err, &e) && e.Unavailable && !errors.Is(err, errOpen)
	}
	switch r.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(r.Headers, time.Now()), true
	}
	return -1, false
}

// retryAfter reads the Retry-After header: seconds or a date (RFC 9110,
// 10.2.3); -1 if there is none that can be read.
func retryAfter(h *value.Object, now time.Time) time.Duration {
	v, _ := h.Get("retry-after")
	s, _ := v.(string)
	if n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(strings.TrimSpace(s)); err == nil {
		return max(0, at.Sub(now))
	}
	return -1
}

// pause says how long to wait before try n+1 (n counts from 1), and whether
// that is worth it before the call ends.
func pause(ctx context.Context, n int, asked time.Duration) (time.Duration, bool) {
	d := min(firstWait<<min(n-1, 10), mostWait)
	d = d/2 + rand.N(d/2+1) // so that callers who failed together do not come back together
	if asked > mostAsked {
		return 0, false
	}
	d = max(d, asked)
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return 0, false
	}
	return d, true
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
