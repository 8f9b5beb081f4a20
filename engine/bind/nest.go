package bind

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// nest is one more query for all rows of a level.
type nest struct {
	key   string
	by    string // the child's column that holds columns[0] of its parent
	one   bool
	query *query
	tie   string // the column of the rows above that by holds
	nests []*nest
}

func (c *compiler) nests(declared []*graph.Nest) []*nest {
	l := make([]*nest, 0, len(declared))
	for _, d := range declared {
		n := &nest{key: d.Key, by: d.By, one: d.One, query: c.query(&d.Query, nil, true)}
		var problem string
		if n.tie, problem = tieOf(&d.Query, d.By); problem != "" && !c.faultIn(&d.Query) {
			c.faults = append(c.faults, d.Query.Fault(0, "%s", problem))
		}
		n.nests = c.nests(d.Nest)
		l = append(l, n)
	}
	return l
}

// tieOf finds the column of the rows above whose values the by column holds:
// the only @rows name of the query, or the one in `by IN (@rows.column)`.
func tieOf(text *graph.Text, by string) (column, problem string) {
	var columns []string
	for _, d := range dialects {
		tokens, _ := db.Lex(d, text.S)
		s := scan{text: text, tokens: tokens}
		for i, t := range tokens {
			name, ok := strings.CutPrefix(s.at(i), "@rows.")
			if t.Kind != db.Param || !ok {
				continue
			}
			in := s.before(s.before(i))
			if s.is(in, "IN") && s.is(s.before(in), by) {
				return name, ""
			}
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	switch len(columns) {
	case 0:
		return "", fmt.Sprintf("nothing ties this query to the rows above: write WHERE %s IN (@rows.COLUMN)", by)
	case 1:
		return columns[0], ""
	}
	return "", fmt.Sprintf("the query takes several columns of the rows above: write %s IN (@rows.COLUMN) for the one that by holds", by)
}

// faultIn tells whether a text has a fault already.
func (c *compiler) faultIn(t *graph.Text) bool {
	for _, f := range c.faults {
		if f.Path == t.Path {
			return true
		}
	}
	return false
}

// nest runs the queries of one level and sets what they give on list, the
// objects of rows.
func (r *run) nest(q db.Querier, nests []*nest, rows *value.Rows, list []any) error {
	for _, n := range nests {
		if err := r.nestOne(q, n, rows, list); err != nil {
			return fmt.Errorf("nest %s: %w", n.key, err)
		}
	}
	return nil
}

func (r *run) nestOne(q db.Querier, n *nest, rows *value.Rows, list []any) error {
	var children map[string]*family
	ties, err := distinct(rows, n.tie)
	if err != nil {
		return err
	}
	if len(ties) > 0 { // else there is nobody whose children there could be
		a, err := r.query(q, n.query, rows, db.Limit{})
		if err != nil {
			return err
		}
		if children, err = r.children(q, n, a.Rows); err != nil {
			return err
		}
	}
	tie := rows.Col(n.tie)
	var key []byte
	for i, parent := range list {
		var own []any
		var tied bool
		if key, tied = appendKey(key[:0], rows, i, tie); tied {
			own = children[string(key)].give()
		}
		v, err := n.value(own)
		if err != nil {
			return err
		}
		parent.(*value.Object).Set(n.key, v)
	}
	return nil
}

// family is the children of one key.
type family struct {
	children []any
	given    bool
}

// give gives the children to a parent; each parent has its own, so that
// nobody changes what another one shows.
func (f *family) give() []any {
	switch {
	case f == nil:
		return nil
	case f.given:
		return value.DeepClone(f.children).([]any)
	}
	f.given = true
	return f.children
}

// children gives the objects of the child rows by the key of their parent.
func (r *run) children(q db.Querier, n *nest, rows *value.Rows) (map[string]*family, error) {
	by := -1
	if rows != nil {
		by = rows.Col(n.by)
	}
	if by < 0 {
		return nil, fmt.Errorf("the query gives no column %q, which by names", n.by)
	}
	list := rows.List()
	if err := r.nest(q, n.nests, rows, list); err != nil {
		return nil, err
	}
	children := make(map[string]*family, len(list))
	var key []byte
	for i, child := range list {
		var tied bool
		if key, tied = appendKey(key[:0], rows, i, by); !tied {
			continue
		}
		f := children[string(key)]
		if f == nil {
			f = &family{}
			children[string(key)] = f
		}
		f.children = append(f.children, child)
	}
	return children, nil
}

// value is what a parent gets: a list, or with one the only child or nil.
func (n *nest) value(own []any) (any, error) {
	switch {
	case !n.one && own == nil:
		return []any{}, nil
	case !n.one:
		return own, nil
	case len(own) == 0:
		return nil, nil
	case len(own) > 1:
		return nil, errTooMany
	}
	return own[0], nil
}

// appendKey appends a cell in the form in which parent and child are compared:
// 7, 7.0 and 7.00 are one key. NULL has none.
func appendKey(dst []byte, rows *value.Rows, row, col int) ([]byte, bool) {
	k, text := rows.Cell(row, col)
	switch k {
	case value.Null:
		return dst, false
	case value.Exact, value.Float:
		if bytes.IndexByte(text, '.') >= 0 && bytes.IndexByte(text, 'e') < 0 {
			text = bytes.TrimSuffix(bytes.TrimRight(text, "0"), []byte("."))
		}
	}
	return append(dst, text...), true
}

// distinct gives the values of a column, each once, in order, without NULL.
func distinct(rows *value.Rows, name string) ([]any, error) {
	col := rows.Col(name)
	if col < 0 {
		return nil, fmt.Errorf("the rows above have no column %q", name)
	}
	list := make([]any, 0, rows.Len())
	seen := make(map[string]bool, rows.Len())
	for i := range rows.Len() {
		k, text := rows.Cell(i, col)
		if k == value.Null || seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		list = append(list, rows.Value(i, col))
	}
	return list, nil
}
