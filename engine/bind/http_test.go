package bind

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// shopSpec makes a spec of one tool with this binding.
func shopSpec(kind, binding string) string {
	return `package spec
server: {name: "spec", version: "1"}
apis: shop: {baseURL: "http://127.0.0.1:1", auth: bearer: "t"}
tools: "shop.ask": {
	kind: "` + kind + `", description: "d"
	params: {id?: string, n?: int, ids?: [...string], tags?: [...{name: string}], note?: string | null}
` + binding + "\n}\n"
}

// toolOf loads a spec and compiles its tool. The faults are without their places.
func toolOf(t testing.TB, spec string, rows int) (*Binding, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.cue")
	if err := os.WriteFile(file, []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	graphs, faults := dsl.Load([]string{file}, dsl.Options{})
	if faults.Fatal() {
		return nil, messages(faults)
	}
	g := graphs[0]
	base := new(expr.Scope).With("ctx", nil).With("env", nil)
	s, faults := NewSpec(g, nil, base)
	if faults.Fatal() {
		t.Fatal(faults)
	}
	tool := g.Tools[0]
	b, faults := Compile(s, tool, base.With("args", tool.Params), db.Limit{Rows: rows})
	return b, messages(faults)
}

func messages(faults graph.Faults) string {
	var l []string
	for _, f := range faults.Sorted() {
		l = append(l, strings.TrimPrefix(f.Path, `tools."shop.ask".`)+": "+f.Message)
	}
	return strings.Join(l, "\n")
}

// asked runs a tool against a service and gives what came of it, in one line.
func asked(t *testing.T, b *Binding, h http.HandlerFunc, args string) string {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	c, err := api.New(api.Config{Name: "shop", BaseURL: s.URL, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := value.Parse([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	env := expr.NewEnv()
	env.Set("args", v)
	o := b.Run(t.Context(), &Host{API: func(string) *api.Client { return c }}, env)
	return strings.ReplaceAll(ending(o), s.URL, "URL")
}

func ending(o *Outcome) string {
	var d *Declared
	var r *Refused
	switch {
	case errors.As(o.Err, &d):
		return d.Error()
	case errors.As(o.Err, &r):
		return fmt.Sprintf("refused %d %s %s", r.Status, value.AppendJSON(nil, r.Body), o.Err)
	case o.Err != nil:
		return "error: " + o.Err.Error()
	}
	s := string(value.AppendJSON(nil, o.Result))
	if o.More {
		s += " more"
	}
	if o.Total >= 0 {
		s += fmt.Sprintf(" total %d", o.Total)
	}
	return s
}

// TestRequests has one row for each way to make a request; the service
// answers what it got.
func TestRequests(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
		if a := r.Header.Values("X-Note"); len(a) > 0 {
			fmt.Fprintf(w, " note=%q", a)
		}
		if len(body) > 0 {
			fmt.Fprintf(w, " %s %s", r.Header.Get("Content-Type"), body)
		}
		if r.ContentLength != int64(len(body)) {
			fmt.Fprintf(w, " of length %d, %q", r.ContentLength, r.TransferEncoding)
		}
	}
	for _, c := range []struct{ kind, http, args, want string }{
		{"query", `get: "/items/{{ args.id }}"`, `{"id":"7"}`, `GET /items/7`},
		{"query", `get: "/items/{{ args.n }}.json"`, `{"n":7}`, `GET /items/7.json`},
		{"query", `get: "/v1/", query: {a: 1, b: true, c: null, d: "x&y=z", e: "{{ args.id }}", f: "{{ args.ids }}", g: ["1", "{{ args.n }}", "{{ args.id }}"], h: "{{ args.tags }}", "i i": "n{{ args.id }}"}`,
			`{"n":5,"ids":["a b","c"],"tags":[{"name":"t"}]}`,
			`GET /v1/?a=1&b=true&d=x%26y%3Dz&f=a+b&f=c&g=1&g=5&h=%7B%22name%22%3A%22t%22%7D&i+i=n`},
		{"query", `get: "/items", headers: "X-Note": "{{ args.note }}"`, `{"note":"a, b"}`, `GET /items note=["a, b"]`},
		{"query", `get: "/items", headers: "X-Note": "{{ args.note }}"`, `{"note":null}`, `GET /items`},
		{"query", `post: "/search", body: {q: "{{ args.id }}"}`, `{"id":"x"}`, `POST /search application/json {"q":"x"}`},
		{"action", `post: "/items", body: {id: "{{ args.id }}", note: "{{ args.note }}", keep: null, text: "n={{ args.note }}", deep: {note: "{{ args.note }}", n: "{{ args.n }}"}, l: ["{{ args.note }}", 1.50], tags: "{{ args.tags }}"}`,
			`{"id":"\"\\","n":3,"tags":[{"name":"t","x":null}]}`,
			`POST /items application/json {"id":"\"\\","keep":null,"text":"n=","deep":{"n":3},"l":[null,1.5],"tags":[{"name":"t","x":null}]}`},
		{"action", `put: "/items/1", body: "{{ args.tags }}"`, `{"tags":[{"name":"t"}]}`, `PUT /items/1 application/json [{"name":"t"}]`},
		{"action", `put: "/items/1", body: "{{ args.tags }}"`, `{}`, `PUT /items/1`},
		{"action", `patch: "/items/1", headers: "Content-Type": "application/merge-patch+json", body: {n: "{{ args.n }}"}`, `{"n":1}`, `PATCH /items/1 application/merge-patch+json {"n":1}`},
		{"mutation", `delete: "/items/{{ args.id }}"`, `{"id":"1"}`, `DELETE /items/1`},
		{"action", `post: "/items", form: {id: "{{ args.id }}", note: "{{ args.note }}", ids: "{{ args.ids }}", n: 900}`, `{"id":"a&b=c\r\n","ids":["x","y"]}`,
			`POST /items application/x-www-form-urlencoded id=a%26b%3Dc%0D%0A&ids=x&ids=y&n=900`},
		{"action", `post: "/items", form: note: "{{ args.note }}"`, `{}`, `POST /items`},
	} {
		b, faults := toolOf(t, shopSpec(c.kind, "http: {"+c.http+"}"), 0)
		if faults != "" {
			t.Errorf("%s: %s", c.http, faults)
			continue
		}
		want, _ := json.Marshal(c.want)
		if got := asked(t, b, echo, c.args); got != strings.NewReplacer(`\u0026`, "&").Replace(string(want)) {
			t.Errorf("%s\ngot  %s\nwant %s", c.http, got, want)
		}
	}
}

// TestPaths holds that no argument makes another path.
func TestPaths(t *testing.T) {
	b, faults := toolOf(t, shopSpec("query", `http: get: "/a/{{ args.id }}/b/x{{ args.note }}{{ args.n }}"`), 0)
	if faults != "" {
		t.Fatal(faults)
	}
	for _, c := range []struct{ id, note, want string }{
		{"1", "2", "/a/1/b/x2"},
		{"a/b", "", "/a/a%2Fb/b/x"},
		{"//evil.com", "?x=1#y", "/a/%2F%2Fevil.com/b/x%3Fx%3D1%23y"},
		{"http://evil.com", "@evil.com:80", "/a/http%3A%2F%2Fevil.com/b/x%40evil.com%3A80"},
		{"%2e%2e", "%", "/a/%252e%252e/b/x%25"},
		{"...", "..", "/a/.../b/x.."},
		{"ä b", "\u202e", "/a/%C3%A4%20b/b/x%E2%80%AE"},
		{"\\evil", ";p=1", "/a/%5Cevil/b/x%3Bp%3D1"},

		{"", "", "VALIDATION_ERROR: id must not be empty."},
		{".", "", `VALIDATION_ERROR: id must not be ".", nor have it between slashes.`},
		{"..", "", `VALIDATION_ERROR: id must not be "..", nor have it between slashes.`},
		{"../../admin", "", `VALIDATION_ERROR: id must not be "..", nor have it between slashes.`},
		{"a\\..\\b", "", `VALIDATION_ERROR: id must not be "..", nor have it between slashes.`},
		{"a/.", "", `VALIDATION_ERROR: id must not be ".", nor have it between slashes.`},
		{"a\r\nHost: evil.com", "", "VALIDATION_ERROR: id must not have control characters in it."},
		{"a\x00", "", "VALIDATION_ERROR: id must not have control characters in it."},
		{"1", "\x7f", "VALIDATION_ERROR: note with n must not have control characters in it."},
		{"1", "/../..", `VALIDATION_ERROR: note with n must not be "..", nor have it between slashes.`},
	} {
		env := expr.NewEnv()
		env.Set("args", value.Of("id", c.id, "note", c.note))
		got, err := b.http.path.build(env)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q %q: %s, want %s", c.id, c.note, got, c.want)
		}
	}
	env := expr.NewEnv()
	env.Set("args", value.Of("note", "x"))
	if _, err := b.http.path.build(env); err == nil || err.Error() != "VALIDATION_ERROR: id must not be empty." {
		t.Errorf("a nil segment: %v", err)
	}
}

// FuzzPath holds that the host and the shape of the path are what the author
// wrote, whatever the arguments are.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "..", "/", "//x", "?", "#", "%2e", "\\", "\r\n", "\x00", "a/../b", "@evil.com", ":80", "é"} {
		f.Add(s, s)
	}
	b, faults := toolOf(f, shopSpec("query", `http: get: "/a/{{ args.id }}/b{{ args.note }}c/"`), 0)
	if faults != "" {
		f.Fatal(faults)
	}
	var got *http.Request
	network := roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	c, err := api.New(api.Config{Name: "shop", BaseURL: "https://shop.example.com/v1", Transport: network})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, note string) {
		got = nil
		env := expr.NewEnv()
		env.Set("args", value.Of("id", id, "note", note))
		o := b.Run(t.Context(), &Host{API: func(string) *api.Client { return c }}, env)
		var d *Declared
		switch {
		case errors.As(o.Err, &d):
			if got != nil {
				t.Fatal("a request was made all the same")
			}
			return
		case o.Err != nil:
			t.Fatalf("%q %q: %v", id, note, o.Err)
		}
		u := got.URL
		segments := strings.Split(u.EscapedPath(), "/")
		if got.Host != "shop.example.com" || u.Host != "shop.example.com" || u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			len(segments) != 6 || segments[1] != "v1" || segments[2] != "a" || segments[4][0] != 'b' || segments[5] != "" {
			t.Fatalf("%q %q gives %s", id, note, u)
		}
		if !strings.HasPrefix(u.Path, "/v1/a/"+id+"/b"+note+"c/") {
			t.Fatalf("%q %q arrives as %q", id, note, u.Path)
		}
	})
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestHeaderInjection holds that a line break in an argument makes no header.
func TestHeaderInjection(t *testing.T) {
	b, faults := toolOf(t, shopSpec("query", `http: {get: "/", headers: "X-Note": "{{ args.id }}"}`), 0)
	if faults != "" {
		t.Fatal(faults)
	}
	never := func(http.ResponseWriter, *http.Request) { t.Error("a request was made") }
	const want = "VALIDATION_ERROR: What is sent as X-Note must not have line breaks or other control characters in it."
	for _, s := range []string{"a\\r\\nX-Admin: 1", "a\\nb", "a\\u0000", "\\u007f"} {
		if got := asked(t, b, never, `{"id":"`+s+`"}`); got != want {
			t.Errorf("%s: %s", s, got)
		}
	}
	b, faults = toolOf(t, shopSpec("query", `http: {get: "/", headers: "X-Note": "{{ args.ids }}"}`), 0)
	if faults != "" {
		t.Fatal(faults)
	}
	if got := asked(t, b, never, `{"ids":["a"]}`); got != "error: header X-Note: a list or a struct is no text" {
		t.Error(got)
	}
}

