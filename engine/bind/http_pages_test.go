package bind

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// pagesOf serves n pages of two items each. Each page says in every known way
// where the next one is: by `page` (a number), `cursor` (a text), `next` (an
// address) and a Link header.
func pagesOf(n int, asked *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.RequestURI)
		page := 1
		for _, name := range []string{"page", "cursor"} {
			if s := r.URL.Query().Get(name); s != "" {
				_, _ = fmt.Sscanf(strings.TrimPrefix(s, "c&="), "%d", &page)
			}
		}
		next, cursor, link := "null", `""`, "null"
		if page < n {
			next, cursor = fmt.Sprint(page+1), fmt.Sprintf(`"c&=%d"`, page+1)
			q := r.URL.Query()
			q.Set("page", next)
			link = fmt.Sprintf(`"?%s"`, q.Encode())
			w.Header().Add("Link", fmt.Sprintf(`<http://%s%s?page=1>; rel="first"`, r.Host, r.URL.Path))
			w.Header().Add("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="last next"; title="a, b; rel=x"`, r.Host, r.URL.Path, q.Encode()))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[%d,%d],"next":%s,"cursor":%s,"url":%s,"total":%d}`, 2*page-1, 2*page, next, cursor, link, 100+page)
	}
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		name, http, rest string
		pages, rows      int
		want             string
		asked            []string
	}{
		{"link", `query: q: "a&b", pages: next: "link"`, `from: "{{ body.items }}"`, 3, 0, `[1,2,3,4,5,6]`,
			[]string{"/l?q=a%26b", "/l?page=2&q=a%26b", "/l?page=3&q=a%26b"}},
		{"page", `query: {page: 1, q: "x"}, pages: {next: "{{ body.next }}", param: "page"}`, `from: "{{ body.items }}"`, 3, 0, `[1,2,3,4,5,6]`,
			[]string{"/l?page=1&q=x", "/l?q=x&page=2", "/l?q=x&page=3"}},
		{"cursor", `pages: {next: "{{ body.cursor }}", param: "cursor"}`, `from: "{{ body.items }}"`, 2, 0, `[1,2,3,4]`,
			[]string{"/l", "/l?cursor=c%26%3D2"}},
		{"address", `pages: next: "{{ body.url }}"`, `from: "{{ body.items }}"`, 2, 0, `[1,2,3,4]`,
			[]string{"/l", "/l?page=2"}},
		{"one page", `pages: next: "link"`, `from: "{{ body.items }}"`, 1, 0, `[1,2]`, []string{"/l"}},
		{"most pages", `pages: {next: "link", max: 2}`, `from: "{{ body.items }}"`, 3, 0, `[1,2,3,4] more`,
			[]string{"/l", "/l?page=2"}},
		{"exactly the most", `pages: {next: "link", max: 2}`, `from: "{{ body.items }}"`, 2, 0, `[1,2,3,4]`,
			[]string{"/l", "/l?page=2"}},
		{"up to the rows", `pages: next: "link"`, `from: "{{ body.items }}"`, 9, 3, `[1,2,3] more`,
			[]string{"/l", "/l?page=2"}},
		{"exactly the rows", `pages: next: "link"`, `from: "{{ body.items }}"`, 2, 4, `[1,2,3,4]`,
			[]string{"/l", "/l?page=2"}},
		{"from, result and total", `pages: next: "link"`, `from: "{{ filter(body.items, # % 2 == 0) }}", result: {n: "{{ item }}", of: "{{ body.total }}"}, total: "{{ item.total }}"`,
			2, 0, `[{"n":2,"of":102},{"n":4,"of":102}] total 102`, []string{"/l", "/l?page=2"}},
		{"no list", `pages: next: "link"`, ``, 2, 0, `error: page 1: the answer is no list: say by from where its list is`, []string{"/l"}},
		{"from is no list", `pages: next: "link"`, `from: "{{ body.total }}"`, 2, 0, `error: page 1: from: gives no list`, []string{"/l"}},
		{"a number without param", `pages: next: "{{ body.next }}"`, `from: "{{ body.items }}"`, 2, 0,
			`error: page 1: pages: next gives no address: say by param what it is sent as`, []string{"/l"}},
		{"next is a list", `pages: {next: "{{ body.items }}", param: "page"}`, `from: "{{ body.items }}"`, 2, 0,
			`error: page 1: pages: next gives neither a text nor a number`, []string{"/l"}},
		{"the same page again", `pages: {next: "{{ 1 }}", param: "x"}`, `from: "{{ body.items }}"`, 2, 0,
			`error: page 2: pages: the next page is one that was read already`, []string{"/l", "/l?x=1"}},
		{"another host", `pages: next: "{{ 'http://evil.example.com/' + str(body.next) }}"`, `from: "{{ body.items }}"`, 2, 0,
			`error: service shop: the request would go to another host than the service's own`, []string{"/l"}},
		{"another host, without its scheme", `pages: next: "{{ '//evil.example.com/' }}"`, `from: "{{ body.items }}"`, 2, 0,
			`error: service shop: the request would go to another host than the service's own`, []string{"/l"}},
		{"no address", `pages: next: "{{ 'http://a b:x/' }}"`, `from: "{{ body.items }}"`, 2, 0,
			`error: page 1: pages: the address of the next page is none`, []string{"/l"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, faults := toolOf(t, shopSpec("query", "http: {get: \"/l\", "+c.http+"}\n"+c.rest), c.rows)
			if faults != "" {
				t.Fatal(faults)
			}
			var requests []string
			if got := asked(t, b, pagesOf(c.pages, &requests), "{}"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got, want := strings.Join(requests, " "), strings.Join(c.asked, " "); got != want {
				t.Errorf("asked %s\nwant  %s", got, want)
			}
		})
	}
}

