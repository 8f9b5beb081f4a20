package gate_test

import (
	"testing"

	"github.com/fusion-serve/fusion-serve/engine/gate"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// TestDatabaseStore holds a database of each engine to what every store does.
func TestDatabaseStore(t *testing.T) {
	two := func(t *testing.T, url, dir string) (a, b gate.Store) {
		return gate.NewDatabase(openDB(t, url, dir)), gate.NewDatabase(openDB(t, url, dir))
	}
	t.Run("sqlite", func(t *testing.T) {
		testStore(t, func(t *testing.T) (a, b gate.Store) { return two(t, "sqlite:a.db", t.TempDir()) })
	})
	t.Run("postgres", func(t *testing.T) {
		testStore(t, func(t *testing.T) (a, b gate.Store) { return two(t, servers.Postgres(t), "") })
	})
}
