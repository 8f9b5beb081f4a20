package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// TestExamples serves every example over HTTP and calls each of its tools. A
// tool that needs arguments is called without, and must say that.
func TestExamples(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root(t), "examples"))
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, "_tests.cue") || !strings.HasSuffix(name, ".cue") && !hasSpec(t, e) {
			continue
		}
		served++
		t.Run(name, func(t *testing.T) {
			p := servers.Serve(t, root(t), []string{"GITHUB_TOKEN=demo"}, "examples/"+name)
			c := &servers.Client{URL: p.URL, Revision: servers.Revisions[len(servers.Revisions)-1]}
			result, err := c.Do(context.Background(), "tools/list", nil)
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Tools []struct {
					Name        string
					InputSchema struct{ Required []string }
				}
			}
			if err := json.Unmarshal(result, &list); err != nil {
				t.Fatal(err)
			}
			if len(list.Tools) == 0 {
				t.Error("it has no tools")
			}
			for _, tool := range list.Tools {
				needs := tool.InputSchema.Required
				result, err := c.Do(context.Background(), "tools/call", map[string]any{"name": tool.Name, "arguments": map[string]any{}})
				if err != nil {
					t.Errorf("%s: %v", tool.Name, err)
					continue
				}
				var a answer
				if err := json.Unmarshal(result, &a); err != nil {
					t.Fatal(err)
				}
				// A spec for PostgreSQL only is served without one: its tools say so.
				if len(needs) == 0 && onPostgres(t, name) {
					if !strings.Contains(string(result), `code=\"SERVER_BUSY\"`) {
						t.Errorf("%s without its database answered %s", tool.Name, result)
					}
					continue
				}
				if a.IsError != (len(needs) > 0) || a.Content == nil {
					t.Errorf("%s, which needs %q, answered %s", tool.Name, needs, result)
				}
				// A group asks for its action first.
				named := func(field string) bool { return strings.Contains(string(result), field) }
				if len(needs) > 0 && !slices.ContainsFunc(needs, named) {
					t.Errorf("%s does not say that it needs one of %q: %s", tool.Name, needs, result)
				}
			}
		})
	}
	if served == 0 {
		t.Error("there is no example")
	}
}

// onPostgres tells whether an example declares a PostgreSQL database of its own.
func onPostgres(t *testing.T, name string) bool {
	t.Helper()
	if !strings.HasSuffix(name, ".cue") {
		return false
	}
	text, err := os.ReadFile(filepath.Join(root(t), "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), `*"postgres://`)
}

// hasSpec tells whether a folder holds a spec.
func hasSpec(t *testing.T, e os.DirEntry) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "examples", e.Name(), "*.cue"))
	if err != nil {
		t.Fatal(err)
	}
	return e.IsDir() && len(files) > 0
}
