package api

import (
	"net/url"
	"strings"
	"testing"
)

func TestNewFaults(t *testing.T) {
	const secret = "s3cret"
	good := "https://api.example.com"
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{BaseURL: "://" + secret}, "baseURL is no URL"},
		{Config{BaseURL: "ftp://api.example.com"}, "baseURL begins with neither http:// nor https://"},
		{Config{BaseURL: "api.example.com"}, "baseURL begins with neither http:// nor https://"},
		{Config{BaseURL: "https:///v1"}, "baseURL names no host"},
		{Config{BaseURL: "https://me:" + secret + "@api.example.com"}, "baseURL holds a user: write auth: basic: {user, password}"},
		{Config{BaseURL: "https://api.example.com/v1?key=" + secret}, "baseURL has a query or a fragment: write the query beside the path of a request"},
		{Config{BaseURL: "https://api.example.com/v1/../v2"}, "the path of baseURL has a segment . or .."},
		{Config{BaseURL: "https://api.example.com//v1"}, "the path of baseURL has an empty segment"},
		{Config{BaseURL: "https://api.example.com:99999"}, "baseURL has a port that is none"},
		{Config{BaseURL: good, Headers: [][2]string{{"X Y", "1"}}}, `headers: "X Y" is no name of a header`},
		{Config{BaseURL: good, Headers: [][2]string{{"Host", "evil.example.com"}}}, `headers: "Host" is fixed by baseURL`},
		{Config{BaseURL: good, Headers: [][2]string{{"X-Key", secret + "\r\nX-Other: 1"}}}, "headers: the value of X-Key has a line break or another control character in it"},
		{Config{BaseURL: good, Headers: [][2]string{{"authorization", secret}}, Auth: Auth{Bearer: secret}}, "headers: authorization is what auth sets"},
		{Config{BaseURL: good, Auth: Auth{Bearer: secret + "\n"}}, "auth: the secret has a line break or another control character in it"},
		{Config{BaseURL: good, Auth: Auth{Bearer: secret, User: "me"}}, "auth: only one kind can be used"},
		{Config{BaseURL: good, Auth: Auth{User: "a:b", Password: secret}}, "auth: the user of basic auth has a colon in it"},
		{Config{BaseURL: good, Auth: Auth{Header: "X-Key"}}, "auth: the header's value is empty"},
		{Config{BaseURL: good, Auth: Auth{Header: "Host", Value: secret}}, `auth: the header "Host" is fixed by baseURL`},
		{Config{BaseURL: good, Auth: Auth{TokenURL: "auth.example.com", ClientID: "me", ClientSecret: secret}}, "auth: tokenURL begins with neither http:// nor https://"},
		{Config{BaseURL: good, Auth: Auth{TokenURL: "https://auth.example.com", ClientSecret: secret}}, "auth: clientID is empty"},
	} {
		_, err := New(c.config)
		if err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.config, err, c.want)
		}
	}
}

func TestTarget(t *testing.T) {
	c, err := New(Config{BaseURL: "https://Api.example.com/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ target, want string }{
		{"/users/1", "https://Api.example.com/v1/users/1"},
		{"/users/a%2Fb", "https://Api.example.com/v1/users/a%2Fb"},
		{"/users?x=1&y=%2F", "https://Api.example.com/v1/users?x=1&y=%2F"},
		{"/", "https://Api.example.com/v1/"},
		{"https://api.example.com:443/v2/next?page=2#top", "https://api.example.com:443/v2/next?page=2"},

		{"", "the target of the request is no URL"},
		{"users", "the target of the request is no URL"},
		{"https:users", "the target of the request is no URL"},
		{"http://api.example.com/", "the request would go to another host than the service's own"},
		{"https://api.example.com:8443/", "the request would go to another host than the service's own"},
		{"https://api.example.com.evil.com/", "the request would go to another host than the service's own"},
		{"https://evil.com/?api.example.com", "the request would go to another host than the service's own"},
		{"https://api.example.com@evil.com/", "the request would go to another host than the service's own"},
		{"https://me@api.example.com/", "the request would go to another host than the service's own"},
		{"//evil.com/", "the path of the request has an empty segment"},
		{"/\\evil.com/", "the path of the request is not escaped"},
		{"/a/../b", "the path of the request has a segment . or .."},
		{"/a/%2e%2E/b", "the path of the request has a segment . or .."},
		{"/a/./b", "the path of the request has a segment . or .."},
		{"/a b", "the path of the request is not escaped"},
		{"/a\r\nHost: evil.com", "the path of the request is not escaped"},
		{"/a%", "the path of the request is not escaped"},
		{"/a%zz", "the path of the request is not escaped"},
		{"/a#b", "the path of the request is not escaped"},
		{"/a?b#c", "the query of the request is not escaped"},
		{"/a?b=c d", "the query of the request is not escaped"},
		{"/a?b=%0", "the query of the request is not escaped"},
		{"/a?b=\r\nX: y", "the query of the request is not escaped"},
		{"/ä", "the path of the request is not escaped"},
	} {
		got := ""
		if u, err := c.target(x.target); err != nil {
			got = err.Error()
		} else {
			got = u.String()
		}
		if got != x.want {
			t.Errorf("%q: %s, want %s", x.target, got, x.want)
		}
	}
}

// FuzzTarget holds that no target leaves the host, and that none below it
// leaves the base path.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/a", "//b", "/../x", "https://api.example.com/", "http://api.example.com:443", "/%2e%2e/", "/a?b#c", "\\\\x", "https:/\\evil.com", "https://api.example.com:443@evil.com/"} {
		f.Add(s)
	}
	c, err := New(Config{BaseURL: "https://api.example.com/v1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := c.target(s)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatalf("%q gives %q, which is no URL: %v", s, u, err)
		}
		if again.Scheme != "https" || !strings.EqualFold(again.Hostname(), "api.example.com") || portOf(again) != "443" || again.User != nil || again.Fragment != "" {
			t.Fatalf("%q gives %q", s, u)
		}
		if strings.HasPrefix(s, "/") {
			if p := again.EscapedPath(); !strings.HasPrefix(p, "/v1/") || strings.Contains(p, "//") {
				t.Fatalf("%q leaves the base path: %q", s, u)
			}
			for segment := range strings.SplitSeq(again.EscapedPath(), "/") {
				if plain, _ := url.PathUnescape(segment); plain == ".." || plain == "." {
					t.Fatalf("%q has a segment %q", s, plain)
				}
			}
		}
	})
}
