package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// variant is one thing that is measured: a server and how it is asked.
type variant struct {
	name   string
	server *servers.Process
	// caller gives the requests of one caller, who may have a session.
	caller func(ctx context.Context, n int) ([]request, error)
}

// result is the best round of a variant with a number of callers.
type result struct {
	outcome
	cpu time.Duration // of the server, for one call
}

func (r result) rate() float64 { return float64(r.Calls) / r.Took.Seconds() }

// calls writes the table of get-by-id.
func calls(ctx context.Context, b *strings.Builder, s settings, folder, program, database string) error {
	variants, stop, err := startVariants(folder, program, database)
	if err != nil {
		return err
	}
	results, err := rounds(ctx, s, variants)
	if e := stop(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "### Get by id over HTTP, PostgreSQL\n\nClosed loop over keep-alive connections, one each caller, load generator in its own process; "+
		"best of %d rounds of %s, the variants taking turns. CPU is that of the server alone. The floor is `tests/bench/floor.go`, net/http and pgx.\n\n"+
		"| callers | | calls/s | of the floor | p50 µs | p99 µs | server CPU µs/call |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n", s.rounds, s.period)
	for i, callers := range s.callers {
		for j, v := range variants {
			r := results[i][j]
			fmt.Fprintf(b, "| %d | %s | %.0f | %.2f | %d | %d | %.1f |\n", callers, v.name, r.rate(), r.rate()/results[i][0].rate(),
				r.P50.Microseconds(), r.P99.Microseconds(), float64(r.cpu.Nanoseconds())/1000)
		}
	}
	return nil
}

// startVariants starts both servers; the floor comes first.
func startVariants(folder, program, database string) (variants []variant, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	env := append(os.Environ(), "DATABASE_URL="+database)
	floor := exec.Command(self, "floor")
	floor.Env = env
	hold, err := floor.StdinPipe() // the floor serves until this is closed
	if err != nil {
		return nil, nil, err
	}
	plain, err := servers.Start(floor)
	if err != nil {
		return nil, nil, err
	}
	stopFloor := func() error { hold.Close(); return plain.Wait() }
	dir, err := writeSpec(folder, 5)
	if err != nil {
		return nil, nil, err
	}
	ours := exec.Command(program, "serve", dir, "--http", "127.0.0.1:0")
	ours.Env = env
	served, err := servers.Start(ours)
	if err != nil {
		_ = stopFloor()
		return nil, nil, err
	}
	variants = []variant{{"floor", plain, plainCaller(plain.URL)}}
	for _, revision := range servers.Revisions {
		variants = append(variants, variant{revision, served, mcpCaller(served.URL, revision)})
	}
	return variants, func() error {
		err := stopFloor()
		if e := served.Stop(); e != nil {
			return e
		}
		return err
	}, nil
}

// ids are the rows that the nth caller asks for.
func ids(n int) []int {
	var all []int
	for i := range 64 {
		all = append(all, 1+(n*6151+i*389)%rowCount)
	}
	return all
}

func plainCaller(url string) func(context.Context, int) ([]request, error) {
	return func(ctx context.Context, n int) ([]request, error) {
		var requests []request
		for _, id := range ids(n) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"id":%d}`, id)))
			if err != nil {
				return nil, err
			}
			q, err := raw(r, id)
			if err != nil {
				return nil, err
			}
			requests = append(requests, q)
		}
		return requests, nil
	}
}

func mcpCaller(url, revision string) func(context.Context, int) ([]request, error) {
	return func(ctx context.Context, n int) ([]request, error) {
		c := &servers.Client{URL: url, Revision: revision}
		if err := c.Connect(ctx); err != nil {
			return nil, fmt.Errorf("revision %s: %w", revision, err)
		}
		var requests []request
		for _, id := range ids(n) {
			r, err := c.Request(ctx, "tools/call", map[string]any{"name": getItem, "arguments": map[string]any{"id": id}})
			if err != nil {
				return nil, err
			}
			q, err := raw(r, id)
			if err != nil {
				return nil, err
			}
			requests = append(requests, q)
		}
		return requests, nil
	}
}

// raw gives a request for an item as it goes over the wire.
func raw(r *http.Request, id int) (request, error) {
	var b bytes.Buffer
	err := r.Write(&b)
	return request{b.Bytes(), fmt.Sprintf("Item %d", id)}, err
}

// rounds measures every variant in turn, and again, and keeps the best.
func rounds(ctx context.Context, s settings, variants []variant) ([][]result, error) {
	best := make([][]result, len(s.callers))
	for i, callers := range s.callers {
		best[i] = make([]result, len(variants))
		for range s.rounds {
			for j, v := range variants {
				r, err := round(ctx, v, callers, s.period)
				if err != nil {
					return nil, fmt.Errorf("%s with %d callers: %w", v.name, callers, err)
				}
				if best[i][j].Calls == 0 || r.rate() > best[i][j].rate() {
					best[i][j] = r
				}
			}
		}
	}
	return best, nil
}

// round has the load generator call one variant for a period.
func round(ctx context.Context, v variant, callers int, period time.Duration) (result, error) {
	u, err := url.Parse(v.server.URL)
	if err != nil {
		return result{}, err
	}
	j := job{Address: u.Host, Period: period}
	for n := range callers {
		requests, err := v.caller(ctx, n)
		if err != nil {
			return result{}, err
		}
		j.Callers = append(j.Callers, requests)
	}
	input, err := json.Marshal(j)
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	before, err := cpuOf(v.server.PID())
	if err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, self, "load")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%w\n%s", err, v.server.Output())
	}
	after, err := cpuOf(v.server.PID())
	if err != nil {
		return result{}, err
	}
	var r result
	if err := json.Unmarshal(out, &r.outcome); err != nil {
		return result{}, fmt.Errorf("reading what the load generator printed: %w", err)
	}
	r.cpu = (after - before) / time.Duration(r.Calls)
	return r, nil
}
