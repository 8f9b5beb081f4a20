package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":"a\u00e9","method":"tools/call","params":{"name":"b_x","arguments":{"id":"INV-1","n":-1.5e+3}}}`,
	"\t{ \"id\" : null , \"method\":\"ping\",\"params\":null}\r\n",
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[],"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
	`{"jsonrpc":"2.0","id":7,"result":{}}`,
	`{"id":7,"error":null,"error":{"code":1}}`,
	`{"\u006dethod":"tools/list","params":{"cursor":"\ud800"}}`,
	`{"method":"a","method":"b","params":{"name":"a"},"params":{"cursor":"c"}}`,
	`{"method":"notifications/cancelled","params":{"requestId":"7"}}`,
	`{"params":{"name":1,"cursor":{},"arguments":0,"_meta":[]}}`,
	`{"params":{"_meta":{"io.modelcontextprotocol/clientInfo":[],"io.modelcontextprotocol/protocolVersion":4}}}`,
	`[{"id":1}]`, `{`, `{}`, ``, `nul`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}",
	`{"a":1,}`, `{"a" 1}`, `{} {}`, `{"a":tru}`, `{"a":[1,]}`, "{\"a\":\"\xff\"}", "{\"a\x00\":1}",
	`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	`{"a":` + strings.Repeat(`{"b":`, 600) + `1` + strings.Repeat("}", 600) + `}`,
}

// FuzzDecode compares the reader with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, failed := decode(body)
		var top map[string]json.RawMessage
		good := utf8.Valid(body) && json.Valid(body) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) &&
			json.Unmarshal(body, &top) == nil
		if failed == "request body nests too deeply" {
			if !bytes.Contains(body, []byte("[")) && !bytes.Contains(body, []byte("{")) {
				t.Fatalf("%q is not deep", body)
			}
			return
		}
		if (failed == "") != good {
			t.Fatalf("%q: failed %q, encoding/json takes it: %v", body, failed, good)
		}
		if failed != "" {
			return
		}
		same(t, body, "id", m.id, raw(top["id"]))
		same(t, body, "method", m.method, str(top["method"]))
		same(t, body, "version", m.version, string(top["jsonrpc"]) == `"2.0"`)
		same(t, body, "answer", m.answer, raw(top["result"]) != nil || raw(top["error"]) != nil)
		var p, meta, info map[string]json.RawMessage
		_ = json.Unmarshal(top["params"], &p)
		_ = json.Unmarshal(p["_meta"], &meta)
		_ = json.Unmarshal(meta[mcp.MetaKeyClientInfo], &info)
		same(t, body, "name", m.params.name, str(p["name"]))
		same(t, body, "cursor", m.params.cursor, str(p["cursor"]))
		same(t, body, "arguments", m.params.arguments, raw(p["arguments"]))
		same(t, body, "requestId", m.params.requestID, p["requestId"])
		same(t, body, "revision", m.params.meta.revision, str(meta[mcp.MetaKeyProtocolVersion]))
		same(t, body, "capabilities", m.params.meta.capabilities, meta[mcp.MetaKeyClientCapabilities])
		same(t, body, "client", m.params.meta.client, str(info["name"]))
		fits := object(top["params"]) && object(p["_meta"]) && object(p["arguments"]) && text_(p["name"]) && text_(p["cursor"])
		same(t, body, "problem", m.problem == "", fits)
	})
}

func same[T string | bool | []byte | json.RawMessage](t *testing.T, body []byte, what string, got, want T) {
	t.Helper()
	g, w := any(got), any(want)
	switch x := g.(type) {
	case []byte:
		g, w = string(x), string(w.([]byte))
	case json.RawMessage:
		g, w = string(x), string(w.(json.RawMessage))
	}
	if g != w {
		t.Fatalf("%q: %s is %q, encoding/json says %q", body, what, g, w)
	}
}

func raw(v json.RawMessage) []byte {
	if string(v) == "null" {
		return nil
	}
	return v
}

func str(v json.RawMessage) (s string) {
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func object(v json.RawMessage) bool { return len(raw(v)) == 0 || v[0] == '{' }
func text_(v json.RawMessage) bool  { return len(raw(v)) == 0 || v[0] == '"' }

func TestDecodeProblems(t *testing.T) {
	for _, c := range []struct{ body, failed, problem string }{
		{`{"params":[]}`, "", "params must be an object"},
		{`{"params":{"_meta":1}}`, "", "params._meta must be an object"},
		{`{"params":{"name":true}}`, "", "params.name must be a string"},
		{`{"params":{"cursor":[]}}`, "", "params.cursor must be a string"},
		{`{"params":{"arguments":"{}"}}`, "", "params.arguments must be an object"},
		{`{"params":{"name":1,"name":"x"}}`, "", ""},
		{`{"params":{"arguments":null,"cursor":null,"name":null,"_meta":null}}`, "", ""},
		{`{"params":null}`, "", ""},
		{`[]`, noBatch, ""},
		{` [{"jsonrpc":"2.0","id":1,"method":"ping"}] `, noBatch, ""},
		{`[{]`, notJSON, ""},
		{`7`, notJSON, ""},
		{`{"a":"` + "\xff" + `"}`, "request body is not valid UTF-8", ""},
		{`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "request body nests too deeply", ""},
	} {
		m, failed := decode([]byte(c.body))
		if failed != c.failed || m.problem != c.problem {
			t.Errorf("%s: failed %q, problem %q", c.body, failed, m.problem)
		}
	}
}

func TestDecodeAllocatesTheNameOnly(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"billing_get_invoice","arguments":{"id":"INV-1"}}}`)
	if n := testing.AllocsPerRun(100, func() { decode(body) }); n > 3 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(seeds[3])
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		decode(body)
	}
}
