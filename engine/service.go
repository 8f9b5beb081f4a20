package engine

import (
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/api"
)

// openAPI makes the client of a service; no request is made.
func (p *Program) openAPI(a *graph.API, o Options, secret func(string) string) error {
	shown := func(t *graph.Text) string { return graph.Reveal(t.S, secret) }
	c := api.Config{Name: a.Name, BaseURL: shown(&a.BaseURL), Timeout: a.Timeout, Retry: a.Retry, MaxBody: a.MaxBody}
	for _, h := range a.Headers {
		c.Headers = append(c.Headers, [2]string{h.Name, shown(&h.Node.Text)})
	}
	p.hideURL(c.BaseURL, graph.HasSecret(a.BaseURL.S))
	var err error
	if a.Auth != nil {
		if o := a.Auth.OAuth2; o != nil {
			p.hideURL(shown(&o.TokenURL), graph.HasSecret(o.TokenURL.S))
		}
		if c.Auth, err = authOf(a.Auth, shown); err != nil {
			return fmt.Errorf("auth: %w", err)
		}
	}
	if o.Transport != nil {
		c.Transport = o.Transport(a.Name)
	}
	client, err := api.New(c)
	if err != nil {
		return err
	}
	p.apis[a.Name] = client
	return nil
}

// authOf reveals how a service knows us. What is empty, as a variable that is
// set to nothing, is an error: requests without auth are not what was meant.
func authOf(x *graph.Auth, shown func(*graph.Text) string) (api.Auth, error) {
	var a api.Auth
	switch {
	case x.Bearer != nil:
		if a.Bearer = shown(x.Bearer); a.Bearer == "" {
			return a, errors.New("bearer is empty")
		}
	case x.Basic != nil:
		if a.User, a.Password = shown(&x.Basic.User), shown(&x.Basic.Password); a.User+a.Password == "" {
			return a, errors.New("user and password are empty")
		}
	case x.Header != nil:
		if a.Header, a.Value = shown(&x.Header.Name), shown(&x.Header.Value); a.Value == "" {
			return a, errors.New("the header's value is empty")
		}
	case x.OAuth2 != nil:
		a.TokenURL, a.Scopes = shown(&x.OAuth2.TokenURL), x.OAuth2.Scopes
		if a.ClientID, a.ClientSecret = shown(&x.OAuth2.ClientID), shown(&x.OAuth2.ClientSecret); a.ClientSecret == "" {
			return a, errors.New("clientSecret is empty")
		}
	}
	return a, nil
}
