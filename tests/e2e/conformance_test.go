package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// TestConformance runs the official suite, of each revision the scenarios that
// it requires. Those in not-yet-REVISION.yml wait for what is not built; the
// suite fails when one of them passes, as when any other does not.
func TestConformance(t *testing.T) {
	node, modules := servers.Node(t)
	suite := filepath.Join(modules, "@modelcontextprotocol/conformance/dist/index.js")
	folder := filepath.Join(root(t), "tests/e2e/conformance")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			p := servers.Serve(t, root(t), nil, filepath.Join(folder, "conformance.cue"))
			ctx, cancel := context.WithTimeout(context.Background(), servers.Patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, suite, "server", "--url", p.URL, "--requirements", revision,
				"--expected-failures", filepath.Join(folder, "not-yet-"+revision+".yml"), "--output-dir", t.TempDir())
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s", err, out.Bytes())
			}
		})
	}
}
