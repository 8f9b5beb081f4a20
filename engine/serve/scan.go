package serve

import "github.com/mark3labs/mcp-go/mcp"

// scanner walks over a JSON document without building anything.
type scanner struct {
	b    []byte
	i    int
	deep bool // stopped because it nests deeper than maxDepth
}

// maxDepth is how deep a message may nest. Arguments may nest less, which the
// engine checks; this bounds the recursion.
const maxDepth = 512

// peek gives the next byte that is no space, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// end tells whether nothing but space follows.
func (s *scanner) end() bool {
	s.peek()
	return s.i == len(s.b)
}

// take steps over c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// object steps over an object; field is called behind each key and steps over
// its value.
func (s *scanner) object(depth int, field func(key string) bool) bool {
	if s.tooDeep(depth) || !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		if s.peek() != '"' {
			return false
		}
		from := s.i
		if !s.str() {
			return false
		}
		key, ok := known(s.b[from:s.i])
		if !ok || !s.take(':') || !field(key) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// known is text without making a string of the usual ones.
func known(raw []byte) (string, bool) {
	switch string(raw) {
	case `"jsonrpc"`:
		return "jsonrpc", true
	case `"id"`:
		return "id", true
	case `"method"`:
		return "method", true
	case `"params"`:
		return "params", true
	case `"name"`:
		return "name", true
	case `"arguments"`:
		return "arguments", true
	case `"_meta"`:
		return "_meta", true
	case `"` + mcp.MetaKeyProtocolVersion + `"`:
		return mcp.MetaKeyProtocolVersion, true
	case `"` + mcp.MetaKeyClientInfo + `"`:
		return mcp.MetaKeyClientInfo, true
	case `"` + mcp.MetaKeyClientCapabilities + `"`:
		return mcp.MetaKeyClientCapabilities, true
	case `"version"`:
		return "version", true
	case `"` + mcp.ProtocolVersion20260728 + `"`:
		return mcp.ProtocolVersion20260728, true
	case `"` + methodCall + `"`:
		return methodCall, true
	case `"` + methodList + `"`:
		return methodList, true
	}
	return text(raw)
}

// raw steps over a value and gives its bytes.
func (s *scanner) raw(depth int) ([]byte, bool) {
	s.peek()
	from := s.i
	ok := s.skip(depth)
	return s.b[from:s.i:s.i], ok
}

// skip steps over a value.
func (s *scanner) skip(depth int) bool {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c == '{':
		return s.skipObject(depth)
	case c == '[':
		return s.skipList(depth)
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) skipObject(depth int) bool {
	if s.tooDeep(depth) {
		return false
	}
	s.i++
	if s.take('}') {
		return true
	}
	for {
		if s.peek() != '"' || !s.str() || !s.take(':') || !s.skip(depth+1) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) skipList(depth int) bool {
	if s.tooDeep(depth) {
		return false
	}
	s.i++
	if s.take(']') {
		return true
	}
	for {
		if !s.skip(depth + 1) {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) tooDeep(depth int) bool {
	s.deep = s.deep || depth >= maxDepth
	return s.deep
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// str steps over a string; the opening quote comes next.
func (s *scanner) str() bool {
	for i := s.i + 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return true
		case c == '\\':
			n := escape(s.b[i+1:])
			if n == 0 {
				return false
			}
			i += n
		case c < 0x20:
			return false
		}
	}
	return false
}

// escape gives the length of an escape behind its backslash, 0 for none.
func escape(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(b) < 5 {
			return 0
		}
		for _, c := range b[1:5] {
			if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
				return 0
			}
		}
		return 5
	}
	return 0
}

// number steps over a number: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *scanner) number() bool {
	if s.next() == '-' {
		s.i++
	}
	if s.next() == '0' {
		s.i++
	} else if !s.digits() {
		return false
	}
	if s.next() == '.' {
		s.i++
		if !s.digits() {
			return false
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		s.i++
		if c := s.next(); c == '+' || c == '-' {
			s.i++
		}
		return s.digits()
	}
	return true
}

// next gives the next byte, 0 at the end.
func (s *scanner) next() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}
