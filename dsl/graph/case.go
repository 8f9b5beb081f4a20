package graph

import (
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Test is a declared case.
type Test struct {
	Name        string
	At          Place
	Path        string
	File        string // name of the file that declares it, without folder and .cue
	Dir         string // folder of that file: golden/ stands in it
	Call        string // dotted tool name, or
	List        string // "tools"
	Args        *value.Object
	Ctx         TestCtx
	Environment map[string]string
	Seed        []File
	Database    string      // "" as the spec says, sqlite or postgres
	HTTP        []*Exchange // the only requests that may be made, in this order
	Before      []*TestCall
	Error       string // code the case must end in; "": it must succeed
	// State are the states that the caller's machines start in, After those
	// that the case must end in.
	State, After []TestState
}

// TestState is the state of a machine for the caller of a case.
type TestState struct {
	At    Place
	FSM   string
	State string
}

// TestCtx is the caller and the clock of a case.
type TestCtx struct {
	Session string        // default test
	Claims  *value.Object // nil: server.local
	Now     time.Time     // zero: the real clock
}

// TestCall is a call made before the case.
type TestCall struct {
	At   Place
	Call string
	Args *value.Object
	Ctx  *TestCtx // nil: the case's
}

// Exchange is a request that a case expects, and its answer.
type Exchange struct {
	At      Place
	API     string
	Method  string
	Target  string // path and query
	Body    any    // as value; HasBody tells whether it is compared
	HasBody bool
	Status  int
	Headers []Header
	// Answer is the body: JSON of AnswerValue, or AnswerFile's bytes.
	AnswerValue any
	HasAnswer   bool
	AnswerFile  File
	Timeout     bool // no answer comes
}

// Header is one header field.
type Header struct{ Name, Value string }
