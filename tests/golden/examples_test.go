package golden

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	cmd.Env = append(cleanEnv(), env...)
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
// that it declares.
func TestExamples(t *testing.T) {
	root, paths := examples(t)
	for _, path := range paths {
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			program(t, root, nil, append([]string{"check"}, specFiles(root, path)...)...)
			args := append([]string{"test"}, specFiles(root, path)...)
			if *update {
				args = append(args, "--update")
			}
			program(t, root, nil, args...)
		})
	}
}

// TestExamplesOnPostgres compares with the same golden files, on PostgreSQL,
// for the examples that read DATABASE_URL.
func TestExamplesOnPostgres(t *testing.T) {
	root, paths := examples(t)
	ran := 0
	for _, path := range paths {
		text, err := readSpec(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "env.DATABASE_URL") {
			continue
		}
		ran++
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			url := servers.Postgres(t)
			program(t, root, []string{"DATABASE_URL=" + url}, append([]string{"test"}, specFiles(root, path)...)...)
			program(t, root, []string{"DATABASE_URL=" + servers.Postgres(t)}, "check", "--online", path)
		})
	}
	if ran == 0 {
		t.Error("no example reads DATABASE_URL")
	}
}

func readSpec(path string) (string, error) {
	files := []string{path}
	if !strings.HasSuffix(path, ".cue") {
		var err error
		if files, err = filepath.Glob(filepath.Join(path, "*.cue")); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	return b.String(), nil
}
