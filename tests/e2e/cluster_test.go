package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

// TestCluster: three processes are one server, with the cart's states in its own
// database, and in Redis. Each part leaves an empty cart.
func TestCluster(t *testing.T) {
	parts := []struct {
		name string
		run  func(*testing.T, *cluster)
	}{{"walk", walk}, {"session", session2025}, {"listen", listen}, {"stdio", onStdio}, {"stranger", stranger}}
	onBoth := func(t *testing.T, redis string) {
		c := cartCluster(t, servers.Postgres(t), redis)
		for _, part := range parts {
			t.Run(part.name, func(t *testing.T) { part.run(t, c) })
		}
	}
	t.Run("postgres", func(t *testing.T) { onBoth(t, "") })
	t.Run("redis", func(t *testing.T) { onBoth(t, servers.Redis(t)) })
}

// walk: requests of 2026-07-28 go round the processes, and whichever answers
// knows the state.
func walk(t *testing.T, c *cluster) {
	through := at(c.url, modern)
	see := func(after, want string) {
		t.Helper()
		for range 6 {
			if got := menu(t, through); got != want {
				t.Errorf("after %s a client sees %s, want %s", after, got, want)
			}
		}
		for i, p := range c.processes {
			if got := menu(t, at(p.URL, modern)); got != want {
				t.Errorf("after %s process %d shows %s, want %s", after, i, got, want)
			}
		}
	}
	see("nothing", emptyCart)
	for _, step := range []struct {
		tool      string
		arguments map[string]any
		sees      string
	}{
		{"cart_add", tea, filledCart},
		{"cart_checkout", nil, paidCart},
		{"cart_cancel", nil, filledCart},
		{"cart_remove", tea, emptyCart},
		{"cart_add", tea, filledCart},
		{"cart_checkout", nil, paidCart},
		{"cart_pay", map[string]any{"token": "token-1"}, emptyCart},
	} {
		mustUse(t, through, step.tool, step.arguments)
		see(step.tool, step.sees)
	}
	for i, p := range c.processes {
		if err := use(at(p.URL, modern), "cart_checkout", nil); err == nil || !strings.Contains(err.Error(), "FORBIDDEN") {
			t.Errorf("process %d lets an empty cart go to payment: %v", i, err)
		}
		until(t, "a process that had its turn", func() error {
			if n := calls(p); n < 3 { // two through the proxy
				return fmt.Errorf("process %d has answered %d calls", i, n)
			}
			return nil
		})
	}
}

// session2025: a session of a 2025 revision comes back to its process, and hears
// on its stream what the others move.
func session2025(t *testing.T, c *cluster) {
	client, heard := connect(t, c.url)
	second, alsoHeard := connect(t, c.url)
	home := c.owner(t, client)
	if c.owner(t, second) == home {
		t.Error("both sessions live in one process: requests without a session do not go round")
	}
	for range 20 {
		mustUse(t, client, "cart_view", nil)
		mustUse(t, second, "cart_view", nil)
	}
	steps := []struct {
		tool      string
		arguments map[string]any
		sees      string
	}{{"cart_add", tea, filledCart}, {"cart_clear", nil, emptyCart}}
	for n, step := range steps {
		other := c.processes[(home+1+n)%3]
		mustUse(t, at(other.URL, modern), step.tool, step.arguments)
		heard.hears(t, listChanged)
		alsoHeard.hears(t, listChanged)
		if got := menu(t, client); got != step.sees {
			t.Errorf("after %s in another process the session sees %s, want %s", step.tool, got, step.sees)
		}
	}
}

// listen: a subscription of 2026-07-28 hears through the proxy what each of the
// processes moves, once.
func listen(t *testing.T, c *cluster) {
	heard := subscribe(t, c.url)
	for i, p := range c.processes {
		direct := at(p.URL, modern)
		mustUse(t, direct, "cart_add", tea)
		heard.hears(t, listChanged)
		mustUse(t, direct, "cart_clear", nil)
		heard.hears(t, listChanged)
		select {
		case m := <-heard:
			t.Errorf("after process %d the subscription hears %q too", i, m)
		default:
		}
	}
}

