package dsl

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

func (d *doc) test(it *item) *graph.Test {
	file := it.node.source()
	t := &graph.Test{Name: it.name(), At: it.nameAt(), Path: it.path(), Call: it.str("call"), List: it.str("list"), Args: d.object(it.get("args")),
		Seed: d.files(it, "seed"), Database: it.str("database"), Error: it.str("error"),
		File: strings.TrimSuffix(filepath.Base(file), ".cue"), Dir: filepath.Dir(file)}
	t.Ctx = *d.testCtx(it)
	if env := it.get("environment"); env != nil {
		t.Environment = map[string]string{}
		for _, x := range env.fields {
			t.Environment[x.name()] = x.text.S
		}
	}
	t.State, t.After = testStates(it), testStates(it.get("after"))
	for _, x := range it.list("http") {
		t.HTTP = append(t.HTTP, d.exchange(x))
	}
	for _, b := range it.list("before") {
		c := &graph.TestCall{At: b.at(), Call: b.str("call"), Args: d.object(b.get("args"))}
		if b.get("ctx") != nil {
			c.Ctx = d.testCtx(b)
		}
		t.Before = append(t.Before, c)
	}
	return t
}

// testStates decodes the states of the caller's machines.
func testStates(it *item) []graph.TestState {
	var l []graph.TestState
	for _, x := range it.list("state") {
		l = append(l, graph.TestState{At: x.at(), FSM: x.name(), State: x.text.S})
	}
	return l
}

// testCtx decodes the caller of a case or of a call before it.
func (d *doc) testCtx(it *item) *graph.TestCtx {
	c := it.get("ctx")
	if c == nil {
		return &graph.TestCtx{Session: "test"}
	}
	x := &graph.TestCtx{Session: c.str("session"), Claims: d.object(c.get("claims"))}
	if now := c.get("now"); now != nil {
		x.Now, _ = time.Parse(time.RFC3339Nano, now.text.S)
	}
	return x
}

// exchange decodes a request that a case expects, and its answer. A mistake
// leaves its method empty.
func (d *doc) exchange(it *item) *graph.Exchange {
	x := &graph.Exchange{At: it.at(), API: it.str("api")}
	if kind, ok := d.exactlyOne(it, "a request", methods); ok {
		x.Method, x.Target = strings.ToUpper(kind), it.str(kind)
	}
	if b := it.get("body"); b != nil {
		x.Body, x.HasBody = d.data(b.node)
	}
	r := it.get("response")
	x.Status, x.Timeout = int(r.int("status")), r.bool("timeout")
	for _, h := range r.list("headers") {
		x.Headers = append(x.Headers, graph.Header{Name: h.name(), Value: h.text.S})
	}
	if b := r.get("body"); b != nil {
		x.AnswerValue, x.HasAnswer = d.data(b.node)
	}
	if f := r.get("file"); f != nil {
		x.AnswerFile = d.file(f)
	}
	return x
}
