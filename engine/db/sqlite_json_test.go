package db_test

import (
	"testing"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

func TestSQLiteComputedJSON(t *testing.T) {
	d := open(t, db.Config{URL: "sqlite::memory:"})
	script(t, d, `CREATE TABLE a (i int, n text); INSERT INTO a VALUES (1, 'x'); INSERT INTO a VALUES (2, 'y')`)
	for sql, want := range map[string]string{
		`SELECT json_object('n', n) AS o, i FROM a WHERE i = 1`:                                    `[{"o":{"n":"x"},"i":1}]`,
		`SELECT i, JSON_OBJECT('n', (n)) o FROM a WHERE i = 1`:                                     `[{"i":1,"o":{"n":"x"}}]`,
		`SELECT *, json_array(i, n) AS l FROM a WHERE i = 1`:                                       `[{"i":1,"n":"x","l":[1,"x"]}]`,
		`SELECT json_group_array(n) FILTER (WHERE i > 1) AS l FROM a`:                              `[{"l":["y"]}]`,
		`WITH b AS (SELECT i FROM a) SELECT json_group_array(i) AS l FROM b`:                       `[{"l":[1,2]}]`,
		`SELECT json_array(1) || 'x' AS s`:                                                         `[{"s":"[1]x"}]`,
		`SELECT json_array_length('[1]') AS n`:                                                     `[{"n":1}]`,
		`SELECT (SELECT json_array(1)) AS s`:                                                       `[{"s":"[1]"}]`,
		`SELECT '[1]' AS s`:                                                                        `[{"s":"[1]"}]`,
		`SELECT json_object('a', 1) AS o UNION ALL SELECT 'no json' ORDER BY 1`:                    `[{"o":"no json"},{"o":{"a":1}}]`,
		`SELECT n, json('null') AS j FROM a WHERE i = 1`:                                           `[{"n":"x","j":null}]`,
		`SELECT json_object('c', (SELECT count(*) FROM a)) AS o, n FROM a ORDER BY n DESC LIMIT 1`: `[{"o":{"c":2},"n":"y"}]`,
	} {
		if got := asJSON(query(t, d, &db.Stmt{SQL: sql})); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	write(t, d, func(q *db.Tx) error {
		a := query(t, q, &db.Stmt{SQL: `INSERT INTO a SELECT 3, 'z' RETURNING json_array(i) AS l, n`})
		if got, want := asJSON(a), `[{"l":[3],"n":"z"}]`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}
