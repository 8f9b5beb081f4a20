// Package servers gives tests what they run against: a fresh database on the
// PostgreSQL or the Redis server that test.sh started, the real binary, a
// running server, HAProxy before several of them, and the public MCP clients.
// Only tests and benchmarks import it.
//
// It reads these variables, which test.sh sets:
//
//	FUSION_TEST_POSTGRES     URL of a server on which databases may be made and dropped
//	FUSION_TEST_REDIS        URL of a Redis server whose logical databases may be emptied, all but number 0
//	FUSION_NODE              path of a Node program, FUSION_NODE_MODULES of the folder with the MCP clients
//	FUSION_REQUIRE_SERVERS   1: what is missing fails the test; otherwise it is skipped, saying so
//	FUSION_BUILD_FLAGS       more flags for go build of the binary, such as -race
package servers

import (
	"os"
	"testing"
)

// missing skips a test that lacks something, or fails it where nothing may be
// skipped.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(RequireVar) == "1" {
		t.Fatalf("%s (%s=1 allows no skip)", what, RequireVar)
	}
	t.Skip(what)
}

// Node gives the Node program and the node_modules folder of the MCP clients.
func Node(t testing.TB) (program, modules string) {
	t.Helper()
	program, modules = os.Getenv("FUSION_NODE"), os.Getenv("FUSION_NODE_MODULES")
	if program == "" || modules == "" {
		missing(t, "FUSION_NODE or FUSION_NODE_MODULES is not set: run ./test.sh, which sets them")
	}
	return program, modules
}
