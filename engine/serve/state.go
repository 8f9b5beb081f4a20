package serve

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// defaultMaxBody bounds a request where the spec does not, in bytes.
const defaultMaxBody = 4 << 20

// state is what a transport derives from one program, once.
type state struct {
	program Program
	guard   guard
	maxBody int64
	local   *value.Object // claims of a caller on this machine
	// modern opens a result of 2026-07-28: everything before the method's own
	// fields, without a closing brace.
	modern []byte
	lists  lists
}

// current gives the state of the program that answers now.
func (s *Server) current() *state {
	p := s.source.Program()
	if st := s.state.Load(); st != nil && st.program == p {
		return st
	}
	// Two requests may both get here after a reload; either state serves.
	st := newState(p, s.implementation(p.Server()))
	s.state.Store(st)
	return st
}

func newState(p Program, info mcp.Implementation) *state {
	spec := p.Server()
	st := &state{program: p, guard: newGuard(spec.HTTP.Hosts, spec.HTTP.Origins), maxBody: spec.HTTP.MaxBody, local: spec.Local}
	if st.maxBody <= 0 {
		st.maxBody = defaultMaxBody
	}
	// Every result should name the server. Name and version are what the
	// schema requires; the rest is in initialize and server/discover.
	st.modern = append(st.modern, `{"resultType":"complete","_meta":{"`+mcp.MetaKeyServerInfo+`":{"name":`...)
	st.modern = value.AppendString(st.modern, info.Name)
	st.modern = append(st.modern, `,"version":`...)
	st.modern = value.AppendString(st.modern, info.Version)
	st.modern = append(st.modern, `}}`...)
	return st
}

// listTTL is how long a client may keep a list, in milliseconds; one that
// depends on a state it may not keep at all.
const listTTL = 300_000

// lists keeps the encoded pages of the visible sets, by the address of the
// set: the engine gives equal sets the same one.
type lists struct {
	mu sync.Mutex
	m  map[*engine.List]*pages
}

// maxLists bounds the sets that are kept. There are as many as roles, not as
// callers; past the bound all are encoded anew.
const maxLists = 256

func (st *state) pages(l *engine.List) *pages {
	st.lists.mu.Lock()
	defer st.lists.mu.Unlock()
	if p := st.lists.m[l]; p != nil {
		return p
	}
	if st.lists.m == nil || len(st.lists.m) >= maxLists {
		st.lists.m = make(map[*engine.List]*pages)
	}
	p := encodePages(l, st.program.Server().PageSize, st.modern)
	st.lists.m[l] = p
	return p
}

// pages are the results of tools/list by cursor; "" is the first page.
type pages struct{ legacy, modern map[string][]byte }

// encodePages writes all pages of a list for both eras; size 0 is one page.
func encodePages(l *engine.List, size int, modern []byte) *pages {
	tools := l.Tools
	if size <= 0 {
		size = max(len(tools), 1)
	}
	ttl := int64(listTTL)
	if l.ByState {
		ttl = 0
	}
	p := &pages{legacy: make(map[string][]byte), modern: make(map[string][]byte)}
	for cursor, from := "", 0; ; {
		to := min(from+size, len(tools))
		next := ""
		if to < len(tools) {
			next = cursorAfter(tools[to-1].Name)
		}
		p.legacy[cursor] = append(appendTools([]byte{'{'}, tools[from:to], next, false), '}')
		m := append(append([]byte(nil), modern...), ',')
		m = appendTools(m, tools[from:to], next, true)
		m = append(m, `,"ttlMs":`...)
		m = strconv.AppendInt(m, ttl, 10)
		p.modern[cursor] = append(m, `,"cacheScope":"private"}`...)
		if next == "" {
			return p
		}
		cursor, from = next, to
	}
}

func appendTools(dst []byte, tools []presenters.Definition, next string, modern bool) []byte {
	dst = append(dst, `"tools":[`...)
	for i := range tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		if modern {
			dst = append(dst, tools[i].Modern...)
		} else {
			dst = append(dst, tools[i].JSON...)
		}
	}
	dst = append(dst, ']')
	if next != "" {
		dst = append(dst, `,"nextCursor":`...)
		dst = value.AppendString(dst, next)
	}
	return dst
}

// hasCapabilities tells whether _meta declares the client's capabilities in a
// form that mcp-go, which judges every other method, takes too.
func hasCapabilities(raw []byte) bool {
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	if len(raw) == 2 {
		return true
	}
	var c mcp.ClientCapabilities
	return json.Unmarshal(raw, &c) == nil
}
