package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a started program may take to print its URL, and a
// stopped one to end.
const Patience = 30 * time.Second

// Process is a running server.
type Process struct {
	URL string // where it answers, as it printed it
	cmd *exec.Cmd
	out *output
	// ended is closed once the program has ended, with err set.
	ended  chan struct{}
	err    error
	killed bool
}

// PID gives the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output gives what the program printed so far, on both streams.
func (p *Process) Output() string { return p.out.String() }

// output collects what a program prints and tells of the first URL in it.
type output struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	found chan string // one URL
	said  bool
}

var printedURL = regexp.MustCompile(`https?://[^\s"']+`)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p)
	if !o.said {
		// A URL counts once something stands behind it: half of it may still come.
		if at := printedURL.FindIndex(o.buf.Bytes()); at != nil && at[1] < o.buf.Len() {
			o.said = true
			o.found <- string(o.buf.Bytes()[at[0]:at[1]])
		}
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Start runs a command until it prints a URL. Its group is its own, so that
// Stop reaches what it started too (go run).
func Start(cmd *exec.Cmd) (*Process, error) { return StartWithin(cmd, Patience) }

// StartWithin is Start for a command that may take as long as patience to
// print its URL, such as one that builds the program first.
func StartWithin(cmd *exec.Cmd, patience time.Duration) (*Process, error) {
	p := &Process{cmd: cmd, out: &output{found: make(chan string, 1)}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %v: %w", cmd.Args, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	select {
	case p.URL = <-p.out.found:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%v ended before it printed a URL: %w\n%s", cmd.Args, p.err, p.Output())
	case <-time.After(patience):
		p.signal(syscall.SIGKILL)
		<-p.ended
		return nil, fmt.Errorf("%v printed no URL in %s:\n%s", cmd.Args, patience, p.Output())
	}
}

// Wait waits for a program that ends by itself and gives its end.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

func (p *Process) signal(s syscall.Signal) { syscall.Kill(-p.PID(), s) }

// Kill ends the program at once, in the middle of what it does. To Stop there
// is nothing left to do.
func (p *Process) Kill() {
	p.killed = true
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// Stop ends the program as a service manager would and tells whether it went
// in good order: exit code 0 and no report of the race detector.
func (p *Process) Stop() error {
	if p.killed {
		return nil // its number may be another one's by now
	}
	if err := p.end(syscall.SIGTERM); err != nil {
		return err
	}
	if p.err != nil {
		return fmt.Errorf("%v: %w\n%s", p.cmd.Args, p.err, p.Output())
	}
	return nil
}

// Interrupt ends the program as Ctrl-C would. It asks for no exit code: go run
// then gives 1 however its program ended.
func (p *Process) Interrupt() error { return p.end(syscall.SIGINT) }

func (p *Process) end(s syscall.Signal) error {
	p.signal(s)
	select {
	case <-p.ended:
	case <-time.After(Patience):
		p.signal(syscall.SIGKILL)
		<-p.ended
		return fmt.Errorf("%v did not end within %s of a signal (%s):\n%s", p.cmd.Args, Patience, s, p.Output())
	}
	if bytes.Contains([]byte(p.Output()), []byte("DATA RACE")) {
		return errors.New("the race detector reports:\n" + p.Output())
	}
	return nil
}

// Serve starts the real program with the given arguments after "serve" on a
// free port of the loopback, in a folder, with more variables (NAME=value).
func Serve(t testing.TB, folder string, env []string, args ...string) *Process {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), Binary(t), append([]string{"serve", "--http", "127.0.0.1:0"}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}
