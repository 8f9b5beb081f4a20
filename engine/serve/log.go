package serve

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// callLog writes one line a call, behind the caller's back: a log that is
// slow to write to does not slow the calls.
type callLog struct {
	log *slog.Logger
	on  bool
	// together runs a function whose lines may go out at once.
	together func(write func())

	mu      sync.Mutex
	idle    sync.Cond // signalled when everything is written
	queue   []entry
	lost    int
	running bool
}

// entry is one call. Arguments and answers are never in it.
type entry struct {
	at       time.Time
	tool     string
	took     time.Duration
	outcome  string // ok or the code of the error
	incident string
}

// gather is how long the first line of a busy moment waits for others.
const gather = 2 * time.Millisecond

// maxQueue bounds the lines that wait to be written; further ones are counted.
const maxQueue = 8192

func newCallLog(log *slog.Logger, together func(write func())) *callLog {
	l := &callLog{log: log, on: log.Enabled(context.Background(), slog.LevelInfo), together: together}
	if together == nil {
		l.together = func(write func()) { write() }
	}
	l.idle.L = &l.mu
	return l
}

func (l *callLog) add(e entry) {
	if !l.on {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= maxQueue {
		l.lost++
		return
	}
	l.queue = append(l.queue, e)
	if !l.running {
		l.running = true
		go l.drain()
	}
}

func (l *callLog) drain() {
	var batch []entry
	for {
		time.Sleep(gather)
		l.mu.Lock()
		batch, l.queue = l.queue, batch[:0]
		lost := l.lost
		l.lost = 0
		if len(batch) == 0 && lost == 0 {
			l.running = false
			l.idle.Broadcast()
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.together(func() {
			for i := range batch {
				l.write(&batch[i])
			}
		})
		if lost > 0 {
			l.log.Warn("call log: the log is too slow", "lost", lost)
		}
	}
}

func (l *callLog) write(e *entry) {
	r := slog.NewRecord(e.at, slog.LevelInfo, "call", 0)
	r.AddAttrs(slog.String("tool", e.tool), slog.Duration("took", e.took), slog.String("outcome", e.outcome))
	if e.incident != "" {
		r.AddAttrs(slog.String("incident", e.incident))
	}
	// There is nobody to tell that a log line cannot be written.
	_ = l.log.Handler().Handle(context.Background(), r)
}

// flush waits until every line is written.
func (l *callLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.running {
		l.idle.Wait()
	}
}

// warnings is a handler for mcp-go, whose other lines hold session ids: who
// has one may speak for the session.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}
