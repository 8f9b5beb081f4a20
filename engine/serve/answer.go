package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/fusion-serve/fusion-serve/engine"
)

// request is a tools/list or tools/call whose envelope, session and headers
// are in order.
type request struct {
	*message
	state  *state
	caller engine.Caller
	modern bool
	// session is that of a 2025 revision over HTTP; nil: there is none.
	session *session
}

// errCancelled is the cause of a call's end when its client took it back.
var errCancelled = errors.New("the client cancelled the request")

// answer appends the response to a request. code is that of a JSON-RPC error,
// 0 for a result. Nothing is appended for a request that was cancelled: the
// client does not wait for it any more.
func (s *Server) answer(ctx context.Context, dst []byte, q *request) (body []byte, code int) {
	q.caller.Now = time.Now()
	defer func() {
		if r := recover(); r != nil {
			body, code = s.panicked(dst, q, r), mcp.INTERNAL_ERROR
		}
	}()
	switch {
	case !q.hasID():
		return refuse(dst, nil, mcp.INVALID_REQUEST, "id must be a string or a number")
	case q.problem != "":
		return refuse(dst, q.id, mcp.INVALID_REQUEST, q.problem)
	case s.faults != "":
		return refuse(dst, q.id, mcp.INTERNAL_ERROR, s.faults)
	case q.method == methodList:
		return s.list(ctx, dst, q)
	}
	return s.call(ctx, dst, q)
}

func refuse(dst, id []byte, code int, message string) ([]byte, int) {
	return appendError(dst, id, code, message), code
}

// list appends a page of the tools that the caller sees.
func (s *Server) list(ctx context.Context, dst []byte, q *request) ([]byte, int) {
	l, err := q.state.program.List(ctx, &q.caller)
	if context.Cause(ctx) == errCancelled {
		return dst, 0
	}
	if err != nil {
		incident := newIncident()
		s.opts.Log.Error("listing the tools", "incident", incident, "cause", err.Error())
		return refuse(dst, q.id, mcp.INTERNAL_ERROR, "The tools cannot be listed right now: try again later. Incident "+incident+".")
	}
	if q.session != nil {
		q.session.listed.Store(l)
	}
	p := q.state.pages(l)
	byCursor := p.legacy
	if q.modern {
		byCursor = p.modern
	}
	page, ok := byCursor[q.params.cursor]
	if !ok {
		return refuse(dst, q.id, mcp.INVALID_PARAMS, "Unknown cursor: list the tools again from the start.")
	}
	dst = append(appendHead(dst, q.id), `,"result":`...)
	return append(append(dst, page...), '}'), 0
}

// call calls the program and appends what it answers.
func (s *Server) call(ctx context.Context, dst []byte, q *request) ([]byte, int) {
	if q.params.name == "" {
		return refuse(dst, q.id, mcp.INVALID_PARAMS, "params.name is missing: it is the name of the tool")
	}
	resp, err := q.state.program.Call(ctx, &q.caller, q.params.name, q.params.arguments)
	if errors.Is(err, engine.ErrUnknownTool) {
		s.done(q, "UNKNOWN_TOOL", "")
		return refuse(dst, q.id, mcp.INVALID_PARAMS, `Tool "`+shorten(q.params.name)+`" does not exist.`)
	}
	if err != nil {
		panic(err) // there is no other error
	}
	if context.Cause(ctx) == errCancelled {
		s.done(q, "CANCELLED", "")
		return dst, 0
	}
	dst = append(appendHead(dst, q.id), `,"result":`...)
	if q.modern {
		dst = append(dst, q.state.modern...)
		from := len(dst)
		dst = resp.AppendResult(dst, false)
		dst[from] = ',' // the brace that opens the result is in front already
	} else {
		dst = resp.AppendResult(dst, true)
	}
	outcome := resp.Code
	if outcome == "" {
		outcome = "ok"
	}
	s.done(q, outcome, resp.Incident)
	return append(dst, '}'), 0
}

// done notes the end of a call.
func (s *Server) done(q *request, outcome, incident string) {
	now := time.Now()
	s.calls.add(entry{at: now, tool: shorten(q.params.name), took: now.Sub(q.caller.Now), outcome: outcome, incident: incident})
}

// panicked answers a request that panicked outside the engine, which has its
// own net.
func (s *Server) panicked(dst []byte, q *request, cause any) []byte {
	incident := newIncident()
	s.opts.Log.Error("request panicked", "incident", incident, "method", q.method,
		"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if q.method == methodCall {
		s.done(q, "INTERNAL_ERROR", incident)
	}
	return appendError(dst, q.id, mcp.INTERNAL_ERROR, "Something went wrong. Incident "+incident+".")
}

func newIncident() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
