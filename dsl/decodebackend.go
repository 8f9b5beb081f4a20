package dsl

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

func (d *doc) database(it *item) *graph.Database {
	db := &graph.Database{Name: it.name(), At: it.nameAt(), URL: it.textOr("url"), Pool: d.pool(it), Session: d.session(it.get("session")),
		Timeout: it.duration("timeout"), Init: d.files(it, "init")}
	return db
}

// pool reads the bounds of a pool; a number is the most connections.
func (d *doc) pool(it *item) graph.Pool {
	p := it.get("pool")
	if p == nil || p.form.kind == formInt {
		most := it.int("pool")
		p = &item{form: theLanguage().defs["Pool"]}
		return poolOf(p, most)
	}
	return poolOf(p, p.int("max"))
}

func poolOf(p *item, most int64) graph.Pool {
	return graph.Pool{Max: int(most), Min: int(p.int("min")), MaxLifetime: p.duration("lifetime"), MaxIdle: p.duration("idle"), Acquire: p.duration("acquire")}
}

func (d *doc) session(it *item) *graph.Session {
	if it == nil {
		return nil
	}
	return &graph.Session{At: it.at(), Role: it.textOf("role"), Settings: textFields(it, "settings")}
}

// textFields are the strings of a map, by name.
func textFields(it *item, name string) []graph.NodeField {
	var l []graph.NodeField
	for _, x := range it.list(name) {
		l = append(l, graph.NodeField{Name: x.name(), At: x.nameAt(),
			Node: &graph.Node{At: x.at(), Path: x.path(), Kind: graph.String, Text: x.text}})
	}
	return l
}

func (d *doc) api(it *item) *graph.API {
	return &graph.API{Name: it.name(), At: it.nameAt(), Path: it.path(), BaseURL: it.textOr("baseURL"), Auth: d.auth(it.get("auth")),
		Headers: textFields(it, "headers"), Timeout: it.duration("timeout"), Retry: int(it.int("retry")), MaxBody: it.int("maxBody"),
		Errors: d.errorRules(it, "errors")}
}

// authKinds are the ways a service may know us, of which it has exactly one.
var authKinds = []string{"bearer", "basic", "header", "oauth2"}

// auth reads how a service knows us. Where a mistake took that away it is nil.
func (d *doc) auth(it *item) *graph.Auth {
	if it == nil {
		return nil
	}
	kind, ok := d.exactlyOne(it, "auth", authKinds)
	x := it.get(kind)
	if !ok || x == nil {
		return nil
	}
	a := &graph.Auth{At: it.at()}
	switch kind {
	case "bearer":
		a.Bearer = &x.text
	case "basic":
		a.Basic = &graph.Basic{User: x.textOr("user"), Password: x.textOr("password")}
	case "header":
		a.Header = &graph.HeaderAuth{Name: x.textOr("name"), Value: x.textOr("value")}
	case "oauth2":
		a.OAuth2 = &graph.OAuth2{TokenURL: x.textOr("tokenURL"), ClientID: x.textOr("clientID"), ClientSecret: x.textOr("clientSecret"),
			Scopes: x.strings("scopes")}
	}
	return a
}
