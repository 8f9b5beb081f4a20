package graph

import "time"

// API is a declared HTTP service.
type API struct {
	Name    string
	At      Place
	Path    string
	BaseURL Text // may hold secret markers
	Auth    *Auth
	Headers []NodeField   // texts; may hold secret markers
	Timeout time.Duration // of one try; default 10s
	Retry   int           // more tries of a GET
	MaxBody int64         // bytes of an answer; default 10 MiB
	Errors  []*ErrorRule
}

// Auth is how a service knows us. Exactly one member is set. Texts may hold
// secret markers.
type Auth struct {
	At     Place
	Bearer *Text
	Basic  *Basic
	Header *HeaderAuth
	OAuth2 *OAuth2 // client credentials
}

// Basic is a user and a password.
type Basic struct{ User, Password Text }

// HeaderAuth is a header of its own.
type HeaderAuth struct{ Name, Value Text }

// OAuth2 is the client credentials grant (RFC 6749, 4.4).
type OAuth2 struct {
	TokenURL, ClientID, ClientSecret Text
	Scopes                           []string
}
