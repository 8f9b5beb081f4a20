package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// rowCount is how many rows the table of the benchmark has.
const rowCount = 10_000

// measure makes all measurements and gives them as Markdown.
func measure(ctx context.Context, s settings, server string) (text string, err error) {
	folder, err := os.MkdirTemp("", "fusion-serve-bench-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	program, err := servers.Build(folder)
	if err != nil {
		return "", err
	}
	url, drop, err := database(ctx, server)
	if err != nil {
		return "", err
	}
	defer func() {
		if e := drop(context.WithoutCancel(ctx)); err == nil && e != nil {
			err = fmt.Errorf("dropping the database: %w", e)
		}
	}()
	version, err := serverVersion(ctx, url)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s %s/%s, %d cores shared by server, PostgreSQL %s and load generator.\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), version)
	if err := startups(ctx, &b, s, folder, program, url); err != nil {
		return "", err
	}
	if err := calls(ctx, &b, s, folder, program, url); err != nil {
		return "", err
	}
	return b.String(), nil
}

// database makes a fresh database with the table of the benchmark.
func database(ctx context.Context, server string) (url string, drop func(context.Context) error, err error) {
	url, drop, err = db.Fresh(ctx, server)
	if err != nil {
		return "", nil, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", nil, err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, fmt.Sprintf(`%s
		INSERT INTO items SELECT n, 'Item ' || n, n * 7, CASE n %% 2 WHEN 0 THEN 'open' ELSE 'closed' END FROM generate_series(1, %d) n;
		ANALYZE items`, table, rowCount))
	if err != nil {
		return "", nil, fmt.Errorf("filling the table of the benchmark: %w", err)
	}
	return url, drop, nil
}

func serverVersion(ctx context.Context, url string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var version string
	err = conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
	version, _, _ = strings.Cut(version, " ")
	return version, err
}
