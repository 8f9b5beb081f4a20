// Command fusion-serve turns CUE specs into a Model Context Protocol server,
// and checks, calls and tests them. Results go to stdout, errors to stderr.
//
// Exit codes: 0 all is well; 1 the spec has faults, a test failed, a call
// ended in an error or the server could not go on; 2 the command line is
// wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// version of fusion-serve; the starter spec and reports name it.
const version = "0.1.0"

// command is one subcommand.
type command struct {
	name  string
	usage string // what stands behind the name
	short string
	run   func(ctx context.Context, c *cli, args []string) error
}

func commands() []command {
	return []command{
		{"serve", "PATH… [--http ADDR | --stdio]", "serve a spec to MCP clients", serveCommand},
		{"check", "PATH… [--online]", "name every mistake in a spec", checkCommand},
		{"call", "PATH TOOL [JSON-ARGS] [--ctx JSON] [--format text|json] [--structure]", "call one tool in process", callCommand},
		{"test", "PATH… [--update] [--run REGEXP] [--junit FILE]", "run a spec's golden tests", testCommand},
		{"inspect", "PATH --fsm [NAME]", "print a spec's state machines as Mermaid diagrams", inspectCommand},
		{"state", "PATH [--fsm NAME] [--key KEY] [--doubt] [--history] [--settle STATE]", "show and settle the states of a spec's machines", stateCommand},
		{"init", "DIR", "write a starter spec", initCommand},
		{"reference", "", "print the language reference", referenceCommand},
		{"version", "", "print the version", versionCommand},
	}
}

// cli is what a command works with.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(name string) (string, bool)
}

// errReported ends the program with 1; what there was to say is printed.
var errReported = errors.New("reported")

// usage is a wrong command line: what is wrong with it.
type usage string

func (u usage) Error() string { return string(u) }

func main() {
	// net/http's client writes bytes that a service sent unasked through the
	// standard logger; no log is to hold them. Nothing of ours writes there.
	log.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &cli{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
	code := c.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func (c *cli) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		c.help(c.stderr)
		return 2
	}
	switch args[0] {
	case "help", "-h", "--help":
		c.help(c.stdout)
		return 0
	case "--version":
		args[0] = "version"
	}
	for _, cmd := range commands() {
		if cmd.name == args[0] {
			return c.exit(cmd, cmd.run(ctx, c, args[1:]))
		}
	}
	fmt.Fprintf(c.stderr, "fusion-serve: there is no command %q\n", args[0])
	c.help(c.stderr)
	return 2
}

func (c *cli) exit(cmd command, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.Is(err, errReported):
		return 1
	}
	fmt.Fprintf(c.stderr, "fusion-serve %s: %s\n", cmd.name, err)
	var wrong usage
	if errors.As(err, &wrong) {
		fmt.Fprintf(c.stderr, "usage: fusion-serve %s\n", strings.TrimSpace(cmd.name+" "+cmd.usage))
		return 2
	}
	return 1
}

func (c *cli) help(w io.Writer) {
	fmt.Fprint(w, "fusion-serve turns CUE specs into an MCP server.\n\n")
	for _, cmd := range commands() {
		fmt.Fprintf(w, "  fusion-serve %s %s\n        %s\n", cmd.name, cmd.usage, cmd.short)
	}
}

func usageError(format string, args ...any) error {
	return usage(fmt.Sprintf(format, args...))
}

// flags makes the flag set of a command: flags may stand before or after the
// paths.
func (c *cli) flags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetOutput(c.stderr)
	for _, cmd := range commands() {
		if cmd.name == name {
			f.Usage = func() {
				fmt.Fprintf(c.stderr, "usage: fusion-serve %s %s\n%s", name, cmd.usage, f.FlagUsages())
			}
		}
	}
	return f
}

// parse reads the flags and gives the other arguments.
func parse(f *pflag.FlagSet, args []string) ([]string, error) {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil, err
		}
		return nil, usageError("%s", err)
	}
	return f.Args(), nil
}
