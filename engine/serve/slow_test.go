package serve

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine"
)

const helloText = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// watched is a program with one watch, whose changed function comes out of c.
type watched struct {
	slow
	c       chan func()
	stopped chan struct{} // closed when the watch is stopped
}

func (p watched) Watch(_ *engine.Caller, changed func()) func() {
	p.c <- changed
	return func() { close(p.stopped) }
}

// sluggish is a client that takes each notification only when it is told to.
type sluggish struct {
	http.ResponseWriter
	entered chan struct{} // a notification wants to be written
	take    chan struct{}
}

func (s *sluggish) Flush()              {}
func (s *sluggish) Header() http.Header { return s.ResponseWriter.Header() }

func (s *sluggish) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("list_changed")) {
		s.entered <- struct{}{}
		<-s.take
	}
	return len(p), nil
}

// TestSlowClient: a client that does not read holds up nobody who changes its
// tools, and is told of the last change when it reads again.
func TestSlowClient(t *testing.T) {
	for _, over := range []string{"HTTP", "stdio"} {
		t.Run(over, func(t *testing.T) {
			p := watched{c: make(chan func(), 1), stopped: make(chan struct{})}
			s, err := New(Fixed(p), Options{})
			if err != nil {
				t.Fatal(err)
			}
			client := &sluggish{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
			var end func()
			if over == "HTTP" {
				end = slowStream(s, client)
			} else {
				end = slowPipe(s, client)
			}
			changed := <-p.c
			changed()
			within(t, "the first notification", client.entered)
			done := make(chan struct{})
			go func() {
				for range 1000 {
					changed()
				}
				close(done)
			}()
			within(t, "the end of the changes", done)
			client.take <- struct{}{}
			within(t, "the second notification", client.entered)
			client.take <- struct{}{}
			ended := make(chan struct{})
			go func() { end(); close(ended) }()
			select {
			case <-client.entered:
				t.Error("a thousand changes were more than one notification")
				client.take <- struct{}{}
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Fatal("it does not end")
			}
		})
	}
}

// TestSlowPipeEnds: what changed while the client read slowly is told, though
// the input has ended.
func TestSlowPipeEnds(t *testing.T) {
	for range 20 {
		p := watched{c: make(chan func(), 1), stopped: make(chan struct{})}
		s, err := New(Fixed(p), Options{})
		if err != nil {
			t.Fatal(err)
		}
		client := &sluggish{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		end := slowPipe(s, client)
		changed := <-p.c
		changed()
		within(t, "the first notification", client.entered)
		changed()
		ended := make(chan struct{})
		go func() { end(); close(ended) }()
		within(t, "the end of the watch", p.stopped)
		client.take <- struct{}{}
		within(t, "the second notification", client.entered)
		client.take <- struct{}{}
		within(t, "the end", ended)
	}
}

// TestNothingBehindTheEnd: a stream whose context has ended may have got its
// last event from mcp-go.
func TestNothingBehindTheEnd(t *testing.T) {
	to := httptest.NewRecorder()
	h := &writer{w: to, rc: http.NewResponseController(to)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, want := range []string{"one", "one"} {
		if err := h.say(ctx, "one"); err != nil || to.Body.String() != want {
			t.Errorf("written: %q %v", to.Body, err)
		}
		cancel()
	}
}

func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s never came", what)
	}
}

// slowStream opens the stream of a session; end closes it.
func slowStream(s *Server, w http.ResponseWriter) (end func()) {
	made := httptest.NewRecorder()
	s.ServeHTTP(made, local("POST", helloText))
	q := local("GET", "")
	q.Header.Set("Mcp-Session-Id", made.Header().Get("Mcp-Session-Id"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.ServeHTTP(w, q.WithContext(ctx)) }()
	return func() { cancel(); <-done }
}

func local(method, body string) *http.Request {
	q := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
	q.Host = "127.0.0.1"
	q.Header.Set("Content-Type", "application/json")
	return q
}

// slowPipe says hello on stdio; end closes the input.
func slowPipe(s *Server, w io.Writer) (end func()) {
	in, client := io.Pipe()
	done := make(chan struct{})
	go func() { defer close(done); _ = s.ServeStdio(context.Background(), in, w) }()
	_, _ = io.WriteString(client, helloText+"\n")
	return func() { client.Close(); <-done }
}
