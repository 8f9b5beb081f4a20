package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cuelang.org/go/cue/parser"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

// patience is how long one snippet may take; it may build the program.
const patience = 3 * time.Minute

func TestPages(t *testing.T) {
	root, err := servers.Root()
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append([]string{filepath.Join(root, "README.md")}, pages...) {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			all, err := snippets(string(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r := &reader{t: t, root: root, page: filepath.ToSlash(name)}
			for _, s := range all {
				r.run(s)
			}
			r.stop()
		})
	}
}

// reader follows a page as a person would.
type reader struct {
	t      *testing.T
	root   string
	page   string
	tree   string           // copy of the tree; "" until one is needed
	server *servers.Process // started by the last sh serve
	output string           // of the last sh run
}

func (r *reader) fail(s *snippet, format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("%s:%d: %s", r.page, s.line, fmt.Sprintf(format, args...))
}

// run does with a snippet what its info string says.
func (r *reader) run(s *snippet) {
	r.t.Helper()
	if s.file != "" {
		r.write(s)
	}
	switch {
	case s.has("run"):
		r.shell(s)
	case s.has("serve"):
		r.serve(s)
	case s.has("output"):
		if s.text != r.output {
			r.fail(s, "the page says:\n%s\nthe snippet above printed:\n%s", s.text, r.output)
		}
	case s.has("check"):
		r.check(s)
	case s.has("parse"):
		if err := parse(s); err != nil {
			r.fail(s, "%v", err)
		}
	}
}

func parse(s *snippet) error {
	if s.lang == "json" {
		var v any
		return json.Unmarshal([]byte(s.text), &v)
	}
	_, err := parser.ParseFile("snippet.cue", s.text, parser.AllErrors)
	return err
}

func (r *reader) write(s *snippet) {
	r.t.Helper()
	file := filepath.Join(r.copy(), filepath.FromSlash(s.file))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(s.text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// check has the program find faults in the page's copy, where what the
// snippet names may stand too.
func (r *reader) check(s *snippet) {
	r.t.Helper()
	if s.file == "" {
		// Files of one folder and package are one spec.
		s.file = path.Join(path.Dir(s.with), fmt.Sprintf("snippet%d.cue", s.line))
		r.write(s)
	}
	args := []string{"check", s.file}
	if s.with != "" {
		args = []string{"check", s.with, s.file}
	}
	cmd := exec.Command(servers.Binary(r.t), args...)
	cmd.Dir, cmd.Env = r.copy(), cleanEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		r.fail(s, "fusion-serve check: %v\n%s", err, out)
	}
}

// cleanEnv is the environment without what would decide the engine.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DATABASE_URL=") })
}

// copy gives the page's copy of the tree: what git has or would add.
func (r *reader) copy() string {
	r.t.Helper()
	if r.tree != "" {
		return r.tree
	}
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = r.root
	list, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git ls-files: %v", err)
	}
	r.tree = r.t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(r.root, name), filepath.Join(r.tree, name)); err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
	}
	return r.tree
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

// command makes the shell that runs a snippet.
func (r *reader) command(ctx context.Context, s *snippet) *exec.Cmd {
	r.t.Helper()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", s.text)
	cmd.Dir = r.copy()
	cmd.Env = append(cleanEnv(), "PATH="+filepath.Dir(servers.Binary(r.t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	if s.has("postgres") {
		cmd.Env = append(cmd.Env, "DATABASE_URL="+servers.Postgres(r.t))
	}
	return cmd
}

func (r *reader) shell(s *snippet) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := r.command(ctx, s)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		r.fail(s, "%v\n%s", err, out.String())
	}
	r.output = out.String()
}

func (r *reader) serve(s *snippet) {
	r.t.Helper()
	r.stop()
	// The copy of the tree is new to the build cache: what go run would build
	// first is built here, so that the limit below is for the server alone.
	build := exec.Command("go", "build", "-o", os.DevNull, "./cmd/fusion-serve")
	build.Dir = r.copy()
	if out, err := build.CombinedOutput(); err != nil {
		r.fail(s, "go build: %v\n%s", err, out)
		return
	}
	p, err := servers.StartWithin(r.command(context.Background(), s), patience)
	if err != nil {
		r.fail(s, "%v", err)
		return
	}
	r.server = p
	c := &servers.Client{URL: p.URL, Revision: "2025-11-25"}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Connect(ctx); err != nil {
		r.fail(s, "%s: %v\n%s", p.URL, err, p.Output())
	} else if _, err := c.Do(ctx, "tools/list", nil); err != nil {
		r.fail(s, "%s: tools/list: %v\n%s", p.URL, err, p.Output())
	}
}

// stop ends the server as a person does, with Ctrl-C.
func (r *reader) stop() {
	r.t.Helper()
	if r.server == nil {
		return
	}
	if err := r.server.Interrupt(); err != nil {
		r.t.Errorf("%s: %v", r.page, err)
	}
	r.server = nil
}
