package golden_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/golden"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const spec = `package spec

server: {name: "spec", version: "1"}

env: {
	GREETING: string | *"Hello"
	TOKEN:    string | *"none" @secret()
}

databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}

presenters: Person: {
	schema: {id: int, name: string, email: string}
	redact: ["email"]
	rules: [{when: "data.id == 2", text: "Write to {{ data.email }}.", unmasked: true}]
}

tools: {
	"people.get": {
		kind: "query", description: "d"
		params: id: int
		sql: {query: "SELECT id, name, email FROM people WHERE id = @id", one: true}
		returns: "Person"
	}
	"people.add": {
		kind: "action", description: "d"
		params: {id: int, name: string}
		sql: query: "INSERT INTO people (id, name, email) VALUES (@id, @name, @ctx.now)"
	}
	echo: {
		kind: "query", description: "d"
		params: password: string @secret()
		sql: {query: "SELECT @hello || @password AS said", args: hello: "{{ env.GREETING }}", one: true}
	}
	greet: {kind: "query", description: "d", value: "{{ env.GREETING }}"}
}
`

const schema = `
CREATE TABLE people (id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL);
INSERT INTO people VALUES (1, 'ann', 'ann@example.com'), (2, 'bob', 'bob@example.com');
`

// suite is a spec on disk with its cases.
type suite struct {
	dir string
	env golden.Lookup
}

func newSuite(t *testing.T, cases string) *suite {
	t.Helper()
	s := &suite{dir: t.TempDir(), env: func(string) (string, bool) { return "", false }}
	for name, text := range map[string]string{"spec.cue": spec, "schema.sql": schema, "spec_tests.cue": "package spec\n\n" + cases} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs the cases and gives what was printed, without the folder.
func (s *suite) run(t *testing.T, o golden.Options) (string, []golden.Result) {
	t.Helper()
	load := func(env golden.Lookup) (*graph.Graph, graph.Faults) {
		graphs, faults := dsl.Load([]string{filepath.Join(s.dir, "spec.cue")}, dsl.Options{Env: env, WithTests: true})
		return graphs[0], faults
	}
	g, faults := load(s.env)
	if faults.Fatal() {
		t.Fatal(faults)
	}
	var out bytes.Buffer
	o.Out, o.Env, o.Load = &out, s.env, load
	results, err := golden.Run(context.Background(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), s.dir+string(filepath.Separator), ""), results
}

func (s *suite) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "golden", "spec_tests", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestUpdateThenPassThenFail(t *testing.T) {
	s := newSuite(t, `tests: "Ann, a person": {call: "people.get", args: id: 1}`)
	got, _ := s.run(t, golden.Options{})
	if !strings.HasPrefix(got, "FAIL  Ann, a person\n      spec_tests.cue:3:8: there is no golden file golden/spec_tests/ann-a-person.txt: look at the answer below, then write it with --update\n") {
		t.Errorf("without a file: %s", got)
	}
	got, _ = s.run(t, golden.Options{Update: true})
	if got != "wrote golden/spec_tests/ann-a-person.txt\nok    Ann, a person\n" {
		t.Errorf("update: %s", got)
	}
	want := "call people.get {\"id\":1}\n\n=== text\n{\n  \"id\": 1,\n  \"name\": \"ann\",\n  \"email\": \"[REDACTED]\"\n}\n"
	if file := s.read(t, "ann-a-person.txt"); file != want {
		t.Errorf("wrote %s", file)
	}
	if got, _ = s.run(t, golden.Options{}); got != "ok    Ann, a person\n" {
		t.Errorf("again: %s", got)
	}
	changed := filepath.Join(s.dir, "golden", "spec_tests", "ann-a-person.txt")
	if err := os.WriteFile(changed, []byte(strings.Replace(want, "ann", "anna", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, results := s.run(t, golden.Options{})
	if !strings.Contains(got, "-  \"name\": \"anna\",\n      +  \"name\": \"ann\",\n") {
		t.Errorf("the diff does not show the change: %s", got)
	}
	if line, failed := golden.Totals(results); line != "0 passed, 1 failed" || failed != 1 {
		t.Errorf("totals: %s", line)
	}
}

func TestLeaks(t *testing.T) {
	s := newSuite(t, `tests: {
	"a rule shows a masked value": {call: "people.get", args: id: 2}
	"an answer repeats a secret": {call: "echo", args: password: "hunter2hunter2"}
}`)
	got, results := s.run(t, golden.Options{Update: true})
	if _, failed := golden.Totals(results); failed != 2 {
		t.Fatalf("leaks pass: %s", got)
	}
	for _, want := range []string{
		"leak: a value of 15 characters that is redacted or secret stands in the answer, on line 12 of",
		"leak: a value of 14 characters that is redacted or secret stands in the answer, on line 5 of",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not say %s", got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "golden")); !os.IsNotExist(err) {
		t.Error("a leak was blessed")
	}
}

func TestEnds(t *testing.T) {
	s := newSuite(t, `tests: {
	"must fail": {call: "greet", error: "CONFLICT"}
	"must succeed": {call: "people.get", args: id: 9}
	"another code": {call: "people.get", args: id: 9, error: "CONFLICT"}
	"before fails": {before: [{call: "people.get", args: id: 9}], call: "greet"}
}`)
	got, results := s.run(t, golden.Options{Update: true})
	for _, want := range []string{
		"the case must end in CONFLICT, but it succeeded",
		"the case must succeed, but it ended in NOT_FOUND (if it should, write error: \"NOT_FOUND\")",
		"the case must end in CONFLICT, but it ended in NOT_FOUND",
		"before[0]: people.get ended in NOT_FOUND:",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not say %s", got, want)
		}
	}
	if _, failed := golden.Totals(results); failed != 4 {
		t.Errorf("%d failed", failed)
	}
}

func TestCasesDoNotSeeEachOther(t *testing.T) {
	s := newSuite(t, `tests: [string]: ctx: now: "2026-03-01T09:00:00Z"
