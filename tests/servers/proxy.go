package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// HAProxy gives the path of the program. Without it the test is skipped.
func HAProxy(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} { // Debian's, which only root has on PATH
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	missing(t, "haproxy is not on PATH: this test runs servers behind it")
	return ""
}

// Proxy runs HAProxy with a configuration file, with more variables
// (NAME=value) and PORT, the free port that it is to listen on, until the end
// of the test. It gives the address (host:port).
func Proxy(t testing.TB, config string, env ...string) string {
	t.Helper()
	program := HAProxy(t)
	for end := time.Now().Add(Patience); ; {
		address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
		_, port, _ := net.SplitHostPort(address)
		cmd := exec.CommandContext(context.Background(), program, "-db", "-f", config)
		cmd.Env = append(append(os.Environ(), env...), "PORT="+port)
		p := &Process{cmd: cmd, out: &output{found: make(chan string, 1)}, ended: make(chan struct{})}
		cmd.Stdout, cmd.Stderr = p.out, p.out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatalf("starting haproxy: %v", err)
		}
		go func() {
			p.err = cmd.Wait()
			close(p.ended)
		}()
		if p.takes(address, end) {
			t.Cleanup(p.Kill)
			return address
		}
		p.Kill()
		// It ends at once when another program was faster to take the port.
		if time.Now().After(end) {
			t.Fatalf("haproxy did not start in %s:\n%s", Patience, p.Output())
		}
	}
}

// takes waits until a program takes connections; false if it ended, or at end.
func (p *Process) takes(address string, end time.Time) bool {
	for time.Now().Before(end) {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = conn.Close()
			select {
			case <-p.ended: // somebody else took it
				return false
			default:
				return true
			}
		}
		select {
		case <-p.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}
