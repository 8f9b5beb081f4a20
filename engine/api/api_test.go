package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
)

// service is an HTTP service on this machine, reached over the real network.
type service struct {
	*httptest.Server
	t     *testing.T
	calls atomic.Int64
}

func serve(t *testing.T, h http.HandlerFunc) *service {
	t.Helper()
	s := &service{t: t}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) client(change ...func(*api.Config)) *api.Client {
	s.t.Helper()
	c := api.Config{Name: "shop", BaseURL: s.URL, Timeout: 5 * time.Second}
	for _, f := range change {
		f(&c)
	}
	client, err := api.New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

func quick(c *api.Config) { c.Timeout = 150 * time.Millisecond }

func get(target string) *api.Request { return &api.Request{Method: "GET", Target: target} }

// said writes what a request ended in, in one line.
func said(r *api.Response, err error) string {
	var e *api.Error
	switch {
	case errors.As(err, &e):
		var kinds []string
		for _, k := range []struct {
			name string
			set  bool
		}{{"timeout", e.Timeout}, {"unavailable", e.Unavailable}, {"refused", e.Refused}, {"sent", e.Sent}} {
			if k.set {
				kinds = append(kinds, k.name)
			}
		}
		return fmt.Sprintf("error (%s): %s", strings.Join(kinds, " "), e)
	case err != nil:
		return "no *api.Error: " + err.Error()
	}
	return fmt.Sprintf("%d %s %s", r.Status, r.Type, value.AppendJSON(nil, r.Body))
}

func wants(t *testing.T, r *api.Response, err error, want string) {
	t.Helper()
	if got := said(r, err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// misbehaviour is one way in which a service may not do what it should. What
// it sends, marked LEAK, must not come back in an error.
type misbehaviour struct {
	name   string
	config func(*api.Config)
	serve  func(w http.ResponseWriter, r *http.Request)
	want   string
}

// hijack answers with these bytes, and then ends the connection, or breaks it.
func hijack(w http.ResponseWriter, text string, reset bool) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, text)
	if reset {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	_ = conn.Close()
}

func small(c *api.Config) { c.MaxBody = 1000 }

var connections = []misbehaviour{
	{"slow headers", quick, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"error (timeout sent): service shop: no answer within 150ms"},
	{"slow body", quick, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "LEAK")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, "error (timeout sent): service shop: no answer within 150ms"},
	{"half a body", nil, func(w http.ResponseWriter, _ *http.Request) {
		hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nLEAK", false)
	}, "error (unavailable sent): service shop: the connection ended before the answer did"},
	{"half a chunk", nil, func(w http.ResponseWriter, _ *http.Request) {
		hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nLEAK", false)
	}, "error (unavailable sent): service shop: the connection ended before the answer did"},
	{"no answer", nil, func(w http.ResponseWriter, _ *http.Request) { hijack(w, "", false) },
		"error (unavailable sent): service shop: the connection ended before the answer did"},
	{"reset", nil, func(w http.ResponseWriter, _ *http.Request) { hijack(w, "", true) },
		"error (unavailable sent): service shop: connection reset by peer"},
	{"no HTTP", nil, func(w http.ResponseWriter, _ *http.Request) { hijack(w, "LEAK LEAK LEAK\r\n\r\n", false) },
		"error (unavailable sent): service shop: what came back is no HTTP"},
	{"a header that is none", nil, func(w http.ResponseWriter, _ *http.Request) {
		hijack(w, "HTTP/1.1 200 OK\r\nLEAK\r\n\r\n", false)
	}, "error (unavailable sent): service shop: what came back is no HTTP"},
	{"endless headers", nil, func(w http.ResponseWriter, _ *http.Request) {
		hijack(w, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Leak: "+strings.Repeat("LEAK", 250)+"\r\n", 100)+"\r\n", false)
	}, "error (unavailable sent): service shop: what came back is no HTTP"},
}

var bodies = []misbehaviour{
	{"JSON that is none", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"a": LEAK`)
	}, "error (sent): service shop: the answer says that it is JSON, and is none"},
	{"an error page that says that it is JSON", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "<html>")
	}, "500 application/json null"},
	{"HTML instead of JSON", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<p>maintenance</p>")
	}, `200 text/html "<p>maintenance</p>"`},
	{"a type that is none", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ";;;")
		_, _ = io.WriteString(w, ` [1.50, 12345678901234567890]`)
	}, `200  [1.5,12345678901234567890]`},
	{"too large", small, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("LEAK", 1000))
	}, "error (refused sent): service shop: the answer is larger than 1000 bytes"},
	{"endless", small, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, "LEAK"); err != nil {
				return
			}
		}
	}, "error (refused sent): service shop: the answer is larger than 1000 bytes"},
	{"a gzip bomb", func(c *api.Config) { c.MaxBody = 1 << 20 }, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb())
	}, "error (refused sent): service shop: the answer is larger than 1048576 bytes"},
	{"gzip that is none", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "LEAK LEAK LEAK")
	}, "error (unavailable sent): service shop: what came back is no HTTP"},
	{"two columns of one name", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		_, _ = io.WriteString(w, "LEAK,LEAK\n1,2\n")
	}, "error (sent): service shop: the CSV of the answer has two columns of the same name"},
	{"a row that is too short", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		_, _ = io.WriteString(w, "a,b\n1,2\nLEAK\n")
	}, "error (sent): service shop: the CSV of the answer cannot be read after 1 rows"},
	{"a character set that nobody reads", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-7")
		_, _ = io.WriteString(w, "LEAK")
	}, "error (sent): service shop: the answer is a text in a character set other than UTF-8 and ISO 8859-1"},
}

var redirects = []misbehaviour{
	{"endless redirects", nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}, "error (refused sent): service shop: the service redirects more than 5 times"},
	{"a redirect to another port", nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"/LEAK", http.StatusTemporaryRedirect)
	}, "error (refused sent): service shop: the service redirects to another host"},
	{"a redirect to another name of the host", nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:"+r.Host[strings.IndexByte(r.Host, ':')+1:]+"/LEAK", http.StatusFound)
	}, "error (refused sent): service shop: the service redirects to another host"},
	{"a redirect to another scheme", nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+r.Host+"/LEAK", http.StatusFound)
	}, "error (refused sent): service shop: the service redirects to another host"},
	{"a redirect to a file", nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	}, "error (refused sent): service shop: the service redirects to another host"},
	{"a redirect with a user", nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://LEAK@"+r.Host+"/", http.StatusFound)
	}, "error (refused sent): service shop: the service redirects to another host"},
	{"a redirect to nowhere", nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://LEAK LEAK:x/")
		w.WriteHeader(http.StatusFound)
	}, "error (unavailable sent): service shop: what came back is no HTTP"},
}

// elsewhere is where redirects lead: nobody may come.
const elsewhere = "http://127.0.0.1:9"

func TestMisbehaviour(t *testing.T) {
	bomb() // packing it takes longer than an answer may
	for _, c := range slices.Concat(connections, bodies, redirects) {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.serve)
			change := c.config
			if change == nil {
				change = func(*api.Config) {}
			}
			r, err := s.client(change).Do(t.Context(), get("/a?key=LEAK"))
			wants(t, r, err, c.want)
			if err != nil && strings.Contains(err.Error(), "LEAK") {
				t.Errorf("what the service sent is in the error: %s", err)
			}
		})
	}
}

// TestElsewhere holds that another host of a redirect is not even connected to.
func TestElsewhere(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	go func() {
		if _, err := other.Accept(); err == nil {
			t.Error("the other host was connected to")
		}
	}()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+other.Addr().String()+"/LEAK", http.StatusTemporaryRedirect)
	})
	r, err := s.client(func(c *api.Config) { c.Auth.Bearer = "t" }).Do(t.Context(), get("/"))
	wants(t, r, err, "error (refused sent): service shop: the service redirects to another host")
}

// bomb is 8 MiB of zeros in 8 KiB.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 8 {
		_, _ = z.Write(make([]byte, 1<<20)) // never fails: it is in memory
	}
	_ = z.Close()
	return b.Bytes()
})

func TestBodies(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00"
	for _, c := range []struct{ contentType, body, want string }{
		{"application/json", `{"b":1,"a":[1.10,123456789012345678901234567890]}`, `200 application/json {"b":1,"a":[1.1,123456789012345678901234567890]}`},
		{"application/vnd.github+json; charset=utf-8", "\uFEFF[]", `200 application/vnd.github+json []`},
		{"application/problem+json", `null`, `200 application/problem+json null`},
		{"text/csv", "\uFEFFid,name\n1,\"a, b\"\n2,\n", `200 text/csv [{"id":"1","name":"a, b"},{"id":"2","name":""}]`},
		{"text/csv; charset=ISO-8859-1", "n\n\xe4\n", `200 text/csv [{"n":"ä"}]`},
		{"text/csv", "id\n", `200 text/csv []`},
		{"text/plain; charset=latin1", "\xe4", `200 text/plain "ä"`},
		{"text/plain", "a\xffb", `200 text/plain "a` + "\uFFFD" + `b"`},
		{"application/xml", "<a/>", `200 application/xml "<a/>"`},
		{"image/png", png, `200 image/png null`},
		{"image/svg+xml", "<svg/>", `200 image/svg+xml null`},
		{"application/pdf", "%PDF", `200 application/pdf null`},
		{"application/octet-stream", "{}", `200 application/octet-stream null`},
		{"-", `{"a":1}`, `200  {"a":1}`},
		{"-", `[broken`, `200  "[broken"`},
		{"-", png, `200  null`},
		{"application/json", "", `200 application/json null`},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if c.contentType != "-" {
				w.Header().Set("Content-Type", c.contentType)
			}
			_, _ = io.WriteString(w, c.body)
		})
		r, err := s.client().Do(t.Context(), get("/"))
		wants(t, r, err, c.want)
		if err == nil && string(r.Raw) != c.body {
			t.Errorf("%s: raw is %q", c.contentType, r.Raw)
		}
	}
}

// TestSent looks at what goes out.
func TestSent(t *testing.T) {
	var got string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s type=%q auth=%q key=%q agent=%q accept=%q %s", r.Method, r.RequestURI, r.Header.Get("Content-Type"),
			r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("User-Agent"), r.Header.Get("Accept"), body)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(http.StatusNoContent)
	})
	base := func(c *api.Config) {
		c.BaseURL += "/v1/"
		c.Headers = [][2]string{{"Accept", "application/json"}}
	}
	auth := func(a api.Auth) func(*api.Config) { return func(c *api.Config) { c.Auth = a } }
	post := &api.Request{Method: "POST", Target: "/a%2Fb?x=1", Body: []byte(`{"a":1}`), ContentType: "application/json"}
	for _, c := range []struct {
		auth    api.Auth
		request *api.Request
		want    string
	}{
		{api.Auth{}, get("/a%2Fb?x=1"), `GET /v1/a%2Fb?x=1 type="" auth="" key="" agent="fusion-serve" accept="application/json" `},
		{api.Auth{Bearer: "t"}, post, `POST /v1/a%2Fb?x=1 type="application/json" auth="Bearer t" key="" agent="fusion-serve" accept="application/json" {"a":1}`},
		{api.Auth{User: "me", Password: "pw"}, get("/"), `GET /v1/ type="" auth="Basic bWU6cHc=" key="" agent="fusion-serve" accept="application/json" `},
		{api.Auth{Header: "X-Key", Value: "k"}, get("/"), `GET /v1/ type="" auth="" key="k" agent="fusion-serve" accept="application/json" `},
		{api.Auth{}, &api.Request{Method: "DELETE", Target: "/", Headers: [][2]string{{"accept", "text/csv"}, {"user-agent", "mine"}}},
			`DELETE /v1/ type="" auth="" key="" agent="mine" accept="text/csv" `},
	} {
		r, err := s.client(base, auth(c.auth)).Do(t.Context(), c.request)
		wants(t, r, err, "204  null")
		if got != c.want {
			t.Errorf("sent %s\nwant %s", got, c.want)
		}
		if h := string(value.AppendJSON(nil, r.Headers)); !strings.HasSuffix(h, `"x-two":"1, 2"}`) {
			t.Errorf("headers are %s", h)
		}
	}

	calls := s.calls.Load()
	for _, h := range [][2]string{{"X-A", "1\r\nX-B: 2"}, {"X-A", "1\x00"}, {"X A", "1"}, {"Host", "evil"}, {"X-A\r\nX-B", "1"}} {
		_, err := s.client().Do(t.Context(), &api.Request{Method: "GET", Target: "/", Headers: [][2]string{h}})
		var e *api.Error
		if !errors.As(err, &e) || !e.Refused {
			t.Errorf("%q: %v", h, err)
		}
	}
	if n := s.calls.Load() - calls; n != 0 {
		t.Errorf("%d requests with a bad header were made", n)
	}
}

// TestRedirects are those that are followed, with what is sent to them.
func TestRedirects(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil {
			http.Redirect(w, r, "/end", status)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Authorization"), body)
	})
	c := s.client(func(c *api.Config) { c.Auth.Bearer = "t" })
	for _, x := range []struct{ method, target, want string }{
		{"GET", "/301", `200 text/plain "GET Bearer t "`},
		{"GET", "/302", `200 text/plain "GET Bearer t "`},
		{"GET", "/307", `200 text/plain "GET Bearer t "`},
		{"POST", "/307", `200 text/plain "POST Bearer t body"`},
		{"PUT", "/308", `200 text/plain "PUT Bearer t body"`},
		{"POST", "/303", `200 text/plain "GET Bearer t "`},
		{"POST", "/301", "error (refused sent): service shop: the service redirects a POST to another address: correct the path"},
		{"DELETE", "/302", "error (refused sent): service shop: the service redirects a DELETE to another address: correct the path"},
	} {
		q := &api.Request{Method: x.method, Target: x.target}
		if x.method == "POST" || x.method == "PUT" {
			q.Body = []byte("body")
		}
		r, err := c.Do(t.Context(), q)
		wants(t, r, err, x.want)
	}
}

// TestCancelled holds that a caller that gives up is answered at once.
func TestCancelled(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	r, err := s.client().Do(ctx, get("/"))
	wants(t, r, err, "error (sent): service shop: the call ended first: context canceled")
	if !errors.Is(err, context.Canceled) {
		t.Error("the error is not the context's")
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err = s.client().Do(ctx, get("/"))
	wants(t, r, err, "error (timeout sent): service shop: the call ended first: context deadline exceeded")
}

// TestNoConnection has nobody at the port, and a proxy of the environment
// that would have answered.
func TestNoConnection(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) {})
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	t.Setenv("ALL_PROXY", proxy.URL)
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	s.Close()
	r, err := s.client().Do(t.Context(), get("/"))
	wants(t, r, err, "error (unavailable): service shop: connection refused")
	r, err = s.client(func(c *api.Config) { c.BaseURL = "http://no-such-host.invalid" }).Do(t.Context(), get("/"))
	if got := said(r, err); !strings.HasPrefix(got, "error (unavailable): service shop: looking up its host: ") {
		t.Error(got)
	}
	if proxy.calls.Load() != 0 {
		t.Error("the proxy of the environment was used")
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c, err := api.New(api.Config{Name: "shop", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Do(t.Context(), get("/"))
	wants(t, r, err, "error (unavailable): service shop: its certificate does not hold: x509: certificate signed by unknown authority")
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	r, err = plain.client(func(c *api.Config) { c.BaseURL = strings.Replace(c.BaseURL, "http:", "https:", 1) }).Do(t.Context(), get("/"))
	wants(t, r, err, "error (unavailable): service shop: it does not speak TLS")
}
