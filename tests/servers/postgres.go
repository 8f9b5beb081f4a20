package servers

import (
	"context"
	"os"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Postgres makes a fresh database and gives its URL. The database is dropped
// when the test ends, whoever is still connected. Tests inside engine/db ask
// for it from package db_test.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv("FUSION_TEST_POSTGRES")
	if server == "" {
		missing(t, "FUSION_TEST_POSTGRES is not set")
	}
	ctx := context.Background()
	url, drop, err := db.Fresh(ctx, server)
	if err != nil {
		t.Fatalf("making a database for a test: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(ctx); err != nil {
			t.Errorf("dropping the database of a test: %v", err)
		}
	})
	return url
}
