package serve_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine/serve"
)

// sendChunked posts a body without saying how long it is.
func sendChunked(t *testing.T, url, body string, headers ...string) reply {
	t.Helper()
	q, err := http.NewRequest("POST", url, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, strings.TrimSuffix(string(b), "\n")}
}

func TestHostAndOrigin(t *testing.T) {
	p := newProgram("echo")
	p.spec.HTTP.Hosts = []string{"mcp.example.com", "proxy.example.com:8443"}
	p.spec.HTTP.Origins = []string{"https://app.example.com"}
	r := start(t, p, serve.Options{})
	port := r.url[strings.LastIndex(r.url, ":")+1 : len(r.url)-len("/mcp")]
	ok := `200 {"jsonrpc":"2.0","id":1,"error":`
	for _, c := range []struct{ host, origin, want string }{
		{"localhost:" + port, "", ok},
		{"LOCALHOST", "", ok},
		{"127.0.0.1", "", ok},
		{"127.9.9.9:1", "", ok},
		{"[::1]:" + port, "", ok},
		{"mcp.example.com", "", ok},
		{"MCP.example.com:9", "", ok},
		{"proxy.example.com:8443", "", ok},
		{"proxy.example.com:8444", "", `403 Host "proxy.example.com:8444" is not a name of this server: add it to server.http.hosts.`},
		{"evil.example", "", `403 Host "evil.example" is not a name of this server: add it to server.http.hosts.`},
		{"localhost.evil.example", "", `403 Host "localhost.evil.example" is not a name of this server: add it to server.http.hosts.`},
		{"127.0.0.1.evil.example", "", `403 Host "127.0.0.1.evil.example" is not a name of this server: add it to server.http.hosts.`},
		{"192.0.2.1", "", `403 Host "192.0.2.1" is not a name of this server: add it to server.http.hosts.`},
		{"[::1].evil.example", "", `403 Host "[::1].evil.example" is not a name of this server: add it to server.http.hosts.`},
		{"localhost", "http://localhost:6274", ok},
		{"localhost", "http://[::1]:6274", ok},
		{"localhost", "https://app.example.com", ok},
		{"localhost", "https://APP.example.com", ok},
		{"localhost", "http://app.example.com", `403 Origin "http://app.example.com" may not call this server: add it to server.http.origins.`},
		{"localhost", "https://app.example.com:444", `403 Origin "https://app.example.com:444" may not call this server: add it to server.http.origins.`},
		{"localhost", "http://evil.example", `403 Origin "http://evil.example" may not call this server: add it to server.http.origins.`},
		{"localhost", "http://localhost.evil.example", `403 Origin "http://localhost.evil.example" may not call this server: add it to server.http.origins.`},
		{"127.0.0.1:" + port + ".evil.example", "", `403 Host "127.0.0.1:` + port + `.evil.example" is not a name of this server: add it to server.http.hosts.`},
		{"localhost", "http://127.0.0.1:18403.evil.example", `403 Origin "http://127.0.0.1:18403.evil.example" may not call this server: add it to server.http.origins.`},
		{"localhost", "http://localhost:80@evil.example", `403 Origin "http://localhost:80@evil.example" may not call this server: add it to server.http.origins.`},
		{"localhost", "http://evil.example@localhost", `403 Origin "http://evil.example@localhost" may not call this server: add it to server.http.origins.`},
		{"localhost", "http://[::1]:8080.evil.example", `403 Origin "http://[::1]:8080.evil.example" may not call this server: add it to server.http.origins.`},
		{"localhost", "http://localhost/evil", `403 Origin "http://localhost/evil" may not call this server: add it to server.http.origins.`},
		{"localhost", "ftp://localhost", `403 Origin "ftp://localhost" may not call this server: add it to server.http.origins.`},
		{"localhost", "null", `403 Origin "null" may not call this server: add it to server.http.origins.`},
	} {
		h := []string{"Host", c.host}
		if c.origin != "" {
			h = append(h, "Origin", c.origin)
		}
		got := send(t, "POST", r.url, strings.Replace(initialize("2025-11-25"), `"id":0,"method":"initialize"`, `"id":1,"method":"server/discover"`, 1),
			append(h, r.open(t, "2025-11-25")...)...)
		if c.want == ok {
			if !strings.HasPrefix(got.String(), ok) || got.header.Get("Access-Control-Allow-Origin") != c.origin {
				t.Errorf("%v: %s %v", h, got, got.header)
			}
			continue
		}
		want(t, strings.Join(h, " "), got, c.want)
		if got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: a refused origin is let in", h)
		}
	}
}

