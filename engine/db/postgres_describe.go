package db

import (
	"cmp"
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

func (e *pgEngine) describe(ctx context.Context, who *Session, s *Stmt) (*Description, error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { c.release() }()
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	if who != nil {
		defer c.rollback()
		if err := c.open(ctx, flight{begin: "BEGIN READ ONLY", who: who}); err != nil {
			return nil, err
		}
	}
	st, err := c.compile(ctx, "", s)
	var refused *pgconn.PgError
	var known *Error
	switch {
	case errors.As(err, &refused) && !unavailable(refused.Code):
		return nil, &Refusal{
			Offset: byteOffset(s.SQL, int(refused.Position)), Hint: cmp.Or(refused.Hint, refused.Detail),
			Err: inServersWords(postgresError(ctx, err)),
		}
	case err != nil && !errors.As(err, &known):
		return nil, &Refusal{Offset: -1, Err: err}
	case err != nil:
		return nil, err
	}
	return c.described(ctx, st)
}

func (c *pgConn) described(ctx context.Context, st *pgStmt) (*Description, error) {
	params, err := c.typesOf(ctx, st.params)
	if err != nil {
		return nil, err
	}
	d := &Description{}
	for _, t := range params {
		d.Params = append(d.Params, t.described())
	}
	nullable, err := c.nullable(ctx, st.fields)
	if err != nil {
		return nil, err
	}
	for i, f := range st.fields {
		d.Columns = append(d.Columns, Column{Name: f.name, Type: st.cells[i].described(), Nullable: nullable[i]})
	}
	return d, nil
}

// nullableQuery asks which of some columns of tables may hold NULL.
var nullableQuery = &Stmt{Args: 2, SQL: `SELECT a.attrelid::int8 AS t, a.attnum::int8 AS n
	FROM unnest($1::oid[], $2::int2[]) AS want(t, n)
	JOIN pg_catalog.pg_attribute a ON a.attrelid = want.t AND a.attnum = want.n
	JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
	WHERE NOT a.attnotnull AND NOT y.typnotnull`}

// nullable tells for columns whether they are those of a table that may hold
// NULL.
func (c *pgConn) nullable(ctx context.Context, fields []pgField) ([]bool, error) {
	found := make([]bool, len(fields))
	var tables, attrs []any
	for _, f := range fields {
		if f.table != 0 {
			tables, attrs = append(tables, int64(f.table)), append(attrs, int64(f.attr))
		}
	}
	if tables == nil {
		return found, nil
	}
	a, err := c.run(ctx, flight{inTx: true}, nullableQuery, []any{tables, attrs}, Limit{})
	if err != nil {
		return nil, err
	}
	type column struct{ table, attr any }
	may := make(map[column]bool, a.Rows.Len())
	for i := range a.Rows.Len() {
		may[column{a.Rows.Value(i, 0), a.Rows.Value(i, 1)}] = true
	}
	for i, f := range fields {
		found[i] = may[column{int64(f.table), int64(f.attr)}]
	}
	return found, nil
}
