package dsl

import (
	"net/url"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// resolveDatabase checks the pool and the session of a database.
func (d *doc) resolveDatabase(db *graph.Database, it *item) {
	if m := it.get("pool").get("min"); m != nil && db.Pool.Min > db.Pool.Max {
		d.faults.Add(m.at(), m.path(), "must be at most max, which is %d", db.Pool.Max)
	}
	s := it.get("session")
	if s == nil {
		return
	}
	if set := s.get("settings"); !s.has("role") && !s.isBroken("settings") && len(set.all()) == 0 && (set == nil || len(set.broken) == 0) {
		d.faults.Add(s.nameAt(), s.path(), "sets nothing: give it role, settings or both")
	}
	if strings.HasPrefix(db.URL.S, "sqlite:") {
		d.faults.Add(s.nameAt(), s.path(), "is for PostgreSQL: SQLite has no roles and settings")
	}
}

// apiUse tells services that nobody asks.
func (d *doc) apiUse() {
	used := map[string]bool{}
	for _, it := range d.toolBindings() {
		if it.isBroken("http") {
			return
		}
		if r := it.get("http"); r != nil {
			if !r.has("api") {
				return // the only one, or told
			}
			if d.g.API(r.str("api")) == nil {
				return // the name that was meant may be any
			}
			used[r.str("api")] = true
		}
	}
	if d.toolsBroken() {
		return
	}
	for _, it := range d.spec.list("apis") {
		if !used[it.name()] {
			d.faults.Add(it.nameAt(), it.path(), "no tool uses this API")
		}
	}
}

// resolveAPI checks what every request to a service has.
func (d *doc) resolveAPI(a *graph.API, it *item) {
	d.serviceURL(it.get("baseURL"), false)
	d.ruleNames(it, source{http: true})
	for _, h := range it.get("headers").all() {
		d.headerName(h.nameAt(), h.path(), h.name())
		d.fixed(h)
		if own := authHeader(a.Auth); own != "" && strings.EqualFold(own, h.name()) {
			d.faults.Add(h.nameAt(), h.path(), "is set by auth already: leave it out here or there")
		}
	}
	auth := it.get("auth")
	d.fixed(auth.get("bearer"))
	for _, name := range []string{"basic", "header", "oauth2"} {
		for _, x := range auth.get(name).all() {
			if x.form.kind == formString {
				d.fixed(x)
			}
		}
	}
	if h := auth.get("header").get("name"); h != nil {
		d.headerName(h.at(), h.path(), h.text.S)
	}
	d.serviceURL(auth.get("oauth2").get("tokenURL"), true)
}

// authHeader is the header that auth sets, "" without auth.
func authHeader(a *graph.Auth) string {
	switch {
	case a == nil:
		return ""
	case a.Header != nil:
		return a.Header.Name.S
	}
	return "Authorization"
}

// fixed tells a hole where nothing of a call is known.
func (d *doc) fixed(it *item) {
	if it != nil && strings.Contains(it.text.S, "{{") {
		d.faults.Add(it.at(), it.path(), "takes no holes: it is the same for every call")
	}
}

// serviceURL checks the address of a service. One with a secret in it is known
// when it is opened.
func (d *doc) serviceURL(it *item, query bool) {
	if it == nil {
		return
	}
	if strings.Contains(it.text.S, "{{") {
		d.fixed(it)
		return
	}
	if graph.HasSecret(it.text.S) {
		return
	}
	u, err := url.Parse(it.text.S)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		d.faults.Add(it.at(), it.path(), `%q is no address: write it as in "https://api.example.com/v1"`, graph.Concealed(it.text.S))
	case u.User != nil:
		d.faults.Add(it.at(), it.path(), "has a user in it: write that in auth")
	case u.Fragment != "" || !query && (u.RawQuery != "" || u.ForceQuery):
		d.faults.Add(it.at(), it.path(), "must end with the path: query parameters belong to the requests")
	}
}
