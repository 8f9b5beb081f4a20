package serve

import (
	"context"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Faulty makes a server for a spec that did not load, for ServeStdio alone: a
// host shows what its server answers, and hides what a program prints that
// ends at once. initialize succeeds and tells of the faults, tools/list and
// tools/call answer with them.
func Faulty(faults graph.Faults) *Server {
	text := "The spec of this server has mistakes and was not loaded. Correct them and start the server again:\n" +
		strings.TrimRight(faults.Sorted().Error(), "\n")
	name := &graph.Server{Name: "fusion-serve", Title: "fusion-serve (spec not loaded)", Instructions: text}
	s := newServer(Fixed(unloaded{name}), Options{})
	s.faults = text
	return s
}

// unloaded stands for the program that could not be made.
type unloaded struct{ server *graph.Server }

func (u unloaded) Server() *graph.Server { return u.server }

func (u unloaded) List(context.Context, *engine.Caller) (*engine.List, error) {
	return &engine.List{}, nil
}

func (u unloaded) Watch(*engine.Caller, func()) func() { return nil }

func (u unloaded) Ended(string) {}

func (u unloaded) Call(_ context.Context, _ *engine.Caller, name string, _ []byte) (*presenters.Response, error) {
	return presenters.UnknownTool(name), engine.ErrUnknownTool
}
