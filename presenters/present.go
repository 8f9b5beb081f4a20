package presenters

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Call is what one call brings to its presentation.
type Call struct {
	Context context.Context
	// Env has the names args, ctx, env and, where there are machines, state
	// set; Present adds data, items, omitted and total on its own fork.
	Env *expr.Env
	// Visible tells whether the caller sees a tool (dotted name) now; nil:
	// every tool.
	Visible func(tool string) bool
	// Select is the _select argument; nil: all.
	Select []string
	// Total is the number of rows there are, -1 if it is not known.
	Total int64
	// Withheld, if set, is called with every value that a mask took out of
	// the answer: the leak check of golden tests. nil in a served call.
	Withheld func(v any)
	// More tells that the binding stopped reading at the limit: there are
	// more rows than it gave.
	More bool
}

// sizeHint remembers how large the last answer was, so that the next one is
// written into a buffer that fits.
type sizeHint struct{ n atomic.Int64 }

const leastBuffer, mostBuffer = 512, 8 << 20

func (h *sizeHint) guess() int {
	n := int(h.n.Load())
	return min(max(n+n/8, leastBuffer), mostBuffer)
}

// Present renders the answer of a binding. An error is an unexpected failure
// (a row that does not fit the schema, an expression that fails): the caller
// logs it and answers Internal.
func (v *View) Present(c *Call, result any) (*Response, error) {
	r := newRenderer(c, v.size.guess())
	defer r.release()
	if nothing(result) && !v.structured {
		r.before(v.cache)
		r.string("OK")
		r.end(len(v.cache))
		return r.response(), nil
	}
	p, err := r.prepare(v.plan, result, c.Total, c.More)
	if err != nil {
		return nil, err
	}
	resp := &Response{}
	shown := p.whole
	var sent *Content
	if v.content != nil {
		if sent, shown, err = v.content.take(r, p); err != nil {
			return nil, err
		}
	}
	if err := v.write(r, p, shown); err != nil {
		return nil, err
	}
	if !p.plan.limit.fits(r.buf) {
		tooLarge, err := v.fit(r, p, shown)
		if err != nil {
			return nil, err
		}
		if tooLarge != nil {
			return tooLarge.Response(), nil
		}
	}
	if v.structured {
		if resp.Structured, err = v.structuredContent(p); err != nil {
			return nil, err
		}
	}
	v.size.n.Store(int64(len(r.buf)))
	r.fill(resp)
	if sent != nil {
		resp.Blocks = slices.Insert(resp.Blocks, r.data+1, *sent)
	}
	resp.side.data = func() any { return picked(shown(), v.keys(c)) }
	return resp, nil
}

// write writes all blocks, from the start.
func (v *View) write(r *renderer, p *prepared, shown func() any) error {
	r.reset()
	r.before(v.cache)
	r.data = len(r.blocks)
	if err := v.writeData(r, p, shown); err != nil {
		return err
	}
	return r.emit(p, true)
}

// nothing tells whether a result has nothing to say.
func nothing(v any) bool { return v == nil || v == "" }

// response is the blocks written so far.
func (r *renderer) response() *Response {
	resp := &Response{}
	r.fill(resp)
	return resp
}

func (r *renderer) fill(resp *Response) {
	resp.Blocks = make([]Content, len(r.blocks), len(r.blocks)+1)
	for i, b := range r.blocks {
		resp.Blocks[i] = Content{Type: "text", Text: r.buf[b.start:b.end:b.end]}
	}
	resp.side, resp.buf = r.side, r.buf
}

// picked cuts the data to the keys that the caller asked for, in that order.
func picked(v any, keys []string) any {
	if len(keys) == 0 {
		return v
	}
	switch v := v.(type) {
	case *value.Object:
		o := value.NewObject(len(keys))
		for _, k := range keys {
			if x, ok := v.Get(k); ok {
				o.Set(k, x)
			}
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = picked(x, keys)
		}
		return l
	}
	return v
}

// isTextType tells whether a resource of that type is sent as text.
func isTextType(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.HasPrefix(mime, "text/") || strings.HasSuffix(mime, "json") || strings.HasSuffix(mime, "xml")
}

// take makes the content block of a tool that sends one, nil if the value is
// nil, and the rest of the data without the column that it came from.
func (c *content) take(r *renderer, p *prepared) (*Content, func() any, error) {
	data := p.item(0, false)
	if p.list {
		return nil, nil, fmt.Errorf("%s content needs one row, the binding gave a list", c.kind)
	}
	r.env.Set("data", data)
	mime, err := r.aside(c.mime)
	if err != nil {
		return nil, nil, err
	}
	var src any
	rest := p.whole
	if c.source != nil {
		if src, err = c.source.Value(r.env); err != nil {
			return nil, nil, err
		}
	} else if o, ok := data.(*value.Object); ok {
		var has bool
		if src, has = o.Get(c.column); !has {
			return nil, nil, fmt.Errorf("%s content: the answer has no field %q", c.kind, c.column)
		}
		o = o.Clone()
		o.Delete(c.column)
		rest = func() any { return o }
	}
	if src == nil {
		return nil, rest, nil // NULL: there is none
	}
	s, ok := src.(string)
	if !ok {
		return nil, nil, fmt.Errorf("%s content needs bytes as base64 text, it got %s", c.kind, kindOf(src))
	}
	out := &Content{Type: c.kind, MimeType: mime}
	switch c.kind {
	case "resource":
		out.URI = "fusion://" + c.tool
		if isTextType(mime) {
			out.Text = []byte(s)
			return out, rest, nil
		}
		if _, err := base64.StdEncoding.DecodeString(s); err != nil {
			return nil, nil, fmt.Errorf("resource content of type %s needs bytes as base64 text: %w", mime, err)
		}
		out.Blob = []byte(s)
	default:
		if _, err := base64.StdEncoding.DecodeString(s); err != nil {
			return nil, nil, fmt.Errorf("%s content needs bytes as base64 text: %w", c.kind, err)
		}
		out.Data = []byte(s)
	}
	return out, rest, nil
}
