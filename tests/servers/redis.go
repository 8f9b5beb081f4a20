package servers

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// RedisVar names the variable that holds the URL of a Redis server whose
// logical databases may be emptied, all but number 0.
const RedisVar = "FUSION_TEST_REDIS"

// redisClaim is how long a logical database stays a test's that does not give
// it back.
const redisClaim = 30 * time.Minute

// Redis gives the URL of a fresh logical database, which is emptied at the end
// of the test. Without a server the test is skipped. Database 0 holds nothing
// but which of the others are in use.
func Redis(t testing.TB) string {
	t.Helper()
	server := os.Getenv(RedisVar)
	if server == "" {
		missing(t, RedisVar+" is not set: give it the URL of a Redis server, such as redis://127.0.0.1:6379")
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is no URL", RedisVar)
	}
	conn, err := redis.DialURL(server, redis.DialConnectTimeout(Patience), redis.DialReadTimeout(Patience))
	if err != nil {
		t.Fatalf("connecting to the server of %s: %v", RedisVar, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	do := func(command string, args ...any) any {
		t.Helper()
		answer, err := conn.Do(command, args...)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return answer
	}
	do("SELECT", 0)
	setting, err := redis.Strings(do("CONFIG", "GET", "databases"), nil)
	if err != nil || len(setting) != 2 {
		t.Fatalf("the server of %s does not tell how many databases it has", RedisVar)
	}
	count, err := strconv.Atoi(setting[1])
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for number := 1; number < count; number++ {
			claim, who := fmt.Sprintf("fusion_test:%d", number), rand.Text()
			if do("SET", claim, who, "NX", "PX", redisClaim.Milliseconds()) == nil {
				continue
			}
			empty := func() {
				do("SELECT", number)
				do("FLUSHDB")
				do("SELECT", 0)
			}
			empty()
			t.Cleanup(func() {
				empty()
				do("DEL", claim)
			})
			u.Path = "/" + strconv.Itoa(number)
			return u.String()
		}
	}
	t.Fatalf("none of the %d databases of %s is free", count, RedisVar)
	return ""
}

// OwnRedis is a Redis server of one test, which may kill it.
type OwnRedis struct {
	URL string

	t        testing.TB
	program  string
	dir      string
	port     int
	settings []string
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd has ended
	out      bytes.Buffer
}

// PrivateRedis starts a server with more settings, each a name and a value,
// and ends it with the test. What it holds outlives Kill only with
// "appendonly", "yes". Without the program the test is skipped.
func PrivateRedis(t testing.TB, settings ...string) *OwnRedis {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server is not on PATH: this test starts a Redis server of its own")
	}
	r := &OwnRedis{t: t, program: program, settings: settings, dir: t.TempDir(), port: freePort(t)}
	r.URL = fmt.Sprintf("redis://127.0.0.1:%d/0", r.port)
	r.Start()
	t.Cleanup(r.Kill)
	return r
}

// Start starts the server, again after Kill, and waits until it answers.
func (r *OwnRedis) Start() {
	r.t.Helper()
	args := []string{"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir, "--save", ""}
	for i, s := range r.settings {
		if i%2 == 0 {
			s = "--" + s
		}
		args = append(args, s)
	}
	for end := time.Now().Add(Patience); ; {
		r.cmd = exec.Command(r.program, args...)
		r.out.Reset()
		r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
		if err := r.cmd.Start(); err != nil {
			r.t.Fatalf("starting redis-server: %v", err)
		}
		ended, cmd := make(chan struct{}), r.cmd
		r.ended = ended
		go func() { _ = cmd.Wait(); close(ended) }()
		if r.answers(end) {
			return
		}
		r.Kill()
		if time.Now().After(end) {
			r.t.Fatalf("the server did not start in %s:\n%s", Patience, r.out.String())
		}
	}
}

// answers waits until the server takes commands; false if it ended, or at end.
func (r *OwnRedis) answers(end time.Time) bool {
	for time.Now().Before(end) {
		if conn, err := redis.DialURL(r.URL, redis.DialConnectTimeout(2*time.Second), redis.DialReadTimeout(2*time.Second)); err == nil {
			_, err = conn.Do("PING")
			_ = conn.Close()
			// LOADING: it reads its file; another refusal is an answer too.
			if said := redis.Error(""); err == nil || errors.As(err, &said) && !strings.HasPrefix(string(said), "LOADING") {
				return true
			}
		}
		select {
		case <-r.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// Kill ends the server at once, without a word to its clients.
func (r *OwnRedis) Kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
	for {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", r.port), time.Second)
		if err != nil {
			return
		}
		_ = conn.Close()
		time.Sleep(10 * time.Millisecond)
	}
}

// Do runs a command on a connection of its own.
func (r *OwnRedis) Do(command string, args ...any) any {
	r.t.Helper()
	conn, err := redis.DialURL(r.URL, redis.DialConnectTimeout(Patience), redis.DialReadTimeout(Patience))
	if err != nil {
		r.t.Fatalf("connecting to the test's own Redis: %v", err)
	}
	defer func() { _ = conn.Close() }()
	answer, err := conn.Do(command, args...)
	if err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	return answer
}
