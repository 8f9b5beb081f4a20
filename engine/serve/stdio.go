package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/fusion-serve/fusion-serve/engine"
)

// ServeStdio serves one client that writes messages to in, one a line, and
// reads from out, until in or ctx ends. Then nothing more is read, and calls
// in flight get Options.Grace. Nothing but messages is written to out. An
// error is one of reading or writing; in that has ended is none.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	calls, cancelCalls := context.WithCancel(server.WithSupportedProtocolVersions(context.WithoutCancel(ctx), revisions))
	defer cancelCalls()
	c := &stdio{s: s, out: out, ctx: calls, broken: make(chan error, 1), peer: newPeer(nil), session: "stdio-" + rand.Text()}
	c.watcher = s.newWatcher(engine.Caller{Session: c.session}, true, nil)
	if err := s.core.RegisterSession(calls, c.peer); err != nil {
		return fmt.Errorf("opening the session of stdio: %w", err)
	}
	defer s.core.UnregisterSession(calls, c.peer.id)
	stop := c.pump(c.peer, c.watcher)
	read := make(chan error, 1)
	go func() { read <- c.read(in) }()
	var err error
	select {
	case err = <-read:
	case err = <-c.broken:
	case <-ctx.Done():
	}
	c.finish(cancelCalls, stop)
	s.current().program.Ended(c.session)
	s.calls.flush()
	return err
}

// stdio is the one client of a pair of streams.
type stdio struct {
	s       *Server
	ctx     context.Context // of the calls
	out     io.Writer
	writing sync.Mutex
	broken  chan error // takes the first error of out
	peer    *peer      // of a 2025 revision
	watcher *watcher   // of the same
	// session is ctx.session: one for each client on stdio, as several of them
	// may share a store of states.
	session string
	flights flights
	client  atomic.Pointer[string] // the name it gave in initialize

	mu       sync.Mutex
	stopping bool
	running  sync.WaitGroup
}

// finish waits for the calls in flight and for what they brought about to be
// told. Those that outlive their grace are cancelled and get a moment to answer.
func (c *stdio) finish(cancelCalls context.CancelFunc, told func()) {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	c.s.stopStreams()
	done := make(chan struct{})
	go func() { c.running.Wait(); told(); close(done) }()
	select {
	case <-done:
		return
	case <-time.After(c.s.opts.Grace):
	}
	cancelCalls()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// start runs f beside the reader, unless the server stops.
func (c *stdio) start(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.running.Go(f)
	}
}

func (c *stdio) stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// read takes the messages until in ends.
func (c *stdio) read(in io.Reader) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		limit := c.s.current().maxBody
		line, err := readLine(r, limit)
		switch {
		case errors.Is(err, errTooLarge):
			c.write(appendError(nil, nil, mcp.INVALID_REQUEST,
				fmt.Sprintf("The message is larger than %d bytes (server.http.maxBody).", limit)))
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return fmt.Errorf("reading from the client: %w", err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			c.take(line)
		}
		if err != nil {
			return nil
		}
	}
}

