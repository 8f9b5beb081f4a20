package engine_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine"
	"github.com/fusion-serve/fusion-serve/tests/servers"
)

const proveSchema = `
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL, status text NOT NULL, note text,
	placed_on date NOT NULL, cents bigint NOT NULL, paid boolean NOT NULL, extra json);
CREATE TABLE lines (order_id integer NOT NULL, sku text NOT NULL, amount integer);
`

// proveSpec has one tool a mistake. Each is proven on both engines; what only
// one of them can know is told by that one.
const proveSpec = `package spec

server: {name: "spec", version: "1"}
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
presenters: Order: schema: {
	id:     int
	status: string
	note?:  string
	lines?: [...{sku: string, amount: int}]
}
tools: {
	"good.all": {
		kind: "query", description: "d", returns: "Order"
		params: {id?: int, ids: [...int], paid?: bool, day?: string, n: *"1" | "2", sort: *"new" | "old"}
		sql: {
			query: """
				SELECT * FROM orders
				WHERE (@id IS NULL OR id = @id) AND id IN (@ids) AND (@paid IS NULL OR paid = @paid)
				  AND (@day IS NULL OR placed_on > @day) AND cents > @n ORDER BY @sort LIMIT 10
				"""
			choose: sort: {new: "id DESC", old: "id"}
			nest: lines: {query: "SELECT order_id, sku, coalesce(amount, 0) AS amount FROM lines WHERE order_id IN (@rows.id)", by: "order_id"}
		}
	}
	"bad.column": {
		kind: "query", description: "d"
		params: id: int
		sql: query: """
			SELECT id,
			  custmer_id FROM orders WHERE id = @id
			"""
	}
	"bad.table": {
		kind: "query", description: "d", params: {}
		sql: query: "SELECT 1 AS i FROM nowhere"
	}
	"bad.choice": {
		kind: "query", description: "d"
		params: sort: *"new" | "old"
		sql: {
			query: "SELECT id FROM orders ORDER BY @sort"
			choose: sort: {
				new: "id DESC"
				old: "idd"
			}
		}
	}
	"bad.missing": {
		kind: "query", description: "d", params: {}, returns: "Order"
		sql: query: "SELECT id, status AS state FROM orders"
	}
	"bad.kind": {
		kind: "query", description: "d", params: {}, returns: schema: {id: string, status: int, paid: bool}
		sql: query: """
			SELECT
			  id,
			  status, paid
			FROM orders
			"""
	}
	"bad.null": {
		kind: "query", description: "d", params: {}, returns: schema: {id: int, note: string}
		sql: query: "SELECT id, note FROM orders"
	}
	"bad.nest": {
		kind: "query", description: "d", params: {}, returns: "Order"
		sql: {
			query: "SELECT id, status FROM orders"
			nest: lines: {query: "SELECT order_id, amount FROM lines WHERE order_id IN (@rows.id)", by: "order_id"}
		}
	}
	"bad.affected": {
		kind: "action", description: "d", params: {id: int}, returns: schema: id: int
		sql: query: "DELETE FROM orders WHERE id = @id"
	}
	"bad.param": {
		kind: "query", description: "d"
		params: {id: string, day: int, ids: [...string], paid: "yes" | "perhaps", flag: int}
		sql: query: """
			SELECT id FROM orders WHERE
			  id = @id AND placed_on = @day AND id IN (@ids)
			  AND paid = @paid OR paid = @flag
			"""
	}
	"bad.step": {
		kind: "action", description: "d", params: {id: int}, returns: schema: {id: int, gone: int}
		steps: [
			{name: "first", sql: {query: "UPDATE orders SET nope = 1 WHERE id = @id"}},
			{sql: {query: "SELECT id FROM orders WHERE id = @id", one: true}},
		]
	}
	"bad.days": {
		kind: "query", description: "d", params: days: int
		sql: query: "SELECT @days AS days, @days + 1 AS more"
	}
	"bad.what": {
		kind: "query", description: "d", params: what: string
		sql: query: "SELECT 'é' AS e, concat(@what) AS t"
	}
	"bad.tie": {
		kind: "query", description: "d"
		sql: {
			query: "SELECT id, status FROM orders"
			nest: lines: {
				query: "SELECT order_id, sku FROM lines WHERE order_id IN (@rows.idd)", by: "order_id"
				nest: again: {query: "SELECT order_id, amount FROM lines WHERE order_id IN (@rows.order_id)", by: "order"}
			}
		}
	}
}
`

