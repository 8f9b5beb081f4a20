package golden

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// examples lists the specs under examples/: each file that is no test file,
// and each folder with CUE files in it.
func examples(t *testing.T) (root string, paths []string) {
	t.Helper()
	root, err := servers.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.cue"))
	if err != nil {
		t.Fatal(err)
	}
	inside, err := filepath.Glob(filepath.Join(root, "examples", "*", "*.cue"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range inside {
		files = append(files, filepath.Dir(f))
	}
	for _, f := range files {
		path, err := filepath.Rel(root, f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, "_tests.cue") && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatal("there is no example")
	}
	return root, paths
}

// specFiles gives the arguments for an example: a file goes with its tests.
func specFiles(root, path string) []string {
	tests := strings.TrimSuffix(path, ".cue") + "_tests.cue"
	if _, err := os.Stat(filepath.Join(root, tests)); err == nil && strings.HasSuffix(path, ".cue") {
		return []string{path, tests}
	}
	return []string{path}
}

// program runs the real program in the root of the tree.
func program(t *testing.T, root string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command(servers.Binary(t), args...)
	cmd.Dir = root
	// What the examples read and have no default for; their cases go to no service.
	cmd.Env = append(append(cleanEnv(), "GITHUB_TOKEN=demo"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("fusion-serve %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// cleanEnv is the environment without what would decide the engine.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DATABASE_URL=") })
}

// TestExamples checks every example and runs its golden tests on the engine
// that it declares. With -update they are written on PostgreSQL, which runs
// every case, and compared on the other engine at once.
func TestExamples(t *testing.T) {
	root, paths := examples(t)
	for _, path := range paths {
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			files := specFiles(root, path)
			program(t, root, nil, append([]string{"check"}, files...)...)
			if *update {
				program(t, root, []string{"DATABASE_URL=" + servers.Postgres(t)}, append([]string{"test", "--update"}, files...)...)
			}
			program(t, root, nil, append([]string{"test"}, files...)...)
		})
	}
}

// TestExamplesOnPostgres compares with the same golden files on PostgreSQL,
// and has it prepare every statement of the examples that run on it.
func TestExamplesOnPostgres(t *testing.T) {
	root, paths := examples(t)
	for _, path := range paths {
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			url := servers.Postgres(t)
			program(t, root, []string{"DATABASE_URL=" + url}, append([]string{"test"}, specFiles(root, path)...)...)
			if !readsURL(t, filepath.Join(root, path)) {
				return
			}
			fill(t, url, strings.TrimSuffix(filepath.Join(root, path), ".cue"))
			program(t, root, []string{"DATABASE_URL=" + url}, "check", "--online", path)
		})
	}
}

// readsURL tells whether the environment decides on the engine of an example.
func readsURL(t *testing.T, path string) bool {
	t.Helper()
	files := []string{path}
	if !strings.HasSuffix(path, ".cue") {
		var err error
		if files, err = filepath.Glob(filepath.Join(path, "*.cue")); err != nil {
			t.Fatal(err)
		}
	}
	return slices.ContainsFunc(files, func(f string) bool {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "env.DATABASE_URL")
	})
}

// fill runs the schema that stands beside an example, if it has one. The
// program itself never writes to a PostgreSQL database that is not a test's.
func fill(t *testing.T, url, example string) {
	t.Helper()
	schema, err := os.ReadFile(example + ".schema.sql")
	if os.IsNotExist(err) {
		return
	} else if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, string(schema)); err != nil {
		t.Fatalf("%s.schema.sql: %v", example, err)
	}
}
