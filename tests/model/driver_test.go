package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const (
	callers   = 50
	processes = 3
	// window is how many orders are called for at a time, and lives how many
	// calls an order gets before a new one takes its place. A store on Redis
	// keeps the last 50 moves of a key: an order has fewer.
	window = 40
	lives  = 45
)

// driver makes the calls and kills the processes.
type driver struct {
	t      *testing.T
	seed   uint64
	began  time.Time
	folder string   // of the spec
	env    []string // of the processes
	tools  []tool   // that the spec has
	http   *http.Client
	places [processes]place
	slots  [window]slot

	mu     sync.Mutex
	orders int    // that were begun
	calls  []call // that have ended
	seen   map[verdict]int
}

// place is where a process answers, one after the other.
type place struct {
	mu      sync.Mutex
	url     string // "": nothing answers
	started int
	process *servers.Process
	kills   int
}

func (p *place) now() (url string, started int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url, p.started
}

func (p *place) set(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.url = url
	if url != "" {
		p.started++
	}
}

// slot is an order that is called for, and where it was last seen.
type slot struct {
	mu    sync.Mutex
	order string
	left  int
	state string
}

// order gives the order of a slot to a call.
func (d *driver) order(s *slot) (name, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		d.mu.Lock()
		d.orders++
		s.order = fmt.Sprintf("o-%04d", d.orders)
		d.mu.Unlock()
		s.left, s.state = lives, initial
	}
	s.left--
	return s.order, s.state
}

// saw notes the state of an order, for the choice of the next tool only.
func (s *slot) saw(order, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order == order {
		s.state = state
	}
}

// start starts a process in a place.
func (d *driver) start(i int) {
	p := &d.places[i]
	p.process = servers.Serve(d.t, d.folder, d.env, ".")
	p.set(p.process.URL)
}

// kill ends the process of a place in the middle of what it does.
func (d *driver) kill(i int) {
	p := &d.places[i]
	p.process.Kill()
	p.set("")
	p.kills++
	for _, line := range strings.Split(p.process.Output(), "\n") {
		if strings.Contains(line, "DATA RACE") || strings.Contains(line, "panicked") {
			d.t.Errorf("process %d says: %s", i, line)
		}
	}
}

// run drives calls for at least a time, and until every process was killed
// and every kind of answer was seen.
func (d *driver) run(least time.Duration) {
	d.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	d.seen = map[verdict]int{}
	for i := range d.places {
		d.start(i)
	}
	d.began = time.Now()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() { d.caller(n, stop) })
	}
	end := sync.OnceFunc(func() {
		close(stop)
		wg.Wait()
	})
	defer end() // also when a process does not start
	rng := rand.New(rand.NewPCG(d.seed, callers))
	for patience := time.Now().Add(least + 2*time.Minute); time.Since(d.began) < least || !d.enough() && time.Now().Before(patience); {
		for _, i := range rng.Perm(processes) {
			time.Sleep(50*time.Millisecond + upTo(rng, 600*time.Millisecond))
			d.kill(i)
			time.Sleep(upTo(rng, 100*time.Millisecond))
			d.start(i)
		}
	}
	end()
	d.http.CloseIdleConnections() // a server waits 5 s for one that was never used
	for i := range d.places {
		if err := d.places[i].process.Stop(); err != nil {
			d.t.Error(err)
		}
	}
}

// enough tells whether what was seen proves something.
func (d *driver) enough() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen[done] > 0 && d.seen[taken] > 0 && d.seen[forbidden] > 0
}

// upTo is a random time below d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

// client is a caller's connection to one start of a process.
type client struct {
	*servers.Client
	started int
}