// TestServiceAnswers has one row for each kind of answer, and what is made of it.
func TestServiceAnswers(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter){
		"list": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Count", "12")
			_, _ = io.WriteString(w, `{"total":12,"items":[{"z":1,"a":1.10},{"z":2,"a":2}]}`)
		},
		"none": func(w http.ResponseWriter) { w.WriteHeader(204) },
		"null": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "null")
		},
		"missing": func(w http.ResponseWriter) { w.WriteHeader(404); _, _ = io.WriteString(w, `{"secret":1}`) },
		"png": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = io.WriteString(w, "\x89PNG")
		},
		"csv": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/csv")
			_, _ = io.WriteString(w, "sku,n\ntea,1\ncup,2\n")
		},
	}
	for _, c := range []struct{ answer, binding, want string }{
		{"list", ``, `{"total":12,"items":[{"z":1,"a":1.1},{"z":2,"a":2}]}`},
		{"list", `from: "{{ body.items }}"`, `[{"z":1,"a":1.1},{"z":2,"a":2}]`},
		{"list", `from: "{{ item.items }}", total: "{{ item.total }}"`, `[{"z":1,"a":1.1},{"z":2,"a":2}] total 12`},
		{"list", `from: "{{ item.items }}", total: "{{ body.total }}"`, `[{"z":1,"a":1.1},{"z":2,"a":2}] total 12`},
		{"list", `from: "{{ body.items }}", result: {a: "{{ item.a }}", of: "{{ body.total }}"}, total: "{{ int(headers['x-count']) }}"`,
			`[{"a":1.1,"of":12},{"a":2,"of":12}] total 12`},
		{"list", `result: {status: "{{ status }}", no: "{{ headers['x-no'] }}"}`, `{"status":200,"no":null}`},
		{"none", ``, `null`},
		{"none", `from: "{{ body.items }}", result: {a: "{{ item.a }}"}`, `null`},
		{"null", ``, `null`},
		{"missing", `from: "{{ body.items }}"`, `refused 404 "{\"secret\":1}" service shop answered 404`},
		{"png", ``, `{"type":"image/png","size":4,"data":"iVBORw=="}`},
		{"csv", `result: "{{ item.sku }}"`, `["tea","cup"]`},
	} {
		b, faults := toolOf(t, shopSpec("query", "http: get: \"/\"\n"+c.binding), 0)
		if faults != "" {
			t.Errorf("%s: %s", c.binding, faults)
			continue
		}
		if got := asked(t, b, func(w http.ResponseWriter, _ *http.Request) { answers[c.answer](w) }, "{}"); got != c.want {
			t.Errorf("%s, %s\ngot  %s\nwant %s", c.answer, c.binding, got, c.want)
		}
	}
}

