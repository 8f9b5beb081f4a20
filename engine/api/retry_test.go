package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a network that answers at once, in the order of its script; the
// last line is repeated. A line is a status with a Retry-After behind it, or
// "down", "slow" or "refused".
type fake struct {
	mu     sync.Mutex
	script []string
	at     []time.Duration // when each request came, since the start
	start  time.Time
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.at = append(f.at, time.Since(f.start))
	line := f.script[0]
	if len(f.script) > 1 {
		f.script = f.script[1:]
	}
	f.mu.Unlock()
	what, after, _ := strings.Cut(line, " ")
	switch what {
	case "down":
		return nil, io.ErrUnexpectedEOF
	case "slow":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case "refused":
		return nil, refusal("the host is private")
	}
	var status int
	if _, err := fmt.Sscan(what, &status); err != nil {
		panic(line)
	}
	h := http.Header{}
	if after != "" {
		h.Set("Retry-After", after)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// open gives a client of a fake network that waits between tries.
func open(t *testing.T, retry int, script ...string) (*Client, *fake) {
	t.Helper()
	f := &fake{script: script, start: time.Now()}
	c, err := New(Config{Name: "shop", BaseURL: "https://shop.example.com", Retry: retry, Timeout: 2 * time.Second, Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	c.wait = wait
	return c, f
}

func ended(r *Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(r.Status)
}

// TestRetries runs on a clock of its own: waiting takes no time.
func TestRetries(t *testing.T) {
	date := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		name   string
		method string
		retry  int
		script func() []string
		want   string
		// least and most are the bounds of each wait.
		least, most []time.Duration
	}{
		{"503 then 200", "GET", 2, lines("503", "200"), "200", ms(100), ms(200)},
		{"down then 200", "GET", 2, lines("down", "200"), "200", ms(100), ms(200)},
		{"429, 502, 504, then 200", "GET", 3, lines("429", "502", "504", "200"), "200", ms(100, 200, 400), ms(200, 400, 800)},
		{"HEAD as well", "HEAD", 1, lines("503", "200"), "200", ms(100), ms(200)},
		{"the last answer counts", "GET", 2, lines("503"), "503", ms(100, 200), ms(200, 400)},
		{"the last failure counts", "GET", 1, lines("down"), "service shop: the connection ended before the answer did", ms(100), ms(200)},
		{"Retry-After in seconds", "GET", 1, lines("429 3", "200"), "200", ms(3000), ms(3000)},
		{"Retry-After as a date", "GET", 1, func() []string { return []string{"503 " + date(4*time.Second), "200"} }, "200", ms(3000), ms(4000)},
		{"Retry-After in the past", "GET", 1, func() []string { return []string{"503 " + date(-time.Hour), "200"} }, "200", ms(100), ms(200)},
		{"Retry-After that is none", "GET", 1, lines("503 soon", "200"), "200", ms(100), ms(200)},
		{"Retry-After for too long", "GET", 1, lines("429 21", "200"), "429", nil, nil},
		{"none by default", "GET", 0, lines("503", "200"), "503", nil, nil},
		{"never a POST", "POST", 2, lines("503", "200"), "503", nil, nil},
		{"never a POST that broke off", "POST", 2, lines("down", "200"), "service shop: the connection ended before the answer did", nil, nil},
		{"never a DELETE", "DELETE", 2, lines("502", "200"), "502", nil, nil},
		{"not a 500", "GET", 2, lines("500", "200"), "500", nil, nil},
		{"not a 404", "GET", 2, lines("404", "200"), "404", nil, nil},
		{"not what took too long", "GET", 2, lines("slow", "200"), "service shop: no answer within 2s", nil, nil},
		{"not what was refused", "GET", 2, lines("refused", "200"), "service shop: the host is private", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, f := open(t, c.retry, c.script()...)
				r, err := client.Do(t.Context(), &Request{Method: c.method, Target: "/"})
				if got := ended(r, err); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if len(f.at) != len(c.least)+1 {
					t.Fatalf("requests at %v, want %d", f.at, len(c.least)+1)
				}
				for i := range c.least {
					if d := f.at[i+1] - f.at[i]; d < c.least[i] || d > c.most[i] {
						t.Errorf("wait %d is %s, want %s to %s", i+1, d, c.least[i], c.most[i])
					}
				}
			})
		})
	}
}

