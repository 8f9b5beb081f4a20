package expr_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// gen writes random expressions that are well typed over randomScope. plain
// leaves out what works on purpose in another way than in expr-lang.
type gen struct {
	r     *rand.Rand
	plain bool
	elem  []string // what # is in each closure around: int, text, struct
	vars  []string // let variables, all whole numbers
	names int
}

func randomScope() *expr.Scope {
	optional := func(name string, s *shape.Shape) *shape.Field {
		return &shape.Field{Name: name, Shape: s, Optional: true}
	}
	row := structOf(field("n", intShape), field("s", textShape), field("f", &shape.Shape{Kind: shape.Float}),
		field("b", &shape.Shape{Kind: shape.Bool}), optional("opt", textShape),
		optional("sub", structOf(field("n", intShape), field("s", textShape))),
		field("ns", listOf(intShape)), field("ss", listOf(textShape)))
	top := structOf(append(row.Fields, field("rows", listOf(row)))...)
	return (&expr.Scope{}).With("data", top).With("items", listOf(row)).With("raw", nil)
}

func randomRow(r *rand.Rand) *value.Object {
	o := value.Of("n", int64(r.IntN(7)-2), "s", word(r), "f", float64(r.IntN(9))/2-1, "b", r.IntN(2) == 0)
	if r.IntN(2) == 0 {
		o.Set("opt", word(r))
	}
	if r.IntN(2) == 0 {
		o.Set("sub", value.Of("n", int64(r.IntN(5)), "s", word(r)))
	}
	ns, ss := []any{}, []any{}
	for range r.IntN(4) {
		ns, ss = append(ns, int64(r.IntN(5))), append(ss, word(r))
	}
	o.Set("ns", ns)
	o.Set("ss", ss)
	return o
}

func randomRows(r *rand.Rand) []any {
	l := []any{}
	for range r.IntN(4) {
		l = append(l, randomRow(r))
	}
	return l
}

func randomData(r *rand.Rand) map[string]any {
	data := randomRow(r)
	data.Set("rows", randomRows(r))
	return map[string]any{"data": data, "items": randomRows(r), "raw": randomRow(r)}
}

func word(r *rand.Rand) string {
	return []string{"", "a", "b", "ab", "a b", "B", "12", "a,b"}[r.IntN(8)]
}

func (g *gen) pick(l ...string) string { return l[g.r.IntN(len(l))] }

// of writes an expression of a kind.
func (g *gen) of(kind string, depth int) string {
	switch kind {
	case "bool":
		return g.bool(depth)
	case "int":
		return g.int(depth)
	case "num":
		return g.num(depth)
	case "text":
		return g.text(depth)
	case "struct":
		return g.structure(depth)
	}
	return g.list(strings.TrimPrefix(kind, "list "), depth)
}

func (g *gen) bool(d int) string {
	if d <= 0 {
		return g.pick("true", "false", g.structure(0)+".b")
	}
	d--
	if !g.plain && g.r.IntN(12) == 0 { // of one thing with itself, mostly
		x := g.of(g.pick("struct", "list int", "list struct"), d/2)
		return "(" + x + g.pick(" == ", " != ") + g.pick(x, x, "items", g.structure(0)) + ")"
	}
	k := g.pick("int", "num", "text")
	switch g.r.IntN(11) {
	case 0:
		return "(" + g.bool(d) + g.pick(" and ", " or ", " && ", " || ") + g.bool(d) + ")"
	case 1:
		return "not " + g.bool(d)
	case 2:
		return "(" + g.of(k, d) + g.pick(" < ", " > ", " <= ", " >= ") + g.of(k, d) + ")"
	case 3:
		k = g.pick("int", "text", "num", "bool", "list int", "list text")
		return "(" + g.of(k, d) + g.pick(" == ", " != ") + g.of(k, d) + ")"
	case 4:
		return "(" + g.text(d) + g.pick(" contains ", " startsWith ", " endsWith ", " not contains ") + g.text(d) + ")"
	case 5:
		return "(" + g.of(k, d) + g.pick(" in ", " not in ") + g.list(strings.Replace(k, "num", "int", 1), d) + ")"
	case 6:
		e := g.pick("int", "text", "struct")
		return g.closure(g.pick("any", "all", "none", "one"), e, "bool", d)
	case 7:
		return "(" + g.text(d) + " matches " + g.pick("'^a'", "'b$'", "'[0-9]+'") + ")"
	case 8:
		return "(" + g.pick("'n'", "'opt'", "'sub'", "'s'") + " in " + g.structure(d) + ")"
	case 9:
		return "(" + g.of(g.pick("text", "struct", "int"), d) + g.pick(" == ", " != ") + "nil)"
	}
	return "(" + g.bool(d) + " ? " + g.bool(d) + " : " + g.bool(d) + ")"
}

