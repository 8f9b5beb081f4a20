package servers

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresVar names the variable that holds the URL of a PostgreSQL server
// whose user may make databases.
const PostgresVar = "FUSION_TEST_POSTGRES"

// RequireVar set to 1 turns the skip of a test without a server into a failure.
const RequireVar = "FUSION_REQUIRE_SERVERS"

// Postgres makes a fresh database, dropped at the end of the test, and gives
// its URL. Without a server the test is skipped.
func Postgres(t testing.TB) string {
	t.Helper()
	server := Server(t)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is no URL", PostgresVar)
	}
	name := "fusion_test_" + strings.ToLower(rand.Text()[:12])
	run(t, server, "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { run(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}

// Server gives the URL of the server itself. What is in the database that it
// names is not ours.
func Server(t testing.TB) string {
	t.Helper()
	server := os.Getenv(PostgresVar)
	if server == "" {
		missing(t, PostgresVar+" is not set: give it the URL of a PostgreSQL server, such as postgres://postgres@127.0.0.1:5432/postgres")
	}
	return server
}

// run runs one statement on a connection of its own.
func run(t testing.TB, server, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connecting to the server of %s: %v", PostgresVar, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
