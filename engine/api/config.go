package api

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// parseBase reads the URL that all requests of a service begin with. The
// errors do not show it: it may be made from a secret.
func parseBase(s string) (*url.URL, error) {
	u, err := parseURL("baseURL", s)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("baseURL has a query or a fragment: write the query beside the path of a request")
	}
	trimmed := *u
	trimmed.Path, trimmed.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	if problem := PathProblem(trimmed.EscapedPath()); problem != "" {
		return nil, errors.New("the path of baseURL " + problem)
	}
	return &trimmed, nil
}

func parseURL(what, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is no URL", what)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%s begins with neither http:// nor https://", what)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%s names no host", what)
	case u.User != nil:
		return nil, fmt.Errorf("%s holds a user: write auth: basic: {user, password}", what)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("%s has a port that is none", what)
		}
	}
	return u, nil
}

// fixedHeaders checks the headers of every request and the auth, and gives
// the headers with those that the auth makes.
func (c *Config) fixedHeaders() ([][2]string, error) {
	a := &c.Auth
	name, v, kinds := "", "", 0
	if a.Bearer != "" {
		name, v, kinds = "Authorization", "Bearer "+a.Bearer, kinds+1
	}
	if a.Header != "" {
		name, v, kinds = a.Header, a.Value, kinds+1
		if v == "" {
			return nil, errors.New("auth: the header's value is empty")
		}
	}
	if a.User != "" || a.Password != "" {
		name, kinds = "Authorization", kinds+1
		if strings.Contains(a.User, ":") {
			return nil, errors.New("auth: the user of basic auth has a colon in it")
		}
	}
	if a.TokenURL != "" {
		name, kinds = "Authorization", kinds+1
	}
	if kinds > 1 {
		return nil, errors.New("auth: only one kind can be used")
	}
	out := make([][2]string, 0, len(c.Headers)+1)
	for _, h := range c.Headers {
		if problem := HeaderNameProblem(h[0]); problem != "" {
			return nil, fmt.Errorf("headers: %q %s", h[0], problem)
		}
		if strings.EqualFold(h[0], name) {
			return nil, fmt.Errorf("headers: %s is what auth sets", h[0])
		}
		if !ValidHeaderValue(h[1]) {
			return nil, fmt.Errorf("headers: the value of %s has a line break or another control character in it", h[0])
		}
		out = append(out, h)
	}
	if v == "" {
		return out, nil
	}
	if problem := HeaderNameProblem(name); problem != "" {
		return nil, fmt.Errorf("auth: the header %q %s", name, problem)
	}
	if !ValidHeaderValue(v) {
		return nil, errors.New("auth: the secret has a line break or another control character in it")
	}
	return append(out, [2]string{name, v}), nil
}

// ours are headers that make the connection, not the request: net/http writes
// them, and would drop or misread one that somebody else sets.
var ours = map[string]string{
	"host":                "is fixed by baseURL",
	"content-length":      "is what the body says",
	"transfer-encoding":   "belongs to the connection",
	"connection":          "belongs to the connection",
	"keep-alive":          "belongs to the connection",
	"upgrade":             "belongs to the connection",
	"te":                  "belongs to the connection",
	"trailer":             "belongs to the connection",
	"expect":              "belongs to the connection",
	"proxy-authorization": "belongs to the connection",
	"proxy-connection":    "belongs to the connection",
	"accept-encoding":     "is set already: answers are unpacked",
}

// HeaderNameProblem says what is wrong with the name of a header that a
// request is to have, "" if nothing (RFC 9110, 5.6.2).
func HeaderNameProblem(name string) string {
	if name == "" {
		return "is no name of a header"
	}
	for i := range len(name) {
		c := name[i]
		if !isAlnum(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return "is no name of a header"
		}
	}
	return ours[strings.ToLower(name)]
}

// ValidHeaderValue tells whether a text can be the value of a header: no
// control characters but the tab (RFC 9110, 5.5).
func ValidHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
