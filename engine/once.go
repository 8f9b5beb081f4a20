package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/bind"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// onceKey compiles the idempotency key of a tool, nil: none.
func (c *toolCompiler) onceKey() *expr.Template {
	i := c.graph.Idempotency
	if i == nil {
		return nil
	}
	key, f := expr.CompileTemplate(&i.Key, c.scope)
	c.faults = append(c.faults, f...)
	return key
}

// once is a call with an idempotency key. The key is taken and the answer kept
// in the transaction of the tool itself, so that there is no answer without
// its effects and no effect without its answer.
type once struct {
	tool   string
	caller string
	key    string
	hash   []byte
	ttl    time.Duration
	now    time.Time

	tx    *db.Tx // that has taken the key
	first *presenters.Response
}

// errAnswered ends a transaction whose call was answered before.
var errAnswered = errors.New("the call was answered before")

// oneTime gives the call's idempotency; nil for a tool without, and for a key
// that is nil or empty.
func (c *call) oneTime() (*once, error) {
	t := c.tool
	if t.once == nil {
		return nil, nil
	}
	v, err := t.once.Value(c.env)
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	key := string(value.AppendText(nil, v))
	if key == "" {
		return nil, nil
	}
	hash := sha256.Sum256(value.AppendSorted(nil, c.args, nil))
	now := c.caller.Now
	if now.IsZero() {
		now = time.Now()
	}
	return &once{tool: t.graph.Name, caller: c.caller.identity(), key: key, hash: hash[:], ttl: t.graph.Idempotency.TTL, now: now}, nil
}

// identity says whose idempotency keys a caller uses: those of the subject of
// his claims, else those of his session.
func (c *Caller) identity() string {
	if sub, ok := c.Claims.Get("sub"); ok && sub != nil {
		return "sub " + string(value.AppendText(nil, sub))
	}
	return "session " + c.Session
}

// take takes the key, or ends the transaction with what is known of it.
func (o *once) take(ctx context.Context, t *db.Tx) error {
	stored, state, err := t.Once(ctx, o.tool, o.caller, o.key, o.hash, o.ttl, o.now)
	switch {
	case err != nil:
		return err
	case state == db.OnceSame:
		if o.first, err = decodeResponse(stored); err != nil {
			return fmt.Errorf("the answer kept for an idempotency key: %w", err)
		}
		return errAnswered
	case state == db.OnceDifferent:
		return &bind.Declared{Failure: &presenters.Failure{
			Code: "CONFLICT", Severity: "error",
			Message:    "This key was used before, with other arguments.",
			Suggestion: "Send the arguments of the first call to see its answer again, or a new key for a new call.",
		}}
	case state == db.OnceRunning:
		return &bind.Declared{Failure: &presenters.Failure{
			Code: "CONFLICT", Severity: "error",
			Message:    "A call with this key is still running.",
			Suggestion: "Wait, then send the same call again to see its answer.",
		}}
	}
	o.tx = t
	return nil
}

// keep stores the answer that the transaction is about to be committed with.
func (o *once) keep(ctx context.Context, r *presenters.Response) error {
	return o.tx.Keep(ctx, encodeResponse(r))
}

// members are the fields of a content block under the names in which they
// are stored.
func members(c *presenters.Content) []member {
	return []member{
		{"type", &c.Type, nil}, {"text", nil, &c.Text}, {"data", nil, &c.Data}, {"mimeType", &c.MimeType, nil},
		{"uri", &c.URI, nil}, {"name", &c.Name, nil}, {"description", &c.Description, nil}, {"blob", nil, &c.Blob},
	}
}

// member is a string or bytes.
type member struct {
	name  string
	text  *string
	bytes *[]byte
}

func encodeResponse(r *presenters.Response) []byte {
	blocks := make([]any, len(r.Blocks))
	for i := range r.Blocks {
		block := &value.Object{}
		for _, m := range members(&r.Blocks[i]) {
			switch {
			case m.text != nil && *m.text != "":
				block.Set(m.name, *m.text)
			case m.bytes != nil && *m.bytes != nil:
				block.Set(m.name, string(*m.bytes))
			}
		}
		blocks[i] = block
	}
	o := value.Of("blocks", blocks)
	if r.Code != "" {
		o.Set("code", r.Code)
	}
	if r.IsError != nil {
		o.Set("isError", *r.IsError)
	}
	if r.Structured != nil {
		o.Set("structured", string(r.Structured))
	}
	return value.AppendJSON(nil, o)
}

func decodeResponse(stored []byte) (*presenters.Response, error) {
	v, err := value.Parse(stored)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*value.Object)
	if !ok {
		return nil, errors.New("is no object")
	}
	text := func(o *value.Object, name string) string {
		v, _ := o.Get(name)
		s, _ := v.(string)
		return s
	}
	r := &presenters.Response{Code: text(o, "code")}
	if s := text(o, "structured"); s != "" {
		r.Structured = []byte(s)
	}
	if v, ok := o.Get("isError"); ok {
		isError, _ := v.(bool)
		r.IsError = &isError
	}
	list, _ := o.Get("blocks")
	blocks, _ := list.([]any)
	for _, x := range blocks {
		b, _ := x.(*value.Object)
		var c presenters.Content
		for _, m := range members(&c) {
			v, ok := b.Get(m.name)
			s, _ := v.(string)
			switch {
			case m.text != nil:
				*m.text = s
			case ok:
				*m.bytes = []byte(s)
			}
		}
		r.Blocks = append(r.Blocks, c)
	}
	return r, nil
}
