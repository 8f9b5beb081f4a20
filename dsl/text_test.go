package dsl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// textOf loads a source of one file and gives the text at a path.
func textOf(t *testing.T, src, path string) graph.Text {
	t.Helper()
	f, err := parser.ParseFile("a.cue", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	v := cuecontext.New().BuildFile(f)
	if v.Err() != nil {
		t.Fatal(v.Err())
	}
	n := &node{doc: &doc{places: newPlaces()}, path: path, val: v.LookupPath(cue.ParsePath(path)), has: true}
	n.findSource()
	text, ok := n.text()
	if !ok {
		t.Fatalf("%s is no text", path)
	}
	return text
}

// TestTextPlaces looks up where each word of a text stands: the source must
// read that word there.
func TestTextPlaces(t *testing.T) {
	src := `import "strings"
plain: "one two"
escapes: "\"one\"\ttwo \u00e9 three \U0001F600 four \/ five"
raw: #"one \d two \#t three \#(plain) four"#
lines: """
	one
	  two
		three

	four
	five "six" seven
	"""
rawlines: #"""
	one \n \#(plain) two
	three
	"""#
unicode: "ä one €uro two"
inter: "before \(plain) between \(lines) after"
nested: "x \(inter) y"
joined: "one " + plain + " three"
referred: plain
default: *"one two" | string
constrained: string & "one two"
embedded: {_base, more: "x"}
_base: word: "in base"
listed: _list[1]
_list: ["one", plain]
number: "a \(7) b"
called: strings.ToUpper(plain)
both: {[string]: string} & {a: "one two"}
`
	lines := strings.Split(src, "\n")
	tests := map[string][]string{
		"plain":         {"one", "two"},
		"escapes":       {"one", "two", "é=\\u00e9", "three", "😀=\\U0001F600", "four", "five"},
		"raw":           {"one", `\d`, "two", "three", "one two", "four"},
		"lines":         {"one", "two", "three", "four", "five", `"six"`, "seven"},
		"rawlines":      {"one", `\n`, "one two", "two\n=two", "three"},
		"unicode":       {"ä", "one", "€uro", "two"},
		"inter":         {"before", "one two", "between", "three", "seven", "after"},
		"nested":        {"x", "before", "one two", "seven", "after", "y"},
		"joined":        {"one", "one two", "three"},
		"referred":      {"one", "two"},
		"default":       {"one", "two"},
		"constrained":   {"one", "two"},
		"embedded.word": {"in", "base"},
		"listed":        {"one", "two"},
		"number":        {"a", "b"},
		"both.a":        {"one", "two"},
	}
	for path, words := range tests {
		text := textOf(t, src, path)
		for _, w := range words {
			w, source, differs := strings.Cut(w, "=")
			if !differs {
				source = w
			}
			off := strings.Index(text.S, w)
			if off < 0 {
				t.Errorf("%s: %q is not in %q", path, w, text.S)
				continue
			}
			p := text.Place(off)
			rest := lines[p.Line-1][p.Col-1:]
			if !strings.HasPrefix(rest, source) && !strings.HasPrefix(unescaped(rest), source) {
				t.Errorf("%s: %q should stand at %v, where the source reads %q", path, w, p, rest)
			}
		}
	}
	// What is computed has the place of what computes it.
	if text := textOf(t, src, "called"); text.Place(4) != text.Place(0) || text.S != "ONE TWO" {
		t.Errorf("called: %q at %v and %v", text.S, text.Place(0), text.Place(4))
	}
}

func unescaped(s string) string { return strings.ReplaceAll(s, `\"`, `"`) }

// TestTextFiles joins a text from two files.
func TestTextFiles(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"a.cue": "package x\n\nserver: {name: \"x\", version: \"1\"}\ntools: t: {kind: \"query\", description: \"d\", expr: \"1 + \\(_two) + 3\"}\n",
		"b.cue": "package x\n\n_two:   \"2 * 2\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	graphs, faults := Load([]string{"."}, Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	e := graphs[0].Tools[0].Expr
	got := fmt.Sprint(e.S, " ", e.Place(0), " ", e.Place(4), " ", e.Place(8), " ", e.Place(10))
	want := "1 + 2 * 2 + 3 a.cue:4:52 b.cue:3:10 b.cue:3:14 a.cue:4:64"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzLiteral compares the decoding of literals with CUE's own, and asks for
// marks in order.
func FuzzLiteral(f *testing.F) {
	for _, s := range []string{`"a"`, `"\n\u00e9\U0001F600\ud83d\ude00"`, `#"a\#n\n"#`, "\"\"\"\n\ta\n\t b \\\n\tc\n\t\"\"\"", `"\/\a\\"`, "#\"\"\"\n  x\\#(\n  \"\"\"#", `""`, "\"\"\"\n\t\"\"\"", "\"\r\"", "#\"\r0\"#", "\"a\r\\n\"", "\"\"\"\r\n\ta\r\n\t\"\"\""} {
		f.Add(s)
	}
	p := newPlaces()
	f.Fuzz(func(t *testing.T, src string) {
		e, err := parser.ParseExpr("a.cue", src)
		if err != nil {
			return
		}
		b, ok := unparen(e).(*ast.BasicLit)
		if !ok || b.Kind != token.STRING {
			return
		}
		want, err := literal.Unquote(b.Value)
		if err != nil {
			return
		}
		got, ok := p.literalRun(b)
		if !ok || got.s != want {
			t.Fatalf("%q: got %q, %v, want %q", src, got.s, ok, want)
		}
		last := -1
		for _, m := range got.marks {
			if m.Off <= last || m.Fixed {
				t.Fatalf("%q: marks %v", src, got.marks)
			}
			last = m.Off
		}
	})
}
