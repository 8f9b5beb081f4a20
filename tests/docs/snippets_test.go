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
   '''cue file=a/b.cue check with examples/billing.cue
   x: 1
     y: 2
   '''

'''mermaid none: it is a picture
a --> b
'''

'''json
{}
'''

'''text a picture
.
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
		fmt.Fprintf(&got, "%d %s %q %q %q %q %q\n", s.line, s.lang, s.modes, s.file, s.with, s.notRun, s.text)
	}
	want := strings.ReplaceAll(`3 sh ["run"] "" "" "" "echo one\n"
8 cue ["check"] "a/b.cue" "examples/billing.cue" "" "x: 1\n  y: 2\n"
13 mermaid [] "" "" "it is a picture" "a --> b\n"
17 json ["parse"] "" "" "" "{}\n"
21 text [] "" "" "a picture" ".\n"
25 text ["output"] "" "" "" "'''\n"
`, "'", "`")
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestSnippetFaults(t *testing.T) {
	silent := "the block says neither how it is run nor why not (tests/docs/page_test.go tells how)"
	for _, c := range []struct{ page, want string }{
		{"'''sh\nls\n'''\n", "line 1: " + silent},
		{"\n'''\nls\n'''\n", "line 2: " + silent},
		{"'''text\nls\n'''\n", "line 1: " + silent},
		{"'''sh none:\nls\n'''\n", "line 1: " + silent},
		{"'''sh runn\nls\n'''\n", `line 1: "runn" says nothing about a "sh" block (tests/docs/page_test.go tells what does)`},
		{"'''sh postgres\nls\n'''\n", "line 1: postgres stands beside run or serve"},
		{"'''cue parse with a.cue\nls\n'''\n", "line 1: with stands behind check"},
		{"'''sh run\nls\n", "line 1: the block is not closed"},
	} {
		_, err := snippets(strings.ReplaceAll(c.page, "'", "`"))
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.page, err, c.want)
		}
	}
}
