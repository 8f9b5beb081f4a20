package model

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fusion-serve/fusion-serve/tests/servers"
)

func TestMain(m *testing.M) { servers.Main(m) }

const (
	// timeVar says how long each run lasts; without it briefTime.
	timeVar   = "FUSION_MODEL_TIME"
	briefTime = 7 * time.Second
	// seedVar repeats the choices of a run; who is faster is not repeated.
	seedVar = "FUSION_MODEL_SEED"
)

// effectsTable holds nothing back: no key, nothing unique.
const effectsTable = `
	CREATE TABLE effects (
		serial   bigserial,
		order_id text,
		request  text,
		event    text,
		amount   int,
		rest     int
	)`

// variant is where the states and the effects are.
type variant struct {
	name        string
	files       []string // of testdata, beside machine.cue
	redis, http bool
	oneDatabase bool
}

var variants = []variant{
	{name: "one database", files: []string{"database", "store_database", "effects_sql", "comment"}, oneDatabase: true},
	{name: "states in PostgreSQL, effects over HTTP", files: []string{"database", "store_database", "effects_http"}, http: true},
	{name: "states in Redis, effects over HTTP", files: []string{"store_redis", "effects_http"}, http: true, redis: true},
	{name: "states in Redis, effects in PostgreSQL", files: []string{"database", "store_redis", "effects_sql"}, redis: true},
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
	database, rec := "", (*recorder)(nil)
	if slices.Contains(v.files, "database") {
		database = servers.Postgres(t)
		query(t, database, effectsTable)
		d.env = append(d.env, "DATABASE_URL="+database)
	}
	if v.redis {
		d.env = append(d.env, "REDIS_URL="+servers.Redis(t))
	}
	if v.http {
		rec = newRecorder(t, seed)
		d.env = append(d.env, "RECORDER_URL="+rec.URL)
	}
	d.run(least)
	r := &record{OneDatabase: v.oneDatabase, Calls: d.calls}
	if database != "" {
		settle(t, database)
	}
	if rec != nil {
		rec.Close() // waits for what is under way
		r.Effects = rec.effects
		t.Logf("the service: %v", rec.odd)
	} else {
		r.Effects = readEffects(t, database)
	}
	d.readStore(r)
	if v.oneDatabase {
		readTransactions(t, database, r.Moves)
	}
	if faulty := r.check(); len(faulty) > 0 {
		t.Errorf("%d orders with faults:\n%s", len(faulty), report(faulty))
	}
	d.account(r)
}

// account prints what the run has seen, which must be something of everything.
func (d *driver) account(r *record) {
	d.t.Logf("%d orders, %d calls, %d effects, %d moves, %d keys in doubt", d.orders, len(d.calls), len(r.Effects), len(r.Moves), len(r.Doubt))
	d.t.Logf("answers: %v", d.seen)
	kills := 0
	for i := range d.places {
		kills += d.places[i].kills
		if d.places[i].kills == 0 {
			d.t.Errorf("process %d was never killed", i)
		}
	}
	d.t.Logf("%d processes killed", kills)
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

// query runs a statement on a connection of its own and gives its rows.
func query(t *testing.T, database, sql string) [][]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// settle waits until the server has ended what killed processes had begun.
func settle(t *testing.T, database string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		busy := query(t, database, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		if len(busy) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections of killed processes do not end", len(busy))
		}
	}
}

func readEffects(t *testing.T, database string) []effect {
	t.Helper()
	var all []effect
	for _, row := range query(t, database, "SELECT serial, order_id, request, event, coalesce(amount, 0), rest, xmin::text FROM effects ORDER BY serial") {
		all = append(all, effect{
			Serial: row[0].(int64), Order: row[1].(string), Request: row[2].(string), Event: row[3].(string),
			Amount: int(row[4].(int32)), Rest: int(row[5].(int32)), Tx: row[6].(string),
		})
	}
	return all
}

// readTransactions finds the transaction of each move.
func readTransactions(t *testing.T, database string, moves []move) {
	t.Helper()
	type key struct {
		order   string
		version int64
	}
	of := map[key]string{}
	for _, row := range query(t, database, "SELECT key, version, xmin::text FROM fusion_state_history") {
		of[key{row[0].(string), row[1].(int64)}] = row[2].(string)
	}
	for i := range moves {
		m := &moves[i]
		if m.Tx = of[key{m.Order, m.Version}]; m.Tx == "" {
			t.Errorf("move %d of %s is shown, and is not in the database", m.Version, m.Order)
		}
	}
}

// show runs fusion-serve state and gives the lines below the heading.
func (d *driver) show(flags ...string) []string {
	d.t.Helper()
	cmd := exec.Command(servers.Binary(d.t), slices.Concat([]string{"state", ".", "--limit", "1000000"}, flags)...)
	cmd.Dir, cmd.Env = d.folder, append(os.Environ(), d.env...)
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[1:]
}

// readStore asks for what the store has to say, as an operator does.
func (d *driver) readStore(r *record) {
	d.t.Helper()
	for _, line := range d.show("--history") {
		f := strings.Fields(line)
		if len(f) < 10 {
			d.t.Fatalf("no line of a history: %q", line)
		}
		version, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			d.t.Fatalf("no line of a history: %q", line)
		}
		r.Moves = append(r.Moves, move{Version: version, Order: f[2], From: f[4], To: f[5], Event: f[6], Tool: f[7], Call: f[len(f)-1]})
	}
	r.States = d.readStates()
	r.Doubt = d.readStates("--doubt")
}

func (d *driver) readStates(flags ...string) []state {
	d.t.Helper()
	var all []state
	for _, line := range d.show(flags...) {
		f := strings.Fields(line)
		if len(f) < 6 {
			d.t.Fatalf("no line of a state: %q", line)
		}
		version, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			d.t.Fatalf("no line of a state: %q", line)
		}
		held := strings.Join(f[5:], " ")
		if held == "-" {
			held = ""
		}
		all = append(all, state{Order: f[1], State: f[2], Version: version, Held: held})
	}
	return all
}
