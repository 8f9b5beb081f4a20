package expr

import (
	"regexp"
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

func (c *compiler) matches(n *ast.BinaryNode, l, r code) code {
	off := c.at(n)
	var fixed *regexp.Regexp
	if s, ok := r.val.(string); ok {
		re, err := regexp.Compile(s)
		if err != nil {
			return c.fault(n.Right, "%s", strings.Replace(err.Error(), "error parsing regexp", "this is not a regular expression", 1))
		}
		fixed = re
	}
	return code{typ: typ{kind: boolKind}, eval: sides(l, r, func(r *run, a, b any) (any, error) {
		s, t, ok, err := r.texts2(off, "matches", a, b)
		if err != nil || !ok {
			return boolean(false, err)
		}
		re := fixed
		if re == nil {
			if len(t) > maxPattern {
				return nil, r.fail(off, "the regular expression is longer than %d bytes", maxPattern)
			}
			if re, err = regexp.Compile(t); err != nil {
				return nil, r.fail(off, "the text behind matches is not a regular expression")
			}
			if err := r.tick(off, 1+len(t)); err != nil {
				return nil, err
			}
		}
		return re.MatchString(s), r.tick(off, len(s)>>6)
	})}
}
