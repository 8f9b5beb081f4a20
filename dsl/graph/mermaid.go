package graph

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Mermaid draws the machine as a Mermaid state diagram, with those of the tools
// that are bound to it listed in the states in which they may be used. An
// arrow says its event, with a guard in [ ], or after how long time makes it.
// The text ends with a line break.
func (f *FSM) Mermaid(tools []*Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %q\n---\nstateDiagram-v2\n", f.Name)
	ids := f.mermaidIDs()
	for _, s := range f.States {
		fmt.Fprintf(&b, "    state \"%s\" as %s\n", mermaidText(s.Name), ids[s.Name])
		for _, t := range tools {
			if g := t.State; g != nil && g.FSM == f && slices.Contains(g.In, s.Name) {
				fmt.Fprintf(&b, "    %s : %s\n", ids[s.Name], mermaidText(t.Name))
			}
		}
	}
	arrow := func(from, to, label string) {
		fmt.Fprintf(&b, "    %s --> %s%s\n", from, to, label)
	}
	arrow("[*]", ids[f.Initial], "")
	for _, s := range f.States {
		for _, e := range s.On {
			for i, t := range e.Targets {
				arrow(ids[s.Name], ids[t.To], " : "+mermaidText(e.Name+guardText(t, i)))
			}
		}
		for _, a := range s.After {
			arrow(ids[s.Name], ids[a.To], " : after "+DurationText(a.Delay))
		}
		if s.Final {
			arrow(ids[s.Name], "[*]", "")
		}
	}
	return b.String()
}

// guardText is the condition of the i-th target of an event.
func guardText(t *Target, i int) string {
	switch {
	case t.When != nil:
		return " [" + strings.Join(strings.Fields(t.When.S), " ") + "]"
	case i > 0:
		return " [else]"
	}
	return ""
}

// mermaidName is what can be an id as it is, and mermaidWords are words of the
// language that cannot.
var (
	mermaidName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
	mermaidWords = []string{"accdescr", "acctitle", "as", "class", "classdef", "click", "default", "direction", "end", "fork", "hide", "href", "join", "note",
		"root_end", "root_start", "scale", "state", "statediagram", "style"}
)

// mermaidIDs gives each state an id: its name, or a number where that cannot be
// one.
func (f *FSM) mermaidIDs() map[string]string {
	ids := map[string]string{}
	n := 0
	for _, s := range f.States {
		id := s.Name
		for !mermaidName.MatchString(id) || slices.Contains(mermaidWords, strings.ToLower(id)) || id != s.Name && f.State(id) != nil {
			n++
			id = fmt.Sprintf("state%d", n)
		}
		ids[s.Name] = id
	}
	return ids
}

// mermaidText is a text in which nothing has a meaning for Mermaid or HTML.
// Mermaid writes a character as #CODE;.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < ' ' || r == 0x7f || strings.ContainsRune("\"#%&:;<>\\`{|}~", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// DurationText is a length of time as a spec writes it: 30d, 15m, 1h30m.
func DurationText(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
