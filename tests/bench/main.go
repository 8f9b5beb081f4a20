// Command bench measures the real program against real servers, on the
// loopback only, bounded in count and time: start-up, memory, and get-by-id
// over HTTP against PostgreSQL beside a plain net/http + pgx handler in the
// same run. It prints Markdown, and with -out puts it between the marks of a
// page.
//
//	./test.sh --bench        starts PostgreSQL and runs it
//	go run ./tests/bench     with FUSION_TEST_POSTGRES set
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// settings bound a run.
type settings struct {
	starts  int           // processes started for each row of the start-up table
	tools   []int         // sizes of the generated specs
	callers []int         // concurrent callers
	rounds  int           // each variant is measured that often, the variants taking turns
	period  time.Duration // of one measurement
}

// full is what docs/performance.md shows.
var full = settings{starts: 15, tools: []int{5, 1000}, callers: []int{1, 8, 32}, rounds: 4, period: 1500 * time.Millisecond}

func main() {
	if len(os.Args) == 2 && children[os.Args[1]] != nil {
		if err := children[os.Args[1]](os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
			os.Exit(1)
		}
		return
	}
	out := flag.String("out", "", "put the tables between the marks of this Markdown file")
	quick := flag.Bool("quick", false, "one short round, for a look")
	flag.Parse()
	s := full
	if *quick {
		s.starts, s.rounds, s.period = 3, 1, 500*time.Millisecond
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := report(ctx, s, os.Getenv("FUSION_TEST_POSTGRES"), *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report measures everything and prints it, then writes it to the page.
func report(ctx context.Context, s settings, server, page string) error {
	if server == "" {
		return fmt.Errorf("FUSION_TEST_POSTGRES is not set: run ./test.sh --bench, or give it the URL of a server on which databases may be made")
	}
	text, err := measure(ctx, s, server)
	if err != nil {
		return err
	}
	fmt.Print(text)
	if page == "" {
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	fresh, err := between(string(old), text)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(fresh), 0o644)
}

// The marks of a page, between which the tables stand.
const (
	beginMark = "<!-- bench: begin -->\n"
	endMark   = "<!-- bench: end -->\n"
)

// between puts text between the marks of a page.
func between(page, text string) (string, error) {
	before, rest, ok := strings.Cut(page, beginMark)
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok || !ok2 {
		return "", fmt.Errorf("it lacks the lines %q and %q", strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return before + beginMark + "\n" + text + "\n" + endMark + after, nil
}
