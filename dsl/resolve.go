package dsl

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// resolve joins names to what they name, and checks what no single field can
// tell. A name is looked up among all that the author declared, right or
// wrong, so that one mistake does not make another.
func (d *doc) resolve() {
	if d.spec == nil {
		return
	}
	d.duplicates()
	d.listener()
	for i, it := range d.spec.list("databases") {
		d.resolveDatabase(d.g.Databases[i], it)
	}
	for i, it := range d.spec.list("fsms") {
		d.resolveFSM(d.g.FSMs[i], it)
	}
	d.databaseUse()
	for i, it := range d.spec.list("apis") {
		d.resolveAPI(d.g.APIs[i], it)
	}
	d.apiUse()
	d.groups()
	for i, it := range d.spec.list("tools") {
		d.resolveTool(d.g.Tools[i], it)
	}
	d.machineUse()
	for _, it := range d.spec.list("presenters") {
		d.presenterNames(it)
	}
	for _, it := range d.spec.list("groups") {
		d.ruleNames(it, d.groupSource(it.name()))
	}
	d.ruleNames(d.spec.get("server"), d.groupSource(""))
	if d.options.WithTests {
		d.tests()
	}
	slices.SortStableFunc(d.g.Tools, func(a, b *graph.Tool) int { return d.compareFiles(a.At, b.At) })
}

// declared gives the names below a block, right or wrong.
func (d *doc) declared(block string) []string {
	return d.spec.get(block).declared()
}

// declared gives the names of a map, right or wrong, in order.
func (it *item) declared() []string {
	if it == nil {
		return nil
	}
	var names []string
	for _, f := range it.fields {
		names = append(names, f.name())
	}
	for n := range it.broken {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// known tells a name that is not declared in a block.
func (d *doc) known(t *graph.Text, block, thing string) bool {
	if t == nil || d.spec.isBroken(block) {
		return t != nil
	}
	if d.spec.get(block) == nil && block == "tools" {
		return true // that they are missing was told
	}
	names := d.declared(block)
	if slices.Contains(names, t.S) {
		return true
	}
	help := meant(t.S, names, "there are: ")
	if len(names) == 0 {
		help = ": the spec declares none"
	}
	d.faults.Add(t.At, t.Path, "there is no %s %q%s", thing, t.S, help)
	return false
}

// hasFault tells whether something is wrong with a part of the spec.
func (d *doc) hasFault(path string) bool {
	return slices.ContainsFunc(d.faults, func(f graph.Fault) bool {
		rest, ok := strings.CutPrefix(f.Path, path)
		return ok && !f.Warning && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// listener checks the address and the path of server.http.
func (d *doc) listener() {
	h := d.spec.get("server").get("http")
	if a := h.get("addr"); a != nil {
		if _, port, err := net.SplitHostPort(a.text.S); err != nil || !isPort(port) {
			d.faults.Add(a.at(), a.path(), `%q is no address: write host:port, as in "127.0.0.1:8383"`, a.text.S)
		}
	}
	if p := h.get("path"); p != nil && (!strings.HasPrefix(p.text.S, "/") || strings.ContainsAny(p.text.S, "{} ?#")) {
		d.faults.Add(p.at(), p.path(), `%q is no path: write it as in "/mcp"`, p.text.S)
	}
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n <= 65535
}
