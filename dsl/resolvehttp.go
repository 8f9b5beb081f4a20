package dsl

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// bindingHTTP finds the service of a request. What it sends is checked where
// it is compiled.
func (d *doc) bindingHTTP(t *graph.Tool, r *graph.Request, it *item) {
	if it == nil || r == nil {
		return
	}
	if r.API = d.apiName(it); r.API == "" || d.g.API(r.API) == nil {
		t.Broken = true // told, or it is there, but broken
	}
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

// headerToken is what HTTP takes as the name of a header (RFC 9110, 5.1).
var headerToken = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// ourHeaders are those that the connection, the address or the body decide.
var ourHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
	"proxy-authorization", "proxy-connection", "accept-encoding"}

func (d *doc) headerName(at graph.Place, path, name string) {
	switch {
	case !headerToken.MatchString(name):
		d.faults.Add(at, path, `%q is no name of a header: write it as in "X-Request-Id"`, name)
	case slices.Contains(ourHeaders, strings.ToLower(name)):
		d.faults.Add(at, path, "is decided by the connection, the address or the body: leave it out")
	}
}
