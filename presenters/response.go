package presenters

import (
	"strconv"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Response is the answer to one call, ready for the wire.
type Response struct {
	Blocks []Content
	// Code is the code of an error response, "" on success; it is not
	// serialised apart from its place in the envelope.
	Code string
	// Incident is the id under which the log has the cause of an
	// INTERNAL_ERROR, "" for every other answer; for the log of calls.
	Incident string
	// IsError: nil absent, else written.
	IsError *bool
	// Structured is structuredContent as JSON, nil: absent. It is the value
	// as it is for 2026-07-28; AppendResult wraps it for 2025-x revisions.
	Structured []byte

	side side
	buf  []byte
}

// Content is one content block. Empty members are left out.
type Content struct {
	Type        string // text, image, audio, resource_link, resource
	Text        []byte
	Data        []byte // base64, image and audio
	MimeType    string
	URI         string
	Name        string
	Description string
	Blob        []byte // base64, resource
}

// Side is what a response says, as structured values, the embedded children's
// included. It never reaches the wire.
type Side struct {
	Data        any
	Rules       []string
	UIBlocks    []UIBlock
	Directives  []string
	Suggestions []Suggestion
}

// UIBlock is a rendered UI block.
type UIBlock struct {
	Type     string
	Title    string
	Width    string
	Priority string // as it was written, "" for none
	Content  string
}

// Suggestion is a next step as it was sent: Tool is the exposed name.
type Suggestion struct{ Tool, Reason string }

// side holds what Side gives, as places in the buffer, so that a served call
// does not pay for it.
type side struct {
	data  func() any
	marks []sideMark
	ui    []sideUI
}

// sideMark is a bullet.
type sideMark struct {
	kind sideKind
	at   span
	tool string // of a suggestion
}

type sideKind uint8

const (
	sideRule sideKind = iota
	sideDirective
	sideSuggest
)

func (s *side) note(m sideMark) {
	if s.marks == nil {
		s.marks = make([]sideMark, 0, 8)
	}
	s.marks = append(s.marks, m)
}

type sideUI struct {
	kind, title, width, priority string
	body                         span
}

// move shifts what stands behind byte from by n.
func (s *side) move(from, n int) {
	shift := func(x *span) {
		if x.start >= from {
			x.start += n
			x.end += n
		}
	}
	for i := range s.marks {
		shift(&s.marks[i].at)
	}
	for i := range s.ui {
		shift(&s.ui[i].body)
	}
}

// Side gives the response as structured values: what golden tests and `call
// --structure` read.
func (r *Response) Side() Side {
	var s Side
	for _, m := range r.side.marks {
		text := string(r.buf[m.at.start:m.at.end])
		switch m.kind {
		case sideRule:
			s.Rules = append(s.Rules, text)
		case sideDirective:
			s.Directives = append(s.Directives, text)
		case sideSuggest:
			s.Suggestions = append(s.Suggestions, Suggestion{m.tool, text})
		}
	}
	if r.side.data != nil {
		s.Data = r.side.data()
	}
	for _, u := range r.side.ui {
		s.UIBlocks = append(s.UIBlocks, UIBlock{u.kind, u.title, u.width, u.priority, string(r.buf[u.body.start:u.body.end])})
	}
	return s
}

// AppendResult appends `{"content":[…],"isError":…,"structuredContent":…}`
// without a line break. legacy wraps structured lists and scalars for
// revisions 2025-x.
func (r *Response) AppendResult(dst []byte, legacy bool) []byte {
	dst = append(dst, `{"content":[`...)
	for i := range r.Blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.Blocks[i].append(dst)
	}
	dst = append(dst, ']')
	if r.IsError != nil {
		dst = strconv.AppendBool(append(dst, `,"isError":`...), *r.IsError)
	}
	if r.Structured != nil {
		dst = append(dst, `,"structuredContent":`...)
		dst = appendStructured(dst, r.Structured, legacy)
	}
	return append(dst, '}')
}

// appendStructured wraps what revisions 2025-x do not allow at the top.
func appendStructured(dst, v []byte, legacy bool) []byte {
	switch {
	case !legacy || v[0] == '{':
		return append(dst, v...)
	case v[0] == '[':
		dst = append(dst, `{"items":`...)
	default:
		dst = append(dst, `{"value":`...)
	}
	return append(append(dst, v...), '}')
}

func (c *Content) append(dst []byte) []byte {
	dst = append(append(append(dst, `{"type":"`...), c.Type...), '"')
	switch c.Type {
	case "text":
		dst = value.AppendString(append(dst, `,"text":`...), c.Text)
	case "image", "audio":
		dst = value.AppendString(append(dst, `,"data":`...), c.Data)
		dst = member(dst, "mimeType", c.MimeType)
	case "resource_link":
		dst = value.AppendString(append(dst, `,"uri":`...), c.URI)
		dst = member(dst, "name", c.Name)
		dst = member(dst, "description", c.Description)
		dst = member(dst, "mimeType", c.MimeType)
	case "resource":
		dst = value.AppendString(append(dst, `,"resource":{"uri":`...), c.URI)
		dst = member(dst, "mimeType", c.MimeType)
		dst = member(dst, "text", c.Text)
		dst = member(dst, "blob", c.Blob)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// member appends a member of an object, unless it is empty.
func member[T string | []byte](dst []byte, key string, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = append(append(append(dst, `,"`...), key...), `":`...)
	return value.AppendString(dst, v)
}

// Value gives the structured view as one value: {data, rules, uiBlocks,
// directives, suggestions}, what is empty left out.
func (s Side) Value() *value.Object {
	o := value.Of("data", s.Data)
	texts := func(key string, l []string) {
		if len(l) == 0 {
			return
		}
		items := make([]any, len(l))
		for i, x := range l {
			items[i] = x
		}
		o.Set(key, items)
	}
	texts("rules", s.Rules)
	if len(s.UIBlocks) > 0 {
		var l []any
		for _, u := range s.UIBlocks {
			b := value.Of("type", u.Type)
			for _, a := range [][2]string{{"title", u.Title}, {"width", u.Width}, {"priority", u.Priority}} {
				if a[1] != "" {
					b.Set(a[0], a[1])
				}
			}
			b.Set("content", u.Content)
			l = append(l, b)
		}
		o.Set("uiBlocks", l)
	}
	texts("directives", s.Directives)
	if len(s.Suggestions) > 0 {
		var l []any
		for _, x := range s.Suggestions {
			l = append(l, value.Of("tool", x.Tool, "reason", x.Reason))
		}
		o.Set("suggestions", l)
	}
	return o
}