// TestPageRefused holds that half of a list is no answer.
func TestPageRefused(t *testing.T) {
	b, faults := toolOf(t, shopSpec("query", `http: {get: "/l", pages: next: "link"}, from: "{{ body.items }}"`), 0)
	if faults != "" {
		t.Fatal(faults)
	}
	var requests []string
	pages := pagesOf(3, &requests)
	got := asked(t, b, func(w http.ResponseWriter, r *http.Request) {
		if len(requests) == 1 {
			w.WriteHeader(500)
			return
		}
		pages(w, r)
	}, "{}")
	if got != "refused 500 null service shop answered 500" {
		t.Error(got)
	}
}

func TestNextLink(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{``, ``},
		{`<https://a/?p=2>; rel="next"`, `https://a/?p=2`},
		{`<https://a/?p=1>; rel="prev", <https://a/?p=3>; rel="next", <https://a/?p=9>; rel="last"`, `https://a/?p=3`},
		{`<https://a/?x=1,2;3>; rel=next`, `https://a/?x=1,2;3`},
		{`</p2>;rel="first NEXT"`, `/p2`},
		{`<a>; title="x, <b>; rel=\"next\""; rel=prev, <c>; REL = next`, `c`},
		{`<a>; rel=prev; rel=next`, ``},
		{`<a>; anchor="#x"; rel=next, <b>; rel=next`, `b`},
		{`<a>; hidden; rel=next`, `a`},
		{`<a> rel=next`, ``},
		{`<a; rel=next`, ``},
		{`a; rel="next"`, ``},
		{`<a>; rel="next`, `a`},
		{`<a>; rel=`, ``},
		{`<a>; xrel=next`, ``},
		{`<a>; rel="nextdoor"`, ``},
	} {
		if got := nextLink(c.header); got != c.want {
			t.Errorf("%s: %q, want %q", c.header, got, c.want)
		}
	}
}

// FuzzNextLink holds that any header is read to its end, and that what is
// written as a link is read again.
func FuzzNextLink(f *testing.F) {
	for _, s := range []string{`<a>; rel="next"`, `<a>;rel=next,`, `<,<>;;="\`, `<a>; title="\"`, `>;,<`} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, s, title string) {
		if got := nextLink(s); got != "" && !strings.Contains(s, "<") {
			t.Fatalf("%q has no link, and %q was read", s, got)
		}
		target := "https://a/?q=" + url.QueryEscape(s)
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(title)
		header := fmt.Sprintf(`<https://a/>; rel="prev"; title="%s", <%s>; title="%s"; rel="next"`, quoted, target, quoted)
		if got := nextLink(header); got != target {
			t.Fatalf("%q gives %q, want %q", header, got, target)
		}
	})
}
