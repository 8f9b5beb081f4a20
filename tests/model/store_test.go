package model

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// show runs fusion-serve state and gives the lines below the heading.
func (d *driver) show(flags ...string) []string {
	d.t.Helper()
	cmd := exec.Command(servers.Binary(d.t), slices.Concat([]string{"state", ".", "--limit", "1000000"}, flags)...)
	cmd.Dir, cmd.Env = d.folder, append(os.Environ(), d.env...)
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[1:]
}

// readStore asks for what the store has to say, as an operator does.
func (d *driver) readStore(r *record) {
	d.t.Helper()
	for _, line := range d.show("--history") {
		f := strings.Fields(line)
		if len(f) < 10 {
			d.t.Fatalf("no line of a history: %q", line)
		}
		version, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			d.t.Fatalf("no line of a history: %q", line)
		}
		r.Moves = append(r.Moves, move{Version: version, Order: f[2], From: f[4], To: f[5], Event: f[6], Tool: f[7], Call: f[len(f)-1]})
	}
	r.States = d.readStates()
	r.Doubt = d.readStates("--doubt")
}

func (d *driver) readStates(flags ...string) []state {
	d.t.Helper()
	var all []state
	for _, line := range d.show(flags...) {
		f := strings.Fields(line)
		if len(f) < 6 {
			d.t.Fatalf("no line of a state: %q", line)
		}
		version, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			d.t.Fatalf("no line of a state: %q", line)
		}
		held := strings.Join(f[5:], " ")
		if held == "-" {
			held = ""
		}
		all = append(all, state{Order: f[1], State: f[2], Version: version, Held: held})
	}
	return all
}