func (g *gen) int(d int) string {
	if d <= 0 {
		l := []string{"0", "1", "2", "3", g.structure(0) + ".n"}
		l = append(l, g.vars...)
		if n := len(g.elem); n > 0 && g.elem[n-1] == "int" {
			l = append(l, "#")
		}
		return g.pick(l...)
	}
	d--
	if !g.plain && g.r.IntN(8) == 0 {
		return "len(" + g.pick(g.structure(d), "keys("+g.structure(d)+")", "uniq("+g.list("struct", d)+")", "data.sub") + ")"
	}
	e := g.pick("int", "text", "struct")
	switch g.r.IntN(13) {
	case 0, 1:
		return "(" + g.int(d) + g.pick(" + ", " - ", " * ") + g.int(d) + ")"
	case 2:
		return "(" + g.int(d) + " % " + g.int(d) + ")"
	case 3:
		return "len(" + g.of(g.pick("text", "list int", "list text", "list struct"), d) + ")"
	case 4:
		return g.closure("count", e, "bool", d)
	case 5:
		return g.closure("sum", e, "int", d)
	case 6:
		return g.list("int", d) + "[" + g.pick("0", "-1", "1") + "]"
	case 7:
		return "(" + g.bool(d) + " ? " + g.int(d) + " : " + g.int(d) + ")"
	case 8:
		return g.pick("first", "last", "max", "min") + "(" + g.list("int", d) + ")"
	case 9:
		return "(" + g.structure(d) + "?.sub?.n ?? " + g.int(d) + ")"
	case 10:
		return "abs(-" + g.int(d) + ")"
	case 11:
		return g.let(d)
	}
	return g.pick("indexOf", "lastIndexOf") + "(" + g.text(d) + ", " + g.text(d) + ")"
}

// let writes a variable and something that may use it.
func (g *gen) let(d int) string {
	v := fmt.Sprintf("v%d", g.names)
	g.names++
	val := g.int(d)
	g.vars = append(g.vars, v)
	body := g.int(d)
	g.vars = g.vars[:len(g.vars)-1]
	return "(let " + v + " = " + val + "; " + body + ")"
}

func (g *gen) num(d int) string {
	if d <= 0 {
		return g.pick("0.5", "1.5", g.structure(0)+".f", g.int(0))
	}
	d--
	switch g.r.IntN(5) {
	case 0:
		return "(" + g.num(d) + g.pick(" + ", " - ", " * ", " / ", " ** ") + g.num(d) + ")"
	case 1:
		return g.pick("mean", "median") + "(" + g.list("int", d) + ")"
	case 2:
		return g.pick("ceil", "floor", "round", "float") + "(" + g.num(d) + ")"
	}
	return g.int(d)
}

func (g *gen) text(d int) string {
	if d <= 0 {
		l := []string{"'a'", "'b'", "'a b'", "''", g.structure(0) + ".s", g.structure(0) + ".opt"}
		if n := len(g.elem); n > 0 && g.elem[n-1] == "text" {
			l = append(l, "#")
		}
		return g.pick(l...)
	}
	d--
	switch g.r.IntN(12) {
	case 0:
		return "(" + g.text(d) + " + " + g.text(d) + ")"
	case 1:
		return g.pick("upper", "lower", "trim", "toBase64", "trimPrefix", "trimSuffix") + "(" + g.text(d) + ")"
	case 2:
		return "(" + g.text(d) + " | upper())"
	case 3:
		return "join(" + g.list("text", d) + ", " + g.text(d) + ")"
	case 4:
		return "replace(" + g.text(d) + ", 'a', " + g.text(d) + ")"
	case 5:
		return "repeat(" + g.text(d) + ", " + g.pick("0", "1", "3") + ")"
	case 6:
		return "(" + g.structure(d) + "?.sub?.s ?? " + g.text(d) + ")"
	case 7:
		return g.text(d) + "[" + g.pick("1:", ":1", "0:2", "-1:", ":-1") + "]"
	case 8:
		return "(" + g.structure(d) + ".opt ?? " + g.text(d) + ")"
	case 9:
		return g.pick("first", "last") + "(" + g.list("text", d) + ")"
	case 10:
		return "type(" + g.of(g.pick("text", "bool", "list int", "struct"), d) + ")"
	}
	return "(" + g.bool(d) + " ? " + g.text(d) + " : " + g.text(d) + ")"
}

