package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/fusion-serve/fusion-serve/engine/serve"
)

// without gives the headers without one, with gives them with one more.
func without(headers []string, name string) []string {
	i := slices.Index(headers, name)
	return slices.Delete(slices.Clone(headers), i, i+2)
}

func with(headers []string, more ...string) []string { return append(slices.Clone(headers), more...) }

// badRequest is a request that is refused, and how.
type badRequest struct {
	name    string
	body    string
	headers []string
	want    string
	// own tells that mcp-go answers otherwise, and how.
	own string
}

// refusals are what both answer alike, apart from what own says. s is the
// header of a session.
func refusals(s []string) []badRequest {
	m := modernHeaders("tools/call", "echo")
	good, modern := call("1", "echo", `{}`, false), call("1", "echo", `{}`, true)
	id1 := `{"jsonrpc":"2.0","id":1,"error":`
	return []badRequest{
		{"no JSON", `{"jsonrpc":`, s, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"request body is not valid json"}}`, ""},
		{"nothing", ``, s, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"request body is not valid json"}}`, ""},
		{"batch", `[` + good + `]`, s, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"JSON-RPC batches are not supported: send each request by itself"}}`, "message"},
		{"no UTF-8", "{\"a\":\"\xff\"}", s, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"request body is not valid UTF-8"}}`, "takes it"},
		{"no JSON-RPC", strings.Replace(good, `"2.0"`, `"1.0"`, 1), s, `200 ` + id1 + `{"code":-32600,"message":"Invalid JSON-RPC version"}}`, ""},
		{"no method", `{"jsonrpc":"2.0","id":1}`, s, `400 ` + id1 + `{"code":-32600,"message":"method is missing"}}`, "method '' not found"},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"x/y"}`, s, `200 ` + id1 + `{"code":-32601,"message":"Method x/y not found"}}`, ""},
		{"id of the wrong type", strings.Replace(good, `"id":1`, `"id":[1]`, 1), s, `200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"id must be a string or a number"}}`, "takes it"},
		{"unknown tool", call("1", "nope", `{}`, false), s, `200 ` + id1 + `{"code":-32602,"message":"Tool \"nope\" does not exist."}}`, "message"},
		{"no name", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, s, `200 ` + id1 + `{"code":-32602,"message":"params.name is missing: it is the name of the tool"}}`, "message"},
		{"name of the wrong type", strings.Replace(good, `"echo"`, `7`, 1), s, `200 ` + id1 + `{"code":-32600,"message":"params.name must be a string"}}`, "message"},
		{"params of the wrong type", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, s, `200 ` + id1 + `{"code":-32600,"message":"params must be an object"}}`, "message"},
		{"arguments of the wrong type", call("1", "echo", `[]`, false), s, `200 ` + id1 + `{"code":-32600,"message":"params.arguments must be an object"}}`, "takes it"},
		{"cursor of the wrong type", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":1}}`, s, `200 ` + id1 + `{"code":-32600,"message":"params.cursor must be a string"}}`, "message"},
		{"no session", good, without(s, "Mcp-Session-Id"), `400 The header Mcp-Session-Id is missing: send initialize first.`, "404"},
		{"unknown session", good, with(s, "Mcp-Session-Id", "x"), `404 There is no such session (any more): send initialize again.`, "message"},
		{"unknown revision", good, with(s, "Mcp-Protocol-Version", "2025-01-01"), `400 Unsupported protocol version: 2025-01-01`, ""},
		{"no content type", good, with(s, "Content-Type", "text/plain"), `400 Invalid content type: must be 'application/json'`, ""},
		{"discover without _meta", `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, s, `200 ` + id1 + `{"code":-32601,"message":"\"server/discover\" requires protocol version 2026-07-28 or later"}}`, ""},

		{"modern: no header", modern, with(nil, "Mcp-Method", "tools/call", "Mcp-Name", "echo"), `400 ` + id1 + `{"code":-32020,"message":"Mcp-Protocol-Version header is required for requests carrying io.modelcontextprotocol/protocolVersion"}}`, ""},
		{"modern: no _meta", good, m, `400 ` + id1 + `{"code":-32602,"message":"missing or invalid _meta field io.modelcontextprotocol/protocolVersion"}}`, ""},
		{"modern: other revision in _meta", modern, with(m, "Mcp-Protocol-Version", "2025-11-25"), `400 ` + id1 + `{"code":-32020,"message":"Mcp-Protocol-Version header 2025-11-25 does not match request io.modelcontextprotocol/protocolVersion 2026-07-28"}}`, ""},
		{"modern: later revision", strings.Replace(modern, "2026-07-28", "2027-01-01", 1), with(m, "Mcp-Protocol-Version", "2027-01-01"),
			`400 ` + id1 + `{"code":-32022,"message":"unsupported protocol version: \"2027-01-01\" (supported: [2026-07-28 2025-11-25 2025-06-18])","data":{"supported":["2026-07-28","2025-11-25","2025-06-18"],"requested":"2027-01-01"}}}`, ""},
		{"modern: no capabilities", strings.Replace(modern, `,"io.modelcontextprotocol/clientCapabilities":{}`, ``, 1), m, `400 ` + id1 + `{"code":-32602,"message":"missing or invalid _meta field io.modelcontextprotocol/clientCapabilities"}}`, ""},
		{"modern: bad capabilities", strings.Replace(modern, `/clientCapabilities":{}`, `/clientCapabilities":{"roots":1}`, 1), m, `400 ` + id1 + `{"code":-32602,"message":"missing or invalid _meta field io.modelcontextprotocol/clientCapabilities"}}`, ""},
		{"modern: no method header", modern, without(m, "Mcp-Method"), `400 ` + id1 + `{"code":-32020,"message":"header mismatch: Mcp-Method: missing required header"}}`, ""},
		{"modern: other method header", modern, with(m, "Mcp-Method", "tools/list"), `400 ` + id1 + `{"code":-32020,"message":"header mismatch: Mcp-Method: header value \"tools/list\" does not match body value \"tools/call\""}}`, ""},
		{"modern: no name header", modern, without(m, "Mcp-Name"), `400 ` + id1 + `{"code":-32020,"message":"header mismatch: Mcp-Name: missing required header for method \"tools/call\""}}`, ""},
		{"modern: other name header", modern, with(m, "Mcp-Name", "who"), `400 ` + id1 + `{"code":-32020,"message":"header mismatch: Mcp-Name: header value \"who\" does not match body value \"echo\""}}`, ""},
		{"modern: bad base64", modern, with(m, "Mcp-Name", "=?base64?!?="), `400 ` + id1 + `{"code":-32020,"message":"header mismatch: Mcp-Name: invalid Base64 encoding"}}`, ""},
		{"modern: last event", modern, with(m, "Last-Event-ID", "1"), `400 ` + id1 + `{"code":-32020,"message":"Last-Event-ID is not supported in protocol version 2026-07-28: streams are not resumable, re-issue the request with a new ID"}}`, ""},
		{"modern: unknown tool", call("1", "nope", `{}`, true), modernHeaders("tools/call", "nope"), `400 ` + id1 + `{"code":-32602,"message":"Tool \"nope\" does not exist."}}`, "message"},
		{"modern: no JSON-RPC", strings.Replace(modern, `"2.0"`, `"1.0"`, 1), m, `400 ` + id1 + `{"code":-32600,"message":"Invalid JSON-RPC version"}}`, ""},
		{"modern: initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` + modernMeta + `}}`, modernHeaders("initialize", ""), `404 ` + id1 + `{"code":-32601,"message":"\"initialize\" was removed in protocol version 2026-07-28"}}`, ""},
		{"modern: ping", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + modernMeta + `}}`, modernHeaders("ping", ""), `404 ` + id1 + `{"code":-32601,"message":"\"ping\" was removed in protocol version 2026-07-28"}}`, ""},
		{"modern: answer to a request", `{"jsonrpc":"2.0","id":1,"result":{"a":1},"params":{` + modernMeta + `}}`, with(nil, "Mcp-Protocol-Version", "2026-07-28"), `400 ` + id1 + `{"code":-32600,"message":"client-to-server responses are not supported in protocol version 2026-07-28: server-initiated requests were replaced by multi round-trip requests"}}`, ""},
	}
}

