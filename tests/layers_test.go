// Package tests holds what is said of the tree as a whole.
package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fusion-serve/fusion-serve"

// inside says which packages of this module a package may import (tests may
// import more). A package that has no row fails the test: a new package needs
// a rule about who may know what. "*" is every package.
var inside = map[string][]string{
	"schemas":    {},
	"dsl/value":  {},
	"dsl/shape":  {"dsl/value"},
	"dsl/graph":  {"dsl/value", "dsl/shape"},
	"dsl/expr":   {"dsl/value", "dsl/shape", "dsl/graph"},
	"dsl":        {"dsl/value", "dsl/shape", "dsl/graph", "dsl/expr", "schemas"},
	"presenters": {"dsl/value", "dsl/shape", "dsl/graph", "dsl/expr"},

	"engine/db":     {"dsl/value"},
	"engine/api":    {"dsl/value"},
	"engine/bind":   {"dsl/value", "dsl/shape", "dsl/graph", "dsl/expr", "presenters", "engine/db", "engine/api"},
	"engine/gate":   {"dsl/value", "dsl/graph", "dsl/expr", "engine/db"},
	"engine":        {"dsl/value", "dsl/shape", "dsl/graph", "dsl/expr", "presenters", "engine/db", "engine/api", "engine/bind", "engine/gate"},
	"engine/serve":  {"dsl/value", "dsl/graph", "presenters", "engine"},
	"engine/golden": {"dsl/value", "dsl/graph", "presenters", "engine", "engine/db"},

	"cmd/fusion-serve": {"*"},
	"tests/servers":    {},
	"tests/bench":      {"tests/servers", "engine/db"},
}

// outside says who may import what is not ours, by the longest prefix of the
// import path. The standard library is free.
var outside = map[string][]string{
	"cuelang.org/go":                  {"dsl"},
	"github.com/expr-lang/expr":       {"dsl/expr"},
	"github.com/gomodule/redigo":      {"engine/db", "tests/servers"},
	"github.com/jackc/pgx":            {"engine/db", "tests/servers", "tests/bench"},
	"github.com/ncruces/go-sqlite3":   {"engine/db"},
	"github.com/mark3labs/mcp-go":     {"engine/serve"},
	"github.com/rogpeppe/go-internal": {"engine/golden"},
	"github.com/spf13/pflag":          {"cmd/fusion-serve"},
	"github.com/sony/gobreaker":       {"engine/api"},
	"golang.org/x/oauth2":             {"engine/api"},
	"golang.org/x/sync":               {"engine/db", "engine/api", "engine/bind", "engine"},
}

// listed is what the test reads of go list -json.
type listed struct {
	ImportPath string
	Imports    []string // of the package itself, without its tests
}

func TestLayers(t *testing.T) {
	for _, fault := range layerFaults(goList(t), inside, outside) {
		t.Error(fault)
	}
}

// TestLayersFault shows that the test above can fail, once for each rule.
func TestLayersFault(t *testing.T) {
	in := map[string][]string{"low": {}, "high": {"low"}, "gone": {}, "top": {"*"}}
	out := map[string][]string{"example.com/cue": {"high"}, "example.com/cue/ast": {}}
	packages := []listed{
		{ImportPath: module + "/low", Imports: []string{"fmt", module + "/high", "example.com/cue/load"}},
		{ImportPath: module + "/high", Imports: []string{module + "/low", "example.com/cue", "example.com/cuecumber", "example.com/cue/ast"}},
		{ImportPath: module + "/new"},
		{ImportPath: module + "/top", Imports: []string{module + "/low", module + "/high"}},
	}
	got := layerFaults(packages, in, out)
	want := []string{
		"low imports high: it may import nothing of this module",
		"low imports example.com/cue/load: only high may import example.com/cue",
		"high imports example.com/cuecumber: no row says who may import it",
		"high imports example.com/cue/ast: no package may import example.com/cue/ast outside of tests",
		"new is not in the table: say what it may import",
		"gone is in the table, and there is no such package",
	}
	if !slices.Equal(got, want) {
		t.Errorf("faults:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func layerFaults(packages []listed, inside, outside map[string][]string) []string {
	var faults []string
	seen := map[string]bool{}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		seen[name] = true
		allowed, ok := inside[name]
		if !ok {
			faults = append(faults, name+" is not in the table: say what it may import")
			continue
		}
		for _, path := range p.Imports {
			if fault := importFault(name, path, allowed, outside); fault != "" {
				faults = append(faults, name+" imports "+strings.TrimPrefix(path, module+"/")+": "+fault)
			}
		}
	}
	var gone []string
	for name := range inside {
		if !seen[name] {
			gone = append(gone, name+" is in the table, and there is no such package")
		}
	}
	slices.Sort(gone)
	return append(faults, gone...)
}

// importFault tells what is wrong with one import, "" if nothing.
func importFault(name, path string, allowed []string, outside map[string][]string) string {
	if ours, ok := strings.CutPrefix(path, module+"/"); ok {
		switch {
		case slices.Contains(allowed, "*") || slices.Contains(allowed, ours):
			return ""
		case len(allowed) == 0:
			return "it may import nothing of this module"
		}
		return "it may import " + strings.Join(allowed, ", ")
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library has no dot in its first element
	}
	rule := ""
	for prefix := range outside {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > len(rule) {
			rule = prefix
		}
	}
	switch who := outside[rule]; {
	case rule == "":
		return "no row says who may import it"
	case slices.Contains(who, name):
		return ""
	case len(who) == 0:
		return "no package may import " + rule + " outside of tests"
	default:
		return fmt.Sprintf("only %s may import %s", strings.Join(who, ", "), rule)
	}
}

// goList lists the packages of the module that have more than tests.
func goList(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,GoFiles", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	} else if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			listed
			GoFiles []string
		}
		if err := d.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		if len(p.GoFiles) > 0 {
			packages = append(packages, p.listed)
		}
	}
}
