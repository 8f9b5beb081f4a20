package expr

import (
	"slices"
	"strings"
)

// path is a place in the data that a name of the scope holds.
type path struct {
	segs []string // field names, "*" for an element, "**" at the end for anything below
	leaf bool     // there is nothing below
}

func (p path) open() bool { return p.segs[len(p.segs)-1] == "**" }

// origin says where the value of an expression may come from: unchanged from
// one of the paths, or made by the expression, with such values inside.
type origin struct {
	paths  []path
	elem   *origin            // inside a made list, or a struct whose keys are computed
	fields map[string]*origin // inside a map literal
}

func (o *origin) none() bool {
	return o == nil || len(o.paths) == 0 && o.elem == nil && o.fields == nil
}

func merge(a, b *origin) *origin {
	if a.none() {
		return b
	}
	if b.none() || a == b {
		return a
	}
	out := &origin{paths: slices.Clone(a.paths), elem: merge(a.elem, b.elem)}
	for _, p := range b.paths {
		if !slices.ContainsFunc(out.paths, func(q path) bool { return p.leaf == q.leaf && slices.Equal(p.segs, q.segs) }) {
			out.paths = append(out.paths, p)
		}
	}
	if a.fields == nil && b.fields == nil {
		return out
	}
	out.fields = map[string]*origin{}
	for _, m := range []map[string]*origin{a.fields, b.fields} {
		for k, v := range m {
			out.fields[k] = merge(out.fields[k], v)
		}
	}
	return out
}

// maxOrigin is how much of an origin is followed: paths and levels counted
// wherever they stand.
const maxOrigin = 256

// fits counts what is in the origin, until left is used up.
func (o *origin) fits(left *int) bool {
	if o == nil {
		return true
	}
	if *left -= 1 + len(o.paths); *left < 0 || !o.elem.fits(left) {
		return false
	}
	for _, f := range o.fields {
		if !f.fits(left) {
			return false
		}
	}
	return true
}

// step goes one level down: into a field, into any element ("*") or to a
// place that is computed ("**").
func (o *origin) step(seg string, leaf bool) *origin {
	if o == nil {
		return nil
	}
	out := &origin{}
	for _, p := range o.paths {
		if !p.open() {
			p = path{segs: append(slices.Clone(p.segs), seg), leaf: leaf && seg != "**"}
		}
		out.paths = append(out.paths, p)
	}
	out = merge(out, o.elem)
	if seg != "*" && seg != "**" {
		return merge(out, o.fields[seg])
	}
	for _, f := range o.fields {
		out = merge(out, f)
	}
	return out
}

// reads collects paths.
type reads struct {
	seen map[string]bool
	list [][]string
}

func (r *reads) add(segs []string) {
	key := strings.Join(segs, "\x00")
	if r.seen[key] {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[key] = true
	r.list = append(r.list, segs)
}

// touch notes that the value itself is looked at (is it nil, how long is it),
// not what is inside.
func (r *reads) touch(o *origin) {
	if o == nil {
		return
	}
	for _, p := range o.paths {
		r.add(p.segs)
	}
}

// use notes that the value is read with everything inside.
func (r *reads) use(o *origin) {
	if o == nil {
		return
	}
	for _, p := range o.paths {
		if p.leaf || p.open() {
			r.add(p.segs)
		} else {
			r.add(append(slices.Clone(p.segs), "**"))
		}
	}
	r.use(o.elem)
	for _, f := range o.fields {
		r.use(f)
	}
}

// sorted gives the paths in order, without those that another one covers or
// leads through.
func (r *reads) sorted() [][]string {
	var out [][]string
	for _, p := range r.list {
		if !slices.ContainsFunc(r.list, func(q []string) bool { return covers(q, p) }) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, slices.Compare[[]string])
	return out
}

// covers tells whether q stands for p as well: q begins with p, or ends in
// "**" above it.
func covers(q, p []string) bool {
	if slices.Equal(q, p) {
		return false
	}
	if n := len(q) - 1; q[n] == "**" {
		q = q[:n]
		if len(p) >= n && slices.Equal(q, p[:n]) {
			return true
		}
	}
	return p[len(p)-1] != "**" && len(q) > len(p) && slices.Equal(q[:len(p)], p)
}

func joinReads(parts ...[][]string) [][]string {
	var r reads
	for _, p := range parts {
		for _, segs := range p {
			r.add(segs)
		}
	}
	return r.sorted()
}
