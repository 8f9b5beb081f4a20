package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Root gives the folder that holds go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = up
	}
}

// Build builds the command into a folder and gives the path of the program.
func Build(folder string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "fusion-serve")
	args := append([]string{"build", "-o", program}, strings.Fields(os.Getenv("FUSION_BUILD_FLAGS"))...)
	cmd := exec.Command("go", append(args, "./cmd/fusion-serve")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the command: %w\n%s", err, out)
	}
	return program, nil
}

var built struct {
	once    sync.Once
	folder  string
	program string
	err     error
}

// Binary gives the path of the real program, built once for a test process.
// A package that asks for it runs its tests through Main.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "fusion-serve-binary-"); built.err == nil {
			built.program, built.err = Build(built.folder)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.program
}

// Main runs the tests of a package and removes the program that Binary built.
func Main(m *testing.M) {
	code := m.Run()
	if built.folder != "" {
		os.RemoveAll(built.folder)
	}
	os.Exit(code)
}
