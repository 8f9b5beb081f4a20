// Package e2e drives the real program with the public MCP clients: every
// client lists the tools of examples/billing.cue and calls them over HTTP and
// stdio, and must see what the wire carries and what `fusion-serve call`
// prints.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const example = "examples/billing.cue"

func TestMain(m *testing.M) { servers.Main(m) }

// call is one tools/call of the plan.
type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
	dotted    string         // name in the spec; "" for a tool that is not there
}

// plan is what every client does.
var plan = []call{
	{"billing_get_invoice", map[string]any{"id": "INV-1"}, "billing.get_invoice"},
	{"billing_list_invoices", map[string]any{"status": "overdue", "limit": 5}, "billing.list_invoices"},
	{"billing_get_invoice", map[string]any{"id": "INV-999"}, "billing.get_invoice"},
	{"billing_list_invoices", map[string]any{"limit": 500}, "billing.list_invoices"},
	{"billing_nothing", map[string]any{}, ""},
}

// answer is what a call gave, as far as clients show it.
type answer struct {
	Content           any   `json:"content,omitempty"`
	IsError           bool  `json:"isError,omitempty"`
	StructuredContent any   `json:"structuredContent,omitempty"`
	Error             *code `json:"error,omitempty"`
}

// code is a JSON-RPC error; clients word its message as they like.
type code struct {
	Code int `json:"code"`
}

// session is what a client saw.
type session struct {
	Revision string   `json:"revision"`
	Server   string   `json:"server"`
	Tools    any      `json:"tools"`
	Answers  []answer `json:"answers"`
}

// cleanEnv lets examples run on the engine that they declare.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DATABASE_URL=") })
}

