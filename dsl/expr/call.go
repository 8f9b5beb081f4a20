package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// elsewhere are functions of expr-lang that are not here, with what to write.
var elsewhere = map[string]string{
	"now":      "write ctx.now",
	"string":   "write str(…)",
	"toJSON":   "write json(…)",
	"duration": "times are texts: compare them, or count seconds with unix(…)",
	"timezone": "times are in UTC",
}

func (c *compiler) callNode(n *ast.CallNode) code {
	id, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return c.fault(n, "only functions can be called, and values have none: write f(value)")
	}
	return c.call(n, id.Value, n.Arguments)
}

// call compiles a call of a function by its name.
func (c *compiler) call(n ast.Node, name string, args []ast.Node) code {
	if isClosure(name) {
		if len(args) == 0 {
			return c.fault(n, "%s needs a list", name)
		}
		return c.closure(n, name, args)
	}
	f, ok := functionNamed(name)
	if !ok {
		return c.noFunction(n, name)
	}
	parts := make([]code, len(args))
	for i, a := range args {
		parts[i] = c.node(a)
	}
	if len(args) < f.least || len(args) > len(f.params) && !f.variadic {
		return c.fault(n, "%s takes %s", name, f.takes())
	}
	faults := len(c.faults)
	for i := range parts {
		if p := f.param(i); !p.fits(parts[i].typ) {
			c.fault(args[i], "%s of %s must be %s, not %s", p.name, name, p.kind, parts[i].typ.kind)
		}
	}
	if len(c.faults) > faults {
		return unknown()
	}
	return c.function(n, f, parts)
}

func (c *compiler) noFunction(n ast.Node, name string) code {
	if hint := elsewhere[name]; hint != "" {
		return c.fault(n, "there is no function %q: %s", name, hint)
	}
	if _, ok := c.scope.find(name); ok {
		return c.fault(n, "%s is a value, not a function", name)
	}
	known := make([]string, 0, len(functions)+len(closures))
	for name := range closures {
		known = append(known, name)
	}
	for i := range functions {
		known = append(known, functions[i].Name)
	}
	slices.Sort(known)
	return c.fault(n, "there is no function %q%s", name, didYouMean(name, known))
}

func (c *compiler) function(n ast.Node, f *function, parts []code) code {
	out := code{typ: f.result}
	if f.typ != nil {
		out.typ = f.typ(parts)
	}
	switch f.flow {
	case flowNone:
		c.use(parts...)
	case flowCompare:
		c.use(parts...)
		for _, p := range parts {
			out.from = c.merge(out.from, p.from)
		}
	case flowLists:
		for _, p := range parts {
			out.from = c.merge(out.from, p.from)
		}
	case flowElement:
		out.from = parts[0].from.step("*", out.typ.leaf())
	case flowLength:
		if k := parts[0].typ.kind; k != listKind && k != textKind {
			c.reads.touch(parts[0].from.step("*", true))
		}
	case flowKeys:
		c.reads.touch(parts[0].from.step("*", true))
	}
	c.makes = c.makes || f.makes
	off := c.at(n)
	out.eval = func(r *run) (any, error) {
		var few [3]any
		args := few[:0]
		cost := 1
		for i := range parts {
			v, err := parts[i].eval(r)
			if err != nil {
				return nil, err
			}
			p := f.param(i)
			if !p.takes(v) {
				return nil, r.fail(off, "%s of %s must be %s, not %s", p.name, f.Name, p.kind, kindOf(v))
			}
			if s, ok := v.(string); ok {
				cost += len(s) >> 10
			}
			args = append(args, v)
		}
		if err := r.tick(off, cost); err != nil {
			return nil, err
		}
		return f.run(r, off, args)
	}
	return out
}

// param is one declared argument of a function.
type param struct {
	name string
	kind kind
	null bool // nil is taken too
}

func (p *param) fits(t typ) bool {
	switch {
	case p.kind == anyKind || t.kind == anyKind || t.kind == p.kind:
		return true
	case t.kind == nilKind:
		return p.null
	}
	return p.kind == numberKind && t.kind == intKind || p.kind == intKind && t.kind == numberKind
}

func (p *param) takes(v any) bool {
	if v == nil {
		return p.null || p.kind == anyKind
	}
	switch p.kind {
	case anyKind:
		return true
	case intKind:
		_, ok := asInt(v)
		return ok
	case numberKind:
		_, ok := asNum(v)
		return ok
	}
	return kindOf(v) == p.kind
}

// param gives the declaration of the i-th argument; the last one of a
// variadic function stands for all that follow.
func (f *function) param(i int) *param {
	return &f.params[min(i, len(f.params)-1)]
}

// takes says what arguments a function has: its signature without the result.
func (f *function) takes() string {
	open, end := strings.IndexByte(f.Signature, '('), strings.LastIndexByte(f.Signature, ')')
	return f.Signature[open : end+1]
}

var kindWords = map[string]kind{
	"any": anyKind, "bool": boolKind, "int": intKind, "number": numberKind,
	"text": textKind, "list": listKind, "struct": structKind,
}

// declare reads the signature: name(a int, b? text, rest... any) result.
// A type may end in |nil.
func (f *function) declare() {
	args, result, _ := strings.Cut(f.takes()[1:], ")")
	_ = result
	for _, a := range strings.Split(args, ", ") {
		if a == "" {
			continue
		}
		name, word, _ := strings.Cut(a, " ")
		p := param{}
		word, p.null = strings.CutSuffix(word, "|nil")
		k, ok := kindWords[word]
		if !ok {
			panic(fmt.Sprintf("expr: no type %q in %s", word, f.Signature))
		}
		p.kind = k
		name, f.variadic = strings.CutSuffix(name, "...")
		name, optional := strings.CutSuffix(name, "?")
		p.name = name
		f.params = append(f.params, p)
		if !optional && !f.variadic {
			f.least = len(f.params)
		}
	}
	word := strings.TrimSpace(f.Signature[strings.LastIndexByte(f.Signature, ')')+1:])
	word, _ = strings.CutSuffix(word, "|nil")
	k, ok := kindWords[word]
	if !ok {
		panic(fmt.Sprintf("expr: no type %q in %s", word, f.Signature))
	}
	f.result = typ{kind: k}
}
