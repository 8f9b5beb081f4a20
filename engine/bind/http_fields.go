package bind

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
)

// field is a field of a query or a form.
type field struct {
	name string
	tree *expr.Tree
}

func (c *compiler) fields(list []graph.NodeField) []field {
	out := make([]field, 0, len(list))
	for _, f := range list {
		if f.Node.Kind == graph.Struct {
			c.faults.Add(f.Node.At, f.Node.Path, "a struct is no text: write its fields one by one, or {{ json(…) }}")
			continue
		}
		out = append(out, field{name: f.Name, tree: c.tree(f.Node)})
	}
	return out
}

// appendFields appends name=value pairs in their order: nil is left out, a
// list repeats the name. The field called without is left out.
func appendFields(dst []byte, fields []field, env *expr.Env, without string) ([]byte, error) {
	for i := range fields {
		f := &fields[i]
		if without != "" && f.name == without {
			continue
		}
		v, err := f.tree.Value(env)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				dst = appendField(dst, f.name, x)
			}
		case *value.Rows:
			for _, x := range v.List() {
				dst = appendField(dst, f.name, x)
			}
		default:
			dst = appendField(dst, f.name, v)
		}
	}
	return dst, nil
}

func appendField(dst []byte, name string, v any) []byte {
	if v == nil {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, '&')
	}
	dst = append(append(dst, url.QueryEscape(name)...), '=')
	return append(dst, url.QueryEscape(string(value.AppendText(nil, v)))...)
}

// header is a header of a request.
type header struct {
	name string
	text *expr.Template
}

func (c *compiler) headers(r *graph.Request) []header {
	var taken string
	if a := c.spec.Graph.API(r.API); a != nil {
		taken = authHeader(a.Auth)
	}
	out := make([]header, 0, len(r.Headers))
	for _, f := range r.Headers {
		if problem := api.HeaderNameProblem(f.Name); problem != "" {
			c.faults.Add(f.At, f.Node.Path, "%q %s", f.Name, problem)
			continue
		}
		if strings.EqualFold(f.Name, taken) {
			c.faults.Add(f.At, f.Node.Path, "%s is what the auth of %s sets", f.Name, r.API)
			continue
		}
		t := c.template(&f.Node.Text, c.scope)
		if t != nil && t.IsStatic() && !api.ValidHeaderValue(f.Node.Text.S) && !graph.HasSecret(f.Node.Text.S) {
			c.faults = append(c.faults, f.Node.Text.Fault(0, "a header has no line breaks and no other control characters"))
		}
		out = append(out, header{name: f.Name, text: t})
	}
	return out
}

// authHeader is the header that the auth of a service sets, "" for none.
func authHeader(a *graph.Auth) string {
	switch {
	case a == nil:
		return ""
	case a.Header != nil:
		return a.Header.Name.S
	}
	return "Authorization"
}

// value gives the header's value; it is not set if its lone hole is nil.
func (h *header) value(env *expr.Env) (v string, set bool, err error) {
	x, err := h.text.Value(env)
	if err != nil || x == nil {
		return "", false, err
	}
	switch x.(type) {
	case []any, *value.Object, *value.Rows:
		return "", false, fmt.Errorf("header %s: a list or a struct is no text", h.name)
	}
	v = string(value.AppendText(nil, x))
	if !api.ValidHeaderValue(v) {
		return "", false, unfit("What is sent as %s must not have line breaks or other control characters in it.", h.name)
	}
	return v, true, nil
}
