package bind

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

var update = flag.Bool("update", false, "rewrite docs/errors.md")

// TestPage: the page of the docs is the one that the table makes.
func TestPage(t *testing.T) {
	const file = "../../docs/errors.md"
	want := AppendPage(nil)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is stale: run go test ./engine/bind -run Page -update", file)
	}
}

func TestDefaults(t *testing.T) {
	driver := errors.New("driver words")
	state := func(s string) error { return fmt.Errorf("steps[0]: %w", &db.Error{SQLState: s, Err: driver}) }
	status := func(n int) error { return &Refused{API: "x", Status: n, Body: "its words"} }
	for _, c := range []struct {
		err  error
		code string
	}{
		{state("23505"), "CONFLICT"}, {state("23503"), "CONFLICT"}, {state("23502"), "VALIDATION_ERROR"}, {state("23514"), "VALIDATION_ERROR"},
		{state("22P02"), "VALIDATION_ERROR"}, {state("42501"), "FORBIDDEN"}, {state("40001"), "CONFLICT"}, {state("40P01"), "CONFLICT"},
		{state("57014"), "TIMEOUT"}, {state("53300"), "SERVER_BUSY"}, {state("53200"), "SERVER_BUSY"}, {state("42P01"), ""}, {state("25006"), ""}, {state(""), ""},
		{&db.Error{SQLState: "57P01", Unavailable: true, Err: driver}, "SERVER_BUSY"}, {&db.Error{Unavailable: true, Err: driver}, "SERVER_BUSY"},
		{&db.Error{Busy: true, Err: driver}, "SERVER_BUSY"}, {&db.Error{Timeout: true, Err: driver}, "TIMEOUT"},
		{status(400), ""}, {status(401), "UNAUTHORIZED"}, {status(403), "FORBIDDEN"}, {status(404), "NOT_FOUND"}, {status(409), "CONFLICT"},
		{status(422), "VALIDATION_ERROR"}, {status(429), "RATE_LIMITED"}, {status(500), ""}, {status(503), ""},
		{&api.Error{Timeout: true, Err: driver}, "TIMEOUT"}, {&api.Error{Unavailable: true, Err: driver}, "SERVER_BUSY"}, {&api.Error{Refused: true, Err: driver}, ""},
		{driver, ""},
	} {
		code := ""
		if d := DefaultOf(c.err); d != nil {
			code = d.Code
		}
		if code != c.code {
			t.Errorf("%v gives %q, want %q", c.err, code, c.code)
		}
	}
}

// What may be repeated is said to be, and only that.
func TestDefaultAdvice(t *testing.T) {
	busy := &Refused{Status: http.StatusTooManyRequests, Headers: value.Of("retry-after", "7")}
	later := &Refused{Status: http.StatusTooManyRequests, Headers: value.Of("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")}
	taken := &db.Error{SQLState: "23505", Err: errors.New("x")}
	const once = " A part of the call may have taken effect."
	for _, c := range []struct {
		err               error
		unsure, mayRepeat bool
		want              string
	}{
		{busy, false, true, "Too many requests to the service behind this.|Retry after a short delay.|7 seconds"},
		{later, true, true, "Too many requests to the service behind this.|Retry after a short delay.|Wed, 21 Oct 2026 07:28:00 GMT"},
		{busy, false, false, "Too many requests to the service behind this. Nothing was changed.|Retry after a short delay.|7 seconds"},
		{busy, true, false, "Too many requests to the service behind this." + once + "|Do not repeat this call. Tell the user what happened.|"},
		{taken, true, false, "There is an entry with these values already.|Look it up, or send other values.|"},
		{&api.Error{Timeout: true}, true, false, "The service behind this did not answer in time." + once + "|Do not repeat this call. Tell the user what happened.|"},
		{&api.Error{Timeout: true}, false, true, "The service behind this did not answer in time.|Retry once.|"},
	} {
		f := DefaultOf(c.err).Failure(c.err, c.unsure, c.mayRepeat)
		if got := f.Message + "|" + f.Suggestion + "|" + f.RetryAfter; got != c.want {
			t.Errorf("%v %v %v:\n%s\nwant\n%s", c.err, c.unsure, c.mayRepeat, got, c.want)
		}
	}
}
