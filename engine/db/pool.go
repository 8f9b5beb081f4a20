package db

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Pool bounds the connections of a database. A member that is 0 is its
// default.
type Pool struct {
	Max         int           // connections at most: 10. Of SQLite: readers; there is one writer more
	Min         int           // connections that stay open though nobody uses them: 0
	MaxLifetime time.Duration // a connection is closed when it is older: 1h
	MaxIdle     time.Duration // a connection is closed when it is unused for longer: 30m
	Acquire     time.Duration // how long a call waits for a connection: 5s
}

// maxConnections is more than any server has.
const maxConnections = 10_000

func (p Pool) withDefaults() Pool {
	p.Max = min(cmp.Or(max(p.Max, 0), 10), maxConnections)
	p.Min = min(max(p.Min, 0), p.Max)
	p.MaxLifetime = cmp.Or(p.MaxLifetime, time.Hour)
	p.MaxIdle = cmp.Or(p.MaxIdle, 30*time.Minute)
	p.Acquire = cmp.Or(p.Acquire, 5*time.Second)
	return p
}

// slots lets no more callers have a connection than there may be, and none
// wait for one longer than the pool allows.
type slots struct {
	taken chan struct{}
	wait  time.Duration
}

func newSlots(p Pool) *slots {
	return &slots{taken: make(chan struct{}, p.Max), wait: p.Acquire}
}

func (s *slots) take(ctx context.Context) error {
	select {
	case s.taken <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-timer.C:
		return busy(s.wait, fmt.Sprintf("connection (of %d)", cap(s.taken)))
	case <-ctx.Done():
		return waited(ctx)
	}
}

func (s *slots) free() { <-s.taken }
