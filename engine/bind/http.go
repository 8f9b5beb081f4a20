package bind

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// request is a compiled request to an HTTP service.
type request struct {
	api     string
	method  string
	changes bool // it may change something
	path    *path
	query   []field
	headers []header
	body    *expr.Tree
	form    []field // nil: none
	pages   *pages
	limit   db.Limit
	// told: an answer without a body is {status: n}. So it is for a step, whose
	// name would else be nil as if it had not run.
	told bool
}

// request compiles a request. Its texts see c.scope. limit bounds the joined
// list of pages.
func (c *compiler) request(r *graph.Request, limit db.Limit) *request {
	out := &request{
		api: r.API, method: r.Method, changes: c.writes && r.Method != http.MethodGet,
		path: c.path(&r.Target), query: c.fields(r.Query), headers: c.headers(r),
		limit: limit,
	}
	switch {
	case r.Body != nil && r.Form != nil:
		c.faults.Add(r.At, requestPath(r), "has a body and a form: a request has one of them")
	case r.Method == http.MethodGet && (r.Body != nil || r.Form != nil):
		c.faults.Add(r.At, requestPath(r), "a get has no body: write what it asks for as query")
	case r.Body != nil:
		out.body = c.tree(r.Body)
	case r.Form != nil:
		out.form = c.fields(r.Form)
	}
	if !c.writes && r.Method != http.MethodGet && r.Method != http.MethodPost {
		c.faults = append(c.faults, r.Target.Fault(0, "a query only reads: make the tool an action or a mutation"))
	}
	if r.Pages != nil {
		out.pages = c.pages(r)
	}
	return out
}

// requestPath is the path of a request: its target is a field of it.
func requestPath(r *graph.Request) string {
	p := r.Target.Path
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '.' {
			return p[:i]
		}
	}
	return p
}

// do makes the request and follows its pages. from (nil: none) is applied to
// the answer, or to that of each page, whose lists are joined; the last
// page's body, status and headers stay set in env, which belongs to this
// binding alone. An answer of status 400 or more is a *Refused, no answer an
// *api.Error. more tells that pages were left out. It tells w.sent of a request
// that went out and may have changed something.
func (r *request) do(w *work, env *expr.Env, from *expr.Template) (item any, more bool, err error) {
	client := w.host.API(r.api)
	if client == nil {
		return nil, false, &api.Error{Err: errors.New("service " + r.api + " is not open"), Unavailable: true}
	}
	path, err := r.path.build(env)
	if err != nil {
		return nil, false, err
	}
	q, err := r.build(env)
	if err != nil {
		return nil, false, err
	}
	if r.pages != nil {
		return r.follow(w, client, q, path, env, from)
	}
	if q.Target, err = r.target(env, path); err != nil {
		return nil, false, err
	}
	if _, err = r.send(w, client, q, env); err != nil {
		return nil, false, err
	}
	item, err = itemOf(env, from)
	if r.told && item == nil {
		item = value.Of("status", env.Get("status"))
	}
	return item, false, err
}

// target is the path with the query.
func (r *request) target(env *expr.Env, path string) (string, error) {
	query, err := appendFields(nil, r.query, env, "")
	if err != nil || len(query) == 0 {
		return path, err
	}
	return path + "?" + string(query), nil
}

// build makes what is the same for all pages of a request.
func (r *request) build(env *expr.Env) (*api.Request, error) {
	q := &api.Request{Method: r.method}
	for i := range r.headers {
		v, set, err := r.headers[i].value(env)
		if err != nil {
			return nil, err
		}
		if set {
			q.Headers = append(q.Headers, [2]string{r.headers[i].name, v})
		}
	}
	switch {
	case r.form != nil:
		b, err := appendFields([]byte{}, r.form, env, "")
		if err != nil {
			return nil, err
		}
		q.Body, q.ContentType = b, "application/x-www-form-urlencoded"
	case r.body != nil:
		v, err := r.body.Filled(env)
		if err != nil {
			return nil, err
		}
		if v != nil {
			q.Body, q.ContentType = value.AppendJSON(nil, v), "application/json"
		}
	}
	return q, nil
}

// send makes one request and sets what the service answered in env.
func (r *request) send(w *work, client *api.Client, q *api.Request, env *expr.Env) (*api.Response, error) {
	a, err := client.Do(w.ctx, q)
	var none *api.Error
	if r.changes && (!errors.As(err, &none) || none.Sent) {
		w.sent()
	}
	if err != nil {
		return nil, err
	}
	body := a.Body
	if a.Binary && a.Status < http.StatusBadRequest {
		body = binary(a)
	}
	env.Set("body", body)
	env.Set("status", int64(a.Status))
	env.Set("headers", a.Headers)
	if a.Status >= http.StatusBadRequest {
		return nil, &Refused{API: r.api, Status: a.Status, Headers: a.Headers, Body: body}
	}
	return a, nil
}

// binary is an answer that is no text: its type, its size in bytes, and the
// bytes as base64, which `content: {image: "data", mimeType: "{{ data.type }}"}`
// sends as an image.
func binary(a *api.Response) *value.Object {
	return value.Of("type", a.Type, "size", int64(len(a.Raw)), "data", base64.StdEncoding.EncodeToString(a.Raw))
}

// itemOf applies from to the body. No body stays nil.
func itemOf(env *expr.Env, from *expr.Template) (any, error) {
	body := env.Get("body")
	if body == nil || from == nil {
		return body, nil
	}
	env.Set("item", body)
	v, err := from.Value(env)
	if err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	return v, nil
}

// unfit is the answer to arguments that no request can be made from.
func unfit(format string, args ...any) error {
	return &Declared{&presenters.Failure{
		Code:       "VALIDATION_ERROR",
		Message:    fmt.Sprintf(format, args...),
		Suggestion: "Correct the arguments and call the tool again.",
		Severity:   "error",
	}}
}
