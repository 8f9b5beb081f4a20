package db

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// Fresh makes an empty database on the PostgreSQL server of an URL and gives
// its URL and the function that drops it. The database that the URL names is
// only connected to, never written.
func Fresh(ctx context.Context, server string) (fresh string, drop func(context.Context) error, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, fmt.Errorf("reading the URL of the server: %w", err)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	name := "fusion_test_" + hex.EncodeToString(id[:])
	exec := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
		return err
	}
	if err := exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("creating a database: %w", err)
	}
	u.Path = "/" + name
	return u.String(), func(ctx context.Context) error {
		return exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}, nil
}
