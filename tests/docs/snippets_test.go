package docs

import (
	"fmt"
	"strings"
	"testing"
)

func TestSnippets(t *testing.T) {
	page := strings.ReplaceAll(`# A page

'''sh run
echo one
'''

1. In a list:
   '''cue file=a/b.cue check
   x: 1
     y: 2
   '''

<!-- not run: it is a picture -->
'''mermaid
a --> b
'''

''''text output
'''
''''
`, "'", "`")
	all, err := snippets(page)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range all {
		fmt.Fprintf(&got, "%d %s %q %q %q %q\n", s.line, s.lang, s.modes, s.file, s.notRun, s.text)
	}
	want := strings.ReplaceAll(`3 sh ["run"] "" "" "echo one\n"
8 cue ["check"] "a/b.cue" "" "x: 1\n  y: 2\n"
14 mermaid [] "" "it is a picture" "a --> b\n"
18 text ["output"] "" "" "'''\n"
`, "'", "`")
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestSnippetFaults(t *testing.T) {
	for _, c := range []struct{ page, want string }{
		{"'''sh\nls\n'''\n", "line 1: the block says neither how it is run nor why not; see tests/docs/page_test.go"},
		{"'''\nls\n'''\n", "line 1: the block says neither how it is run nor why not; see tests/docs/page_test.go"},
		{"<!-- not run: no -->\ntext between\n'''sh\nls\n'''\n", "line 3: the block says neither how it is run nor why not; see tests/docs/page_test.go"},
		{"<!-- not run: -->\n'''sh\nls\n'''\n", "line 2: the block says neither how it is run nor why not; see tests/docs/page_test.go"},
		{"<!-- not run: no -->\n'''sh run\nls\n'''\n", "line 2: the block is run, and the comment above says that it is not"},
		{"'''sh runn\nls\n'''\n", `line 1: "runn" says nothing about a "sh" block; see tests/docs/page_test.go`},
		{"'''sh postgres\nls\n'''\n", "line 1: postgres stands beside run or serve"},
		{"'''sh run\nls\n", "line 1: the block is not closed"},
	} {
		_, err := snippets(strings.ReplaceAll(c.page, "'", "`"))
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.page, err, c.want)
		}
	}
}
