package engine_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/engine"
)

// TestServiceAway holds what an agent and the log read of a service that does
// not do what it should: a code, and nothing of what it sent.
func TestServiceAway(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-0123456789" {
			t.Error("the secret did not come with the request")
		}
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
			return
		case "/reset":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
			return
		case "/elsewhere":
			w.Header().Set("Location", "http://169.254.169.254/LEAK")
			w.WriteHeader(302)
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("LEAK", 1000))
		case "/429":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		default:
			var status int
			for _, c := range strings.TrimPrefix(r.URL.Path, "/") {
				status = 10*status + int(c-'0')
			}
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, "LEAK")
	}))
	defer s.Close()
	p, log := program(t, `
env: TOKEN: string @secret()
apis: shop: {baseURL: "`+s.URL+`", auth: bearer: env.TOKEN, timeout: "200ms", maxBody: 1000}
tools: {
	"shop.read": {kind: "query", description: "d", params: what: string, http: get: "/{{ args.what }}"}
	"shop.write": {kind: "action", description: "d", params: what: string, http: post: "/{{ args.what }}"}
}
`, "")
	for _, c := range []struct{ tool, what, code, text, log string }{
		{"shop.read", "slow", "TIMEOUT", "The service behind this did not answer in time.", "service shop: no answer within 200ms"},
		{"shop.write", "slow", "TIMEOUT", "The service behind this did not answer in time. A part of the call may have taken effect.", "no answer within 200ms"},
		{"shop.read", "reset", "SERVER_BUSY", "The service behind this cannot be reached at the moment.", "service shop: connection … by peer"}, // reset is an argument
		{"shop.read", "elsewhere", "INTERNAL_ERROR", "[shop/read] Something went wrong. Incident i1.", "service shop: the service redirects to another host"},
		{"shop.read", "broken", "INTERNAL_ERROR", "[shop/read] Something went wrong. Incident i1.", "service shop: the answer says that it is JSON, and is none"},
		{"shop.read", "large", "INTERNAL_ERROR", "[shop/read] Something went wrong. Incident i1.", "service shop: the answer is larger than 1000 bytes"},
		{"shop.read", "401", "UNAUTHORIZED", "The service behind this does not accept our credentials.", "service shop answered 401"},
		{"shop.read", "403", "FORBIDDEN", "The service behind this does not permit it.", "service shop answered 403"},
		{"shop.read", "404", "NOT_FOUND", "Nothing found for these arguments.", ""},
		{"shop.write", "409", "CONFLICT", "This conflicts with what is there already.", ""},
		{"shop.write", "422", "VALIDATION_ERROR", "The service behind this does not take these values.", ""},
		{"shop.read", "429", "RATE_LIMITED", "Too many requests to the service behind this.", "service shop answered 429"},
		{"shop.read", "500", "INTERNAL_ERROR", "[shop/read] Something went wrong. Incident i1.", "service shop answered 500"},
		{"shop.read", "418", "INTERNAL_ERROR", "[shop/read] Something went wrong. Incident i1.", "service shop answered 418"},
		{"shop.read", "../admin", "VALIDATION_ERROR", `what must not be "..", nor have it between slashes.`, ""},
	} {
		log.Reset()
		r := call(t, p, c.tool, `{"what":"`+c.what+`"}`)
		if r.Code != c.code || !strings.Contains(text(r), "<message>"+c.text+"</message>") {
			t.Errorf("%s: %s", c.what, text(r))
		}
		if c.what == "429" && !strings.Contains(text(r), "<retry_after>7 seconds</retry_after>") {
			t.Errorf("%s: %s", c.what, text(r))
		}
		if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
			t.Errorf("%s: the log is %s", c.what, log)
		}
		if both := text(r) + log.String(); strings.Contains(both, "LEAK") || strings.Contains(both, "token-0123456789") {
			t.Errorf("%s: it says too much: %s", c.what, both)
		}
	}
}

// unopened loads and compiles a spec.
func unopened(t *testing.T, spec string) *engine.Program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.cue")
	if err := os.WriteFile(file, []byte("package spec\n\nserver: {name: \"spec\", version: \"1\"}\n"+spec), 0o600); err != nil {
		t.Fatal(err)
	}
	graphs, faults := dsl.Load([]string{file}, dsl.Options{Env: func(string) (string, bool) { return "", true }})
	if faults.Fatal() {
		t.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		t.Fatal(faults)
	}
	return p
}

// TestEmptySecret holds that a service is not asked without its auth because
// a variable is empty.
func TestEmptySecret(t *testing.T) {
	for _, c := range []struct{ auth, want string }{
		{`bearer: env.TOKEN`, "auth: bearer is empty"},
		{`header: {name: "X-Key", value: env.TOKEN}`, "auth: the header's value is empty"},
		{`basic: {user: env.TOKEN, password: env.TOKEN}`, "auth: user and password are empty"},
		{`oauth2: {tokenURL: "https://auth.example.com", clientID: "me", clientSecret: env.TOKEN}`, "auth: clientSecret is empty"},
	} {
		p := unopened(t, `
env: TOKEN: string @secret()
apis: shop: {baseURL: "https://shop.example.com", auth: `+c.auth+`}
tools: "shop.read": {kind: "query", description: "d", http: get: "/"}
`)
		err := p.Open(t.Context(), engine.Options{Env: func(string) (string, bool) { return "", true }})
		if err == nil || !strings.HasSuffix(err.Error(), "apis.shop: "+c.want) {
			t.Errorf("%s: %v", c.auth, err)
		}
	}
}

// TestServiceDown holds that a write that never went out may be made again,
// also while the circuit is open.
func TestServiceDown(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Close()
	p, log := program(t, `
apis: shop: baseURL: "`+s.URL+`"
tools: "shop.write": {kind: "action", description: "d", http: post: "/"}
`, "")
	const want = `<tool_error code="SERVER_BUSY" severity="error">
<message>The service behind this cannot be reached at the moment. Nothing was changed.</message>
<recovery>Retry after a short delay. Tell the user if it stays so.</recovery>
</tool_error>
`
	for range 10 {
		if got := text(call(t, p, "shop.write", "{}")); got != want {
			t.Fatalf("got %s", got)
		}
	}
	if !strings.Contains(log.String(), "the service failed too often just now") {
		t.Errorf("the circuit did not open: %s", log)
	}
}
