package serve

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Methods that this package looks at; every other one is mcp-go's.
const (
	methodList      = "tools/list"
	methodCall      = "tools/call"
	methodListen    = "subscriptions/listen"
	methodInit      = "initialize"
	methodCancelled = "notifications/cancelled"
)

// The message for a body that is no JSON object, in mcp-go's words.
const notJSON = "request body is not valid json"

// The message for a list of requests, which no revision since 2025-06-18 has.
const noBatch = "JSON-RPC batches are not supported: send each request by itself"

// isModern tells whether a revision has no sessions.
func isModern(revision string) bool { return revision >= mcp.ProtocolVersion20260728 }

// appendHead opens a response up to its result or error; id is raw JSON, nil
// for a request whose id cannot be known.
func appendHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// appendError appends a whole error response.
func appendError(dst, id []byte, code int, message string) []byte {
	dst = append(appendHead(dst, id), `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = value.AppendString(dst, message)
	return append(dst, "}}"...)
}

// statusOf is the HTTP status of a response; code is that of its error, 0 for
// a result. Only 2026-07-28 maps errors to statuses.
func statusOf(code int, modern bool) int {
	if !modern {
		return http.StatusOK
	}
	switch code {
	case mcp.INVALID_PARAMS, mcp.INVALID_REQUEST, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// cursorAfter is the cursor of the page behind a tool. It is opaque to
// clients, and unknown after a reload in which the page moved.
func cursorAfter(tool string) string { return base64.RawURLEncoding.EncodeToString([]byte(tool)) }
