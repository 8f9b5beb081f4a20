package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
	// patience is how long a test waits for what must come.
	patience = time.Minute
	// cartStore is how examples/cart.cue says where its states are.
	cartStore = `store: database: "main"`
)

// The tools of examples/cart.cue in each of its states.
const (
	emptyCart  = "cart_view cart_add"
	filledCart = "cart_view cart_add cart_remove cart_clear cart_checkout"
	paidCart   = "cart_view cart_cancel cart_pay"
)

var tea = map[string]any{"sku": "TEA-1"}

// cluster is three processes of one spec behind the proxy of examples/cluster.
type cluster struct {
	url       string // of the proxy
	processes []*servers.Process
	database  string // URL
	folder    string // of the spec
	env       []string
}

// cartCluster runs the cart three times on the data of one PostgreSQL database.
// Its states are there too, or in the Redis of a URL. Each process gives
// PostgreSQL a name of its own, from one to three.
func cartCluster(t *testing.T, database, redis string) *cluster {
	t.Helper()
	c := &cluster{database: database, folder: filepath.Join(root(t), "examples")}
	stock(t, database)
	if redis != "" {
		c.folder, c.env = cartOnRedis(t, c.folder), []string{"REDIS_URL=" + redis}
	}
	for _, name := range []string{"one", "two", "three"} {
		c.processes = append(c.processes, c.serve(t, named(t, database, name)))
	}
	c.url = behindProxy(t, c.processes...)
	return c
}

// sqlConn is connected to a database until the test is over, or has no patience.
func sqlConn(t *testing.T, database string) (context.Context, *pgx.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	return ctx, conn
}

