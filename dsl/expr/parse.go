package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// source is an expression inside a text of the spec.
type source struct {
	src  *graph.Text
	text string
	base int // byte of the text where the expression begins
}

// off turns a place of the parser, which counts characters of the
// expression, into a byte of the text.
func (s *source) off(runes int) int {
	for i := range s.text {
		if runes == 0 {
			return s.base + i
		}
		runes--
	}
	return s.base + len(s.text)
}

func (s *source) fault(off int, format string, args ...any) graph.Fault {
	return s.src.Fault(off, format, args...)
}

// parse gives the tree of the expression, or the one fault that the parser stopped at.
func (s *source) parse() (ast.Node, *graph.Fault) {
	fault := func(off int, message string) (ast.Node, *graph.Fault) {
		f := s.fault(off, "%s", message)
		return nil, &f
	}
	switch {
	case strings.TrimSpace(s.text) == "":
		return fault(s.base, "there is no expression here")
	case len(s.text) > MaxSource:
		return fault(s.base, fmt.Sprintf("the expression is longer than %d bytes", MaxSource))
	case !utf8.ValidString(s.text):
		return fault(s.base, "the expression is not UTF-8")
	}
	tree, err := parser.ParseWithConfig(s.text, &conf.Config{MaxNodes: MaxNodes})
	if err == nil {
		return tree.Node, nil
	}
	var e *file.Error
	if !errors.As(err, &e) {
		return fault(s.base, "syntax: "+err.Error())
	}
	if m := pipeEnd.FindStringSubmatchIndex(s.text[:min(s.off(e.From+1)-s.base, len(s.text))]); m != nil {
		return fault(s.base+m[2], "a function behind | needs parentheses: | upper()")
	}
	from, to := s.off(e.From), s.off(e.To)
	return fault(from, misread(e.Message, s.src.S[from:max(from, to)], to >= s.base+len(s.text)))
}

// pipeEnd finds `| name` just before the place where the parser stopped.
var pipeEnd = regexp.MustCompile(`(?:^|[^|])\|\s*([A-Za-z_]\w*)\s*\|?$`)

// wrongTokens are operators of other languages, with what this one has.
var wrongTokens = map[string]string{
	"=": "to compare, write ==",
	"&": "write && or and",
	";": "there is one expression; only let ends in ;",
}

// misread says in our words what the parser stopped at. The parser has no
// codes for it, so that its texts are what there is to tell them apart; a
// test holds each of them.
func misread(message, token string, atEnd bool) string {
	switch {
	case strings.HasPrefix(message, "unexpected token EOF"), strings.HasPrefix(message, "unexpected end"):
		return "the expression ends too early"
	case strings.HasPrefix(message, "unexpected token"):
		if hint := wrongTokens[token]; hint != "" {
			return fmt.Sprintf("unexpected %s (%s)", token, hint)
		}
		return "unexpected " + token
	case strings.Contains(message, "cannot be mixed"):
		return "?? next to another operator needs parentheses: (a ?? b)"
	case strings.HasPrefix(message, "literal not terminated"):
		return "the text in quotes does not end"
	case strings.HasPrefix(message, "unclosed comment"):
		return "the comment does not end"
	case strings.Contains(message, "maximum allowed nodes"):
		return fmt.Sprintf("the expression has more than %d parts", MaxNodes)
	case strings.HasPrefix(message, "invalid char escape"), strings.HasPrefix(message, "unable to unescape"),
		strings.HasPrefix(message, "invalid syntax"):
		return `there is no such escape in a text: write \\ for a backslash`
	case strings.HasPrefix(message, "unrecognized character"):
		return fmt.Sprintf("the character %s has no meaning here", token)
	case strings.HasPrefix(message, "bad number"), strings.HasPrefix(message, "invalid integer"),
		strings.HasPrefix(message, "invalid float"), strings.HasPrefix(message, "invalid hex"),
		strings.HasPrefix(message, "invalid binary"), strings.HasPrefix(message, "invalid octal"):
		return "this is not a number, or a whole number of more than 64 bits"
	case strings.HasPrefix(message, "a map key"):
		return "a key must be a name, a text in quotes, or an expression in parentheses"
	case strings.HasPrefix(message, "wrap predicate"):
		return "a closure of several steps stands in braces: { let x = …; … }"
	case strings.HasPrefix(message, "expected name"):
		return "a field name must follow the dot"
	case strings.HasPrefix(message, "expected at least"):
		return "an argument is missing"
	case atEnd:
		return "the expression ends too early"
	}
	return "syntax: " + message
}

// first is the place in the expression where a node begins, in characters.
func first(n ast.Node) int {
	from := n.Location().From
	lower := func(children ...ast.Node) int {
		for _, c := range children {
			if c == nil {
				continue
			}
			if f := first(c); f < from {
				from = f
			}
		}
		return from
	}
	switch n := n.(type) {
	case *ast.BinaryNode:
		return lower(n.Left)
	case *ast.MemberNode:
		return lower(n.Node)
	case *ast.ChainNode:
		return lower(n.Node)
	case *ast.SliceNode:
		return lower(n.Node)
	case *ast.CallNode:
		return lower(n.Callee)
	case *ast.ConditionalNode:
		if !n.Ternary { // the parser gives no place to if … else
			return first(n.Cond)
		}
		from = first(n.Cond)
		return from
	}
	return from
}
