package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// startups writes the table of start-up time and memory.
func startups(ctx context.Context, b *strings.Builder, s settings, folder, program, postgres string) error {
	fmt.Fprintf(b, "### Start-up and memory\n\nFrom exec to the first answer of `tools/list` over HTTP, files in the page cache, %d starts a row; "+
		"VmRSS after that answer.\n\n| | best ms | median ms | RSS MiB |\n| --- | ---: | ---: | ---: |\n", s.starts)
	best, median, err := repeat(s.starts, func() (time.Duration, error) {
		began := time.Now()
		err := exec.CommandContext(ctx, program, "version").Run()
		return time.Since(began), err
	})
	if err != nil {
		return fmt.Errorf("fusion-serve version: %w", err)
	}
	fmt.Fprintf(b, "| `fusion-serve version` (no spec) | %s | %s | |\n", ms(best), ms(median))
	for _, tools := range s.tools {
		dir, err := writeSpec(folder, tools)
		if err != nil {
			return err
		}
		for _, engine := range []struct{ name, url string }{{"SQLite in memory", "sqlite::memory:"}, {"PostgreSQL", postgres}} {
			var memory []float64
			best, median, err := repeat(s.starts, func() (time.Duration, error) {
				took, rss, err := start(ctx, program, dir, engine.url, tools)
				memory = append(memory, rss)
				return took, err
			})
			if err != nil {
				return fmt.Errorf("starting with %d tools on %s: %w", tools, engine.name, err)
			}
			slices.Sort(memory)
			fmt.Fprintf(b, "| %d tools, %s | %s | %s | %.1f |\n", tools, engine.name, ms(best), ms(median), memory[len(memory)/2])
		}
	}
	b.WriteString("\n")
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

// repeat runs a measurement once to warm the page cache, then n times.
func repeat(n int, f func() (time.Duration, error)) (best, median time.Duration, err error) {
	if _, err := f(); err != nil {
		return 0, 0, err
	}
	var all []time.Duration
	for range n {
		d, err := f()
		if err != nil {
			return 0, 0, err
		}
		all = append(all, d)
	}
	slices.Sort(all)
	return all[0], all[n/2], nil
}

// start starts the program and waits for its list of tools.
func start(ctx context.Context, program, dir, database string, tools int) (took time.Duration, rssMiB float64, err error) {
	address, err := freeAddress()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.Command(program, "serve", dir, "--http", address)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if e := cmd.Wait(); e != nil && err == nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, said.String())
		}
	}()
	client := &servers.Client{URL: "http://" + address + "/mcp", Revision: "2026-07-28"}
	var result json.RawMessage
	for {
		result, err = client.Do(ctx, "tools/list", nil)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(began) > servers.Patience {
			return 0, 0, err
		}
		time.Sleep(300 * time.Microsecond)
	}
	took = time.Since(began)
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &list); err != nil {
		return 0, 0, err
	}
	if len(list.Tools) != tools {
		return 0, 0, fmt.Errorf("tools/list gave %d tools, want %d", len(list.Tools), tools)
	}
	rssMiB, err = memoryOf(cmd.Process.Pid)
	return took, rssMiB, err
}

// freeAddress gives a loopback address on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
