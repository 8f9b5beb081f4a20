package dsl

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// TestFull decodes a spec that has every field of the language and compares
// the whole graph.
func TestFull(t *testing.T) {
	t.Chdir("testdata/full")
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	graphs, faults := Load([]string{"full.cue"}, Options{WithTests: true, Env: func(string) (string, bool) { return "", false }})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var b bytes.Buffer
	dump(&b, reflect.ValueOf(graphs[0]), 0)
	got := strings.ReplaceAll(b.String(), filepath.ToSlash(cwd)+"/", "")
	got = strings.ReplaceAll(got, filepath.ToSlash(cwd), ".")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("graph.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("graph.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the graph of full.cue is another than graph.txt says: see the difference after -update\n%s", firstDifference(got, string(want)))
	}
}

func firstDifference(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return fmt.Sprintf("line %d: got %s, want %s", i+1, la[i], lb[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(la), len(lb))
}

// dump writes what a value holds, without what is empty.
func dump(b *bytes.Buffer, v reflect.Value, depth int) {
	line := func(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }
	switch x := v.Interface().(type) {
	case graph.Place:
		line("%v", x)
		return
	case graph.Text:
		line("%q at %v, inside %v", graph.Concealed(x.S), x.At, x.Place(0))
		return
	case *graph.Presenter:
		if depth > 2 && strings.HasPrefix(x.Path, "presenters.") {
			line("-> %s", x.Path)
			return
		}
	case *graph.FSM:
		if depth > 2 {
			line("-> %s", x.Path)
			return
		}
	case *shape.Shape:
		line("%s", x.AppendSchema(nil))
		return
	case *value.Object:
		line("%s", value.AppendJSON(nil, x))
		return
	case time.Time:
		line("%s", x.Format(time.RFC3339))
		return
	case time.Duration:
		line("%s", x)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		dump(b, v.Elem(), depth)
	case reflect.Struct:
		line("")
		for i := range v.NumField() {
			f := v.Field(i)
			if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
				continue
			}
			b.WriteString(strings.Repeat("  ", depth) + v.Type().Field(i).Name + " ")
			dump(b, f, depth+1)
		}
	case reflect.Slice:
		line("")
		for i := range v.Len() {
			b.WriteString(strings.Repeat("  ", depth) + "- ")
			dump(b, v.Index(i), depth+1)
		}
	default:
		line("%#v", v.Interface())
	}
}

// TestDefaults decodes a spec that says as little as it can.
func TestDefaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.cue")
	if err := os.WriteFile(file, []byte(`server: {name: "a", version: "1"}
tools: a: {kind: "query", description: "d", value: 1}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	graphs, faults := Load([]string{file}, Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s := graphs[0].Server
	s.At = graph.Place{}
	got, want := fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", graph.Server{Name: "a", Version: "1", Exposition: "flat", Separator: "_",
		HTTP: graph.HTTP{Addr: "127.0.0.1:8383", Path: "/mcp", MaxBody: 4 << 20}})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestFullIsFull finds fields of the language that full.cue does not have.
func TestFullIsFull(t *testing.T) {
	src, err := os.ReadFile("testdata/full/full.cue")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range theLanguage().order {
		for _, x := range append(f.fields, unionFields(f)...) {
			if !strings.Contains(string(src), x.name+":") && !strings.Contains(string(src), x.name+" ") {
				t.Errorf("full.cue has no %s.%s", f.name, x.name)
			}
		}
	}
}

func unionFields(f *form) []*formField {
	var l []*formField
	for _, a := range f.alts {
		l = append(l, a.fields...)
	}
	return l
}

// FuzzLoad gives arbitrary source to the loader: it may find faults, and must
// not panic.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"../examples/*.cue", "testdata/full/*.cue"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			src, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(src))
		}
	}
	for _, s := range []string{"", "{", "\"", "package a\nenv: A: A", "env: {A: string, A: int}\nserver: env", "tools: [string]: {kind: 1}\ntools: a: tools.a", "server: name: \"\\(server.name)\"", "X=server: {name: X.version}"} {
		f.Add(s)
	}
	file := filepath.Join(f.TempDir(), "a.cue")
	f.Fuzz(func(t *testing.T, src string) {
		if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
		graphs, faults := Load([]string{file}, Options{WithTests: true, Env: func(name string) (string, bool) { return name, len(name)%2 == 0 }})
		if len(graphs) == 0 && !faults.Fatal() {
			t.Error("no graph and no fault")
		}
	})
}
