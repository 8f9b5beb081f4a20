package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fusion-serve/fusion-serve/engine"
)

// upstream is a service that says what it is told to, and remembers what it
// was asked.
type upstream struct {
	*httptest.Server

	mu      sync.Mutex
	asked   []string
	answers map[string]answer // by "METHOD /path"
}

type answer struct {
	status int
	body   any
	header map[string]string
	// before is called before the answer is written.
	before func(r *http.Request)
}

func newUpstream(t *testing.T, answers map[string]answer) *upstream {
	u := &upstream{answers: answers}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.asked = append(u.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	a, ok := u.answers[r.Method+" "+r.URL.Path]
	u.mu.Unlock()
	if !ok {
		a.status = http.StatusTeapot
	}
	if a.before != nil {
		a.before(r)
	}
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(max(a.status, 200))
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body)
	}
}

func (u *upstream) set(key string, a answer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers[key] = a
}

// requests gives what was asked since the last time.
func (u *upstream) requests() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := strings.Join(u.asked, "\n")
	u.asked = nil
	return s
}

// ends tells that a call ended in a code ("" for success) with a text.
func ends(t *testing.T, p *engine.Program, tool, args, code, want string) {
	t.Helper()
	resp := call(t, p, tool, args)
	if got := text(resp); resp.Code != code || got != want {
		t.Errorf("%s %s: code %q\n%s\nwant code %q\n%s", tool, args, resp.Code, got, code, want)
	}
}

// gives tells that a call succeeded with a value.
func gives(t *testing.T, p *engine.Program, tool, args, want string) {
	t.Helper()
	resp := call(t, p, tool, args)
	var got bytes.Buffer
	if err := json.Compact(&got, resp.Blocks[0].Text); err != nil || resp.Code != "" || got.String() != want {
		t.Errorf("%s %s: code %q\n%s\nwant %s", tool, args, resp.Code, text(resp), want)
	}
}