// stock makes the tables of the cart and what they hold at first.
func stock(t *testing.T, database string) {
	t.Helper()
	ctx, conn := sqlConn(t, database)
	for _, name := range []string{"cart.schema.sql", "cart.seed.sql"} {
		script, err := os.ReadFile(filepath.Join(root(t), "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, string(script)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// cartOnRedis copies the cart with its states in Redis: its tools write to
// another place than its states are in.
func cartOnRedis(t *testing.T, examples string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"cart.cue", "cart.schema.sql", "cart.seed.sql"} {
		text, err := os.ReadFile(filepath.Join(examples, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "cart.cue" {
			spec := strings.Replace(string(text), cartStore, "store: redis: env.REDIS_URL", 1)
			if spec == string(text) {
				t.Fatalf("%s does not say %s", name, cartStore)
			}
			text = []byte(spec + "\nenv: REDIS_URL: string @secret()\n")
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// named gives a database URL whose connections have a name.
func named(t *testing.T, database, name string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = url.Values{"application_name": {name}}.Encode()
	return u.String()
}

// serve runs a process of the cart.
func (c *cluster) serve(t *testing.T, database string, args ...string) *servers.Process {
	t.Helper()
	env := append(slices.Clone(c.env), "DATABASE_URL="+database)
	return servers.Serve(t, c.folder, env, append([]string{"cart.cue"}, args...)...)
}

// behindProxy runs the proxy of the example for three processes.
func behindProxy(t *testing.T, processes ...*servers.Process) (address string) {
	t.Helper()
	var env []string
	for i, name := range []string{"FIRST=", "SECOND=", "THIRD="} {
		env = append(env, name+port(t, processes[i]))
	}
	return "http://" + servers.Proxy(t, filepath.Join(root(t), "examples/cluster/haproxy.cfg"), env...) + "/mcp"
}

func port(t *testing.T, p *servers.Process) string {
	t.Helper()
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// at is a client of an address that makes a connection for each request, so
// that it is the request alone that decides where it goes.
func at(address, revision string) *servers.Client {
	return &servers.Client{URL: address, Revision: revision, HTTP: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		Timeout:   patience,
	}}
}

// menu gives the names of the tools that a client sees.
func menu(t *testing.T, c *servers.Client) string {
	t.Helper()
	seen, err := look(c)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// look is menu for a client that may have to look again.
func look(c *servers.Client) (string, error) {
	result, err := c.Do(context.Background(), "tools/list", nil)
	if err != nil {
		return "", err
	}
	return names(result)
}

func names(result json.RawMessage) (string, error) {
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(result, &list); err != nil {
		return "", err
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " "), nil
}

// use calls a tool; err is what kept it from taking effect.
func use(c *servers.Client, tool string, arguments map[string]any) (err error) {
	if arguments == nil {
		arguments = map[string]any{}
	}
	result, err := c.Do(context.Background(), "tools/call", map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(result, &a); err != nil {
		return err
	}
	if a.IsError {
		return fmt.Errorf("%s answered %s", tool, result)
	}
	return nil
}

func mustUse(t *testing.T, c *servers.Client, tool string, arguments map[string]any) {
	t.Helper()
	if err := use(c, tool, arguments); err != nil {
		t.Fatal(err)
	}
}

// until tries something until it succeeds.
func until(t *testing.T, what string, try func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// owner finds the process that a session lives in.
func (c *cluster) owner(t *testing.T, session *servers.Client) int {
	t.Helper()
	var found []int
	for i, p := range c.processes {
		direct := *session
		direct.URL = p.URL
		if _, err := direct.Do(context.Background(), "tools/list", nil); err == nil {
			found = append(found, i)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the processes %v know the session, want one", found)
	}
	return found[0]
}

// stream is what a client hears on a stream, message by message; it is closed
// when the stream ends.
type stream chan string

// open opens a stream with a request, until the end of the test.
func open(t *testing.T, r *http.Request) stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := new(http.Transport).RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		resp.Body.Close()
	})
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("no stream, but %s of %s", resp.Status, kind)
	}
	s := make(stream, 100)
	go s.read(resp.Body)
	return s
}

// read reads events, or the lines of stdio.
func (s stream) read(body io.Reader) {
	defer close(s)
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			s <- data
		} else if strings.HasPrefix(lines.Text(), "{") {
			s <- lines.Text()
		}
	}
}

// next waits for a message; "" is the end of the stream.
func (s stream) next(t *testing.T) string {
	t.Helper()
	select {
	case m := <-s:
		return m
	case <-time.After(patience):
		t.Fatal("nothing is heard")
		return ""
	}
}

// hears waits for a message with a text.
func (s stream) hears(t *testing.T, text string) {
	t.Helper()
	if m := s.next(t); !strings.Contains(m, text) {
		t.Fatalf("heard %q, want %s", m, text)
	}
}

const listChanged = `"method":"notifications/tools/list_changed"`

// connect begins a session that has listed its tools, and opens its stream.
func connect(t *testing.T, address string) (*servers.Client, stream) {
	t.Helper()
	c := at(address, legacy)
	if err := c.Connect(context.Background()); err != nil {
		t.Fatal(err)
	}
	menu(t, c)
	r, err := c.Request(context.Background(), "ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
	r.Header.Set("Accept", "text/event-stream")
	return c, open(t, r)
}

// subscribe listens to changes of the tools as a client of 2026-07-28 does.
func subscribe(t *testing.T, address string) stream {
	t.Helper()
	r, err := at(address, modern).Request(context.Background(), "subscriptions/listen",
		map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, r)
	s.hears(t, "notifications/subscriptions/acknowledged")
	return s
}

// calls tells how many calls a process has logged.
func calls(p *servers.Process) int { return strings.Count(p.Output(), "msg=call") }

// status sends a request as it is.
func status(t *testing.T, c *servers.Client, method string) int {
	t.Helper()
	r, err := c.Request(context.Background(), method, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// freePorts gives ports that nobody listens on.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

// listening says which of the ports takes connections.
func listening(ports []string) error {
	var errs []error
	for _, port := range ports {
		if conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second); err == nil {
			_ = conn.Close()
			errs = append(errs, fmt.Errorf("port %s takes connections", port))
		}
	}
	return errors.Join(errs...)
}