// run runs a program in the root of the tree and decodes what it prints.
func run(t *testing.T, into any, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = root(t), cleanEnv()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(out) == 0 {
		t.Fatalf("%q: %v\n%s", args, err, exit.Stderr)
	} else if err != nil && exit == nil {
		t.Fatalf("%q: %v", args, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%q printed %q: %v", args, out, err)
	}
}

func root(t *testing.T) string {
	t.Helper()
	root, err := servers.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// wanted is what `fusion-serve call` says to the plan.
func wanted(t *testing.T) []answer {
	t.Helper()
	var answers []answer
	for _, c := range plan {
		var a answer
		if c.dotted == "" {
			a.Error = &code{-32602}
		} else {
			arguments, err := json.Marshal(c.Arguments)
			if err != nil {
				t.Fatal(err)
			}
			run(t, &a, servers.Binary(t), "call", example, c.dotted, string(arguments), "--format", "json")
		}
		answers = append(answers, a)
	}
	return answers
}

// compare demands what the wire carried and what call printed.
func compare(t *testing.T, got, want session) {
	t.Helper()
	if got.Revision != want.Revision || got.Server != want.Server {
		t.Errorf("agreed on %s with %q, want %s with %q", got.Revision, got.Server, want.Revision, want.Server)
	}
	if !reflect.DeepEqual(got.Tools, want.Tools) {
		t.Errorf("tools:\n%s\nwant:\n%s", show(got.Tools), show(want.Tools))
	}
	for i, a := range want.Answers {
		if i >= len(got.Answers) || !reflect.DeepEqual(got.Answers[i], a) {
			t.Errorf("%s %v:\n%s\nwant:\n%s", plan[i].Name, plan[i].Arguments, show(got.Answers[i:min(i+1, len(got.Answers))]), show(a))
		}
	}
}

func show(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// wire makes the plan with no library at all.
func wire(t *testing.T, url, revision string) session {
	t.Helper()
	ctx := context.Background()
	c := &servers.Client{URL: url, Revision: revision}
	if err := c.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	result, err := c.Do(ctx, "tools/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := session{Revision: revision, Server: "billing"}
	var list struct{ Tools any }
	if err := json.Unmarshal(result, &list); err != nil {
		t.Fatal(err)
	}
	s.Tools = list.Tools
	for _, p := range plan {
		var a answer
		result, err := c.Do(ctx, "tools/call", map[string]any{"name": p.Name, "arguments": p.Arguments})
		var rpc *servers.RPCError
		if errors.As(err, &rpc) {
			a.Error = &code{rpc.Code}
		} else if err != nil {
			t.Fatal(err)
		} else if err := json.Unmarshal(result, &a); err != nil {
			t.Fatal(err)
		}
		s.Answers = append(s.Answers, a)
	}
	return s
}

// TestWire makes the plan on the wire, in each revision.
func TestWire(t *testing.T) {
	p := servers.Serve(t, root(t), nil, example)
	want := session{Server: "billing", Answers: wanted(t)}
	want.Tools = wire(t, p.URL, servers.Revisions[0]).Tools
	for _, revision := range servers.Revisions {
		t.Run(revision, func(t *testing.T) {
			want.Revision = revision
			compare(t, wire(t, p.URL, revision), want)
		})
	}
}

// TestClients makes the plan with both SDKs, over both transports.
func TestClients(t *testing.T) {
	node, modules := servers.Node(t)
	clients := clientFolder(t, modules)
	p := servers.Serve(t, root(t), nil, example)
	want := session{Server: "billing", Answers: wanted(t), Tools: wire(t, p.URL, "2025-11-25").Tools}
	stdio := map[string]any{"command": servers.Binary(t), "args": []string{"serve", "--stdio", example}, "cwd": root(t), "calls": plan}
	http := map[string]any{"url": p.URL, "calls": plan}
	for _, c := range []struct {
		script, transport string
		plan              any
		revision          string
	}{
		{"v1.mjs", "http", http, "2025-11-25"},
		{"v1.mjs", "stdio", stdio, "2025-11-25"},
		{"v2.mjs", "http", http, "2026-07-28"},
		{"v2.mjs", "stdio", stdio, "2026-07-28"},
	} {
		t.Run(c.script+" "+c.transport, func(t *testing.T) {
			text, err := json.Marshal(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			var got session
			run(t, &got, node, filepath.Join(clients, c.script), string(text))
			want := want
			want.Revision = c.revision
			compare(t, got, want)
		})
	}
}

// clientFolder copies the scripts to a folder where Node finds the clients.
func clientFolder(t *testing.T, modules string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("clients")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestInspector makes the plan with the inspector's command line, one process
// a request. It refuses tools that it does not see in the list by itself.
func TestInspector(t *testing.T) {
	node, modules := servers.Node(t)
	inspector := filepath.Join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	p := servers.Serve(t, root(t), nil, example)
	tools, answers := wire(t, p.URL, "2025-11-25").Tools, wanted(t)
	targets := map[string][]string{
		"http":  {p.URL},
		"stdio": {servers.Binary(t), "serve", example, "--stdio"},
	}
	for _, transport := range []string{"http", "stdio"} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(transport+" "+era, func(t *testing.T) {
				cli := append([]string{node, inspector, "--cli"}, targets[transport]...)
				cli = append(cli, "--protocol-era", era, "-q", "--format", "json", "--method")
				var list struct{ Result struct{ Tools any } }
				run(t, &list, append(cli, "tools/list")...)
				if !reflect.DeepEqual(list.Result.Tools, tools) {
					t.Errorf("tools:\n%s\nwant:\n%s", show(list.Result.Tools), show(tools))
				}
				// One good call and one that ends in an error: a process each is slow.
				for _, i := range []int{1, 2} {
					args := append(cli[:len(cli):len(cli)], "tools/call", "--tool-name", plan[i].Name)
					for name, v := range plan[i].Arguments {
						args = append(args, "--tool-arg", fmt.Sprintf("%s=%v", name, v))
					}
					var got struct{ Result answer }
					run(t, &got, args...)
					if !reflect.DeepEqual(got.Result, answers[i]) {
						t.Errorf("%s:\n%s\nwant:\n%s", plan[i].Name, show(got.Result), show(answers[i]))
					}
				}
			})
		}
	}
}

// TestStrict has the inspector look for input schemas that other hosts would
// not take.
func TestStrict(t *testing.T) {
	node, modules := servers.Node(t)
	inspector := filepath.Join(modules, "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	p := servers.Serve(t, root(t), nil, example)
	out, err := exec.Command(node, inspector, "--cli", p.URL, "--strict", "--method", "tools/list").CombinedOutput()
	if err != nil {
		t.Errorf("inspector --strict: %v\n%s", err, out)
	}
}
