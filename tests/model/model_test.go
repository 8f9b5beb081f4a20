package model

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

const (
	// timeVar says how long each run lasts; without it briefTime.
	timeVar   = "FUSION_MODEL_TIME"
	briefTime = 10 * time.Second
	// seedVar repeats the choices of a run; who is faster is not repeated.
	seedVar = "FUSION_MODEL_SEED"
)

// variant is where the states and the effects are.
type variant struct {
	name        string
	files       []string // of testdata, beside machine.cue
	database    engine
	redis, http bool
	oneDatabase bool
}

var variants = []variant{
	{name: "one PostgreSQL", files: []string{"database", "store_database", "effects_postgres", "comment"}, database: postgres, oneDatabase: true},
	{name: "one SQLite file", files: []string{"database", "store_database", "effects_sqlite", "comment"}, database: sqlite, oneDatabase: true},
	{name: "states in PostgreSQL, effects over HTTP", files: []string{"database", "store_database", "effects_http"}, database: postgres, http: true},
	{name: "states in Redis, effects over HTTP", files: []string{"store_redis", "effects_http"}, http: true, redis: true},
	{name: "states in Redis, effects in PostgreSQL", files: []string{"database", "store_redis", "effects_postgres"}, database: postgres, redis: true},
}

func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if v := os.Getenv(seedVar); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("%s is no number", seedVar)
		}
	}
	least := briefTime
	if v := os.Getenv(timeVar); v != "" {
		var err error
		if least, err = time.ParseDuration(v); err != nil {
			t.Fatalf("%s is no time such as 60s", timeVar)
		}
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Logf("repeat with %s=%d", seedVar, seed)
			v.run(t, seed, least)
		})
	}
}

// run drives one variant and checks what is left.
func (v *variant) run(t *testing.T, seed uint64, least time.Duration) {
	d := &driver{t: t, seed: seed, folder: t.TempDir()}
	for _, name := range append(v.files, "machine") {
		text, err := os.ReadFile(filepath.Join("testdata", name+".cue"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.folder, name+".cue"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.tools = slices.DeleteFunc(slices.Clone(tools), func(t tool) bool {
		return t.event == "COMMENT" && !slices.Contains(v.files, "comment")
	})
	var effects *table
	if v.database != none {
		effects = newTable(t, v.database)
		d.env = append(d.env, "DATABASE_URL="+effects.url)
	}
	if v.redis {
		d.env = append(d.env, "REDIS_URL="+servers.Redis(t))
	}
	var rec *recorder
	if v.http {
		rec = newRecorder(t, seed)
		d.env = append(d.env, "RECORDER_URL="+rec.URL)
	}
	d.run(least)
	r := &record{OneDatabase: v.oneDatabase, Calls: d.calls}
	if effects != nil {
		effects.settle()
	}
	if rec != nil {
		rec.Close() // waits for what is under way
		r.Effects = rec.effects
		t.Logf("the service: %v", rec.odd)
	} else {
		r.Effects = effects.read()
	}
	d.readStore(r)
	if v.oneDatabase && v.database == postgres {
		effects.readTransactions(r.Moves)
	}
	if faulty := r.check(); len(faulty) > 0 {
		t.Errorf("%d orders with faults:\n%s", len(faulty), report(faulty))
	}
	d.account(v.name, r)
}

// account prints what the run has seen, which must be something of everything.
func (d *driver) account(name string, r *record) {
	kills := 0
	for i := range d.places {
		kills += d.places[i].kills
		if d.places[i].kills == 0 {
			d.t.Errorf("process %d was never killed", i)
		}
	}
	// The summary of a long run takes this line.
	d.t.Logf("ran: %s: %d processes killed, %d orders, %d calls, %d effects, %d moves, %d keys in doubt",
		name, kills, d.orders, len(d.calls), len(r.Effects), len(r.Moves), len(r.Doubt))
	d.t.Logf("answers: %v", d.seen)
	if !d.enough() || len(r.Moves) == 0 || len(r.Effects) == 0 {
		d.t.Error("the run has not seen successes, conflicts and refusals: it proves nothing")
	}
	shown := map[string]bool{} // one of each odd answer
	for _, c := range d.calls {
		if kind := digits.ReplaceAllString(c.Text, "#"); (c.Verdict == unsure || c.Verdict == declined) && !shown[kind] && len(shown) < 20 {
			shown[kind] = true
			d.t.Logf("%s, for one: %s of %s: %s", c.Verdict, c.Tool, c.Request, c.Text)
		}
	}
}

// digits are what differs in texts that say the same: numbers, incidents, tools.
var digits = regexp.MustCompile(`[0-9a-f]{8}|[0-9]+|order/[a-z]+`)
