package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/api"
)

// issuer gives tokens t1, t2, …; the last one is good.
type issuer struct {
	given   atomic.Int64
	refused atomic.Int64 // tokens up to this number are not good any more
	asked   atomic.Value // the last request: how the client showed who it is
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	i.asked.Store(fmt.Sprintf("%s:%s %s", user, password, body))
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"t%d","token_type":"bearer","expires_in":3600}`, i.given.Add(1))
}

// guarded answers who called, or 401.
func (i *issuer) guarded(w http.ResponseWriter, r *http.Request) {
	var n int64
	_, _ = fmt.Sscanf(r.Header.Get("Authorization"), "Bearer t%d", &n)
	if n <= i.refused.Load() {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("Authorization"))
}

func oauth(tokenURL string) func(*api.Config) {
	return func(c *api.Config) {
		c.Auth = api.Auth{TokenURL: tokenURL, ClientID: "me", ClientSecret: "s3cret", Scopes: []string{"read", "write"}}
	}
}

func TestToken(t *testing.T) {
	i := &issuer{}
	tokens := serve(t, i.ServeHTTP)
	s := serve(t, i.guarded)
	c := s.client(oauth(tokens.URL + "/token"))

	r, err := c.Do(t.Context(), get("/"))
	wants(t, r, err, `200 text/plain "GET Bearer t1"`)
	if got, want := i.asked.Load(), "me:s3cret grant_type=client_credentials&scope=read+write"; got != want {
		t.Errorf("asked by %s, want %s", got, want)
	}
	r, err = c.Do(t.Context(), get("/"))
	wants(t, r, err, `200 text/plain "GET Bearer t1"`)

	i.refused.Store(1) // the token ends before its time: renewed, for a POST too
	r, err = c.Do(t.Context(), &api.Request{Method: "POST", Target: "/", Body: []byte("x")})
	wants(t, r, err, `200 text/plain "POST Bearer t2"`)

	i.refused.Store(99) // renewed once only
	calls := s.calls.Load()
	r, err = c.Do(t.Context(), get("/"))
	wants(t, r, err, "401  null")
	if n := s.calls.Load() - calls; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	if n := i.given.Load(); n != 3 {
		t.Errorf("%d tokens were given, want 3", n)
	}
}

// TestTokenOnce has many callers that want a token at once, and one that gives up.
func TestTokenOnce(t *testing.T) {
	i := &issuer{}
	tokens := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(100 * time.Millisecond)
		i.ServeHTTP(w, r)
	})
	s := serve(t, i.guarded)
	c := s.client(oauth(tokens.URL))
	for range 2 {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if r, err := c.Do(t.Context(), get("/")); err != nil || r.Status != 200 {
					t.Error(said(r, err))
				}
			})
		}
		all.Wait()
		i.refused.Store(1)
	}
	if n := i.given.Load(); n != 2 {
		t.Errorf("%d tokens were given, want 2", n)
	}
}

// TestTokenRefused holds that nothing that the endpoint wrote, and no secret,
// is in an error.
func TestTokenRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		want  string
	}{
		{"a code", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error":"invalid_client","error_description":"s3cret LEAK"}`)
		}, "error (): service shop: the token endpoint answered 401 (invalid_client)"},
		{"a code that is none", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":"LEAK"}`)
		}, "error (): service shop: the token endpoint answered 400"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `LEAK`)
		}, "error (): service shop: the token endpoint answered 404"},
		{"down", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
			"error (unavailable): service shop: the token endpoint answered 503"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `LEAK`)
		}, "error (): service shop: the answer of the token endpoint cannot be read"},
		{"no token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"token":"LEAK"}`)
		}, "error (): service shop: the answer of the token endpoint cannot be read"},
		{"another type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"LEAK","token_type":"mac"}`)
		}, "error (): service shop: the token endpoint gives tokens of a type other than Bearer"},
		{"a token with a line break", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"LEAK\r\nX: y","token_type":"bearer"}`)
		}, "error (): service shop: the token endpoint gives a token that cannot be sent"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/LEAK", http.StatusTemporaryRedirect)
		},
			"error (refused): service shop: the token endpoint redirects: correct tokenURL"},
		{"slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			"error (timeout): service shop: no answer within 200ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokens := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				c.serve(w, r)
			})
			s := serve(t, func(http.ResponseWriter, *http.Request) {})
			r, err := s.client(oauth(tokens.URL), func(c *api.Config) { c.Timeout = 200 * time.Millisecond }).Do(t.Context(), get("/"))
			wants(t, r, err, c.want)
			if s.calls.Load() != 0 {
				t.Error("a request without a token was made")
			}
			if strings.Contains(said(r, err), "LEAK") || strings.Contains(said(r, err), "s3cret") {
				t.Error("the error tells too much")
			}
		})
	}
}