func TestPreflight(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	got := send(t, "OPTIONS", r.url, "", "Origin", "http://localhost:6274", "Access-Control-Request-Method", "POST")
	want(t, "preflight", got, "204 ")
	for name, v := range map[string]string{
		"Access-Control-Allow-Origin":  "http://localhost:6274",
		"Access-Control-Allow-Methods": "GET, POST, DELETE",
		"Access-Control-Allow-Headers": "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id",
		"Vary":                         "Origin",
	} {
		if got.header.Get(name) != v {
			t.Errorf("%s: %q, not %q", name, got.header.Get(name), v)
		}
	}
	want(t, "no browser", send(t, "OPTIONS", r.url, ""), "405 MCP takes POST, GET and DELETE.")
	want(t, "foreign", send(t, "OPTIONS", r.url, "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST"),
		`403 Origin "http://evil.example" may not call this server: add it to server.http.origins.`)
}

// TestOtherMachines: outside loopback an address is a good Host, a name must
// be known, a loopback origin is somebody else's, and nobody has the local
// claims.
func TestOtherMachines(t *testing.T) {
	ip := otherAddress(t)
	r := startOn(t, serve.Fixed(newProgram("who")), serve.Options{}, ip+":0")
	s := r.open(t, "2025-11-25")
	want(t, "who", send(t, "POST", r.url, call("2", "who", `{}`, false), s...),
		`200 {"jsonrpc":"2.0","id":2,"result":{"content":[`+text(`session=S client=tester claims={} now=true`)+`]}}`)
	want(t, "name", send(t, "POST", r.url, "", "Host", "myservice"), `403 Host "myservice" is not a name of this server: add it to server.http.hosts.`)
	want(t, "loopback name", send(t, "POST", r.url, "", "Host", "localhost"), `403 Host "localhost" is not a name of this server: add it to server.http.hosts.`)
	want(t, "loopback origin", send(t, "POST", r.url, "", "Origin", "http://localhost"), `403 Origin "http://localhost" may not call this server: add it to server.http.origins.`)
}

// otherAddress is an address of this machine that is not loopback.
func otherAddress(t *testing.T) string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// TestProxy: who comes through a proxy on this machine does not sit on it.
func TestProxy(t *testing.T) {
	p := newProgram("who")
	p.spec.HTTP.Hosts = []string{"mcp.example.com"}
	r := start(t, p, serve.Options{})
	s := r.open(t, "2025-11-25")
	local := `200 {"jsonrpc":"2.0","id":2,"result":{"content":[` + text(`session=S client=tester claims={"sub":"me"} now=true`) + `]}}`
	other := `200 {"jsonrpc":"2.0","id":2,"result":{"content":[` + text(`session=S client=tester claims={} now=true`) + `]}}`
	want(t, "direct", send(t, "POST", r.url, call("2", "who", `{}`, false), s...), local)
	for _, h := range [][]string{
		{"X-Forwarded-For", "192.0.2.1"}, {"Forwarded", "for=192.0.2.1"}, {"X-Real-IP", "192.0.2.1"}, {"Host", "mcp.example.com"},
	} {
		want(t, h[0], send(t, "POST", r.url, call("2", "who", `{}`, false), append(h, s...)...), other)
	}
}

func TestBadNames(t *testing.T) {
	for _, c := range []struct{ host, origin, want string }{
		{"https://x.example", "", `server.http.hosts: "https://x.example" is no host name: write it as in the header Host, such as mcp.example.com or mcp.example.com:8443`},
		{"*.example.com", "", `server.http.hosts: "*.example.com" is no host name: write it as in the header Host, such as mcp.example.com or mcp.example.com:8443`},
		{"x", "app.example.com", `server.http.origins: "app.example.com" is no origin: write it as a browser does, such as https://app.example.com`},
		{"x", "https://app.example.com/page", `server.http.origins: "https://app.example.com/page" is no origin: write it as a browser does, such as https://app.example.com`},
		{"x", "*", `server.http.origins: "*" is no origin: write it as a browser does, such as https://app.example.com`},
	} {
		p := newProgram()
		p.spec.HTTP.Hosts, p.spec.HTTP.Origins = []string{c.host}, []string{c.origin}
		if _, err := serve.New(serve.Fixed(p), serve.Options{}); err == nil || err.Error() != c.want {
			t.Errorf("%v:\n got %v\nwant %s", c, err, c.want)
		}
	}
}

func TestFaultsAreNotServedOverHTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = serve.Faulty(nil).Serve(context.Background(), l)
	if err == nil || err.Error() != "a spec with mistakes is only served over stdio" {
		t.Error(err)
	}
}