func lines(l ...string) func() []string { return func() []string { return l } }

func ms(l ...int) []time.Duration {
	out := make([]time.Duration, len(l))
	for i, n := range l {
		out[i] = time.Duration(n) * time.Millisecond
	}
	return out
}

// TestRetryEnds holds that no wait outlives the call.
func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := open(t, 5, "503 10")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := c.Do(ctx, &Request{Method: "GET", Target: "/"})
		if got := ended(r, err); got != "503" || time.Since(f.start) > 0 {
			t.Errorf("got %s after %s, want the answer at once", got, time.Since(f.start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c, f := open(t, 5, "503 10")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		r, err := c.Do(ctx, &Request{Method: "GET", Target: "/"})
		if got := ended(r, err); got != "service shop: the call ended first: context canceled" || time.Since(f.start) != 3*time.Second {
			t.Errorf("got %s after %s", got, time.Since(f.start))
		}
	})
}

const circuitOpen = "service shop: the service failed too often just now: no request is made until it had time to come back"

// TestCircuit opens the circuit, finds the service still away, then back.
func TestCircuit(t *testing.T) {
	for _, failure := range []string{"down", "slow", "502", "503", "504"} {
		t.Run(failure, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := open(t, 0, failure)
				do := func() string {
					r, err := c.Do(t.Context(), &Request{Method: "POST", Target: "/"})
					return ended(r, err)
				}
				for range failuresInRow {
					if got := do(); got == circuitOpen {
						t.Fatalf("open after %d requests", len(f.at))
					}
				}
				asked := len(f.at)
				_, err := c.Do(t.Context(), &Request{Method: "GET", Target: "/"})
				var e *Error
				if !errors.As(err, &e) || !e.Unavailable || e.Error() != circuitOpen {
					t.Fatalf("got %v", err)
				}
				if len(f.at) != asked {
					t.Error("a request was made")
				}
				time.Sleep(openFor + time.Millisecond)
				if got := do(); got == circuitOpen { // one request finds out: still away
					t.Error("no request found out whether the service is back")
				}
				if got := do(); got != circuitOpen {
					t.Errorf("got %s", got)
				}
				f.script = []string{"200"}
				time.Sleep(openFor + time.Millisecond)
				for range 3 {
					if got := do(); got != "200" {
						t.Errorf("after it came back: %s", got)
					}
				}
			})
		})
	}
}

// TestCircuitHalf opens the circuit when half of the requests fail, though
// never several in a row.
func TestCircuitHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := open(t, 0, "200")
		n := 0
		for ; n < 100; n++ {
			f.script = []string{[]string{"200", "503"}[n%2]}
			if _, err := c.Do(t.Context(), &Request{Method: "GET", Target: "/"}); err != nil {
				break
			}
		}
		if n != failuresOf {
			t.Errorf("open after %d requests, want %d", n, failuresOf)
		}
	})
}

// TestCircuitStays closed for what is the caller's own doing, or the
// service's considered answer.
func TestCircuitStays(t *testing.T) {
	for _, what := range []string{"400", "404", "429", "500", "refused", "cancelled", "over"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line := what
				if what == "cancelled" || what == "over" {
					line = "slow"
				}
				c, f := open(t, 0, line)
				for range 2 * failuresInRow {
					ctx := t.Context()
					switch what {
					case "cancelled":
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(time.Second, cancel)
					case "over":
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
					}
					_, _ = c.Do(ctx, &Request{Method: "GET", Target: "/"})
				}
				f.script = []string{"200"}
				r, err := c.Do(t.Context(), &Request{Method: "GET", Target: "/"})
				if got := ended(r, err); got != "200" {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

// TestTestsDoNotWait holds that a client with a transport of its own makes
// all its tries at once.
func TestTestsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{script: []string{"503 10", "503", "200"}, start: time.Now()}
		c, err := New(Config{Name: "shop", BaseURL: "https://shop.example.com", Retry: 2, Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Do(t.Context(), &Request{Method: "GET", Target: "/"})
		if got := ended(r, err); got != "200" || time.Since(f.start) > 0 {
			t.Errorf("got %s after %s", got, time.Since(f.start))
		}
	})
}
