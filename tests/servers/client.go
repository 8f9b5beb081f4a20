package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Revisions are those that a server has to speak, oldest first.
var Revisions = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// Client speaks MCP over HTTP with nothing but net/http, so that tests and
// benchmarks see what is on the wire.
type Client struct {
	URL      string
	Revision string       // one of Revisions
	HTTP     *http.Client // nil: http.DefaultClient
	session  string       // id that the server gave; "" where requests stand alone
	id       int
}

// RPCError is a JSON-RPC error that a server answered.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// stateless tells whether requests of the revision stand alone.
func (c *Client) stateless() bool { return c.Revision >= "2026-07-28" }

func (c *Client) http() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return http.DefaultClient
}

// Connect begins a session, where the revision has them.
func (c *Client) Connect(ctx context.Context) error {
	if c.stateless() {
		return nil
	}
	about := map[string]any{
		"protocolVersion": c.Revision,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "raw", "version": "1.0.0"},
	}
	result, err := c.Do(ctx, "initialize", about)
	if err != nil {
		return err
	}
	var got struct{ ProtocolVersion string }
	if err := json.Unmarshal(result, &got); err != nil {
		return fmt.Errorf("reading the answer to initialize: %w", err)
	}
	if got.ProtocolVersion != c.Revision {
		return fmt.Errorf("asked for revision %s, got %s", c.Revision, got.ProtocolVersion)
	}
	r, err := c.Request(ctx, "notifications/initialized", nil)
	if err != nil {
		return err
	}
	resp, err := c.http().Do(r)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("notifications/initialized: %s", resp.Status)
	}
	return nil
}

// Request makes the HTTP request of a method; params may be nil.
func (c *Client) Request(ctx context.Context, method string, params map[string]any) (*http.Request, error) {
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if !strings.HasPrefix(method, "notifications/") {
		c.id++
		message["id"] = c.id
	}
	all := map[string]any{}
	for name, v := range params {
		all[name] = v
	}
	if c.stateless() {
		all["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    c.Revision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "raw", "version": "1.0.0"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	if len(all) > 0 {
		message["params"] = all
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if method != "initialize" {
		r.Header.Set("MCP-Protocol-Version", c.Revision)
	}
	if c.stateless() {
		r.Header.Set("Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			r.Header.Set("Mcp-Name", name)
		}
	}
	return r, nil
}

// Do makes a request and gives the result, or an *RPCError.
func (c *Client) Do(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	r, err := c.Request(ctx, method, params)
	if err != nil {
		return nil, err
	}
	resp, err := c.http().Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", method, err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	var answer struct {
		Result json.RawMessage
		Error  *RPCError
	}
	if err := json.Unmarshal(lastEvent(resp.Header.Get("Content-Type"), body), &answer); err != nil {
		return nil, fmt.Errorf("%s: %s: %q is no JSON-RPC answer: %w", method, resp.Status, body, err)
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	return answer.Result, nil
}

// lastEvent gives the data of the last event of a stream, which is the
// answer, or the whole body of anything else.
func lastEvent(contentType string, body []byte) []byte {
	if !strings.HasPrefix(contentType, "text/event-stream") {
		return body
	}
	var data []byte
	for line := range bytes.Lines(body) {
		if d, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = bytes.TrimSpace(d)
		}
	}
	return data
}
