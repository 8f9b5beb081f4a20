// Package serve is the MCP server: it brings a running program to MCP clients
// over streamable HTTP and over stdio, in the revisions 2025-06-18 and
// 2025-11-25 (a session, made by initialize) and 2026-07-28 (no session, every
// request says who it is in _meta) on one endpoint.
//
// Two methods carry nearly all the traffic, tools/list and tools/call, and
// this package answers them itself for every revision: the body is read once,
// the program is called, the answer's bytes are appended. The list is encoded
// once for each set of visible tools. Everything else (initialize,
// server/discover, ping, streams, subscriptions/listen and refusals of
// malformed requests) is mcp-go's, which therefore holds no tools at all.
//
// What stands around mcp-go here and why:
//
//   - sessions: mcp-go accepts any well-formed id, on GET any id at all, and
//     forgets nothing; the ids, their age and their number are ours.
//   - Host and Origin: mcp-go looks at Host only. Both must be known names.
//   - bodies: mcp-go reads without a limit.
//   - cancelling: mcp-go keys it by session and request id, and requests
//     without a session share the session ""; such a notification is dropped.
//     Over HTTP a client without a session cancels by closing the request.
//   - notifications: those of tools concern single callers. mcp-go tells all of
//     them, and a session's requests take each other's notifications.
//   - streams: an open subscription would hold up the end of the server.
//   - stdio: mcp-go keeps one session a process and cancels what runs when the
//     input ends.
package serve