func wantRequests(t *testing.T, u *upstream, want ...string) {
	t.Helper()
	if got := u.requests(); got != strings.Join(want, "\n") {
		t.Errorf("requests:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func failure(code, message, recovery string) string {
	s := fmt.Sprintf("<tool_error code=%q severity=\"error\">\n<message>%s</message>\n", code, message)
	if recovery != "" {
		s += "<recovery>" + recovery + "</recovery>\n"
	}
	return s + "</tool_error>\n"
}

const shopSchema = `
CREATE TABLE stock (sku text PRIMARY KEY, left_over integer NOT NULL CHECK (left_over >= 0));
INSERT INTO stock VALUES ('tea', 5), ('cup', 0);
CREATE TABLE sales (id integer PRIMARY KEY, sku text NOT NULL REFERENCES stock, pieces integer NOT NULL, pay_id text, note text UNIQUE);
`

// shop sells with a payment service: steps with everything they may have.
func shop(url string) string {
	return fmt.Sprintf(`
databases: main: {url: "sqlite::memory:", init: ["schema.sql"]}
apis: pay: {
	baseURL: %q
	errors: [{status: 402, code: "PAYMENT_DECLINED", message: "The card was declined: {{ body.reason }}."}]
}
tools: {
	"shop.sell": {
		kind: "action", description: "d"
		params: {id: int, sku: string, pieces: int, note?: string, gift: bool | *false, broken: int | *0}
		steps: [
			{
				name: "ware"
				sql: {query: "SELECT sku, left_over FROM stock WHERE sku = @sku", one: true}
				errors: [
					{when: "ware == nil", code: "NOT_FOUND", message: "There is no {{ args.sku }}."},
					{when: "args.pieces > ware.left_over", code: "CONFLICT", message: "Only {{ ware.left_over }} are left."},
				]
			},
			{
				name: "sale"
				sql: {query: "INSERT INTO sales (id, sku, pieces, note) VALUES (@id, @ware.sku, @pieces, @note) RETURNING id, pieces", one: true}
				errors: [{sqlstate: "23505", code: "CONFLICT", message: "Sale {{ args.id }} is there already."}]
			},
			{
				name: "account"
				when: "!args.gift"
				http: {api: "pay", post: "/accounts", form: {sale: "{{ sale.id }}"}}
				undo: http: {api: "pay", delete: "/accounts/{{ account.id }}"}
			},
			{
				name: "charge"
				when: "account != nil"
				http: {api: "pay", post: "/charges", form: {account: "{{ account.id }}", pieces: "{{ args.pieces }}"}}
				undo: http: {api: "pay", post: "/refunds", form: charge: "{{ charge.id }}"}
			},
			{when: "charge != nil", sql: query: "UPDATE sales SET pay_id = @charge.id WHERE id = @sale.id"},
			{name: "mail", optional: true, http: {api: "pay", post: "/mails", body: {sale: "{{ sale.id }}"}}},
			{sql: query: "UPDATE stock SET left_over = left_over - @pieces - @broken WHERE sku = @sku"},
		]
		from: "{{ sale }}"
		result: {id: "{{ item.id }}", paid: "{{ charge?.id }}", mailed: "{{ mail != nil }}"}
		returns: schema: {id: int, paid: string | null, mailed: bool}
		errors: [{when: "result.id == 13", code: "UNLUCKY", message: "Not {{ sale.id }}."}]
	}
	"shop.sales": {kind: "query", description: "d", sql: query: "SELECT id, sku, pieces, pay_id FROM sales ORDER BY id"}
	"shop.left": {kind: "query", description: "d", params: sku: string, sql: {query: "SELECT left_over FROM stock WHERE sku = @sku", one: true}}
}
`, url)
}

func payments() map[string]answer {
	return map[string]answer{
		"POST /accounts":      {body: map[string]any{"id": "a1"}},
		"POST /charges":       {body: map[string]any{"id": "c1"}},
		"POST /mails":         {},
		"POST /refunds":       {},
		"DELETE /accounts/a1": {status: 204},
	}
}

const (
	account = "POST /accounts sale=1"
	charge  = "POST /charges account=a1&pieces=2"
	mail    = `POST /mails {"sale":1}`
	refund  = "POST /refunds charge=c1"
	drop    = "DELETE /accounts/a1"
)

func TestSteps(t *testing.T) {
	u := newUpstream(t, payments())
	onBoth(t, shop(u.URL), shopSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		gives(t, p, "shop.sell", `{"id":1,"sku":"tea","pieces":2}`, `{"id":1,"paid":"c1","mailed":true}`)
		wantRequests(t, u, account, charge, mail)
		gives(t, p, "shop.sales", ``, `[{"id":1,"sku":"tea","pieces":2,"pay_id":"c1"}]`)
		gives(t, p, "shop.left", `{"sku":"tea"}`, `{"left_over":3}`)

		// A step whose when does not hold is nil, and so is what depends on it.
		gives(t, p, "shop.sell", `{"id":2,"sku":"tea","pieces":1,"gift":true}`, `{"id":2,"paid":null,"mailed":true}`)
		wantRequests(t, u, `POST /mails {"sale":2}`)

		ends(t, p, "shop.sell", `{"id":3,"sku":"pot","pieces":1}`, "NOT_FOUND", failure("NOT_FOUND", "There is no pot.", ""))
		ends(t, p, "shop.sell", `{"id":3,"sku":"tea","pieces":3}`, "CONFLICT", failure("CONFLICT", "Only 2 are left.", ""))
		ends(t, p, "shop.sell", `{"id":1,"sku":"tea","pieces":1}`, "CONFLICT", failure("CONFLICT", "Sale 1 is there already.", ""))
		wantRequests(t, u)
	})
}

// Whatever fails, the statements are rolled back, and what was asked of the
// service is undone, the last first.
func TestUndo(t *testing.T) {
	u := newUpstream(t, payments())
	onBoth(t, shop(u.URL), shopSchema, func(t *testing.T, p *engine.Program, log *bytes.Buffer) {
		nothing := func() {
			t.Helper()
			gives(t, p, "shop.sales", ``, `[]`)
			gives(t, p, "shop.left", `{"sku":"tea"}`, `{"left_over":5}`)
		}
		sale := `{"id":1,"sku":"tea","pieces":2}`

		u.set("POST /charges", answer{status: 402, body: map[string]any{"reason": "no money"}})
		ends(t, p, "shop.sell", sale, "PAYMENT_DECLINED", failure("PAYMENT_DECLINED", "The card was declined: no money.", ""))
		wantRequests(t, u, account, charge, drop)
		nothing()

		// A service that says something unexpected: its words stay out.
		u.set("POST /charges", answer{status: 500, body: map[string]any{"reason": "secret words"}})
		ends(t, p, "shop.sell", sale, "INTERNAL_ERROR", failure("INTERNAL_ERROR", "[shop/sell] Something went wrong. Incident i1.", "Do not repeat this call: it may have taken effect. Give the incident id to the user."))
		wantRequests(t, u, account, charge, drop)
		nothing()
		u.set("POST /charges", payments()["POST /charges"])

		// An optional step may fail. A statement behind it does, too.
		u.set("POST /mails", answer{status: 500})
		broken := `{"id":1,"sku":"tea","pieces":2,"broken":4}`
		refused := failure("VALIDATION_ERROR", "A value is not allowed here.", "Send other values.")
		ends(t, p, "shop.sell", broken, "VALIDATION_ERROR", refused)
		wantRequests(t, u, account, charge, mail, refund, drop)
		nothing()
		gives(t, p, "shop.sell", `{"id":2,"sku":"tea","pieces":0}`, `{"id":2,"paid":"c1","mailed":false}`)
		u.requests()

		// A rule of the tool itself.
		ends(t, p, "shop.sell", `{"id":13,"sku":"tea","pieces":0}`, "UNLUCKY", failure("UNLUCKY", "Not 13.", ""))
		wantRequests(t, u, "POST /accounts sale=13", "POST /charges account=a1&pieces=0", `POST /mails {"sale":13}`, refund, drop)

		// What is to go is gone already, and a presenter refuses the answer.
		u.set("DELETE /accounts/a1", answer{status: 404})
		u.set("POST /charges", answer{body: map[string]any{"id": 7}})
		ends(t, p, "shop.sell", sale, "INTERNAL_ERROR", failure("INTERNAL_ERROR", "[shop/sell] Something went wrong. Incident i1.", "Do not repeat this call: it may have taken effect. Give the incident id to the user."))
		wantRequests(t, u, account, charge, mail, "POST /refunds charge=7", drop)
		gives(t, p, "shop.left", `{"sku":"tea"}`, `{"left_over":5}`)
		u.set("POST /charges", payments()["POST /charges"])

		// An undo fails: the others run, the log says it, and so does the answer.
		log.Reset()
		u.set("POST /refunds", answer{status: 503, body: "secret words"})
		stuck := "<tool_error code=\"INTERNAL_ERROR\" severity=\"critical\">\n" +
			"<message>[shop/sell] The call ended in VALIDATION_ERROR, and a part of what it had done could not be undone. Incident i1.</message>\n" +
			"<recovery>Do not repeat this call. Tell the user that an operator must look, and give the incident id.</recovery>\n</tool_error>\n"
		ends(t, p, "shop.sell", broken, "INTERNAL_ERROR", stuck)
		wantRequests(t, u, account, charge, mail, refund, drop)
		if got, want := log.String(), `level=ERROR msg="an undo failed: an operator must look at what the call has left behind" incident=i1 tool=shop.sell code=VALIDATION_ERROR cause="tools.\"shop.sell\".steps[3].undo: service pay answered 503"`; !strings.Contains(got, want) || strings.Contains(got, "secret words") {
			t.Errorf("log:\n%s\nwant\n%s", got, want)
		}
		for k, a := range payments() {
			u.set(k, a)
		}
	})
}

// A caller who goes away ends a call like any other failure.
func TestUndoAfterCancel(t *testing.T) {
	u := newUpstream(t, payments())
	onBoth(t, shop(u.URL), shopSchema, func(t *testing.T, p *engine.Program, _ *bytes.Buffer) {
		ctx, cancel := context.WithCancel(t.Context())
		u.set("POST /mails", answer{before: func(r *http.Request) {
			cancel()
			<-r.Context().Done()
		}})
		resp, err := p.Traced(ctx, &engine.Caller{}, "shop.sell", []byte(`{"id":1,"sku":"tea","pieces":2}`), nil)
		if err != nil || text(resp) != "<tool_error>\n<message>[shop/sell] Request cancelled.</message>\n</tool_error>\n" {
			t.Errorf("%v %s", err, text(resp))
		}
		wantRequests(t, u, account, charge, mail, refund, drop)
		gives(t, p, "shop.sales", ``, `[]`)
	})
}
