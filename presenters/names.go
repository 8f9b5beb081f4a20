package presenters

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Tool names on the wire (section 6). Names in a spec are dotted; on the wire
// the separator of the spec stands between their parts. In grouped exposition
// an action is named group.action, as its group's tool takes it.

// names knows the exposed name of every declared tool.
type names struct {
	exposed map[string]string
	tools   []string // those whose exposed name differs, longest first
}

func newNames(g *graph.Graph) *names {
	n := &names{exposed: make(map[string]string, len(g.Tools))}
	sep := g.Server.Separator
	if sep == "" {
		sep = "_"
	}
	for _, t := range g.Tools {
		wire := t.Name
		if g.Server.Exposition != "grouped" {
			wire = strings.ReplaceAll(t.Name, ".", sep)
		}
		n.exposed[t.Name] = wire
		if wire != t.Name {
			n.tools = append(n.tools, t.Name)
		}
	}
	slices.SortFunc(n.tools, func(a, b string) int { return len(b) - len(a) })
	return n
}

func (n *names) of(tool string) string {
	if wire, ok := n.exposed[tool]; ok {
		return wire
	}
	return tool
}

// words writes the exposed name for every declared tool's dotted name that
// stands as a word in the author's text. Both names have the same length.
func (n *names) words(s string) string {
	if len(n.tools) == 0 || !strings.Contains(s, ".") {
		return s
	}
	for _, tool := range n.tools {
		for from := 0; ; {
			i := strings.Index(s[from:], tool)
			if i < 0 {
				break
			}
			i += from
			from = i + len(tool)
			if standsAlone(s, i, from) {
				s = s[:i] + n.exposed[tool] + s[from:]
			}
		}
	}
	return s
}

// standsAlone tells whether s[i:end] is a word: no letter, digit, dash or
// slash touches it, and no dot leads on to a longer name.
func standsAlone(s string, i, end int) bool {
	if i > 0 && (inName(s[i-1]) || s[i-1] == '.') {
		return false
	}
	if end == len(s) {
		return true
	}
	if s[end] == '.' {
		return end+1 == len(s) || !inName(s[end+1])
	}
	return !inName(s[end])
}

func inName(c byte) bool { return isWord(c) || c == '-' || c == '/' || c >= 0x80 }

// template is the author's text with the exposed names outside its holes; a
// text without any is given back as it is.
func (n *names) template(t *graph.Text) *graph.Text {
	if len(n.tools) == 0 || !strings.Contains(t.S, ".") {
		return t
	}
	var b strings.Builder
	rest := t.S
	for {
		i := strings.Index(rest, "{{")
		if i < 0 {
			b.WriteString(n.words(rest))
			break
		}
		end := holeEnd(rest, i+2)
		b.WriteString(n.words(rest[:i]))
		b.WriteString(rest[i:end])
		rest = rest[end:]
	}
	if b.String() == t.S {
		return t
	}
	c := *t
	c.S = b.String()
	return &c
}

// holeEnd gives the place behind the }} that closes a hole whose expression
// begins at i; text in quotes does not count.
func holeEnd(s string, i int) int {
	var quote byte
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '}' && strings.HasPrefix(s[i:], "}}"):
			return i + 2
		}
	}
	return len(s)
}
