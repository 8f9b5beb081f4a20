package golden

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine"
)

// network is all that a case can reach: the exchanges that it declares, in
// their order. The first request that is another one ends it.
type network struct {
	graph  *graph.Graph
	reveal func(text string) string

	mu    sync.Mutex
	left  []*graph.Exchange
	made  int
	fault error
}

func newNetwork(g *graph.Graph, t *graph.Test, env Lookup) *network {
	secret, _ := engine.Secrets(g, env) // opening the program says what is wrong
	return &network{graph: g, left: t.HTTP, reveal: func(s string) string { return graph.Reveal(s, secret) }}
}

// of gives the network as one service's requests see it.
func (n *network) of(api string) http.RoundTripper { return &line{network: n, api: n.graph.API(api)} }

// end gives what was wrong with the requests of the case: another one than
// expected, or one that was not made.
func (n *network) end() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault == nil && len(n.left) > 0 {
		e := n.left[0]
		n.fault = fmt.Errorf("%s: http[%d]: this request was not made: %s %s %s", e.At, n.made, e.Method, e.API, e.Target)
	}
	return n.fault
}

// line is the network of one service.
type line struct {
	network *network
	api     *graph.API
}

// RoundTrip compares a request with the next exchange and gives its answer.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if l.isToken(r) {
		return answer(r, http.StatusOK, "application/json", []byte(`{"access_token":"test","token_type":"bearer"}`)), nil
	}
	n := l.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault == nil {
		n.fault = n.check(l.sent(r, body))
	}
	if n.fault != nil {
		return nil, n.fault
	}
	e := n.left[0]
	n.left, n.made = n.left[1:], n.made+1
	if e.Timeout {
		return nil, os.ErrDeadlineExceeded
	}
	resp, err := answerOf(r, e)
	if err != nil {
		n.fault = fmt.Errorf("%s: http[%d]: %w", e.At, n.made-1, err)
	}
	return resp, err
}

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(r.Body)
	return b, cmp.Or(err, r.Body.Close())
}

// isToken tells whether a request asks for the token of the service: what a
// spec says of its tools' requests does not speak of it.
func (l *line) isToken(r *http.Request) bool {
	return r.Method == http.MethodPost && l.api.Auth != nil && l.api.Auth.OAuth2 != nil &&
		r.URL.String() == l.network.reveal(l.api.Auth.OAuth2.TokenURL.S)
}

// message is a request in the form in which two are compared.
type message struct {
	method, api, path string
	query             url.Values
	hasBody, isForm   bool
	body              any
}

// sent is a request as the spec would write it: its path is that below the
// service's baseURL.
func (l *line) sent(r *http.Request, body []byte) *message {
	m := &message{method: r.Method, api: l.api.Name, path: r.URL.EscapedPath(), query: r.URL.Query()}
	if base, err := url.Parse(l.network.reveal(l.api.BaseURL.S)); err == nil {
		if below, ok := strings.CutPrefix(m.path, strings.TrimRight(base.EscapedPath(), "/")); ok && strings.HasPrefix(below, "/") {
			m.path = below
		}
	}
	if body == nil {
		return m
	}
	m.hasBody, m.body = true, string(body)
	switch t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t {
	case "application/json":
		if v, err := value.Parse(body); err == nil {
			m.body = v
		}
	case "application/x-www-form-urlencoded":
		if v, err := url.ParseQuery(string(body)); err == nil {
			m.body, m.isForm = form(v), true
		}
	}
	return m
}

// form gives the fields of a form as a struct: texts, and lists where a name
// comes more than once.
func form(fields url.Values) *value.Object {
	o := value.NewObject(len(fields))
	for name, texts := range fields {
		if len(texts) == 1 {
			o.Set(name, texts[0])
			continue
		}
		l := make([]any, len(texts))
		for i, s := range texts {
			l[i] = s
		}
		o.Set(name, l)
	}
	return o
}

