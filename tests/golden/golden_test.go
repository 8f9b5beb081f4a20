// Package golden runs the real program and compares what it prints: scripts
// of its commands (testdata/*.txtar), and the golden tests of every example on
// both engines.
//
// The scripts know these commands besides those of testscript:
//
//	exits N PROGRAM ARGS…  runs a program that must end with exit code N
//	examples               copies the examples of the tree to $WORK/examples
//	shorten FROM TO        writes stdout, stderr or a file to another, without the path of $WORK
//	cutter NAME            sets NAME to the URL of a service that answers no request
//	postgres               sets DATABASE_URL to a fresh database, dropped at the end
//
// and the condition [postgres]. go test ./tests/golden -update rewrites what
// `cmp stdout` and `cmp stderr` compare with.
package golden

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

var update = flag.Bool("update", false, "rewrite the golden parts of the scripts and of the examples")

func TestMain(m *testing.M) { servers.Main(m) }

func TestScripts(t *testing.T) {
	program := servers.Binary(t)
	root, err := servers.Root()
	if err != nil {
		t.Fatal(err)
	}
	postgres := os.Getenv("FUSION_TEST_POSTGRES")
	if postgres == "" && os.Getenv("FUSION_REQUIRE_SERVERS") == "1" {
		t.Fatal("FUSION_TEST_POSTGRES is not set, and FUSION_REQUIRE_SERVERS=1 allows no skip")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "postgres" {
				return false, errors.New("the only condition of ours is [postgres]")
			}
			return postgres != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"examples": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(os.CopyFS(ts.MkAbs("examples"), os.DirFS(filepath.Join(root, "examples"))))
			},
			"shorten": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 2 {
					ts.Fatalf("usage: shorten FROM TO")
				}
				text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK")+"/", "")
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
			},
			"cutter": cutter,
			"postgres": func(ts *testscript.TestScript, neg bool, args []string) {
				url, drop, err := db.Fresh(context.Background(), postgres)
				ts.Check(err)
				ts.Defer(func() { ts.Check(drop(context.Background())) })
				ts.Setenv("DATABASE_URL", url)
			},
		},
	})
}

// cutter starts a service that takes a request and goes away without an answer.
func cutter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cutter NAME")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// exits runs a program and compares its exit code, of which exec only tells
// whether it is 0.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
