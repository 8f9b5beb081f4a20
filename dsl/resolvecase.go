package dsl

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// tests checks the names in tests and that no two write one golden file.
func (d *doc) tests() {
	golden := map[string]*graph.Test{}
	for i, it := range d.spec.list("tests") {
		t := d.g.Tests[i]
		d.oneCase(it)
		if c := it.textOf("call"); c != nil {
			d.known(c, "tools", "tool")
		}
		for _, b := range it.list("before") {
			if c := b.textOf("call"); c != nil {
				d.known(c, "tools", "tool")
			}
		}
		d.testStateNames(it)
		d.testStateNames(it.get("after"))
		if e := it.get("environment"); e != nil {
			for _, x := range e.fields {
				d.environmentName(x)
			}
		}
		for j, x := range it.list("http") {
			d.exchangeNames(t.HTTP[j], x)
		}
		file := t.Dir + "\x00" + t.File + "\x00" + graph.Slug(t.Name)
		if other := golden[file]; other != nil {
			d.faults.Add(it.nameAt(), it.path(), "would have the same golden file as %s (golden/%s/%s.txt): give it another name", strconv.Quote(other.Name), t.File, graph.Slug(t.Name))
		}
		golden[file] = t
	}
}

// testStateNames checks the machines and states that a case names.
func (d *doc) testStateNames(it *item) {
	for _, x := range it.list("state") {
		name := graph.Text{S: x.name(), At: x.nameAt(), Path: x.path()}
		if d.known(&name, "fsms", "state machine") {
			d.stateName(&x.text, d.spec.get("fsms").get(name.S))
		}
	}
}

// oneCase checks that a case is a call or a list, and that a list has nothing
// that only a call has.
func (d *doc) oneCase(it *item) {
	kind, ok := d.exactlyOne(it, "a case", []string{"call", "list"})
	if !ok || kind == "call" {
		return
	}
	names := []string{"args", "error"}
	if !it.has("before") {
		names = append(names, "http")
	}
	for _, name := range names {
		if f := it.get(name); f != nil {
			d.faults.Add(f.nameAt(), f.path(), "is for a call: list takes none")
		}
	}
}

func (d *doc) environmentName(it *item) {
	var names []string
	for _, v := range d.g.Env {
		if v.Name == it.name() {
			return
		}
		names = append(names, v.Name)
	}
	d.faults.Add(it.nameAt(), it.path(), "env declares no %s%s", it.name(), meant(it.name(), names, "it has "))
}

// exchangeNames checks a request that a case expects, and its answer.
func (d *doc) exchangeNames(x *graph.Exchange, it *item) {
	x.API = d.apiName(it)
	if p := it.get(strings.ToLower(x.Method)); p != nil {
		if u, err := url.ParseRequestURI(x.Target); err != nil || !strings.HasPrefix(x.Target, "/") || u.Fragment != "" {
			d.faults.Add(p.at(), p.path(), `%q is no path: write it as in "/orders?page=2"`, x.Target)
		}
	}
	r := it.get("response")
	if r == nil {
		return
	}
	if r.has("body") && r.has("file") {
		d.faults.Add(r.at(), r.path(), "has body and file: an answer has at most one of them")
	}
	if !x.Timeout {
		if !r.has("status") {
			d.faults.Add(r.at(), r.path(), "needs a status, or timeout: true")
		}
		return
	}
	for _, name := range []string{"status", "headers", "body", "file"} {
		if f := r.get(name); f != nil {
			d.faults.Add(f.nameAt(), f.path(), "stands beside timeout: no answer comes")
		}
	}
}
