package gate_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/gate"
)

// machine makes a machine from lines such as "payment 15m filled"; the first
// state is the initial one.
func machine(ttl time.Duration, lines ...string) *graph.FSM {
	f := &graph.FSM{Name: "cart", TTL: ttl}
	for _, line := range lines {
		w := strings.Fields(line)
		s := &graph.State{Name: w[0]}
		for i := 1; i+1 < len(w); i += 2 {
			d, err := time.ParseDuration(w[i])
			if err != nil {
				panic(err)
			}
			s.After = append(s.After, &graph.After{Delay: d, To: w[i+1]})
		}
		f.States = append(f.States, s)
	}
	f.Initial = f.States[0].Name
	return f
}

// TestNow writes moves as "from>to@seconds" after the record was stored.
func TestNow(t *testing.T) {
	type row struct {
		at      time.Duration // since the record was stored
		state   string
		entered time.Duration // -1: never
		moves   string
		due     time.Duration // -1: never
	}
	for _, c := range []struct {
		name string
		f    *graph.FSM
		in   string // the stored state
		rows []row
	}{
		{"nothing happens by itself", machine(0, "a", "b"), "b", []row{{0, "b", 0, "", -1}, {1000 * time.Hour, "b", 0, "", -1}}},
		{"a timeout", machine(0, "a", "b 15m a"), "b", []row{
			{0, "b", 0, "", 15 * time.Minute},
			{15*time.Minute - 1, "b", 0, "", 15 * time.Minute},
			{15 * time.Minute, "a", 15 * time.Minute, "b>a@900", -1},
			{20 * time.Minute, "a", 15 * time.Minute, "b>a@900", -1},
		}},
		{"the shortest counts", machine(0, "a", "b 1s a 2s b"), "b", []row{{3 * time.Second, "a", time.Second, "b>a@1", -1}}},
		{"several in a row", machine(0, "a", "b 1s c", "c 2s d", "d 4s a"), "b", []row{
			{2 * time.Second, "c", time.Second, "b>c@1", 3 * time.Second},
			{6 * time.Second, "d", 3 * time.Second, "b>c@1 c>d@3", 7 * time.Second},
			{7 * time.Second, "a", 7 * time.Second, "b>c@1 c>d@3 d>a@7", -1},
		}},
		{"a circle", machine(0, "a 1s b", "b 2s a"), "a", []row{
			{2 * time.Second, "b", time.Second, "a>b@1", 3 * time.Second},
			{4 * time.Second, "b", 4 * time.Second, "a>b@1 b>a@3 a>b@4", 6 * time.Second},
			// Of many rounds the last are told.
			{720*time.Hour + time.Second, "b", 720*time.Hour + time.Second, "a>b@2591998 b>a@2592000 a>b@2592001", 720*time.Hour + 3*time.Second},
		}},
		{"into a circle", machine(0, "s 10s a", "a 1s b", "b 1s b"), "s", []row{
			{9 * time.Second, "s", 0, "", 10 * time.Second},
			{1000*time.Second + 1, "b", 1000 * time.Second, "s>a@10 a>b@11 b>b@1000", 1001 * time.Second},
		}},
		{"nobody moves for ttl", machine(time.Hour, "a", "b"), "b", []row{
			{time.Hour - 1, "b", 0, "", time.Hour},
			{time.Hour, "a", -1, "b>a@3600", -1},
			{90 * time.Hour, "a", -1, "b>a@3600", -1},
		}},
		{"ttl runs from the last stored move", machine(time.Hour, "a", "b 50m c", "c 20m a", "d"), "b", []row{
			{55 * time.Minute, "c", 50 * time.Minute, "b>c@3000", time.Hour},
			{2 * time.Hour, "a", -1, "b>c@3000 c>a@3600", -1},
		}},
		{"ttl ends a circle", machine(10*time.Second, "a 1s b", "b 1s c", "c 1s a"), "a", []row{
			{10*time.Second - 1, "a", 9 * time.Second, "a>b@7 b>c@8 c>a@9", -1},
			{time.Minute, "a", -1, "a>b@7 b>c@8 c>a@9", -1},
		}},
		{"ttl in the initial state", machine(time.Hour, "a 2h b", "b"), "a", []row{
			{30 * time.Minute, "a", 0, "", -1},
			{3 * time.Hour, "a", -1, "", -1},
		}},
		{"a state that is no more", machine(time.Hour, "a", "b"), "old", []row{
			{time.Minute, "old", 0, "", time.Hour},
			{2 * time.Hour, "a", -1, "old>a@3600", -1},
		}},
		{"a timeout into nowhere", machine(0, "a", "b 1s gone"), "b", []row{{time.Minute, "gone", time.Second, "b>gone@1", -1}}},
		{"the clock went back", machine(time.Hour, "a", "b 1s a"), "b", []row{{-time.Minute, "b", 0, "", time.Second}}},
	} {
		m := gate.New(c.f)
		for _, r := range c.rows {
			stored := gate.Record{State: c.in, Version: 3, Entered: began}
			state, entered, moves := m.Now(stored, began.Add(r.at))
			got := row{at: r.at, state: state, entered: -1, moves: told(moves), due: -1}
			if !entered.IsZero() {
				got.entered = entered.Sub(began)
			}
			if due, ok := m.Due(stored, began.Add(r.at)); ok {
				got.due = due.Sub(began)
			}
			if got != r {
				t.Errorf("%s, after %s:\n got %+v\nwant %+v", c.name, r.at, got, r)
			}
		}
	}
}

