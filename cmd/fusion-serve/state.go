package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// stateFlags are those of the state command.
type stateFlags struct {
	fsm, key, settle string
	doubt, history   bool
	limit            int
}

func stateCommand(ctx context.Context, c *cli, args []string) error {
	var o stateFlags
	f := c.flags("state")
	f.StringVar(&o.fsm, "fsm", "", "of this machine; without it of all")
	f.StringVar(&o.key, "key", "", "of this key, as it is listed")
	f.BoolVar(&o.doubt, "doubt", false, "only keys that a call holds: it still runs, or nobody knows what became of it")
	f.BoolVar(&o.history, "history", false, "the moves, newest first")
	f.StringVar(&o.settle, "settle", "", "give the key this state, whatever call holds it")
	f.IntVar(&o.limit, "limit", 1000, "show at most so many lines of a machine")
	paths, err := parse(f, args)
	if err != nil {
		return err
	}
	switch {
	case len(paths) == 0:
		return usageError("name the file or folder of a spec")
	case o.settle != "" && o.key == "":
		return usageError("--settle needs --key: the key whose state you decide")
	case o.settle != "" && (o.history || o.doubt), o.history && o.doubt:
		return usageError("--settle, --history and --doubt exclude each other")
	case o.limit < 1:
		return usageError("--limit must be 1 or more")
	}
	p, faults, err := c.loadOne(paths)
	if err != nil {
		return err
	}
	if n := c.report(faults); n > 0 {
		return errReported
	}
	if err := p.Open(ctx, engine.Options{Env: c.env}); err != nil {
		return err
	}
	defer c.close(ctx, p)
	return o.run(ctx, c, p)
}

func (o *stateFlags) run(ctx context.Context, c *cli, p *engine.Program) error {
	if o.settle != "" {
		if s, err := p.States(ctx, o.fsm, o.key, 1); err != nil {
			return err
		} else if !s.Remote {
			return fmt.Errorf("the states of %s are in the memory of the server: nobody else can settle them", s.FSM.Name)
		}
		from, err := p.Settle(ctx, o.fsm, o.key, o.settle, operator())
		switch {
		case errors.Is(err, gate.ErrConflict):
			return errors.New("the key was moved just now: look again before you decide")
		case err != nil:
			return err
		}
		fmt.Fprintf(c.stdout, "%s: %s -> %s\n", o.key, from, o.settle)
		return nil
	}
	machines := p.Machines()
	if o.fsm != "" || len(machines) == 0 {
		machines = []string{o.fsm}
	}
	for _, name := range machines {
		if err := o.show(ctx, c, p, name); err != nil {
			return err
		}
	}
	if o.fsm != "" || o.key != "" || o.history {
		return nil
	}
	return o.strays(ctx, c, p)
}

// strays shows what is stored of machines that the spec does not have: a doubt
// must not go with a name.
func (o *stateFlags) strays(ctx context.Context, c *cli, p *engine.Program) error {
	entries, err := p.Strays(ctx, o.limit)
	if o.doubt {
		entries = slices.DeleteFunc(entries, func(e gate.Entry) bool { return e.Hold == nil })
	}
	switch {
	case err != nil: // a Redis login need not be allowed to look for keys
		fmt.Fprintf(c.stderr, "states of machines that the spec does not have cannot be listed: %s\n", err)
		return nil
	case len(entries) == 0:
		return nil
	}
	fmt.Fprintf(c.stdout, "\nStored, of machines that the spec does not have there:\n")
	return o.table(c, entries, func(e gate.Entry) string { return e.State })
}

// operator is who settles a key, for its history.
func operator() string {
	if u, err := user.Current(); err == nil {
		return "operator " + u.Username
	}
	return "operator"
}

func (o *stateFlags) show(ctx context.Context, c *cli, p *engine.Program, fsm string) error {
	s, err := p.States(ctx, fsm, o.key, o.limit)
	if err != nil {
		return err
	}
	if !s.Remote {
		fmt.Fprintf(c.stdout, "%s: its states are in the memory of the server: nobody else can see them\n", s.FSM.Name)
		return nil
	}
	if o.history {
		w := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
		moves, err := p.History(ctx, s.FSM.Name, o.key, o.limit)
		if err != nil {
			return err
		}
		writeHistory(w, moves)
		return w.Flush()
	}
	return o.table(c, s.Entries, func(e gate.Entry) string { return p.StateNow(e, time.Now()) })
}

func (o *stateFlags) table(c *cli, entries []gate.Entry, state func(gate.Entry) string) error {
	now := time.Now()
	w := tabwriter.NewWriter(c.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "FSM\tKEY\tSTATE\tVERSION\tSINCE\tCALL\n")
	for _, e := range entries {
		if o.doubt && e.Hold == nil {
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", e.FSM, e.Key, state(e), e.Version, stamp(e.Entered), holder(e.Hold, now))
	}
	return w.Flush()
}

// holder says what call has a key, and whether it is over.
func holder(h *gate.Hold, now time.Time) string {
	if h == nil {
		return "-"
	}
	what := "running"
	if h.Uncertain(now) {
		what = "in doubt"
	}
	return fmt.Sprintf("%s: %s by %s since %s (%s)", what, h.Tool, shown(h.Caller), stamp(h.Since), h.Call)
}

func writeHistory(w io.Writer, moves []gate.Past) {
	fmt.Fprintf(w, "AT\tFSM\tKEY\tVERSION\tFROM\tTO\tEVENT\tTOOL\tBY\tCALL\n")
	for _, m := range moves {
		by := m.Caller
		if m.Event == "" && m.Tool == "" && by == "" {
			by = "time"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			stamp(m.At), m.FSM, m.Key, m.Version, m.From, m.To, dash(m.Event), dash(m.Tool), dash(shown(by)), dash(m.Call))
	}
}

// shown is a text that somebody else chose, without what a terminal obeys.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
