package bind

import (
	"context"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// counting counts the statements that go through it.
type counting struct {
	db.Querier
	n int
}

func (c *counting) Query(ctx context.Context, s *db.Stmt, args []any, l db.Limit) (*db.Answer, error) {
	c.n++
	return c.Querier.Query(ctx, s, args, l)
}

func nested(kind, query string) *graph.Tool {
	t := tool(kind, query, nil)
	t.SQL.Nest = []*graph.Nest{
		{Key: "customer", By: "id", One: true, Query: *text("SELECT id, name FROM customers WHERE id IN (@rows.customer_id)")},
		{
			Key: "lines", By: "order_id", Query: *text("SELECT order_id, sku, quantity FROM lines WHERE order_id IN (@rows.id) ORDER BY order_id, sku"),
			Nest: []*graph.Nest{{Key: "product", By: "sku", One: true, Query: *text("SELECT sku, name FROM products WHERE sku IN (@rows.sku)")}},
		},
	}
	return t
}

func TestNest(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		orders := nested("query", "SELECT id, customer_id FROM orders ORDER BY id")
		wants(t, call(t, d, orders), `[`+
			`{"id":10,"customer_id":1,"customer":{"id":1,"name":"Ann"},"lines":[`+
			`{"order_id":10,"sku":"cup","quantity":1,"product":{"sku":"cup","name":"Cup"}},`+
			`{"order_id":10,"sku":"tea","quantity":2,"product":{"sku":"tea","name":"Tea"}}]},`+
			`{"id":11,"customer_id":1,"customer":{"id":1,"name":"Ann"},"lines":[]},`+
			`{"id":12,"customer_id":null,"customer":null,"lines":[`+
			`{"order_id":12,"sku":"tea","quantity":9,"product":{"sku":"tea","name":"Tea"}}]}]`)

		// Nobody shares a child: what is done to one is not seen in another.
		list := call(t, d, orders).Result.([]any)
		first, _ := list[0].(*value.Object).Get("customer")
		second, _ := list[1].(*value.Object).Get("customer")
		if first == second {
			t.Error("two orders share one customer")
		}

		one := nested("query", "SELECT id, customer_id FROM orders WHERE id = 11")
		one.SQL.One = true
		wants(t, call(t, d, one), `{"id":11,"customer_id":1,"customer":{"id":1,"name":"Ann"},"lines":[]}`)
		one.SQL.Query = *text("SELECT id, customer_id FROM orders WHERE id = 99")
		wants(t, call(t, d, one), `null`)
		wants(t, call(t, d, nested("action", "UPDATE orders SET status = 'x' WHERE id = 12 RETURNING id, customer_id")),
			`[{"id":12,"customer_id":null,"customer":null,"lines":[{"order_id":12,"sku":"tea","quantity":9,"product":{"sku":"tea","name":"Tea"}}]}]`)
	})
}

// One query a level, and none for a level without parents.
func TestNestQueries(t *testing.T) {
	d := opened(t, "sqlite::memory:")
	for query, want := range map[string]int{
		"SELECT id, customer_id FROM orders":                 4,
		"SELECT id, customer_id FROM orders WHERE id = 11":   3, // no lines, so no products
		"SELECT id, customer_id FROM orders WHERE id = 12":   3, // no customer
		"SELECT id, customer_id FROM orders WHERE id = 1000": 1,
	} {
		b := compile(t, nested("query", query))
		err := d.Tx(t.Context(), db.TxOptions{ReadOnly: true}, func(q *db.Tx) error {
			c := &counting{Querier: q}
			r := &run{binding: b, ctx: t.Context(), env: env(value.Of()), args: value.Of(), dialect: db.SQLite}
			_, err := r.answer(c, &Outcome{})
			if c.n != want {
				t.Errorf("%s: %d queries, want %d", query, c.n, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestNestErrors(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		x := nested("query", "SELECT id FROM orders")
		wants(t, call(t, d, x), `error: nest customer: the rows above have no column "customer_id"`)
		x = nested("query", "SELECT id, customer_id FROM orders")
		x.SQL.Nest = x.SQL.Nest[1:]
		x.SQL.Nest[0].By = "orderid"
		wants(t, call(t, d, x), `error: nest lines: the query gives no column "orderid", which by names`)
		x.SQL.Nest[0].By, x.SQL.Nest[0].One = "order_id", true
		wants(t, call(t, d, x), `error: nest lines: one: true, but the query gave more than one row`)
	})
}

// Keys are compared as numbers where they are numbers, and an empty text is a key.
func TestNestKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		if err := d.Script(t.Context(), `CREATE TABLE p (k numeric(6,2), s text); CREATE TABLE c (k integer, s text);
			INSERT INTO p VALUES (1, ''); INSERT INTO p VALUES (2.5, NULL);
			INSERT INTO c VALUES (1, ''); INSERT INTO c VALUES (3, NULL)`); err != nil {
			t.Fatal(err)
		}
		x := tool("query", "SELECT k, s FROM p ORDER BY k", nil)
		x.SQL.Nest = []*graph.Nest{
			{Key: "n", By: "k", Query: *text("SELECT k FROM c WHERE k IN (@rows.k)")},
			{Key: "t", By: "s", Query: *text("SELECT k, s FROM c WHERE s IN (@rows.s)")},
		}
		if d.Dialect() == db.Postgres { // the array takes the type of the column that it is compared with
			x.SQL.Nest[0].Query = *text("SELECT k FROM c WHERE CAST(k AS numeric) IN (@rows.k)")
		}
		wants(t, call(t, d, x), `[{"k":1.00,"s":"","n":[{"k":1}],"t":[{"k":1,"s":""}]},{"k":2.50,"s":null,"n":[],"t":[]}]`)
	})
}
