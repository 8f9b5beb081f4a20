package db

import (
	"context"
	"time"
)

// reader takes a reader out of the pool.
func (e *sqliteEngine) reader(ctx context.Context) (*sqliteConn, error) {
	if err := e.slots.take(ctx); err != nil {
		return nil, err
	}
	if c := e.takeIdle(); c != nil {
		return c, nil
	}
	c, err := e.connect(ctx, true)
	if err != nil {
		e.slots.free()
		return nil, sqliteError(ctx, err)
	}
	return c, nil
}

func (e *sqliteEngine) takeIdle() *sqliteConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.idle)
	if n == 0 {
		return nil
	}
	c := e.idle[n-1]
	e.idle = e.idle[:n-1]
	return c
}

func (e *sqliteEngine) giveBack(c *sqliteConn) {
	defer e.slots.free()
	if c.broken || time.Since(c.made) > e.pool.MaxLifetime || !e.keep(c) {
		c.discard()
	}
}

// keep puts a reader among the idle ones, unless all are being closed.
func (e *sqliteEngine) keep(c *sqliteConn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return false
	}
	c.idle = time.Now()
	e.idle = append(e.idle, c)
	if e.reap == nil && len(e.idle) > e.pool.Min {
		e.reap = time.AfterFunc(e.pool.MaxIdle, e.closeIdle)
	}
	return true
}

// closeIdle closes the readers that were idle for too long, but for the
// smallest number, and comes back when there are others.
func (e *sqliteEngine) closeIdle() {
	e.mu.Lock()
	old := 0
	for old < len(e.idle)-e.pool.Min && time.Since(e.idle[old].idle) >= e.pool.MaxIdle {
		old++
	}
	closed := append([]*sqliteConn(nil), e.idle[:old]...)
	e.idle = append(e.idle[:0], e.idle[old:]...)
	e.reap = nil
	if len(e.idle) > e.pool.Min && !e.shut {
		e.reap = time.AfterFunc(e.pool.MaxIdle-time.Since(e.idle[0].idle), e.closeIdle)
	}
	e.mu.Unlock()
	for _, c := range closed {
		c.discard()
	}
}

// takeWriter waits for the writer, and opens a new one if the last one broke.
func (e *sqliteEngine) takeWriter(ctx context.Context) (*sqliteConn, error) {
	timer := time.NewTimer(e.pool.Acquire)
	defer timer.Stop()
	var c *sqliteConn
	select {
	case c = <-e.writer:
	case <-timer.C:
		return nil, busy(e.pool.Acquire, "writer")
	case <-ctx.Done():
		return nil, waited(ctx)
	}
	if c != nil && time.Since(c.made) > e.pool.MaxLifetime {
		c.discard()
		c = nil
	}
	if c != nil {
		return c, nil
	}
	c, err := e.connect(ctx, false)
	if err != nil {
		e.writer <- nil
		return nil, sqliteError(ctx, err)
	}
	return c, nil
}

func (e *sqliteEngine) giveWriterBack(c *sqliteConn) {
	if c.broken {
		c.discard()
		c = nil
	}
	e.writer <- c
}