// check compares a request with the next exchange.
func (n *network) check(sent *message) error {
	if len(n.left) == 0 {
		return fmt.Errorf("a request was made that the case does not declare in http:\n%s", sent.render())
	}
	e := n.left[0]
	want, err := expected(e)
	if err != nil {
		return fmt.Errorf("%s: http[%d]: %w", e.At, n.made, err)
	}
	if !want.hasBody {
		sent.hasBody = false
	}
	if sent.isForm {
		want.body = texts(want.body)
	}
	a, b := want.render(), sent.render()
	if bytes.Equal(a, b) {
		return nil
	}
	return fmt.Errorf("%s: http[%d]: another request was made\n%s", e.At, n.made, diff.Diff("expected", a, "sent", b))
}

func expected(e *graph.Exchange) (*message, error) {
	path, query, _ := strings.Cut(e.Target, "?")
	m := &message{method: e.Method, api: e.API, path: path, hasBody: e.HasBody, body: e.Body}
	var err error
	if m.query, err = url.ParseQuery(query); err != nil {
		return nil, fmt.Errorf("the query is not escaped: %w", err)
	}
	return m, nil
}

// render writes a request so that two are the same if their texts are, and a
// difference is a line.
func (m *message) render() []byte {
	b := fmt.Appendf(nil, "%s %s %s\n", m.method, m.api, m.path)
	names := make([]string, 0, len(m.query))
	for name := range m.query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range m.query[name] {
			b = fmt.Appendf(b, "query %s = %s\n", name, strconv.Quote(v))
		}
	}
	if m.hasBody {
		b = append(b, "body "...)
		b = append(value.AppendIndent(b, ordered(m.body), 0), '\n')
	}
	return b
}

// ordered sorts the keys of a value and writes its numbers in one form.
func ordered(v any) any {
	switch v := v.(type) {
	case *value.Object:
		keys := slices.Clone(v.Keys())
		slices.Sort(keys)
		o := value.NewObject(len(keys))
		for _, k := range keys {
			x, _ := v.Get(k)
			o.Set(k, ordered(x))
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = ordered(x)
		}
		return l
	case value.Number:
		return value.ParseNumber(string(v))
	}
	return v
}

// texts gives a value as a form sends it: all its scalars are texts.
func texts(v any) any {
	switch v := v.(type) {
	case *value.Object:
		o := value.NewObject(v.Len())
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			o.Set(k, texts(x))
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, x := range v {
			l[i] = texts(x)
		}
		return l
	}
	return string(value.AppendText(nil, v))
}

// answerOf makes the declared answer.
func answerOf(r *http.Request, e *graph.Exchange) (*http.Response, error) {
	declared := http.Header{}
	for _, h := range e.Headers {
		declared.Add(h.Name, h.Value)
	}
	contentType := declared.Get("Content-Type")
	var body []byte
	switch s, isText := e.AnswerValue.(string); {
	case e.AnswerFile.Path != "":
		var err error
		if body, err = os.ReadFile(e.AnswerFile.Path); err != nil {
			return nil, err
		}
		contentType = cmp.Or(contentType, typeOf(e.AnswerFile.Name))
	case e.HasAnswer && isText && contentType != "" && !strings.Contains(contentType, "json"):
		body = []byte(s)
	case e.HasAnswer:
		body = value.AppendJSON(nil, e.AnswerValue)
		contentType = cmp.Or(contentType, "application/json")
	}
	a := answer(r, e.Status, contentType, body)
	for name, l := range declared {
		a.Header[name] = l
	}
	return a, nil
}

func answer(r *http.Request, status int, contentType string, body []byte) *http.Response {
	a := &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
	if contentType != "" {
		a.Header.Set("Content-Type", contentType)
	}
	return a
}

// types are the types of the files that hold answers. The system's own table
// is not asked: a case must end the same everywhere.
var types = map[string]string{
	".json": "application/json", ".csv": "text/csv", ".txt": "text/plain", ".md": "text/markdown", ".html": "text/html",
	".xml": "application/xml", ".pdf": "application/pdf", ".svg": "image/svg+xml",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
}

func typeOf(file string) string {
	return cmp.Or(types[strings.ToLower(filepath.Ext(file))], "application/octet-stream")
}