// TestAnsweredStep holds that a step that was answered is not nil.
func TestAnsweredStep(t *testing.T) {
	b, faults := toolOf(t, shopSpec("action", `
		steps: [{name: "mail", http: post: "/mail"}, {name: "none", when: "args.n == 1", http: post: "/none"}]
		result: {mail: "{{ mail }}", none: "{{ none }}"}`), 0)
	if faults != "" {
		t.Fatal(faults)
	}
	got := asked(t, b, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, "{}")
	if want := `{"mail":{"status":202},"none":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRequestFaults(t *testing.T) {
	for _, c := range []struct{ kind, http, want string }{
		{"query", `get: "items"`, "http.get: a path begins with /: it goes below the service's baseURL"},
		{"query", `get: "https://evil.com/"`, "http.get: a path begins with /: it goes below the service's baseURL"},
		{"query", `get: "{{ args.id }}"`, "http.get: a path begins with /: it goes below the service's baseURL"},
		{"query", `get: "/items?id={{ args.id }}"`, "http.get: a path has no query: write query beside it"},
		{"query", `get: "/a/../b"`, "http.get: this path has a segment . or .."},
		{"query", `get: "//evil.com"`, "http.get: this path has an empty segment"},
		{"query", `get: "/a b"`, "http.get: this path is not escaped"},
		{"query", `get: "/items", body: {a: 1}`, "http: a get has no body: write what it asks for as query"},
		{"action", `post: "/items", body: {a: 1}, form: a: "1"`, "http: has a body and a form: a request has one of them"},
		{"query", `delete: "/items"`, "http.delete: a query only reads: make the tool an action or a mutation"},
		{"query", `get: "/", query: a: {b: 1}`, "http.query.a: a struct is no text: write its fields one by one, or {{ json(…) }}"},
		{"query", `get: "/", headers: authorization: "x"`, "http.headers.authorization: authorization is what the auth of shop sets"},
		{"query", `get: "/", headers: "X-A": "a\nb"`, `http.headers."X-A": a header has no line breaks and no other control characters`},
		{"action", `post: "/", pages: next: "link"`, "http.pages.next: only the pages of a get are followed"},
		{"query", `get: "/", pages: {next: "link", param: "page"}`, "http.pages.next: the Link header holds addresses: leave out param"},
		{"query", `get: "/", pages: next: "/x?{{ body.next }}"`, `http.pages.next: is "link" or one hole: {{ body.next }}`},
	} {
		_, got := toolOf(t, shopSpec(c.kind, "http: {"+c.http+"}"), 0)
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.http, got, c.want)
		}
	}
}