// TestClusterKill: when processes die, one after the other, clients of 2026-07-28
// go on; a session that lived in one begins anew; and a process that takes its
// place gets its share.
func TestClusterKill(t *testing.T) {
	c := cartCluster(t, servers.Postgres(t), "")
	client, heard := connect(t, c.url)
	home := c.owner(t, client)
	dead := c.processes[home]
	dead.Kill()
	if m := heard.next(t); m != "" {
		t.Errorf("the stream of a process that has died says %q", m)
	}
	through := at(c.url, modern)
	goOn := func() {
		t.Helper()
		for range 10 {
			mustUse(t, through, "cart_add", tea)
			if got := menu(t, through); got != filledCart {
				t.Errorf("a client sees %s, want %s", got, filledCart)
			}
			mustUse(t, through, "cart_clear", nil)
			if got := menu(t, through); got != emptyCart {
				t.Errorf("a client sees %s, want %s", got, emptyCart)
			}
		}
	}
	goOn()
	c.processes[(home+1)%3].Kill()
	goOn()
	if got := status(t, client, "tools/list"); got != http.StatusNotFound {
		t.Errorf("a session whose process has died is answered %d, want 404", got)
	}
	_, heard = connect(t, c.url)
	mustUse(t, through, "cart_add", tea)
	heard.hears(t, listChanged)

	again := c.serve(t, c.database, "--http", "127.0.0.1:"+port(t, dead))
	until(t, "a process that takes the place of one that died", func() error {
		mustUse(t, through, "cart_view", nil)
		if calls(again) == 0 {
			return errors.New("it has answered no call")
		}
		return nil
	})
}

// TestClusterCatchUp: what was moved while a process had no connection to the
// store is told to its clients once it has one again.
func TestClusterCatchUp(t *testing.T) {
	t.Run("postgres cut", func(t *testing.T) {
		c := cartCluster(t, servers.Postgres(t), "")
		catchUp(t, c, func(t *testing.T, process string) { cut(t, c.database, process) })
	})
	t.Run("postgres restarted", func(t *testing.T) {
		server := servers.PrivatePostgres(t)
		catchUp(t, cartCluster(t, server.URL, ""), func(*testing.T, string) {
			server.Kill()
			server.Start()
		})
	})
	t.Run("redis cut", func(t *testing.T) {
		server := servers.PrivateRedis(t)
		catchUp(t, cartCluster(t, servers.Postgres(t), server.URL), func(t *testing.T, _ string) {
			if n := server.Do("CLIENT", "KILL", "TYPE", "pubsub"); n == int64(0) {
				t.Error("nobody was subscribed")
			}
		})
	})
	t.Run("redis restarted", func(t *testing.T) {
		server := servers.PrivateRedis(t, "appendonly", "yes", "appendfsync", "always")
		catchUp(t, cartCluster(t, servers.Postgres(t), server.URL), func(*testing.T, string) {
			server.Kill()
			server.Start()
		})
	})
}

// catchUp stops the process of a session, so that it cannot connect again, and
// breaks its connections before another process moves the session's state.
func catchUp(t *testing.T, c *cluster, breakUp func(t *testing.T, process string)) {
	client, heard := connect(t, c.url)
	home := c.owner(t, client)
	other := at(c.processes[(home+1)%3].URL, modern)
	mustUse(t, other, "cart_add", tea)
	heard.hears(t, listChanged) // it is connected
	process := c.processes[home].PID()
	signal := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(process, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT) // once more does no harm
	breakUp(t, []string{"one", "two", "three"}[home])
	// The other process may have lost its connections as well, and finds out when
	// it uses them.
	until(t, "a move after the cut", func() error {
		if seen, err := look(other); err != nil || seen == emptyCart {
			return err // or the answer to the move was lost
		}
		return use(other, "cart_clear", nil)
	})
	signal(syscall.SIGCONT)
	heard.hears(t, listChanged)
	until(t, "the session's own look", func() error {
		seen, err := look(client)
		if err == nil && seen != emptyCart {
			err = fmt.Errorf("it sees %s, want %s", seen, emptyCart)
		}
		return err
	})
}

