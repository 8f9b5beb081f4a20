package golden

import (
	"bytes"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// renderCall writes a call and its answer: a head line, then every content
// block under a line of its own, so that a changed line is a changed line in
// the diff.
func renderCall(t *graph.Test, resp *presenters.Response) []byte {
	b := []byte("call " + t.Call)
	if t.Args.Len() > 0 {
		b = value.AppendJSON(append(b, ' '), t.Args)
	}
	return append(append(b, '\n'), renderBlocks(resp)...)
}

func renderBlocks(resp *presenters.Response) []byte {
	var b []byte
	if resp.IsError != nil {
		b = fmt.Appendf(b, "isError: %t\n", *resp.IsError)
	}
	for i := range resp.Blocks {
		b = renderBlock(b, &resp.Blocks[i])
	}
	if resp.Structured != nil {
		b = append(b, "\n=== structuredContent\n"...)
		b = appendPretty(b, resp.Structured)
	}
	return b
}

func renderBlock(b []byte, c *presenters.Content) []byte {
	b = append(b, "\n=== "...)
	b = append(b, c.Type...)
	for _, attr := range []string{c.MimeType, c.URI, c.Name} {
		if attr != "" {
			b = append(append(b, ' '), attr...)
		}
	}
	b = append(b, '\n')
	for _, body := range [][]byte{c.Text, c.Data, c.Blob} {
		if len(body) > 0 {
			b = append(b, body...)
			b = append(b, '\n')
		}
	}
	return b
}

func renderList(l *engine.List) []byte {
	b := []byte("list tools\n")
	for _, t := range l.Tools {
		b = append(b, "\n=== "+t.Name+"\n"...)
		b = appendPretty(b, t.JSON)
	}
	return b
}

// appendPretty appends a JSON document indented; bytes that are none as they are.
func appendPretty(b, doc []byte) []byte {
	v, err := value.Parse(doc)
	if err != nil {
		return append(append(b, bytes.TrimSpace(doc)...), '\n')
	}
	return append(value.AppendIndent(b, v, 0), '\n')
}
