package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The numbers that the code holds itself to.
const (
	longestFile     = 600
	longestFunction = 100
)

// TestStyle holds the numbers, and that nothing runs behind the reader's back.
func TestStyle(t *testing.T) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.Contains(name, "testdata/") {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join("..", name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, fault := range styleFaults(files, f) {
			t.Errorf("%s:%s", name, fault)
		}
	}
}

// TestStyleFaults shows that the test above can fail.
func TestStyleFaults(t *testing.T) {
	text := "package p\n\nfunc init() {}\n\nfunc long() {" + strings.Repeat("\n", 101) + "}\n" + strings.Repeat("\n", 500)
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(styleFaults(files, f), "\n")
	want := "606: the file has 606 lines, more than 600\n3: init runs behind the reader's back\n5: long has 102 lines, more than 100"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func styleFaults(files *token.FileSet, f *ast.File) []string {
	var faults []string
	if n := files.File(f.FileStart).LineCount(); n > longestFile {
		faults = append(faults, fmt.Sprintf("%d: the file has %d lines, more than %d", n, n, longestFile))
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := files.Position(fn.Pos()).Line, files.Position(fn.End()).Line
		if n := last - first + 1; n > longestFunction {
			faults = append(faults, fmt.Sprintf("%d: %s has %d lines, more than %d", first, fn.Name.Name, n, longestFunction))
		}
		if fn.Recv == nil && fn.Name.Name == "init" {
			faults = append(faults, fmt.Sprintf("%d: init runs behind the reader's back", first))
		}
	}
	return faults
}
