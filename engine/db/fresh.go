package db

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Fresh makes a new empty database on the PostgreSQL server of a URL, for one
// test. It gives the database's URL and what drops it again, whoever is still
// connected. What is in the URL's own database is left alone.
func Fresh(ctx context.Context, server string) (address string, drop func(context.Context) error, err error) {
	if d, err := DialectOf(server); err != nil || d != Postgres {
		return "", nil, fmt.Errorf("a fresh database needs the URL of a PostgreSQL server: postgres://…")
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, fmt.Errorf("the URL is no PostgreSQL URL: %s", withoutSecret(server, err))
	}
	name := "fusion_" + strings.ToLower(rand.Text()[:16])
	if err := administer(ctx, server, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return "", nil, fmt.Errorf("making database %s: %w", name, err)
	}
	fresh := *u
	fresh.Path, fresh.RawPath = "/"+name, ""
	return fresh.String(), func(ctx context.Context) error {
		if err := administer(ctx, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("dropping database %s: %w", name, err)
		}
		return nil
	}, nil
}

// administer runs one statement on a connection of its own.
func administer(ctx context.Context, server, sql string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return postgresError(ctx, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return postgresError(ctx, err)
}
