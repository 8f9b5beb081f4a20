package dsl

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// maxTrace is how many references deep the source of a text is looked for.
const maxTrace = 32

// text makes the text of a string value, with the place of every byte: in the
// literal that says it, wherever that stands.
func (n *node) text() (graph.Text, bool) {
	var r run
	var ok bool
	if lit, isLit := n.literal().(*ast.BasicLit); isLit {
		r, ok = n.doc.literalRun(lit)
	}
	if !ok {
		s, err := n.value().String()
		if err != nil {
			return graph.Text{}, false
		}
		if r, ok = n.doc.trace(n.value(), n.exprs, s, 0); !ok {
			r = run{s: s, marks: []graph.Mark{fixed(n.at())}}
		}
	}
	t := graph.Text{S: r.s, At: n.at(), Path: n.path, Marks: r.marks}
	for i := range t.Marks {
		if t.Marks[i].File == t.At.File {
			t.Marks[i].File = ""
		}
	}
	return t, true
}

func fixed(at graph.Place) graph.Mark {
	return graph.Mark{File: at.File, Line: at.Line, Col: at.Col, Fixed: true}
}

// trace finds the source of the string s that v is; exprs are sources that
// are known already.
func (d *doc) trace(v cue.Value, exprs []ast.Expr, s string, depth int) (run, bool) {
	if depth > maxTrace {
		return run{}, false
	}
	if len(exprs) == 0 {
		exprs = sourceExprs(v)
	}
	for _, e := range exprs {
		if r, ok := d.literalIn(e, s); ok {
			return r, true
		}
	}
	op, args := v.Expr()
	var r run
	ok := false
	switch op {
	case cue.InterpolationOp:
		r, ok = d.traceInterpolation(args, depth)
	case cue.AddOp:
		r, ok = d.traceJoined(args, depth)
	case cue.AndOp, cue.OrOp:
		for _, a := range args {
			if got, err := a.String(); err == nil && got == s {
				if r, ok = d.trace(a, nil, s, depth+1); ok {
					break
				}
			}
		}
	case cue.SelectorOp, cue.IndexOp, cue.NoOp:
		if root, path := v.ReferencePath(); root.Exists() {
			target := root.LookupPath(path)
			if got, err := target.String(); err == nil && got == s {
				r, ok = d.trace(target, nil, s, depth+1)
			}
		}
	}
	return r, ok && r.s == s
}

func sourceExprs(v cue.Value) []ast.Expr {
	switch s := v.Source().(type) {
	case *ast.Field:
		return []ast.Expr{s.Value}
	case ast.Expr:
		return []ast.Expr{s}
	}
	return nil
}

// literalIn finds the literal that says s in an expression: itself, or one of
// the sides of | and &.
func (d *doc) literalIn(e ast.Expr, s string) (run, bool) {
	switch e := unparen(e).(type) {
	case *ast.BasicLit:
		if !e.Pos().IsValid() {
			return run{}, false
		}
		if r, ok := d.literalRun(e); ok && r.s == s {
			return r, true
		}
	case *ast.UnaryExpr:
		return d.literalIn(e.X, s)
	case *ast.Alias:
		return d.literalIn(e.Expr, s)
	case *ast.BinaryExpr:
		if op := e.Op.String(); op != "|" && op != "&" {
			return run{}, false
		}
		if r, ok := d.literalIn(e.X, s); ok {
			return r, true
		}
		return d.literalIn(e.Y, s)
	}
	return run{}, false
}

// traceJoined joins the sources of the sides of a +.
func (d *doc) traceJoined(args []cue.Value, depth int) (run, bool) {
	var all run
	for _, a := range args {
		s, err := a.String()
		if err != nil {
			return run{}, false
		}
		all.add(d.traceOrFixed(a, s, depth))
	}
	return all, true
}

func (d *doc) traceOrFixed(v cue.Value, s string, depth int) run {
	if r, ok := d.trace(v, nil, s, depth+1); ok {
		return r
	}
	return run{s: s, marks: []graph.Mark{fixed(d.at(v.Pos()))}}
}

// traceInterpolation joins the literal parts and the sources of what is put
// between them.
func (d *doc) traceInterpolation(args []cue.Value, depth int) (run, bool) {
	first, ok1 := args[0].Source().(*ast.BasicLit)
	last, ok2 := args[len(args)-1].Source().(*ast.BasicLit)
	if !ok1 || !ok2 {
		return run{}, false
	}
	info, start, _, err := literal.ParseQuotes(first.Value, last.Value)
	if err != nil {
		return run{}, false
	}
	var all run
	for i, a := range args {
		if i%2 == 1 {
			s, ok := asText(a)
			if !ok {
				return run{}, false
			}
			all.add(d.traceOrFixed(a, s, depth))
			continue
		}
		lit, ok := a.Source().(*ast.BasicLit)
		if !ok {
			return run{}, false
		}
		part, ok := d.literalPart(lit, info, start, hashes(first.Value))
		if !ok {
			return run{}, false
		}
		all.add(part)
		start = len(")")
	}
	return all, true
}

// asText is a value as CUE puts it into a longer string.
func asText(v cue.Value) (string, bool) {
	if s, err := v.String(); err == nil {
		return s, true
	}
	switch v.Kind() {
	case cue.IntKind, cue.FloatKind, cue.BoolKind:
		b, err := v.MarshalJSON()
		return string(b), err == nil
	}
	return "", false
}

func (r *run) add(next run) {
	for _, m := range next.marks {
		m.Off += len(r.s)
		// A part that is empty leaves no byte for its mark.
		if n := len(r.marks); n > 0 && r.marks[n-1].Off == m.Off {
			r.marks = r.marks[:n-1]
		}
		r.marks = append(r.marks, m)
	}
	r.s += next.s
}
