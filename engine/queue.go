package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// queue bounds the calls of one tool at a time. Those that find no room wait,
// first come first served; those that find no room to wait are refused.
type queue struct {
	running *semaphore.Weighted
	most    int
	room    int64
	waiting atomic.Int64
}

func newQueue(c graph.Concurrency) *queue {
	if c.Max <= 0 {
		return nil
	}
	return &queue{running: semaphore.NewWeighted(int64(c.Max)), most: c.Max, room: int64(c.Queue)}
}

// enter waits until the call may run; leave must follow if it gives nil.
func (q *queue) enter(ctx context.Context, t *tool) *presenters.Failure {
	if ctx.Err() == nil && q.running.TryAcquire(1) {
		return nil
	}
	if n := q.waiting.Add(1); n > q.room {
		q.waiting.Add(-1)
		return q.full(t)
	}
	defer q.waiting.Add(-1)
	switch err := q.running.Acquire(ctx, 1); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return t.unanswered(ctx, false)
	}
	return &presenters.Failure{Message: fmt.Sprintf("[%s] Request cancelled while waiting for execution slot.", t.action)}
}

func (q *queue) leave() { q.running.Release(1) }

// full is the recorded answer to a call too many.
func (q *queue) full(t *tool) *presenters.Failure {
	return &presenters.Failure{
		Code:       "SERVER_BUSY",
		Message:    fmt.Sprintf("Tool %q is at capacity (%d active, %d queued). Retry after a short delay.", t.exposed, q.most, q.room),
		Suggestion: "Reduce the number of concurrent calls to this tool. Send requests sequentially or in smaller batches.",
		Severity:   "error",
	}
}
