package dsl

import (
	"regexp"
)

// source says what the answers may come from that a rule looks at.
type source struct{ sql, http bool }

// sourceOf tells what a tool or step has, with its steps, right or wrong.
func sourceOf(it *item) source {
	s := source{sql: it.has("sql"), http: it.has("http")}
	for _, x := range it.list("steps") {
		s.sql, s.http = s.sql || x.has("sql"), s.http || x.has("http")
	}
	if it.isBroken("steps") {
		return source{true, true}
	}
	return s
}

// groupSource tells what the tools of a group have; of all groups for "".
func (d *doc) groupSource(group string) source {
	var s source
	if d.toolsBroken() {
		return source{true, true}
	}
	for _, t := range d.spec.list("tools") {
		if group == "" || groupOf(t.name()) == group {
			x := sourceOf(t)
			s.sql, s.http = s.sql || x.sql, s.http || x.http
		}
	}
	return s
}

// sqlState is five digits or capital letters.
var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}$`)

// ruleNames checks the names in the rules of a place, and that each of them
// can hold.
func (d *doc) ruleNames(it *item, from source) {
	for _, r := range it.list("deny") {
		d.actions(r)
	}
	for _, r := range it.list("errors") {
		d.actions(r)
		if !r.has("when") && !r.has("sqlstate") && !r.has("status") {
			d.faults.Add(r.at(), r.path(), "would turn every answer into an error: give it when, sqlstate or status")
		}
		if r.has("sqlstate") && r.has("status") {
			d.faults.Add(r.at(), r.path(), "never holds: a refusal has an sqlstate or a status, not both")
			continue
		}
		if s := r.get("sqlstate"); s != nil && !from.sql {
			d.faults.Add(s.at(), s.path(), "never holds: only sql has an sqlstate")
		}
		if s := r.get("status"); s != nil && !from.http {
			d.faults.Add(s.at(), s.path(), "never holds: only http has a status")
		}
		for _, x := range r.oneOrMore("sqlstate") {
			if !sqlState.MatchString(x.text.S) {
				d.faults.Add(x.at(), x.path(), `%q is no SQLSTATE: write five digits or capital letters, as in "23505"`, x.text.S)
			}
		}
	}
}

func (d *doc) actions(rule *item) {
	for _, a := range rule.list("actions") {
		d.known(&a.text, "tools", "tool")
	}
}
