// Package golden runs the tests that a spec declares: each case on fresh
// databases, through the same call path as a served call, its content blocks
// compared with a golden file beside the spec.
package golden

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// Options says how to run the cases.
type Options struct {
	Update bool           // write the golden files instead of comparing
	Run    *regexp.Regexp // only the cases whose name matches; nil: all
	Out    io.Writer      // one line a case, the diffs and the totals
	// Load reads the spec anew with this environment, for a case that sets
	// its own variables.
	Load func(env Lookup) (*graph.Graph, graph.Faults)
	Env  Lookup
}

// Lookup finds a variable of the environment.
type Lookup func(name string) (string, bool)

// Status is how a case ended.
type Status string

// The ends of a case.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Result is one case that was run.
type Result struct {
	File   string // golden file
	Name   string
	Status Status
	Detail string // why it failed or was skipped: a diff, or a sentence
	Took   time.Duration
}

// Run runs the cases of a spec in order of declaration.
func Run(ctx context.Context, g *graph.Graph, o Options) ([]Result, error) {
	r := &runner{graph: g, opts: o, programs: map[string]*loaded{}}
	var results []Result
	for _, t := range g.Tests {
		if o.Run != nil && !o.Run.MatchString(t.Name) {
			continue
		}
		start := time.Now()
		res := r.run(ctx, t)
		res.Took = time.Since(start)
		results = append(results, res)
		report(o.Out, res)
		if err := ctx.Err(); err != nil {
			return results, err
		}
	}
	if o.Run == nil {
		if err := r.orphans(); err != nil {
			return results, err
		}
	}
	return results, nil
}

func report(w io.Writer, r Result) {
	switch r.Status {
	case Passed:
		fmt.Fprintf(w, "ok    %s\n", r.Name)
	case Skipped:
		fmt.Fprintf(w, "skip  %s: %s\n", r.Name, r.Detail)
	case Failed:
		fmt.Fprintf(w, "FAIL  %s\n%s\n", r.Name, indent(r.Detail))
	}
}

func indent(s string) string {
	return "      " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n      ")
}

// Totals is the closing line: 'N passed, N failed', with ', N skipped' if any.
func Totals(results []Result) (line string, failed int) {
	n := map[Status]int{}
	for _, r := range results {
		n[r.Status]++
	}
	line = fmt.Sprintf("%d passed, %d failed", n[Passed], n[Failed])
	if n[Skipped] > 0 {
		line += fmt.Sprintf(", %d skipped", n[Skipped])
	}
	return line, n[Failed]
}

// path is where the golden file of a case is; relative to the working folder
// if it is below it, as the places of faults are.
func path(t *graph.Test) string {
	file := filepath.Join(t.Dir, "golden", t.File, graph.Slug(t.Name)+".txt")
	wd, err := os.Getwd()
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(wd, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

// orphans removes golden files that belong to no case (with Update) or names
// them.
func (r *runner) orphans() error {
	var known, folders []string
	for _, t := range r.graph.Tests {
		known = append(known, path(t))
		if folder := filepath.Dir(path(t)); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := r.orphan(folder, e, known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *runner) orphan(folder string, e fs.DirEntry, known []string) error {
	file := filepath.Join(folder, e.Name())
	if e.IsDir() || filepath.Ext(file) != ".txt" || slices.Contains(known, file) {
		return nil
	}
	if r.opts.Update {
		fmt.Fprintf(r.opts.Out, "gone  %s belonged to no test\n", file)
		return os.Remove(file)
	}
	fmt.Fprintf(r.opts.Out, "note  %s belongs to no test: --update removes it\n", file)
	return nil
}
