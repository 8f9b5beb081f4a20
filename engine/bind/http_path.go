package bind

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/api"
)

// path is the compiled path of a request. Its literal text is escaped as it
// is written; what comes from a hole never has a slash of its own, so that
// the path has the segments that the author wrote, and no others.
type path struct {
	text *expr.Template
	// holes says for each segment what its holes are made of, "" for a segment
	// without.
	holes []string
}

func (c *compiler) path(t *graph.Text) *path {
	p := &path{text: c.template(t, c.scope)}
	var shape strings.Builder
	p.holes = []string{""}
	for _, x := range expr.Pieces(t) {
		if x.Hole {
			shape.WriteByte('x')
			p.note(x.Text)
			continue
		}
		shape.WriteString(x.Text)
		for range strings.Count(x.Text, "/") {
			p.holes = append(p.holes, "")
		}
	}
	if problem := shapeProblem(shape.String()); problem != "" && !graph.HasSecret(t.S) {
		c.faults = append(c.faults, t.Fault(0, "%s", problem))
	}
	return p
}

// loneArgument is a hole that is nothing but an argument.
var loneArgument = regexp.MustCompile(`^args\.([A-Za-z_][A-Za-z0-9_]*)$`)

// note keeps what the hole of the last segment is made of.
func (p *path) note(hole string) {
	last := &p.holes[len(p.holes)-1]
	name := "a part of the address"
	if m := loneArgument.FindStringSubmatch(hole); m != nil {
		name = m[1]
	}
	if *last != "" && *last != name {
		name = *last + " with " + name
	}
	*last = name
}

// shapeProblem says what is wrong with a path as the author wrote it.
func shapeProblem(s string) string {
	switch {
	case !strings.HasPrefix(s, "/"):
		return "a path begins with /: it goes below the service's baseURL"
	case strings.Contains(s, "?"):
		return "a path has no query: write query beside it"
	}
	if problem := api.PathProblem(s); problem != "" {
		return "this path " + problem
	}
	return ""
}

// build makes the path. What an argument would make another path of is
// refused: an empty segment, . and .., also behind a slash or a backslash
// that somebody on the way might read as one, and control characters.
func (p *path) build(env *expr.Env) (string, error) {
	b, err := p.text.Append(nil, env, appendSegment)
	if err != nil {
		return "", err
	}
	s := string(b)
	i := 0
	for segment := range strings.SplitSeq(s, "/") {
		if of := p.holes[i]; of != "" {
			if err := checkSegment(segment, of); err != nil {
				return "", err
			}
		}
		i++
	}
	return s, nil
}

func checkSegment(escaped, of string) error {
	plain, err := url.PathUnescape(escaped)
	if err != nil {
		return err
	}
	if plain == "" {
		return unfit("%s must not be empty.", capital(of))
	}
	for i := range len(plain) {
		if plain[i] < ' ' || plain[i] == 0x7f {
			return unfit("%s must not have control characters in it.", capital(of))
		}
	}
	for part := range strings.FieldsFuncSeq(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return unfit("%s must not be %q, nor have it between slashes.", capital(of), part)
		}
	}
	return nil
}

// capital writes a name of a parameter as code and anything else as the
// beginning of a sentence.
func capital(of string) string {
	if strings.HasPrefix(of, "a ") {
		return "A" + of[1:]
	}
	return of
}

const upperHex = "0123456789ABCDEF"

// appendSegment escapes everything but the unreserved characters of RFC 3986.
func appendSegment(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z', c == '-', c == '.', c == '_', c == '~':
			dst = append(dst, c)
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}