// told writes moves, and checks that time made them.
func told(moves []gate.Move) string {
	var l []string
	for _, m := range moves {
		l = append(l, fmt.Sprintf("%s>%s@%d", m.From, m.To, int64(m.At.Sub(began).Seconds())))
		if m != (gate.Move{From: m.From, To: m.To, At: m.At}) {
			l = append(l, "more than time")
		}
	}
	return strings.Join(l, " ")
}

// No time runs for a record that was never moved, nor while a call holds one.
func TestNowStands(t *testing.T) {
	m := gate.New(machine(time.Hour, "a 1s b", "b 1m a"))
	for _, c := range []struct {
		name    string
		r       gate.Record
		state   string
		entered time.Time
		moves   string
	}{
		{"never moved", gate.Record{}, "a", time.Time{}, ""},
		{"never moved and held", gate.Record{Hold: &gate.Hold{Since: began}}, "a", time.Time{}, ""},
		{"held in time", gate.Record{State: "b", Version: 1, Entered: began, Hold: &gate.Hold{Since: after(59 * time.Second)}}, "b", began, ""},
		{"held after a timeout", gate.Record{State: "b", Version: 1, Entered: began, Hold: &gate.Hold{Since: after(time.Minute), Doubt: true}}, "a", after(time.Minute), "b>a@60"},
	} {
		state, entered, moves := m.Now(c.r, after(24*time.Hour))
		if state != c.state || !entered.Equal(c.entered) || told(moves) != c.moves {
			t.Errorf("%s: %s since %s, moves %s", c.name, state, entered, told(moves))
		}
		if due, ok := m.Due(c.r, after(24*time.Hour)); ok {
			t.Errorf("%s: due at %s", c.name, due)
		}
	}
}

// Going from one due time to the next, storing as one goes or not, leads where
// one look at the end does.
func TestNowSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var lines []string
		for i := range 5 {
			line := fmt.Sprint("s", i)
			if rng.IntN(4) > 0 {
				line += fmt.Sprintf(" %ds s%d", 1+rng.IntN(9), rng.IntN(5))
			}
			lines = append(lines, line)
		}
		m := gate.New(machine(0, lines...))
		first := gate.Record{State: "s1", Version: 1, Entered: began}
		end := after(time.Duration(rng.IntN(200)) * time.Second)
		r := first
		for {
			due, ok := m.Due(r, r.Entered)
			if !ok || due.After(end) {
				break
			}
			state, entered, moves := m.Now(r, due)
			if len(moves) != 1 || !entered.Equal(due) {
				t.Fatalf("%q: due at %s from %+v, moves %s", lines, due, r, told(moves))
			}
			r = gate.Record{State: state, Version: r.Version + 1, Entered: entered}
		}
		state, entered, moves := m.Now(first, end)
		if state != r.State || !entered.Equal(r.Entered) {
			t.Fatalf("%q: step by step %s since %s, at once %s since %s", lines, r.State, r.Entered, state, entered)
		}
		for i, move := range moves {
			if i == 0 && move.From != "s1" || i > 0 && move.From != moves[i-1].To {
				t.Fatalf("%q: the moves are no chain: %s", lines, told(moves))
			}
		}
		if n := len(moves); n > 20 || n > 0 && moves[n-1].To != state {
			t.Fatalf("%q: moves %s", lines, told(moves))
		}
	}
}

