package db_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func openRedis(t testing.TB, url string) *db.Redis {
	t.Helper()
	r, err := db.OpenRedis(db.RedisConfig{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestRedisURL(t *testing.T) {
	const scheme = "the URL must be redis://host:port/number, or rediss:// for TLS"
	const number = "the path of a Redis URL is the number of a database"
	for url, want := range map[string]string{
		"redis://h":                        "",
		"rediss://u:secret@h:1/2":          "",
		"redis://:secret@[::1]:6379/":      "",
		"":                                 scheme,
		"http://secret":                    scheme,
		"redis:secret":                     scheme,
		"redis://":                         scheme,
		"redis://u:secret@h:port":          scheme,
		"redis://u:secret@h/name":          number,
		"redis://u:secret@h/-1":            number,
		"redis://u:secret@h/1/2":           number,
		"redis://u:secret@h/1?timeout=1":   "the URL of a Redis server has no query and no fragment",
		"redis://u:secret@h/1#" + "secret": "the URL of a Redis server has no query and no fragment",
	} {
		r, err := db.OpenRedis(db.RedisConfig{URL: url})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			r.Close()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestRedisAnswers(t *testing.T) {
	r := openRedis(t, servers.Redis(t))
	if r.Database() == 0 {
		t.Error("the test is in database 0")
	}
	ctx := t.Context()
	for _, c := range []struct {
		command string
		args    []any
		want    string
	}{
		{"SET", []any{"k", "v"}, "string OK"},
		{"GET", []any{"k"}, "[]uint8 v"},
		{"GET", []any{"nothing"}, "<nil> <nil>"},
		{"INCRBY", []any{"n", int64(1) << 40}, "int64 1099511627776"},
		{"HMGET", []any{"h", "a"}, "[]interface {} [<nil>]"},
	} {
		got, err := r.Do(ctx, c.command, c.args...)
		text := fmt.Sprintf("%T %v", got, got)
		if b, ok := got.([]byte); ok {
			text = fmt.Sprintf("%T %s", got, b)
		}
		if err != nil || text != c.want {
			t.Errorf("%s %v: %s, error %v; want %s", c.command, c.args, text, err, c.want)
		}
	}
	// A script that the server does not know, and then knows, and then has
	// forgotten.
	script := db.NewRedisScript(1, "return {KEYS[1], ARGV[1] .. '"+rand.Text()+"'}")
	for range 2 {
		for range 2 {
			if got, err := r.Eval(ctx, script, "k", "x"); err != nil || len(got.([]any)) != 2 {
				t.Errorf("%v, error %v", got, err)
			}
		}
		if _, err := r.Do(ctx, "SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
	}
}

// Errors say of what kind they are, and name neither host nor password.
func TestRedisErrors(t *testing.T) {
	own := servers.PrivateRedis(t, "requirepass", "hidden-password")
	_, port, _ := strings.Cut(strings.TrimSuffix(own.URL, "/0"), "127.0.0.1:")
	right := "redis://:hidden-password@127.0.0.1:" + port
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	for _, c := range []struct {
		name, url   string
		command     []any
		unavailable bool
	}{
		{"right", right, []any{"PING"}, false},
		{"a password alone", "redis://hidden-password@127.0.0.1:" + port, []any{"PING"}, false},
		{"no password", "redis://127.0.0.1:" + port, []any{"PING"}, true},
		{"a wrong password", "redis://:wrong-password@127.0.0.1:" + port, []any{"PING"}, true},
		{"a wrong user", "redis://someone:hidden-password@127.0.0.1:" + port, []any{"PING"}, true},
		{"nobody there", "redis://:hidden-password@" + nobody, []any{"PING"}, true},
		{"no such host", "redis://:hidden-password@no-such-host.invalid", []any{"PING"}, true},
		{"a wrong command", right, []any{"LPUSH", "k"}, false},
	} {
		r := openRedis(t, c.url)
		_, err := r.Do(t.Context(), c.command[0].(string), c.command[1:]...)
		if err == nil {
			if c.unavailable || c.name == "a wrong command" {
				t.Errorf("%s: no error", c.name)
			}
			continue
		}
		var e *db.Error
		if !errors.As(err, &e) || e.Unavailable != c.unavailable {
			t.Errorf("%s: %T %v, unavailable %t", c.name, err, err, e != nil && e.Unavailable)
		}
		for _, secret := range []string{"password@", "hidden", "wrong-pass", "127.0.0.1", port, "no-such-host"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error names %q: %v", c.name, secret, err)
			}
		}
	}
}

// A number of a database that the server does not have is an error of every
// call.
func TestRedisNoSuchDatabase(t *testing.T) {
	own := servers.PrivateRedis(t)
	r := openRedis(t, strings.TrimSuffix(own.URL, "/0")+"/99999")
	if _, err := r.Do(t.Context(), "PING"); err == nil {
		t.Error("no error")
	}
}

// A server that hangs does not hang its callers, and a full pool says so.
func TestRedisHangs(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r, err := db.OpenRedis(db.RedisConfig{URL: "redis://" + silent.Addr().String(), Pool: db.Pool{Max: 1, Acquire: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := r.Do(ctx, "PING"); ended <- err }()
	conn, err := silent.Accept() // the call has the only connection
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var e *db.Error
	if _, err := r.Do(t.Context(), "PING"); !errors.As(err, &e) || !e.Busy {
		t.Errorf("a call without a connection: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := r.Do(ctx, "PING"); !errors.As(err, &e) || !e.Timeout {
		t.Errorf("a call whose time is up: %v", err)
	}
}

// A connection that the server has closed meanwhile costs no call.
func TestRedisStaleConnections(t *testing.T) {
	own := servers.PrivateRedis(t)
	r := openRedis(t, own.URL)
	var all sync.WaitGroup
	for range 10 { // several connections in the pool
		all.Go(func() {
			if _, err := r.Do(t.Context(), "PING"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	own.Kill()
	own.Start()
	for range 10 {
		if _, err := r.Do(t.Context(), "PING"); err != nil {
			t.Error(err)
		}
	}
}

// TestRedisSubscribe breaks the connection of a subscription, which connects
// again and says so.
func TestRedisSubscribe(t *testing.T) {
	own := servers.PrivateRedis(t)
	r := openRedis(t, own.URL)
	const channel = "fusion:events"
	events := make(chan string, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Subscribe(ctx, channel, func() { events <- "connected" }, func(b []byte) { events <- string(b) })
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-events:
			if got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		case <-time.After(servers.Patience):
			t.Fatalf("no %q within %s", want, servers.Patience)
		}
	}
	publish := func(text string) {
		t.Helper()
		if n, err := r.Do(t.Context(), "PUBLISH", channel, text); err != nil || n != int64(1) {
			t.Fatalf("%v have heard %q, error %v", n, text, err)
		}
	}
	expect("connected")
	publish("one")
	publish("two")
	expect("one")
	expect("two")
	for range 3 {
		if n := own.Do("CLIENT", "KILL", "TYPE", "pubsub"); n != int64(1) {
			t.Fatalf("%v subscriptions", n)
		}
		expect("connected")
		publish("three")
		expect("three")
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(servers.Patience):
		t.Error("the subscription outlived its context")
	}
}

// tlsVar tells the test's own process which server to talk to.
const tlsVar = "FUSION_TEST_REDIS_TLS"

// TestRedisTLS talks to a server whose certificate nobody knows, and once more
// from a process that knows it: Go reads the known ones once.
func TestRedisTLS(t *testing.T) {
	if url := os.Getenv(tlsVar); url != "" {
		if answer, err := openRedis(t, url).Do(t.Context(), "PING"); err != nil || answer != "PONG" {
			t.Errorf("%v, error %v", answer, err)
		}
		return
	}
	https := httptest.NewTLSServer(nil) // for its certificate
	https.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: https.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go pong(l)
	url := "rediss://" + l.Addr().String()
	_, err = openRedis(t, url).Do(t.Context(), "PING")
	var e *db.Error
	if !errors.As(err, &e) || !e.Unavailable || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server of an unknown certificate: %v", err)
	}

	known := filepath.Join(t.TempDir(), "known.pem")
	if err := os.WriteFile(known, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.Command(os.Args[0], "-test.run=^TestRedisTLS$")
	again.Env = append(os.Environ(), tlsVar+"="+url, "SSL_CERT_FILE="+known)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("a server of a known certificate: %v\n%s", err, out)
	}
}

// pong answers PING, as a Redis server does.
func pong(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for in := bufio.NewScanner(conn); in.Scan(); {
				if in.Text() == "PING" {
					_, _ = io.WriteString(conn, "+PONG\r\n")
				}
			}
		}()
	}
}