func TestRefusals(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	for _, c := range refusals(r.open(t, "2025-11-25")) {
		want(t, c.name, send(t, "POST", r.url, c.body, c.headers...), c.want)
	}
}

// TestRefusalsAgree sends the same requests to a server that is mcp-go's
// alone: where we do not say otherwise, it answers the same.
func TestRefusalsAgree(t *testing.T) {
	core := server.NewMCPServer("shop", "1")
	core.AddTool(mcp.NewTool("echo"), nil)
	library := httptest.NewServer(server.NewStreamableHTTPServer(core, server.WithStateful(true),
		server.WithStreamableHTTPProtocolVersions("2026-07-28", "2025-11-25", "2025-06-18")))
	defer library.Close()
	id := send(t, "POST", library.URL, initialize("2025-11-25")).header.Get("Mcp-Session-Id")
	for _, c := range refusals([]string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}) {
		if c.own == "takes it" {
			continue // and would call the tool
		}
		got := send(t, "POST", library.URL, c.body, c.headers...)
		switch c.own {
		case "":
			want(t, c.name, got, c.want)
		case "message":
			if outline(got.String()) != outline(c.want) {
				t.Errorf("%s:\nmcp-go %s\n  ours %s", c.name, got, c.want)
			}
		default:
			if outline(got.String()) == outline(c.want) {
				t.Errorf("%s: mcp-go answers as we do now: %s", c.name, got)
			}
		}
	}
}