// caller makes calls until it is stopped.
func (d *driver) caller(n int, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(d.seed, uint64(n)))
	revision := []string{"2025-11-25", "2026-07-28"}[n%2]
	var clients [processes]*client
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(upTo(rng, 15*time.Millisecond)): // while the caller thinks
		}
		where := rng.IntN(processes)
		c := d.connect(clients[where], where, revision)
		clients[where] = c
		if c == nil {
			continue
		}
		s := &d.slots[rng.IntN(window)]
		order, at := d.order(s)
		call := call{Request: fmt.Sprintf("%d-%d", n, i), Order: order, Process: where}
		t := d.choose(rng, at)
		call.Tool = t.name
		args := map[string]any{"order": order, "request": call.Request}
		e := effect{Event: t.event}
		if t.event == "SUBMIT" {
			e.Amount = rng.IntN(1000)
			args["amount"] = e.Amount
		}
		d.make(c, t, args, &call)
		switch {
		case call.Verdict == silent || call.Verdict == declined:
			clients[where] = nil // the session may be gone
		case call.Verdict == forbidden:
			s.saw(order, call.State)
		case call.Verdict == done:
			if to, ok := next(at, &e); ok {
				s.saw(order, to)
			}
		}
		d.mu.Lock()
		d.calls = append(d.calls, call)
		d.seen[call.Verdict]++
		d.mu.Unlock()
	}
}

// choose takes a tool that the state seems to allow, or any.
func (d *driver) choose(rng *rand.Rand, at string) *tool {
	for range 6 {
		t := &d.tools[rng.IntN(len(d.tools))]
		if t.at(at) {
			return t
		}
	}
	return &d.tools[rng.IntN(len(d.tools))]
}

// patience is how long an answer may take. Nothing is ever that slow.
const patience = time.Minute

// connect gives the caller's connection to a process; nil: there is none now.
func (d *driver) connect(c *client, where int, revision string) *client {
	url, started := d.places[where].now()
	switch {
	case url == "":
		return nil
	case c != nil && c.started == started:
		return c
	}
	c = &client{&servers.Client{URL: url, Revision: revision, HTTP: d.http}, started}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.Connect(ctx) != nil {
		return nil // it was killed meanwhile
	}
	return c
}

// make makes a call and writes down what it was told.
func (d *driver) make(c *client, t *tool, args map[string]any, call *call) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	call.Start = time.Since(d.began)
	result, err := c.Do(ctx, "tools/call", map[string]any{"name": t.exposed(), "arguments": args})
	call.End = time.Since(d.began)
	var rpc *servers.RPCError
	switch {
	case errors.As(err, &rpc), errors.Is(err, syscall.ECONNREFUSED):
		call.Verdict, call.Text = declined, err.Error()
		return
	case err != nil:
		call.Verdict, call.Text = silent, err.Error()
		return
	}
	var answer struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(result, &answer); err != nil || answer.IsError && len(answer.Content) == 0 {
		call.Verdict, call.Text = unsure, fmt.Sprintf("%v: %s", err, result)
		return
	}
	if !answer.IsError {
		call.Verdict = done
		return
	}
	call.Text = answer.Content[0].Text
	call.Verdict, call.State = judge(call.Text)
}

var (
	errorCode    = regexp.MustCompile(`^<tool_error code="([A-Z_]+)"`)
	currentState = regexp.MustCompile(`is not available in the current FSM state \((?:"|&quot;)([a-z]*)(?:"|&quot;)\)`)
)

// judge reads the text of an error.
func judge(text string) (v verdict, state string) {
	code := ""
	if m := errorCode.FindStringSubmatch(text); m != nil {
		code = m[1]
	}
	m := currentState.FindStringSubmatch(text)
	switch {
	case code == "FORBIDDEN" && m != nil:
		return forbidden, m[1]
	case code == "CONFLICT" && strings.Contains(text, "Another call is moving this workflow"):
		return taken, ""
	case code == "CONFLICT" && strings.Contains(text, "nobody knows whether it took effect"):
		return doubtful, ""
	case code == "VALIDATION_ERROR", strings.Contains(text, "Nothing was changed."):
		return declined, ""
	}
	return unsure, ""
}