func TestExpires(t *testing.T) {
	if at := gate.New(machine(0, "a")).Expires("a", began); !at.IsZero() {
		t.Errorf("without ttl: %s", at)
	}
	m := gate.New(machine(time.Hour, "a", "b"))
	if at := m.Expires("b", began); !at.Equal(after(time.Hour)) {
		t.Errorf("%s", at)
	}
}

func BenchmarkNow(b *testing.B) {
	m := gate.New(machine(720*time.Hour, "empty", "filled", "payment 15m filled"))
	r := gate.Record{State: "payment", Version: 7, Entered: began}
	now := after(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		if state, _, _ := m.Now(r, now); state != "payment" {
			b.Fatal(state)
		}
	}
}

// clauses are the targets of an event: "when => to", or "to".
func clauses(list ...string) []*graph.Target {
	var out []*graph.Target
	for _, c := range list {
		when, to, found := strings.Cut(c, " => ")
		if !found {
			out = append(out, &graph.Target{To: c})
			continue
		}
		out = append(out, &graph.Target{When: &graph.Text{S: when, Path: "fsms.cart"}, To: to})
	}
	return out
}

func TestStep(t *testing.T) {
	f := machine(0, "empty", "filled", "payment")
	f.States[0].On = []*graph.Event{{Name: "ADD", Targets: clauses("filled")}}
	f.States[1].On = []*graph.Event{
		{Name: "REMOVE", Targets: clauses("result.pieces == 0 => empty", "args.all => payment", "filled")},
		{Name: "PAY", Targets: clauses("result.pieces > 10 => payment")},
	}
	for _, c := range []struct {
		event, state string
		pieces       any
		all          bool
		want         string
		knows        bool
	}{
		{"ADD", "empty", int64(1), false, "filled", true},
		{"ADD", "filled", int64(1), false, "filled", false},
		{"ADD", "nowhere", int64(1), false, "nowhere", false},
		{"REMOVE", "filled", int64(0), true, "empty", true},
		{"REMOVE", "filled", int64(1), true, "payment", true},
		{"REMOVE", "filled", int64(1), false, "filled", true},
		{"REMOVE", "empty", int64(0), false, "empty", false},
		{"PAY", "filled", int64(10), false, "filled", true},
		{"PAY", "filled", int64(11), false, "payment", true},
		{"", "filled", int64(0), false, "filled", false},
	} {
		s, faults := gate.CompileStep(f, c.event, []string{"empty", "filled"}, callScope)
		if faults != nil {
			t.Fatal(faults)
		}
		env := callEnv("ctx", nil, "args", of("all", c.all), "result", of("pieces", c.pieces))
		got, err := s.Next(c.state, env)
		if err != nil || got != c.want || s.Knows(c.state) != c.knows {
			t.Errorf("%s in %s with %v, %t: %s, knows %t, error %v; want %s, %t", c.event, c.state, c.pieces, c.all, got, s.Knows(c.state), err, c.want, c.knows)
		}
	}
	s, _ := gate.CompileStep(f, "PAY", []string{"filled"}, callScope)
	if to, err := s.Next("filled", callEnv("result", of("pieces", "many"))); err == nil || to != "" {
		t.Errorf("a condition that cannot be answered leads to %q, error %v", to, err)
	}
}

// A condition that does not compile is told with its place.
func TestStepFaults(t *testing.T) {
	f := machine(0, "a", "b")
	f.States[0].On = []*graph.Event{{Name: "GO", Targets: clauses("reslt.x => b", "1 + 1 => a")}}
	s, faults := gate.CompileStep(f, "GO", []string{"a"}, callScope)
	var got []string
	for _, f := range faults {
		got = append(got, f.Message)
	}
	want := []string{`there is no "reslt" here (did you mean "result"?)`, "must be true or false, not a whole number"}
	if s != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("faults %q, want %q", got, want)
	}
	if _, faults := gate.CompileStep(f, "GO", []string{"b"}, callScope); faults != nil {
		t.Errorf("a condition of a state in which the tool may not be called: %v", faults)
	}
	if _, faults := gate.CompileStep(f, "STAY", []string{"a"}, callScope); faults != nil {
		t.Errorf("an event that nobody sends: %v", faults)
	}
}