func (g *gen) structure(d int) string {
	if d <= 0 {
		l := []string{"data", "raw"}
		if n := len(g.elem); n > 0 && g.elem[n-1] == "struct" {
			l = append(l, "#", "#", "#")
		}
		return g.pick(l...)
	}
	d--
	switch g.r.IntN(5) {
	case 0:
		return g.pick("first", "last") + "(" + g.list("struct", d) + ")"
	case 1:
		// expr-lang's findLast leaves values on its stack, which end up in the
		// lists, structs and arguments around it.
		find := "find"
		if !g.plain {
			find = g.pick("find", "findLast")
		}
		return g.closure(find, "struct", "bool", d)
	case 2:
		return "(" + g.bool(d) + " ? " + g.structure(d) + " : " + g.structure(d) + ")"
	case 3:
		if !g.plain {
			return g.pick("get("+g.list("struct", d)+", "+g.int(d)+")", "default("+g.structure(d)+", "+g.structure(d)+")")
		}
	}
	return g.structure(0)
}

func (g *gen) list(e string, d int) string {
	if d <= 0 {
		switch e {
		case "int":
			return g.pick("[]", "[1, 2]", g.structure(0)+".ns")
		case "text":
			return g.pick("['a']", "['a', 'b']", g.structure(0)+".ss")
		}
		return g.pick("items", "data.rows")
	}
	d--
	switch g.r.IntN(10) {
	case 0:
		return g.closure("filter", e, "bool", d)
	case 1:
		return g.closure("map", g.pick("int", "text", "struct"), e, d)
	case 2:
		return "[" + g.of(e, d) + ", " + g.of(e, d) + "]"
	case 3:
		return g.list(e, d) + "[" + g.pick("1:", ":1", "0:2", "-1:") + "]"
	case 4:
		return "concat(" + g.list(e, d) + ", " + g.list(e, d) + ")"
	case 5:
		return "reverse(" + g.list(e, d) + ")"
	case 6:
		if e == "struct" {
			return g.closure("sortBy", e, g.pick("int", "text"), d)
		}
		return g.pick("uniq", "sort", "flatten") + "(" + g.list(e, d) + ")"
	case 7:
		if e == "int" {
			return "(" + g.pick("0", "1", g.int(0)) + ".." + g.pick("2", "3") + ")"
		}
		return "take(" + g.list(e, d) + ", " + g.pick("0", "1", "2") + ")"
	case 8:
		return "(" + g.bool(d) + " ? " + g.list(e, d) + " : " + g.list(e, d) + ")"
	}
	return g.list(e, 0)
}

func (g *gen) closure(name, e, body string, d int) string {
	coll := g.list(e, d)
	g.elem = append(g.elem, e)
	b := g.of(body, d)
	g.elem = g.elem[:len(g.elem)-1]
	return name + "(" + coll + ", " + b + ")"
}

// top writes a whole expression of any kind.
func (g *gen) top() string {
	d := 1 + g.r.IntN(4)
	kind := g.pick("bool", "int", "num", "text", "list int", "list text", "list struct", "struct", "literal", "reduce", "group", "last")
	switch kind {
	case "literal":
		return "{a: " + g.int(d) + ", 'b c': " + g.text(d) + ", ('k' + " + g.text(1) + "): [" + g.structure(d) + "]}"
	case "reduce":
		return "reduce(" + g.list("int", d) + ", #acc + # * " + g.int(0) + ", " + g.int(d) + ")"
	case "group":
		key := g.pick("text", "int", "bool")
		if !g.plain && g.r.IntN(3) == 0 {
			key = "list int"
		}
		return g.closure("groupBy", "struct", key, d)
	case "last":
		e := g.pick("struct", "list int", "text")
		return g.closure("reduce", "struct", e, d)
	}
	return g.of(kind, d)
}