// proving compiles and opens the spec with the databases at url.
func proving(t *testing.T, spec, url string, log *slog.Logger) (*engine.Program, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"schema.sql": proveSchema, "spec.cue": spec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	graphs, faults := dsl.Load([]string{filepath.Join(dir, "spec.cue")}, dsl.Options{Env: func(string) (string, bool) { return "", false }})
	if faults.Fatal() {
		t.Fatal(faults)
	}
	p, faults := engine.Compile(graphs[0])
	if faults.Fatal() {
		t.Fatal(faults)
	}
	fresh := len(graphs[0].Databases[0].Init) > 0
	if err := p.Open(t.Context(), engine.Options{URL: func(string) string { return url }, Fresh: fresh, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p, graphs[0].Files[0]
}

// told gives the faults as lines, places without the file.
func told(faults graph.Faults, file string) string {
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(strings.TrimPrefix(f.String(), file+":") + "\n")
	}
	return b.String()
}

func TestProve(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{"sqlite", "sqlite::memory:", proveSQLite},
		{"postgres", "", provePostgres},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.url == "" {
				c.url = servers.Postgres(t)
			}
			p, file := proving(t, proveSpec, c.url, nil)
			if got := told(p.Prove(t.Context()), file); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := told(p.Start(t.Context()), file); got != c.want {
				t.Errorf("at start: got\n%s", got)
			}
		})
	}
}

const proveBoth = `50:23: tools."bad.missing".sql.query: the answer has no column "status", which the schema wants (did you mean "state"?)
56:6: tools."bad.kind".sql.query: column "id" is integer, and the schema wants a string
57:6: tools."bad.kind".sql.query: column "status" is text, and the schema wants an int
63:27: tools."bad.null".sql.query: warning: column "note" may be NULL, and the schema takes none: write note?, or | null
69:33: tools."bad.nest".sql.nest.lines.query: the answer has no column "sku", which the schema wants
69:43: tools."bad.nest".sql.nest.lines.query: warning: column "amount" may be NULL, and the schema takes none: write amount?, or | null
74:16: tools."bad.affected".sql.query: the answer has no column "id", which the schema wants
`

const proveSQLite = `30:6: tools."bad.column".sql.query: no such column: custmer_id
35:16: tools."bad.table".sql.query: no such table: nowhere
44:11: tools."bad.choice".sql.query: no such column: idd
` + proveBoth + `88:34: tools."bad.step".steps[0].sql.query: no such column: nope
89:26: tools."bad.step".steps[1].sql.query: the answer has no column "gone", which the schema wants
` + proveTie

const proveTie = `105:64: tools."bad.tie".sql.nest.lines.query: the rows above have no column "idd" (did you mean "id"?)
106:34: tools."bad.tie".sql.nest.lines.nest.again.query: the query gives no column "order", which by names
`

const provePostgres = `30:6: tools."bad.column".sql.query: column "custmer_id" does not exist (Perhaps you meant to reference the column "orders.customer_id".)
35:35: tools."bad.table".sql.query: relation "nowhere" does not exist
44:11: tools."bad.choice".sql.query: column "idd" does not exist (Perhaps you meant to reference the column "orders.id".)
` + proveBoth + `81:11: tools."bad.param".sql.query: @id is a string, and integer is wanted here: declare it so, or write CAST(@id AS …)
81:31: tools."bad.param".sql.query: @day is an int, and date is wanted here: declare it so, or write CAST(@day AS …)
81:43: tools."bad.param".sql.query: each of @ids is a string, and integer is wanted here: declare it so, or write CAST(@ids AS …)
82:33: tools."bad.param".sql.query: @flag is an int, and boolean is wanted here: declare it so, or write CAST(@flag AS …)
88:52: tools."bad.step".steps[0].sql.query: column "nope" of relation "orders" does not exist
89:26: tools."bad.step".steps[1].sql.query: the answer has no column "gone", which the schema wants
94:23: tools."bad.days".sql.query: inconsistent types deduced for parameter @days (integer versus text): write CAST(@days AS its type)
98:41: tools."bad.what".sql.query: could not determine data type of parameter @what: write CAST(@what AS its type)
` + proveTie

