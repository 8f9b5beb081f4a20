package servers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Private is a PostgreSQL server of one test, which may kill it.
type Private struct {
	URL string // as its superuser

	t        testing.TB
	programs string // folder of initdb and postgres
	dir      string
	port     int
	settings []string
	as       *syscall.Credential // nil: whoever runs the test
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd has ended
	out      bytes.Buffer
}

// PrivatePostgres starts a server with more settings (name=value) and ends it
// with the test. Without the programs the test is skipped.
func PrivatePostgres(t testing.TB, settings ...string) *Private {
	t.Helper()
	p := &Private{t: t, programs: postgresPrograms(t), settings: settings}
	dir, err := os.MkdirTemp("", "fusion-serve-postgres-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p.dir = filepath.Join(dir, "data")
	if os.Getuid() == 0 { // the programs refuse to run as root
		p.as = ordinaryUser(t)
		if err := os.Chown(dir, int(p.as.Uid), int(p.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := p.command("initdb", "-D", p.dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p.port = freePort(t)
	p.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", p.port)
	p.Start()
	t.Cleanup(p.stop)
	return p
}

// postgresPrograms finds the folder with initdb and postgres: on PATH, or
// where Debian and its kin put it.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	if at, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(at)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		missing(t, "initdb is not on PATH: this test starts a PostgreSQL server of its own")
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// ordinaryUser gives a user who is not root.
func ordinaryUser(t testing.TB) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, e1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, e2 := strconv.ParseUint(u.Gid, 10, 32)
		if e1 == nil && e2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	missing(t, "there is no user postgres or nobody: PostgreSQL does not run as root")
	return nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (p *Private) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.programs, name), args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return cmd
}

// Start starts the server, again after Kill, and waits until it answers.
func (p *Private) Start() {
	p.t.Helper()
	// After a kill the last backends may still hold the memory for a moment.
	for end := time.Now().Add(Patience); ; {
		p.launch()
		if p.answers() {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("the server did not start in %s:\n%s", Patience, p.out.String())
		}
		p.Kill()
	}
}

// launch starts the program.
func (p *Private) launch() {
	p.t.Helper()
	args := []string{"-D", p.dir, "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"}
	for _, s := range p.settings {
		args = append(args, "-c", s)
	}
	p.cmd = p.command("postgres", args...)
	p.out.Reset()
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("starting postgres: %v", err)
	}
	ended, cmd := make(chan struct{}), p.cmd
	p.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
}

// answers waits until the server takes a connection; false if it ended.
func (p *Private) answers() bool {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		conn, err := pgx.Connect(ctx, p.URL)
		if err == nil {
			_ = conn.Close(ctx)
			cancel()
			return true
		}
		cancel()
		select {
		case <-p.ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Kill ends the server at once, without a word to its clients.
func (p *Private) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	for {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", p.port), time.Second)
		if err != nil {
			return
		}
		_ = conn.Close()
		time.Sleep(10 * time.Millisecond)
	}
}

// stop ends the server so that it leaves nothing behind.
func (p *Private) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(Patience):
		p.Kill()
	}
}

// Exec runs one statement as the superuser, on a connection of its own.
func (p *Private) Exec(sql string) {
	p.t.Helper()
	run(p.t, p.URL, sql)
}