// readLine reads a line into memory of its own. One that is too large is read
// to its end and thrown away.
func readLine(r *bufio.Reader, limit int64) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if int64(len(line)+len(part)) > limit {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			if err != nil {
				return nil, err
			}
			return nil, errTooLarge
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take starts what a message asks for. initialize is answered before the next
// message is looked at, so that a client may send a call right behind it.
func (c *stdio) take(line []byte) {
	m, failed := decode(line)
	switch {
	case c.stopped():
	case failed != "":
		c.write(appendError(nil, nil, mcp.PARSE_ERROR, failed))
	case m.method == "" && !m.answer:
		c.write(appendError(nil, m.id, mcp.INVALID_REQUEST, "method is missing"))
	case m.method == methodCancelled:
		c.flights.cancel(m.params.requestID)
	case c.isTools(&m):
		c.start(func() { c.answer(&m) })
	case m.id == nil || m.answer || m.method == methodInit:
		c.pass(c.ctx, &m, line)
	default:
		c.start(func() { c.request(&m, line) })
	}
}

// isTools tells whether a request is answered here. One of 2026-07-28 whose
// _meta is not in order goes to mcp-go, which says what is wrong.
func (c *stdio) isTools(m *message) bool {
	if m.id == nil || !m.version || m.answer || m.method != methodCall && m.method != methodList {
		return false
	}
	meta := &m.params.meta
	return !isModern(meta.revision) || meta.revision == mcp.ProtocolVersion20260728 && hasCapabilities(meta.capabilities)
}

func (c *stdio) answer(m *message) {
	q := request{message: m, state: c.s.current(), modern: isModern(m.params.meta.revision), caller: c.caller(m)}
	// Whoever starts a program and speaks to it through pipes is its user.
	q.caller.Claims = q.state.local
	ctx, f := c.flights.start(c.ctx, m.id)
	defer f.land()
	buf := buffers.Get().(*[]byte)
	body, _ := c.s.answer(ctx, (*buf)[:0], &q)
	if len(body) > 0 {
		body = c.write(body)
	}
	if cap(body) <= keepBuffer {
		*buf = body
		buffers.Put(buf)
	}
}

// caller is who sent a message; claims are the program's.
func (c *stdio) caller(m *message) engine.Caller {
	who := engine.Caller{Session: c.session, Client: shorten(m.params.meta.client)}
	if name := c.client.Load(); name != nil && who.Client == "" {
		who.Client = *name
	}
	return who
}

// request lets mcp-go answer a request that may take its time.
func (c *stdio) request(m *message, line []byte) {
	ctx, f := c.flights.start(c.ctx, m.id)
	defer f.land()
	if m.method == methodListen {
		defer context.AfterFunc(c.s.streams, func() { f.cancel(nil) })()
	}
	c.pass(ctx, m, line)
}

// pass lets mcp-go handle a message and writes its answer, if there is one.
func (c *stdio) pass(ctx context.Context, m *message, line []byte) {
	p, stop := c.peer, func() {}
	if isModern(m.params.meta.revision) {
		// Every request stands for itself; one that listens hears what it
		// asked for, under its own id.
		p = newPeer(m.id)
		var wt *watcher
		if m.method == methodListen {
			wt = c.s.newWatcher(c.caller(m), true, m.id)
			ctx = context.WithValue(ctx, watcherKey{}, wt)
			if err := c.s.core.RegisterSession(ctx, p); err == nil {
				defer c.s.core.UnregisterSession(context.WithoutCancel(ctx), p.id)
			}
		}
		stop = c.pump(p, wt)
	}
	answer := c.handle(ctx, p, m, line)
	stop() // what the request brought about stands before its answer
	if len(answer) > 0 && context.Cause(ctx) != errCancelled {
		c.write(answer)
	}
	if client := c.client.Load(); client != nil && m.method == methodInit && p == c.peer {
		c.watcher.named(*client)
	}
}

// handle calls mcp-go and answers if it panics.
func (c *stdio) handle(ctx context.Context, p *peer, m *message, line []byte) (answer []byte) {
	defer func() {
		if cause := recover(); cause != nil {
			incident := newIncident()
			c.s.opts.Log.Error("request panicked", "incident", incident, "method", m.method,
				"cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
			if m.id != nil {
				answer = appendError(nil, m.id, mcp.INTERNAL_ERROR, "Something went wrong. Incident "+incident+".")
			}
		}
	}()
	ctx = context.WithValue(c.s.core.WithContext(ctx, p), greetingKey{}, greeting(func(client string) { c.client.Store(&client) }))
	resp := c.s.core.HandleMessage(ctx, line)
	if resp == nil {
		return nil
	}
	answer, err := json.Marshal(resp)
	if err != nil {
		panic(err)
	}
	return answer
}

// write writes one message as a line, in one piece, and gives the buffer back.
func (c *stdio) write(message []byte) []byte {
	message = append(message, '\n')
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(message); err != nil {
		select {
		case c.broken <- fmt.Errorf("writing to the client: %w", err):
		default: // one is enough
		}
	}
	return message
}
