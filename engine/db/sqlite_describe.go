package db

import (
	"context"
	"errors"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

func (e *sqliteEngine) describe(ctx context.Context, _ *Session, s *Stmt) (*Description, error) {
	c, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer e.giveBack(c)
	ctx, cancel := e.limit.within(ctx)
	defer cancel()
	defer c.interruptible(ctx)()
	st, err := c.compile(s)
	if err == nil {
		d := c.described(st, s)
		return d, st.raw.Close()
	}
	offset := -1
	var refused *sqlite3.Error
	if errors.As(err, &refused) && refused.SQL() != "" {
		offset = len(s.SQL) - len(refused.SQL())
	}
	wrapped := sqliteError(ctx, err)
	var known *Error
	if errors.As(wrapped, &known) && (known.Unavailable || known.Busy || known.Timeout) {
		return nil, wrapped
	}
	return nil, &Refusal{Offset: offset, Err: inServersWords(wrapped)}
}

// described tells what SQLite knows: the declared types of columns of tables.
func (c *sqliteConn) described(st *sqliteStmt, s *Stmt) *Description {
	d := &Description{Params: make([]Type, s.Args)}
	for i, name := range st.names {
		declared := st.raw.ColumnDeclType(i)
		col := Column{Name: name, Type: Type{Name: strings.ToLower(declared), Kind: sqliteKind(declared)}}
		if st.cols[i].class == asJSON {
			col.Type.Kind = JSONType
		}
		if table := st.raw.ColumnTableName(i); table != "" {
			_, _, notNull, key, _, err := c.raw.TableColumnMetadata(st.raw.ColumnDatabaseName(i), table, st.raw.ColumnOriginName(i))
			col.Nullable = err == nil && !notNull && !key
		}
		d.Columns = append(d.Columns, col)
	}
	return d
}

// sqliteKind gives the kind of the values in a column of a declared type, by
// how this package reads it and by SQLite's affinity: a column of a number's
// type may hold a text, but only one that is no number.
func sqliteKind(declared string) TypeKind {
	name, _, _ := strings.Cut(strings.ToLower(declared), "(")
	name = strings.TrimSpace(name)
	switch sqliteClasses[name] {
	case asBool:
		return BoolType
	case asJSON:
		return JSONType
	case asNumeric:
		return ExactType
	case asBinary:
		return TextType
	}
	for _, a := range []struct {
		part string
		kind TypeKind
	}{{"int", IntType}, {"char", TextType}, {"clob", TextType}, {"text", TextType}, {"real", FloatType}, {"floa", FloatType}, {"doub", FloatType}} {
		if strings.Contains(name, a.part) {
			return a.kind
		}
	}
	return UnknownType
}
