package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/serve"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// quiet is a response that costs nothing, and a request that is made once.
type quiet struct {
	header http.Header
	n      int
}

func (q *quiet) Header() http.Header         { return q.header }
func (q *quiet) Write(p []byte) (int, error) { q.n += len(p); return len(p), nil }
func (q *quiet) WriteHeader(int)             {}

func benchRequest(body string, headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	r.Host, r.RemoteAddr = "127.0.0.1:8383", "127.0.0.1:4444"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func benchHandler(b *testing.B, h http.Handler, body string, headers ...string) {
	r := benchRequest(body, headers...)
	raw := []byte(body)
	reader := bytes.NewReader(raw)
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(raw)
		r.Body = io.NopCloser(reader)
		w := &quiet{header: http.Header{}}
		h.ServeHTTP(w, r)
		if w.n == 0 {
			b.Fatal("no answer")
		}
	}
}

// bare is the least that answers the same call: net/http, encoding/json.
func bare(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ID     json.RawMessage
		Params struct{ Arguments json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": q.ID,
		"result": map[string]any{"content": []any{map[string]any{"type": "text", "text": string(q.Params.Arguments)}}}})
}

func benchServer(b *testing.B) (*serve.Server, []string) {
	p := newProgram(strings.Split("abcdefghijklmnopqrstuvwxyz", "")...)
	answer := says(`{"id": "INV-1", "amount_cents": 1200}`)
	p.tools["fixed"] = func(context.Context, *engine.Caller, []byte) *presenters.Response { return answer }
	s, err := serve.New(serve.Fixed(p), serve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, benchRequest(initialize("2025-11-25")))
	return s, []string{"Mcp-Session-Id", w.Header().Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
}

func BenchmarkServeHTTP(b *testing.B) {
	s, session := benchServer(b)
	args := `{"id":"INV-1"}`
	large := `{"text":"` + strings.Repeat("0123456789abcdef", 4096) + `"}`
	b.Run("call/bare", func(b *testing.B) { benchHandler(b, http.HandlerFunc(bare), call("1", "fixed", args, false)) })
	b.Run("call/2025", func(b *testing.B) { benchHandler(b, s, call("1", "fixed", args, false), session...) })
	b.Run("call/2026", func(b *testing.B) {
		benchHandler(b, s, call("1", "fixed", args, true), modernHeaders("tools/call", "fixed")...)
	})
	b.Run("call64K/bare", func(b *testing.B) { benchHandler(b, http.HandlerFunc(bare), call("1", "fixed", large, false)) })
	b.Run("call64K/2025", func(b *testing.B) { benchHandler(b, s, call("1", "fixed", large, false), session...) })
	b.Run("list/2025", func(b *testing.B) {
		benchHandler(b, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, session...)
	})
	b.Run("list/2026", func(b *testing.B) {
		benchHandler(b, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, modernHeaders("tools/list", "")...)
	})
}
