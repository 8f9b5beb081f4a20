package dsl

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// bindingHTTP finds the service of a request and checks what it sends.
func (d *doc) bindingHTTP(t *graph.Tool, r *graph.Request, it *item) {
	if it == nil || r == nil {
		return
	}
	if r.API = d.apiName(it); r.API == "" || d.g.API(r.API) == nil {
		t.Broken = true // told, or it is there, but broken
	}
	path := it.get(strings.ToLower(r.Method))
	if why := badTarget(&r.Target); why != "" {
		d.faults.Add(path.at(), path.path(), "%s", why)
		t.Broken = true
	}
	if t.Kind == "query" && slices.Contains([]string{"PUT", "PATCH", "DELETE"}, r.Method) {
		d.faults.Add(path.nameAt(), path.path(), "changes something, and a query reads: make the tool an action or a mutation")
	}
	d.sends(r, it)
	d.pages(r, it)
}

// apiName gives the service that a request names, or the only one; "" where
// there is no such service, which is told.
func (d *doc) apiName(it *item) string {
	names := d.declared("apis")
	switch name := it.textOf("api"); {
	case name != nil:
		if d.known(name, "apis", "api") {
			return name.S
		}
	case d.spec.isBroken("apis") || it.isBroken("api"):
	case len(names) == 0:
		d.faults.Add(it.at(), it.path(), "needs a service: declare one under apis")
	case len(names) > 1:
		d.faults.Add(it.at(), it.path(), "must name its api: there are %s", join(names, "and"))
	default:
		return names[0]
	}
	return ""
}

// badTarget says what is wrong with the path of a request, or "".
func badTarget(t *graph.Text) string {
	if !strings.HasPrefix(t.S, "/") {
		return `must begin with /, as in "/orders/{{ args.id }}": it goes below the baseURL`
	}
	literals, _ := expr.Literals(t)
	for _, l := range literals {
		switch {
		case strings.ContainsAny(l.Text, "?#"):
			return "is a path only: write query parameters in query"
		case strings.ContainsAny(l.Text, " \\\t\r\n"):
			return "has a blank or a backslash: write it as it stands in an address, as %20"
		}
	}
	for _, s := range strings.Split(t.S, "/") {
		if s == "." || s == ".." {
			return "must not have . or .. as a part: it stays below the baseURL"
		}
	}
	return ""
}

// sends checks the query, headers and body of a request.
func (d *doc) sends(r *graph.Request, it *item) {
	for _, name := range []string{"body", "form"} {
		if f := it.get(name); f != nil && r.Method == "GET" {
			d.faults.Add(f.nameAt(), f.path(), "is not sent with get: write it in query, or use post")
		}
	}
	if f := it.get("form"); f != nil && it.has("body") {
		d.faults.Add(f.nameAt(), f.path(), "stands beside body: a request has one of them")
	}
	for _, f := range slices.Concat(r.Query, r.Form) {
		d.flat(f.Node, true)
	}
	for _, h := range it.get("headers").all() {
		d.headerName(h.nameAt(), h.path(), h.name())
	}
}

// flat checks that a field can be sent as a text, or as several.
func (d *doc) flat(n *graph.Node, listToo bool) {
	switch {
	case n.Kind == graph.List && listToo:
		for _, e := range n.Items {
			d.flat(e, false)
		}
	case n.Kind == graph.Struct || n.Kind == graph.List:
		d.faults.Add(n.At, n.Path, "must be a text, a number, true or false, or a list of these")
	case n.Kind == graph.Const && n.Const == nil:
		d.faults.Add(n.At, n.Path, "is null, which is never sent: leave it out")
	}
}

func (d *doc) pages(r *graph.Request, it *item) {
	p := it.get("pages")
	if p == nil {
		return
	}
	if r.Method != "GET" {
		d.faults.Add(p.nameAt(), p.path(), "are followed with get only")
	}
	next, param := p.textOf("next"), p.get("param")
	switch {
	case next == nil:
	case next.S != "link":
		literals, lone := expr.Literals(next)
		if !lone && len(literals) > 0 {
			d.faults.Add(next.At, next.Path, `must be "link" or one hole, as in {{ body.next }}`)
		}
	case param != nil:
		d.faults.Add(param.nameAt(), param.path(), "is not needed: the Link header has the whole address")
	}
}

// headerToken is what HTTP takes as the name of a header (RFC 9110, 5.1).
var headerToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// ourHeaders are those that every request has from us.
var ourHeaders = []string{"host", "content-length", "transfer-encoding", "connection"}

func (d *doc) headerName(at graph.Place, path, name string) {
	switch {
	case !headerToken.MatchString(name):
		d.faults.Add(at, path, `%q is no name of a header: write it as in "X-Request-Id"`, name)
	case slices.Contains(ourHeaders, strings.ToLower(name)):
		d.faults.Add(at, path, "is set for every request: leave it out")
	}
}