// outline is the status and the error code of an answer.
func outline(s string) string {
	status, body, _ := strings.Cut(s, " ")
	var r struct{ Error struct{ Code int } }
	_ = json.Unmarshal([]byte(body), &r)
	return fmt.Sprint(status, " ", r.Error.Code)
}

func TestOtherMethods(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	s := r.open(t, "2025-11-25")
	want(t, "ping", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":"p","method":"ping"}`, s...), `200 {"jsonrpc":"2.0","id":"p","result":{}}`)
	want(t, "initialized", send(t, "POST", r.url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, s...), `202 `)
	want(t, "call as notification", send(t, "POST", r.url, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"panic"}}`, s...), `202 `)
	want(t, "answer to a ping", send(t, "POST", r.url, `{"jsonrpc":"2.0","id":1,"result":{}}`, s...), `202 `)
	want(t, "PUT", send(t, "PUT", r.url, ``, s...), `405 MCP takes POST, GET and DELETE.`)
	want(t, "other path", send(t, "POST", r.url+"x", ``, s...), `404 MCP is served at /mcp.`)
	m := with(nil, "Mcp-Protocol-Version", "2026-07-28")
	want(t, "modern GET", send(t, "GET", r.url, ``, m...), `405 GET is not supported in protocol version 2026-07-28: server-to-client messages use subscriptions/listen`)
	want(t, "modern DELETE", send(t, "DELETE", r.url, ``, m...), `405 DELETE is not supported in protocol version 2026-07-28: server-to-client messages use subscriptions/listen`)
	want(t, "GET without session", send(t, "GET", r.url, ``), `400 The header Mcp-Session-Id is missing: send initialize first.`)
	want(t, "GET of no session", send(t, "GET", r.url, ``, "Mcp-Session-Id", "x"), `404 There is no such session (any more): send initialize again.`)
	want(t, "DELETE of no session", send(t, "DELETE", r.url, ``, "Mcp-Session-Id", "x"), `404 There is no such session (any more): send initialize again.`)
	want(t, "GET of a revision nobody knows", send(t, "GET", r.url, ``, with(s, "Mcp-Protocol-Version", "2025")...), `400 Unsupported protocol version: 2025`)
}

func TestPanicLeavesTheConnection(t *testing.T) {
	r := start(t, newProgram("echo"), serve.Options{})
	s := r.open(t, "2025-11-25")
	got := send(t, "POST", r.url, call("1", "panic", `{}`, false), s...)
	var e struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != 200 || e.Error.Code != -32603 || len(e.Error.Message) != len("Something went wrong. Incident 0123456789ab.") {
		t.Errorf("%s", got)
	}
	want(t, "after it", send(t, "POST", r.url, call("2", "echo", `{}`, false), s...), `200 {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{}"}]}}`)
}

func TestBodyLimit(t *testing.T) {
	p := newProgram("echo")
	p.spec.HTTP.MaxBody = 300
	r := start(t, p, serve.Options{})
	s := r.open(t, "2025-11-25")
	body := call("1", "echo", `{"x":"`+strings.Repeat("x", 300)+`"}`, false)
	want(t, "announced", send(t, "POST", r.url, body, s...), `413 The request body is larger than 300 bytes (server.http.maxBody).`)
	fits := call("1", "echo", `{}`, false)
	fits += strings.Repeat(" ", 300-len(fits))
	want(t, "just fits", send(t, "POST", r.url, fits, s...), `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}]}}`)
	want(t, "one more", send(t, "POST", r.url, fits+" ", s...), `413 The request body is larger than 300 bytes (server.http.maxBody).`)
	want(t, "not announced", sendChunked(t, r.url, body, s...), `413 The request body is larger than 300 bytes (server.http.maxBody).`)
}