// logged collects a log.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// A database that is down is a fault of `check --online`, does not stop a
// start, and is proven when it is back.
func TestProveLater(t *testing.T) {
	target := servers.Postgres(t)
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = relay.Addr().String()
	_ = relay.Close()
	log := new(logged)
	p, _ := proving(t, proveDown, "sqlite::memory:", nil)
	if got := p.Prove(t.Context()); len(got) != 1 {
		t.Fatalf("on SQLite: %v", got)
	}
	p, file := proving(t, proveDown, u.String(), slog.New(slog.NewTextHandler(log, nil)))
	down := told(p.Prove(t.Context()), file)
	if want := "4:12: databases.main: its statements cannot be proven: failed to connect to `user=[REDACTED] database=" + u.Path[1:] + "`: " +
		u.Host + " (127.0.0.1): dial error: dial tcp " + u.Host + ": connect: connection refused\n"; down != want {
		t.Errorf("check --online gives\n%swant\n%s", down, want)
	}
	if faults := p.Start(t.Context()); len(faults) != 0 {
		t.Errorf("a start without the database gives %v", faults)
	}
	if got, want := log.String(), `level=WARN msg="a database cannot be reached: its tools answer with an error until it is back" database=main cause=`; strings.Count(got, want) != 1 {
		t.Errorf("the log has\n%s\nwant %s…", got, want)
	}
	relayTo(t, u.Host, server)
	want := `level=ERROR msg="a statement is wrong: its tool cannot work" database=main fault="` + file + `:5:89: tools.t.sql.query: relation \"nowhere\" does not exist"`
	for i := 0; !strings.Contains(log.String(), want); i++ {
		if i == 200 {
			t.Fatalf("the log has\n%s\nwant %s", log.String(), want)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !strings.Contains(log.String(), `level=INFO msg="a database is back" database=main faults=1`) {
		t.Errorf("the log has\n%s", log.String())
	}
}

// Statements are prepared as the role of the session. One that depends on the
// caller is not known at start, so that a refusal proves nothing.
func TestProveAsRole(t *testing.T) {
	url := servers.Postgres(t)
	const role, login = "fusion_test_prover", "fusion_test_prover_login"
	p, _ := proving(t, proveDown, url, nil)
	sql := filepath.Join(t.TempDir(), "roles.sql")
	err := os.WriteFile(sql, []byte(`
		DO $$ BEGIN CREATE ROLE `+role+` NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
		DO $$ BEGIN CREATE ROLE `+login+` LOGIN NOINHERIT; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
		GRANT `+role+` TO `+login+`; CREATE SCHEMA hidden; CREATE TABLE hidden.t (i int); GRANT USAGE ON SCHEMA hidden TO `+role+`;
		GRANT SELECT ON hidden.t TO `+role), 0o600)
	if err == nil {
		err = p.Seed(t.Context(), "main", []graph.File{{Name: "roles.sql", Path: sql}})
	}
	if err != nil {
		t.Fatal(err)
	}
	url = strings.Replace(url, "postgres@", login+"@", 1)
	for session, want := range map[string]string{
		`role: "` + role + `"`: "5:77: tools.t.sql.query: column \"j\" does not exist\n",
		`role: "{{ ctx.claims.role }}"`: "5:89: tools.t.sql.query: warning: permission denied for schema hidden: " +
			"it cannot be prepared as the login, a caller's session may be able to; it is not proven\n",
	} {
		p, file := proving(t, `package spec

server: {name: "spec", version: "1", local: claims: role: "`+role+`"}
databases: main: {url: "postgres://x@127.0.0.1/x", session: {`+session+`}}
tools: t: {kind: "query", description: "d", params: {}, sql: query: "SELECT j AS i FROM hidden.t"}
`, url, nil)
		if got := told(p.Prove(t.Context()), file); got != want {
			t.Errorf("%s: got\n%swant\n%s", session, got, want)
		}
	}
}

// TestProveOnPath holds that statements are prepared with the settings that are
// the same for every caller.
func TestProveOnPath(t *testing.T) {
	url := servers.Postgres(t)
	p, _ := proving(t, proveDown, url, nil)
	if err := p.Seed(t.Context(), "main", []graph.File{script(t, "CREATE SCHEMA aside; CREATE TABLE aside.things (i int)")}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"aside": "",
		"{{ ctx.claims.schema }}": `5:72: tools.t.sql.query: warning: relation "things" does not exist: ` +
			"it cannot be prepared as the login, a caller's session may be able to; it is not proven\n",
	} {
		p, file := proving(t, `package spec

server: {name: "spec", version: "1", local: claims: schema: "aside"}
databases: main: {url: "postgres://x@127.0.0.1/x", session: settings: search_path: "`+path+`"}
tools: t: {kind: "query", description: "d", sql: query: "SELECT i FROM things"}
`, url, nil)
		if got := told(p.Prove(t.Context()), file); got != want {
			t.Errorf("%s: got\n%swant\n%s", path, got, want)
		}
		gives(t, p, "t", "", "[]")
	}
}

const proveDown = `package spec

server: {name: "spec", version: "1"}
databases: main: url: "sqlite::memory:"
tools: t: {kind: "query", description: "d", params: {}, sql: query: "SELECT 1 AS i FROM nowhere"}
`

// relayTo makes an address lead to a server until the end of the test.
func relayTo(t *testing.T, address, server string) {
	t.Helper()
	relay, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	go func() {
		for {
			in, err := relay.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}
