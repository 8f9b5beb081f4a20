package dsl

import (
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/format"

	"github.com/fusion-serve/fusion-serve/schemas"
)

// TestLanguage says what the schema must be: CUE that evaluates, a comment on
// every field and definition, no field below the top that is called like a
// block that specs refer to.
func TestLanguage(t *testing.T) {
	v := cuecontext.New().CompileBytes(schemas.Source, cue.Filename("schema.cue"))
	if err := v.Validate(); err != nil {
		t.Fatal(err)
	}
	seen := map[*form]bool{}
	var walk func(path string, f *form)
	walk = func(path string, f *form) {
		if f == nil || seen[f] {
			return
		}
		seen[f] = true
		if f.name != "" && !strings.HasSuffix(f.doc, ".") {
			t.Errorf("#%s has no comment that ends in a full stop: %q", f.name, f.doc)
		}
		for _, x := range f.fields {
			if !strings.HasSuffix(x.doc, ".") {
				t.Errorf("%s.%s has no comment that ends in a full stop: %q", path, x.name, x.doc)
			}
			if x.name == "env" && path != "Server" {
				t.Errorf("%s.env hides the block env from what refers to it", path)
			}
			walk(path+"."+x.name, x.form)
		}
		walk(path, f.elem)
		for _, a := range f.alts {
			walk(path, a)
		}
	}
	for _, f := range theLanguage().order {
		walk(f.name, f)
	}
	if len(seen) < 50 {
		t.Errorf("walked %d forms only", len(seen))
	}
}

// TestFormatted has `cue fmt` leave the schema and the starter as they are.
func TestFormatted(t *testing.T) {
	for _, f := range schemas.Starter() {
		if !strings.HasSuffix(f.Name, ".cue") {
			continue
		}
		got, err := format.Source(f.Data)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
		} else if string(got) != string(f.Data) {
			t.Errorf("%s is not as cue fmt writes it:\n%s", f.Name, firstDifference(string(f.Data), string(got)))
		}
	}
}
