package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pieces notes what is written at a time.
type pieces struct {
	mu  sync.Mutex
	all []string
}

func (p *pieces) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, string(b))
	return len(b), nil
}

// Lines stay whole and in order, and those of a busy moment go out at once.
func TestLineWriter(t *testing.T) {
	out := &pieces{}
	w := &lineWriter{out: out}
	line := func(s string) { fmt.Fprintln(w, s) }
	line("a")
	w.together(func() {
		line("b")
		w.together(func() { line("c") })
		line("d")
	})
	line("e")
	if want := []string{"a\n", "b\nc\nd\n", "e\n"}; !slices.Equal(out.all, want) {
		t.Errorf("pieces %q, want %q", out.all, want)
	}
	long := strings.Repeat("x", mostLines)
	w.together(func() { line(long); line("f") })
	if n := len(out.all); n != 5 || out.all[3] != long+"\n" || out.all[4] != "f\n" {
		t.Errorf("%d pieces after a long line", n)
	}
	out.all = nil
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				w.together(func() { line("one line") })
				line("one line")
			}
		})
	}
	all.Wait()
	if got := strings.Join(out.all, ""); got != strings.Repeat("one line\n", 800) {
		t.Errorf("%d bytes, want whole lines", len(got))
	}
}