// cut ends all connections of a process, the one that listens among them.
func cut(t *testing.T, database, process string) {
	t.Helper()
	ctx, conn := sqlConn(t, database)
	var listening int
	var ended bool
	err := conn.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE listens), bool_and(ended) FROM (
			SELECT query ILIKE 'listen%' AS listens, pg_terminate_backend(pid, 30000) AS ended
			FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()
		) AS connections`, process).Scan(&listening, &ended)
	if err != nil || listening != 1 || !ended {
		t.Fatalf("%d connections of process %s listened, want 1; all ended: %t (%v)", listening, process, ended, err)
	}
}

// onStdio: a client on stdio hears what a process behind HTTP moves in the store
// that both share.
func onStdio(t *testing.T, c *cluster) {
	cmd := exec.Command(servers.Binary(t), "serve", "--stdio", "cart.cue")
	cmd.Dir, cmd.Env, cmd.Stderr = c.folder, append(append(os.Environ(), c.env...), "DATABASE_URL="+c.database), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	heard := make(stream, 100)
	go heard.read(out)
	defer func() { _ = cmd.Process.Kill() }() // if it has not ended below
	say := func(message string) {
		t.Helper()
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(id, want string) {
		t.Helper()
		say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`)
		var a struct {
			ID     json.RawMessage
			Result json.RawMessage
		}
		line := heard.next(t)
		if err := json.Unmarshal([]byte(line), &a); err != nil || string(a.ID) != id {
			t.Fatalf("heard %q, want the answer to %s", line, id)
		}
		if got, err := names(a.Result); err != nil || got != want {
			t.Errorf("on stdio a client sees %s, want %s (%v)", got, want, err)
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"raw","version":"1.0.0"}}}`)
	heard.hears(t, `"id":1`)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	sees("2", emptyCart)
	mustUse(t, at(c.url, modern), "cart_add", tea)
	heard.hears(t, listChanged)
	sees("3", filledCart)
	mustUse(t, at(c.url, modern), "cart_clear", nil)
	heard.hears(t, listChanged)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if m := heard.next(t); m != "" {
		t.Errorf("at the end the client on stdio hears %q", m)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process on stdio: %v", err)
	}
}

// stranger: the proxy tells who is not on this machine, whatever name
// it uses: who has no claims is nobody's customer.
func stranger(t *testing.T, c *cluster) {
	// To the proxy every address but one is elsewhere.
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := at(c.url, modern)
	client.HTTP.Transport = &http.Transport{DisableKeepAlives: true, DialContext: from.DialContext}
	for range c.processes {
		if got := menu(t, client); got != "cart_view" {
			t.Errorf("a stranger sees %s", got)
		}
	}
	if err := use(client, "cart_add", tea); err == nil || !strings.Contains(err.Error(), "AUTH_REQUIRED") {
		t.Errorf("a stranger fills a cart: %v", err)
	}
	if got := menu(t, at(c.url, modern)); got != emptyCart {
		t.Errorf("the user of this machine sees %s, want %s", got, emptyCart)
	}
}

// TestClusterCancel: a client that hangs up cancels its call, through the proxy
// too.
func TestClusterCancel(t *testing.T) {
	asked, over := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(over)
	}))
	defer api.Close()
	folder := t.TempDir()
	spec := fmt.Sprintf(talkativeSpec, strings.TrimPrefix(api.URL, "http://"))
	spec += `apis: chatter: timeout: "10m"`
	if err := os.WriteFile(filepath.Join(folder, "talk.cue"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	p := servers.Serve(t, folder, nil, "talk.cue")
	c := at(behindProxy(t, p, p, p), modern)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Do(ctx, "tools/call", map[string]any{"name": "chatter_ask", "arguments": map[string]any{}})
		failed <- err
	}()
	for _, step := range []struct {
		what string
		done <-chan struct{}
		then func()
	}{{"the service is asked", asked, cancel}, {"the service hears of the end", over, func() {}}} {
		select {
		case <-step.done:
			step.then()
		case <-time.After(patience):
			t.Fatalf("it never came that %s", step.what)
		}
	}
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the client that hung up got %v", err)
	}
}

// TestClusterScript: the script of the example runs everything, and Ctrl-C
// ends everything.
func TestClusterScript(t *testing.T) {
	servers.HAProxy(t)
	database := servers.Postgres(t)
	stock(t, database)
	script := filepath.Join(root(t), "examples/cluster/run.sh")
	path := "PATH=" + filepath.Dir(servers.Binary(t)) + ":" + os.Getenv("PATH")
	ports := freePorts(t, 4)
	cmd := exec.Command(script, append([]string{"../cart.cue"}, ports...)...)
	cmd.Dir = filepath.Dir(script)
	cmd.Env = append(os.Environ(), path, "DATABASE_URL="+database)
	p, err := servers.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	interrupt := sync.OnceValue(p.Interrupt)
	defer func() { _ = interrupt() }()
	if want := "http://127.0.0.1:" + ports[0] + "/mcp"; p.URL != want {
		t.Errorf("it prints %s, want %s", p.URL, want)
	}
	mustUse(t, at(p.URL, modern), "cart_add", tea)
	for range 3 {
		if got := menu(t, at(p.URL, modern)); got != filledCart {
			t.Errorf("a client sees %s, want %s", got, filledCart)
		}
	}
	if err := interrupt(); err != nil {
		t.Error(err)
	}
	if err := listening(ports); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}

	bare := exec.Command(script)
	bare.Env = append(cleanEnv(), path)
	if out, err := bare.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "run.sh: set DATABASE_URL") {
		t.Errorf("without a database: %v\n%s", err, out)
	}
}
