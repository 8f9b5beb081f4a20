package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const talkativeSpec = `
package talk

server: {name: "talk", version: "1.0.0"}

apis: chatter: baseURL: "http://%s"

tools: "chatter.ask": {
	kind:        "query"
	description: "Ask"
	http: {api: "chatter", get: "/ask"}
}
`

// TestServiceSpeaksUnasked: what a service sends behind its answer is in no
// line that the program prints.
func TestServiceSpeaksUnasked(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answered, hungUp := make(chan struct{}), make(chan error, 1)
	go func() { hungUp <- speakUnasked(l, answered) }()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "talk.cue"), fmt.Appendf(nil, talkativeSpec, l.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := servers.Serve(t, folder, nil, "talk.cue")
	c := &servers.Client{URL: p.URL, Revision: servers.Revisions[len(servers.Revisions)-1]}
	result, err := c.Do(context.Background(), "tools/call", map[string]any{"name": "chatter_ask", "arguments": map[string]any{}})
	if err != nil || !strings.Contains(string(result), "hello") {
		t.Fatalf("%s %v", result, err)
	}
	close(answered)
	// The client hangs up on such a service, and has said why by then.
	if err := <-hungUp; err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.Output(), "for nobody") || strings.Contains(p.Output(), "Unsolicited") {
		t.Errorf("the program prints:\n%s", p.Output())
	}
}

// speakUnasked answers one request, goes on speaking once the answer was read
// and waits for the client to hang up.
func speakUnasked(l net.Listener, answered <-chan struct{}) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(c)
	if _, err := http.ReadRequest(r); err != nil {
		return err
	}
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n\"hello\"")
	select {
	case <-answered:
	case <-time.After(time.Minute):
		return errors.New("the answer was not read")
	}
	fmt.Fprint(c, "for nobody")
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the client did not hang up: %w", err)
	}
	return nil
}
