package engine

import (
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Caller is who calls: the immutable ctx of a call. It is made by the
// transport, a test or the command line.
type Caller struct {
	Session string        // MCP session, one of its own for each process on stdio, "" for a request without one
	Client  string        // name of the client program, "" if it did not say
	Claims  *value.Object // verified claims; nil: none
	Now     time.Time     // the clock; zero: the real one
}

// nowFormat is RFC 3339 in UTC, with at most milliseconds.
const nowFormat = "2006-01-02T15:04:05.999Z"

// ctx is the value of the name ctx; its type is ctxShape.
func (c *Caller) ctx() *value.Object {
	o := value.NewObject(4)
	o.Set("session", orNil(c.owner()))
	claims := c.Claims
	if claims == nil {
		claims = &value.Object{}
	}
	o.Set("claims", claims)
	o.Set("client", orNil(c.Client))
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	o.Set("now", now.UTC().Format(nowFormat))
	return o
}

// owner is whose states and keys a caller uses: those of his session, or, for
// a request that has none (revision 2026-07-28), those of the subject of his
// claims. "" is nobody.
func (c *Caller) owner() string {
	if c.Session != "" {
		return c.Session
	}
	if sub, ok := c.Claims.Get("sub"); ok && sub != nil {
		return string(value.AppendText(nil, sub))
	}
	return ""
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// ctxShape is the type of the name ctx. Claims are those that server.local
// declares; another claim is an unknown name, as it could never have a value.
func ctxShape(g *graph.Graph) *shape.Shape {
	claims := &shape.Shape{Kind: shape.Struct}
	if l := g.Server.Local; l != nil {
		for _, k := range l.Keys() {
			claims.Fields = append(claims.Fields, &shape.Field{Name: k, Shape: &shape.Shape{}, Optional: true})
		}
	}
	text := &shape.Shape{Kind: shape.String, MaxRunes: -1}
	return &shape.Shape{Kind: shape.Struct, Fields: []*shape.Field{
		{Name: "session", Shape: text, Optional: true},
		{Name: "claims", Shape: claims},
		{Name: "client", Shape: text, Optional: true},
		{Name: "now", Shape: text},
	}}
}
