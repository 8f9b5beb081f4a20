package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
)

// tokens holds the token of a service by OAuth 2 client credentials. However
// many calls want one, it is fetched once.
type tokens struct {
	config  clientcredentials.Config
	http    *http.Client
	timeout time.Duration
	flight  singleflight.Group

	mu  sync.Mutex
	now *oauth2.Token // nil: none
}

// newTokens checks the token endpoint; transport replaces the network, nil:
// the real one, guarded for the endpoint's own host.
func newTokens(a *Auth, timeout time.Duration, transport http.RoundTripper) (*tokens, error) {
	u, err := parseURL("auth: tokenURL", a.TokenURL)
	if err != nil {
		return nil, err
	}
	if a.ClientID == "" {
		return nil, errors.New("auth: clientID is empty")
	}
	if transport == nil {
		transport = newTransport(u.Hostname(), nil)
	}
	return &tokens{
		config: clientcredentials.Config{
			ClientID: a.ClientID, ClientSecret: a.ClientSecret, TokenURL: a.TokenURL, Scopes: a.Scopes,
		},
		http: &http.Client{
			Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return refusal("the token endpoint redirects: correct tokenURL")
			},
		},
		timeout: timeout,
	}, nil
}

// token gives a token that is good for a while yet.
func (t *tokens) token(ctx context.Context) (string, error) {
	if now := t.cached(); now.Valid() {
		return now.AccessToken, nil
	}
	// A caller that gives up does not take the token from the others.
	flight := t.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.timeout)
		defer cancel()
		return t.fetch(ctx)
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-flight:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(*oauth2.Token).AccessToken, nil
	}
}

func (t *tokens) cached() *oauth2.Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

func (t *tokens) fetch(ctx context.Context) (*oauth2.Token, error) {
	if now := t.cached(); now.Valid() { // the flight before this one fetched it
		return now, nil
	}
	got, err := t.config.Token(context.WithValue(ctx, oauth2.HTTPClient, t.http))
	if err != nil {
		return nil, tokenFailure(err)
	}
	if !strings.EqualFold(got.Type(), "Bearer") {
		return nil, unreadable("the token endpoint gives tokens of a type other than Bearer")
	}
	if !ValidHeaderValue(got.AccessToken) {
		return nil, unreadable("the token endpoint gives a token that cannot be sent")
	}
	t.mu.Lock()
	t.now = got
	t.mu.Unlock()
	return got, nil
}

// drop forgets a token that the service did not accept, unless there is a
// newer one already.
func (t *tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now != nil && t.now.AccessToken == token {
		t.now = nil
	}
}

// tokenFailure says why there is no token, without what the endpoint wrote
// but for the codes of RFC 6749, 5.2.
func tokenFailure(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		var u interface{ Unwrap() error }
		if errors.As(err, &u) {
			return err // of the connection
		}
		return unreadable("the answer of the token endpoint cannot be read")
	}
	status := refused.Response.StatusCode
	text := fmt.Sprintf("the token endpoint answered %d", status)
	switch refused.ErrorCode {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope":
		text += " (" + refused.ErrorCode + ")"
	}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return away(text)
	}
	return unreadable(text)
}
