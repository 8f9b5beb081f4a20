package serve

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is a JSON-RPC message as far as this package looks into it. Of a key
// that is set twice the last value counts. Raw values point into the body.
type message struct {
	id      []byte // raw; nil: none, or null
	method  string
	version bool // jsonrpc is "2.0"
	// answer tells that it has a result or an error: a client answers us.
	answer bool
	params params
	// problem says why it is no request of the two methods that are answered
	// here; "": it is one.
	problem string

	result, fault []byte // raw
}

// params are the parameters of tools/list, tools/call and
// notifications/cancelled.
type params struct {
	name      string
	cursor    string
	arguments []byte // raw object; nil: none, or null
	requestID []byte // raw
	meta      meta

	noObject                bool // params is something else
	rawName, rawCursor, raw []byte
}

// meta is what _meta says of a request of 2026-07-28.
type meta struct {
	revision     string
	client       string
	capabilities []byte // raw
	noObject     bool   // _meta is something else
}

// decode reads one message. It is as strict as JSON is, so that a malformed
// body is refused before anything is looked up; failed says what is wrong.
func decode(body []byte) (m message, failed string) {
	// What is no UTF-8 is no JSON. encoding/json would put U+FFFD instead, and
	// an id would come back changed.
	if !utf8.Valid(body) {
		return m, "request body is not valid UTF-8"
	}
	s := scanner{b: body}
	if s.peek() != '{' || !s.object(0, func(key string) bool { return m.field(&s, key) }) || !s.end() {
		switch {
		case s.deep:
			return m, "request body nests too deeply"
		case s.peek() == '[' && json.Valid(body):
			return m, noBatch
		}
		return m, notJSON
	}
	m.settle()
	return m, ""
}

func (m *message) field(s *scanner, key string) (ok bool) {
	var v []byte
	switch key {
	case "jsonrpc":
		v, ok = s.raw(1)
		m.version = string(v) == `"2.0"`
	case "id":
		v, ok = s.raw(1)
		m.id = orNothing(v)
	case "method":
		v, ok = s.raw(1)
		m.method, _ = known(v)
	case "result":
		m.result, ok = s.raw(1)
	case "error":
		m.fault, ok = s.raw(1)
	case "params":
		m.params = params{}
		if s.peek() == '{' {
			return s.object(1, func(key string) bool { return m.params.field(s, key) })
		}
		v, ok = s.raw(1)
		m.params.noObject = orNothing(v) != nil
	default:
		return s.skip(1)
	}
	return ok
}

func (p *params) field(s *scanner, key string) (ok bool) {
	switch key {
	case "name":
		p.rawName, ok = s.raw(2)
	case "cursor":
		p.rawCursor, ok = s.raw(2)
	case "arguments":
		p.raw, ok = s.raw(2)
	case "requestId":
		p.requestID, ok = s.raw(2)
	case "_meta":
		p.meta = meta{}
		if s.peek() == '{' {
			return s.object(2, func(key string) bool { return p.meta.field(s, key) })
		}
		var v []byte
		v, ok = s.raw(2)
		p.meta.noObject = orNothing(v) != nil
	default:
		return s.skip(2)
	}
	return ok
}

func (m *meta) field(s *scanner, key string) (ok bool) {
	var v []byte
	switch key {
	case mcp.MetaKeyProtocolVersion:
		v, ok = s.raw(3)
		m.revision, _ = known(v)
	case mcp.MetaKeyClientCapabilities:
		m.capabilities, ok = s.raw(3)
	case mcp.MetaKeyClientInfo:
		m.client = ""
		if s.peek() != '{' {
			return s.skip(3)
		}
		return s.object(3, func(key string) bool {
			if key != "name" {
				return s.skip(4)
			}
			v, ok := s.raw(4)
			m.client, _ = text(v)
			return ok
		})
	default:
		return s.skip(3)
	}
	return ok
}

// settle makes values of the raw ones, once it is known which count.
func (m *message) settle() {
	p := &m.params
	m.answer = orNothing(m.result) != nil || orNothing(m.fault) != nil
	p.arguments = orNothing(p.raw)
	var name, cursor bool
	p.name, name = text(p.rawName)
	p.cursor, cursor = text(p.rawCursor)
	switch {
	case p.noObject:
		m.problem = "params must be an object"
	case p.meta.noObject:
		m.problem = "params._meta must be an object"
	case !name:
		m.problem = "params.name must be a string"
	case !cursor:
		m.problem = "params.cursor must be a string"
	case p.arguments != nil && p.arguments[0] != '{':
		m.problem = "params.arguments must be an object"
	}
}

// hasID tells whether a response can name the request: JSON-RPC wants a string
// or a number.
func (m *message) hasID() bool {
	return m.id != nil && (m.id[0] == '"' || m.id[0] == '-' || m.id[0] >= '0' && m.id[0] <= '9')
}

// orNothing gives nil for null and for nothing.
func orNothing(raw []byte) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// text gives the string that a raw value is; "" for null.
func text(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", orNothing(raw) == nil
	}
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c == '\\' {
			var s string
			err := json.Unmarshal(raw, &s)
			return s, err == nil
		}
	}
	return string(inner), true
}
