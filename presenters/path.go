package presenters

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// seg is one step of a mask's path.
type seg struct {
	kind  segKind
	key   string
	index int
}

type segKind uint8

const (
	segKey   segKind = iota // a field; over a list that of every element
	segIndex                // an element of a list
	segAny                  // every field or element
	segDeep                 // this value and every value below it
)

// parsePath reads a mask's path: a.b, a[*].b and a.*.b, a[0].b, ["x-y"] for
// any other key, *, a.*, and **.b for any depth. The error says what to write.
func parsePath(s string) ([]seg, error) {
	var path []seg
	rest := s
	for first := true; rest != "" || first; first = false {
		var x seg
		var err error
		switch {
		case strings.HasPrefix(rest, "["):
			x, rest, err = bracket(rest)
		case first:
			x, rest, err = name(rest)
		case strings.HasPrefix(rest, "."):
			x, rest, err = name(rest[1:])
		default:
			err = fmt.Errorf("a dot or a bracket is missing before %q", rest)
		}
		if err != nil {
			return nil, err
		}
		path = append(path, x)
	}
	if path[len(path)-1].kind == segDeep {
		return nil, fmt.Errorf("** needs a field behind it, as in **.email")
	}
	return path, nil
}

func name(s string) (seg, string, error) {
	n := 0
	for n < len(s) && s[n] != '.' && s[n] != '[' {
		n++
	}
	word, rest := s[:n], s[n:]
	switch {
	case word == "":
		return seg{}, "", fmt.Errorf("a name is missing")
	case word == "*":
		return seg{kind: segAny}, rest, nil
	case word == "**":
		return seg{kind: segDeep}, rest, nil
	case !isName(word):
		return seg{}, "", fmt.Errorf("%q is no name: write [%q] for such a key, [0] for an element of a list", word, word)
	}
	return seg{kind: segKey, key: word}, rest, nil
}

func isName(s string) bool {
	for i, r := range s {
		if r == '_' || r == '$' || unicode.IsLetter(r) || i > 0 && unicode.IsDigit(r) {
			continue
		}
		return false
	}
	return s != "" && utf8.ValidString(s)
}

func bracket(s string) (seg, string, error) {
	if strings.HasPrefix(s, `["`) {
		quoted, err := strconv.QuotedPrefix(s[1:])
		if err == nil && strings.HasPrefix(s[1+len(quoted):], "]") {
			key, _ := strconv.Unquote(quoted)
			return seg{kind: segKey, key: key}, s[len(quoted)+2:], nil
		}
		return seg{}, "", fmt.Errorf("the bracket in %q is not closed", s)
	}
	inside, rest, ok := strings.Cut(s[1:], "]")
	switch {
	case !ok:
		return seg{}, "", fmt.Errorf("the bracket in %q is not closed", s)
	case inside == "*":
		return seg{kind: segAny}, rest, nil
	}
	n, err := strconv.Atoi(inside)
	if err != nil || n < 0 || inside != strconv.Itoa(n) {
		return seg{}, "", fmt.Errorf("[%s] is neither [*], an element such as [0] nor a key such as [\"x-y\"]", inside)
	}
	return seg{kind: segIndex, index: n}, rest, nil
}
