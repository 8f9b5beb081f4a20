package main

import (
	"io"
	"sync"
)

// lineWriter writes the lines of a log, each at once, or those of a busy moment
// in one piece: a system call a line is a twentieth of what a call costs.
type lineWriter struct {
	mu      sync.Mutex
	out     io.Writer
	waiting int // functions that log many lines
	buf     []byte
}

// mostLines bounds what waits to be written, in bytes.
const mostLines = 64 << 10

// Write takes whole lines.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == 0 {
		return w.out.Write(p)
	}
	w.buf = append(w.buf, p...)
	if len(w.buf) >= mostLines {
		w.flush()
	}
	return len(p), nil
}

// together runs a function, and then writes what it has logged, and what others
// have meanwhile.
func (w *lineWriter) together(write func()) {
	w.mu.Lock()
	w.waiting++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.waiting--; w.waiting == 0 {
			w.flush()
		}
	}()
	write()
}

func (w *lineWriter) flush() {
	_, _ = w.out.Write(w.buf) // there is nobody to tell that a log cannot be written
	w.buf = w.buf[:0]
}
