package api

import (
	"net/url"
	"strings"
)

// refusal is why a request is not made or not followed further.
type refusal string

func (r refusal) Error() string { return string(r) }

// target gives the URL of a request: below the base URL, or an absolute one
// of the same scheme, host and port.
func (c *Client) target(s string) (*url.URL, error) {
	if !strings.HasPrefix(s, "/") {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return nil, refusal("the target of the request is no URL")
		}
		if u.User != nil || !sameHost(u, c.base) {
			return nil, refusal("the request would go to another host than the service's own")
		}
		u.Fragment, u.RawFragment = "", ""
		return u, nil
	}
	path, query, hasQuery := strings.Cut(s, "?")
	if problem := PathProblem(path); problem != "" {
		return nil, refusal("the path of the request " + problem)
	}
	if !isEscaped(query, "\"#<>") {
		return nil, refusal("the query of the request is not escaped")
	}
	full := c.base.EscapedPath() + path
	u := *c.base
	var err error
	if u.Path, err = url.PathUnescape(full); err != nil {
		return nil, refusal("the path of the request is not escaped")
	}
	u.RawPath, u.RawQuery, u.ForceQuery = full, query, hasQuery && query == ""
	return &u, nil
}

// PathProblem says what would let an escaped path mean another one than it
// shows, "" if nothing does: what is not escaped, an empty segment before the
// last, a segment that is . or ..
func PathProblem(path string) string {
	if !isEscaped(path, "\"#<>?\\^`{|}") {
		return "is not escaped"
	}
	if strings.Contains(path, "//") {
		return "has an empty segment"
	}
	for segment := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(segment); err == nil && (plain == "." || plain == "..") {
			return "has a segment . or .."
		}
	}
	return ""
}

// isEscaped tells whether a part of a URL has none of the characters not and
// nothing that no part may have.
func isEscaped(s, not string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(not, c) >= 0 {
			return false
		}
		if c == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

// sameHost tells whether two URLs have the same scheme, host and port.
func sameHost(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
