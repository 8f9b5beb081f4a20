// Package presenters is the one wire-format engine: a value goes in, the
// ordered content blocks of the wire format come out. It owns every rule of
// how an answer, an error and a tool definition look on the wire. It knows
// nothing of MCP sessions, databases or CUE.
package presenters
