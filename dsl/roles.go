package dsl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// checkRole checks what the definition of a string asks beyond being one.
func (d *doc) checkRole(it *item) bool {
	switch it.form.role {
	case roleText:
		return d.checkBraces(&it.text)
	case roleExpr:
		if strings.TrimSpace(it.text.S) == "" {
			d.faults.Add(it.at(), it.path(), "is an empty expression")
			return false
		}
	case roleDuration:
		if _, err := parseDuration(it.text.S); err != nil {
			d.faults.Add(it.at(), it.path(), "%v", err)
			return false
		}
	case roleMoment:
		if _, err := time.Parse(time.RFC3339Nano, it.text.S); err != nil {
			d.faults.Add(it.at(), it.path(), `%q is no moment: write it as "2026-03-01T09:00:00Z"`, it.text.S)
			return false
		}
	case roleFile:
		return d.checkFile(it)
	}
	return true
}

// bareName is a text that is nothing but a name of a scope with a dot in it.
var bareName = regexp.MustCompile(`^(?:args|ctx|env|data|item|items|result)(?:\.[A-Za-z_][A-Za-z0-9_]*)+$`)

// checkBraces refuses a text that somebody forgot to put in braces, so that it
// never becomes everybody's key.
func (d *doc) checkBraces(t *graph.Text) bool {
	if !bareName.MatchString(t.S) {
		return true
	}
	d.faults.Add(t.At, t.Path, "%q is a text like any other here: write {{ %s }} for its value", t.S, t.S)
	return false
}

// checkFile looks for a file beside the one that names it.
func (d *doc) checkFile(it *item) bool {
	path := d.filePath(it)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.faults.Add(it.at(), it.path(), "there is no file %s", d.shown(path))
	case err != nil:
		d.faults.Add(it.at(), it.path(), "reading %s: %v", d.shown(path), err)
	case info.IsDir():
		d.faults.Add(it.at(), it.path(), "%s is a folder; name a file", d.shown(path))
	default:
		return true
	}
	return false
}

// filePath is where a named file is: names are relative to the file that holds
// them.
func (d *doc) filePath(it *item) string {
	name := filepath.FromSlash(it.text.S)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.dir(it.text.Place(0)), name)
}

func (d *doc) file(it *item) graph.File {
	return graph.File{At: it.at(), Name: it.text.S, Path: d.filePath(it)}
}

func (d *doc) files(it *item, name string) []graph.File {
	var l []graph.File
	for _, x := range it.list(name) {
		l = append(l, d.file(x))
	}
	return l
}

// parseDuration reads "500ms", "5s", "15m", "24h", "30d" and what Go joins of
// the first four, as in "1h30m".
func parseDuration(s string) (time.Duration, error) {
	bad := fmt.Errorf(`%q is no length of time: write it as "500ms", "5s", "15m", "24h" or "30d"`, s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n <= 0 || n > 36500 {
			return 0, bad
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	t, err := time.ParseDuration(s)
	if err != nil || t <= 0 {
		return 0, bad
	}
	return t, nil
}