tests: {
	"one": {before: [{call: "people.add", args: {id: 3, name: "carla"}}], call: "people.get", args: id: 3}
	"two": {call: "people.get", args: id: 3, error: "NOT_FOUND"}
	"three": {environment: GREETING: "Moin", call: "greet"}
	"four": call: "greet"
}`)
	if got, results := s.run(t, golden.Options{Update: true}); len(results) != 4 || strings.Contains(got, "FAIL") {
		t.Fatal(got)
	}
	if f := s.read(t, "one.txt"); !strings.Contains(f, `"name": "carla"`) {
		t.Errorf("one: %s", f)
	}
	if f := s.read(t, "three.txt"); f != "call greet\n\n=== text\nMoin\n" {
		t.Errorf("three: %s", f)
	}
	if f := s.read(t, "four.txt"); f != "call greet\n\n=== text\nHello\n" {
		t.Errorf("four: %s", f)
	}
}

func TestOrphansAndRun(t *testing.T) {
	s := newSuite(t, `tests: {"keep": call: "greet", "other": call: "greet"}`)
	s.run(t, golden.Options{Update: true})
	orphan := filepath.Join(s.dir, "golden", "spec_tests", "old.txt")
	if err := os.WriteFile(orphan, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.run(t, golden.Options{Run: regexp.MustCompile("keep"), Update: true}); got != "ok    keep\n" {
		t.Errorf("one case: %s", got)
	}
	if got, _ := s.run(t, golden.Options{}); got != "ok    keep\nok    other\nnote  golden/spec_tests/old.txt belongs to no test: --update removes it\n" {
		t.Errorf("orphan: %s", got)
	}
	if got, _ := s.run(t, golden.Options{Update: true}); !strings.Contains(got, "gone  golden/spec_tests/old.txt belonged to no test\n") {
		t.Errorf("orphan: %s", got)
	}
	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Error("the orphan is still there")
	}
}

func TestPostgres(t *testing.T) {
	s := newSuite(t, `tests: "there": {database: "postgres", call: "people.get", args: id: 1}`)
	got, _ := s.run(t, golden.Options{Update: true})
	if got != "skip  there: DATABASE_URL names no PostgreSQL server to make a fresh database on\n" {
		t.Errorf("without a server: %s", got)
	}
	url := servers.Postgres(t)
	s.env = func(name string) (string, bool) { return url, name == "DATABASE_URL" }
	if got, _ := s.run(t, golden.Options{Update: true}); got != "wrote golden/spec_tests/there.txt\nok    there\n" {
		t.Errorf("with a server: %s", got)
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	err := golden.JUnit(&b, "s", []golden.Result{{Name: "a", Status: golden.Passed}, {Name: "b", Status: golden.Failed, Detail: "-x ]]> +y"}, {Name: "c", Status: golden.Skipped, Detail: "no server"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="s" tests="3" failures="1" skipped="1">
  <testcase name="a" classname="s" time="0"></testcase>
  <testcase name="b" classname="s" time="0">
    <failure><![CDATA[-x ]]]]><![CDATA[> +y]]></failure>
  </testcase>
  <testcase name="c" classname="s" time="0">
    <skipped><![CDATA[no server]]></skipped>
  </testcase>
</testsuite>
`
	if b.String() != want {
		t.Errorf("got %s", b.String())
	}
}
