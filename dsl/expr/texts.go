package expr

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// textTest compiles the operators between two texts. nil has, starts with and
// matches nothing.
func (c *compiler) textTest(n *ast.BinaryNode, l, r code) code {
	fits := func(t typ) bool { return t.kind == anyKind || t.kind == textKind }
	if !fits(l.typ) || !fits(r.typ) {
		return c.mismatch(n, "texts", l, r)
	}
	test := strings.Contains
	switch n.Operator {
	case "startsWith":
		test = strings.HasPrefix
	case "endsWith":
		test = strings.HasSuffix
	case "matches":
		return c.matches(n, l, r)
	}
	off, op := c.at(n), n.Operator
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, t, ok, err := r.texts2(off, op, a, b)
		return boolean(ok && test(s, t), err)
	})}
}

// texts2 gives the two texts; ok is false when one of them is nil.
func (r *run) texts2(off int, op string, a, b any) (s, t string, ok bool, err error) {
	if a == nil || b == nil {
		return "", "", false, nil
	}
	s, okS := a.(string)
	t, okT := b.(string)
	if !okS || !okT {
		return "", "", false, r.fail(off, "%s is for texts, not %s and %s", op, kindOf(a), kindOf(b))
	}
	return s, t, true, r.tick(off, len(s)>>10)
}

// pattern is a compiled regular expression with the number of its
// instructions: a match takes at most that many looks at each byte.
type pattern struct {
	re   *regexp.Regexp
	size int
}

func compilePattern(s string) (pattern, error) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return pattern{}, err
	}
	re, err := regexp.Compile(s)
	return pattern{re, len(prog.Inst)}, err
}

func (c *compiler) matches(n *ast.BinaryNode, l, r code) code {
	off := c.at(n)
	var fixed pattern
	if s, ok := r.val.(string); ok {
		p, err := compilePattern(s)
		if err != nil {
			return c.fault(n.Right, "%s", strings.Replace(err.Error(), "error parsing regexp", "this is not a regular expression", 1))
		}
		fixed = p
	}
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, t, ok, err := r.texts2(off, "matches", a, b)
		if err != nil || !ok {
			return boolean(false, err)
		}
		p := fixed
		if p.re == nil {
			if p, err = r.pattern(off, t); err != nil {
				return nil, err
			}
		}
		work := len(s) * p.size
		if work > maxMatch {
			return nil, r.fail(off, "the text is too long to be matched with this regular expression")
		}
		if err := r.tick(off, work>>8); err != nil {
			return nil, err
		}
		return p.re.MatchString(s), nil
	})}
}

// pattern compiles a regular expression that was computed.
func (r *run) pattern(off int, s string) (pattern, error) {
	if len(s) > maxPattern {
		return pattern{}, r.fail(off, "the regular expression is longer than %d bytes", maxPattern)
	}
	if err := r.tick(off, 10*len(s)); err != nil {
		return pattern{}, err
	}
	p, err := compilePattern(s)
	if err != nil {
		return pattern{}, r.fail(off, "the text behind matches is not a regular expression")
	}
	return p, r.tick(off, p.size)
}
