package presenters

import (
	"slices"
	"sync/atomic"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// A list that a database gave leaves straight from the text of its cells:
// they are checked and written without an object in between. Objects are made
// only for what reads a row as a whole.

// rowCache keeps what is known of rows with the columns that came last: a
// statement gives the same ones every time.
type rowCache struct{ last atomic.Pointer[rowPlan] }

// rowPlan is how rows with certain columns leave.
type rowPlan struct {
	cols  []string
	check *shape.RowPlan // nil: no schema
	out   []outColumn
}

// outColumn is a key of a row that leaves.
type outColumn struct {
	name    string
	key     []byte // a line break, four spaces, the name and a colon
	col     int    // of the rows where there is no schema
	masked  bool
	text    string // what stands in the place of a masked value
	json    []byte // the same as JSON
	removed bool
}

// cells is a list in its cells, on its way out.
type cells struct {
	*rowPlan
	plan *plan
	rows *value.Rows
	buf  []shape.Cell
}

// simpleMasks tells whether the masks hide whole columns, always.
func (p *plan) simpleMasks() bool {
	for i := range p.masks {
		m := &p.masks[i]
		if _, ok := m.as.(fixed); m.when != nil || m.patterns != nil || !ok {
			return false
		}
		for _, x := range m.paths {
			if len(x) != 1 || x[0].kind != segKey {
				return false
			}
		}
	}
	return true
}

// cells plans rows that need not become objects; nil if they must.
func (p *plan) cells(rows *value.Rows) *cells {
	if p.rows == nil || p.embeds != nil {
		return nil
	}
	rp := p.rows.last.Load()
	if rp == nil || !slices.Equal(rp.cols, rows.Cols()) {
		rp = p.planRows(slices.Clone(rows.Cols()))
		p.rows.last.Store(rp)
	}
	if rp.out == nil {
		return nil
	}
	return &cells{rowPlan: rp, plan: p, rows: rows}
}

// planRows plans rows with these columns; without out they must become objects.
func (p *plan) planRows(cols []string) *rowPlan {
	rp := &rowPlan{cols: cols}
	names := cols
	if p.schema != nil {
		if rp.check = p.schema.Columns(cols); rp.check == nil {
			return rp
		}
		names = rp.check.Names()
	}
	rp.out = []outColumn{}
	for i, name := range names {
		if p.schema == nil && slices.Contains(cols[i+1:], name) {
			return &rowPlan{cols: cols} // of equal names the last counts
		}
		c := outColumn{name: name, col: i}
		c.key = append(value.AppendString([]byte("\n    "), name), ": "...)
		for _, m := range p.masks {
			for _, x := range m.paths {
				if x[0].key == name {
					c.masked, c.removed = true, m.remove
					c.text = string(m.as.(fixed))
					c.json = value.AppendString(nil, c.text)
				}
			}
		}
		rp.out = append(rp.out, c)
	}
	return rp
}

// row checks a row; its cells are good until the next call.
func (c *cells) row(i int) ([]shape.Cell, error) {
	c.buf = c.buf[:0]
	if c.check == nil {
		for k := range c.out {
			kind, text := c.rows.Cell(i, k)
			c.buf = append(c.buf, shape.Cell{Kind: kind, Text: text})
		}
		return c.buf, nil
	}
	var faults []shape.Fault
	c.buf, faults = c.check.Row(c.rows, i, c.buf)
	if len(faults) > 0 {
		for k := range faults {
			faults[k].Path = faults[k].Path[1:] // the row, which the error names
		}
		return nil, &RowError{Presenter: c.plan.name, Row: i, Faults: faults}
	}
	return c.buf, nil
}

// object gives a row as an object. It was checked before, or the failure
// would have been the answer.
func (c *cells) object(i int, unmasked bool) any {
	row, err := c.row(i)
	if err != nil {
		return nil
	}
	o := value.NewObject(len(row))
	for k := range row {
		switch out := &c.out[k]; {
		case row[k].State == shape.LeftOut:
		case out.masked && !unmasked && out.removed:
		case out.masked && !unmasked:
			o.Set(out.name, out.text)
		default:
			o.Set(out.name, row[k].Go())
		}
	}
	return o
}

// plain tells whether the schema changes nothing of the first n rows from
// row i on that an expression could see.
func (c *cells) plain(i, n int) bool {
	for ; i < n; i++ {
		row, err := c.row(i)
		if err != nil {
			return false
		}
		for k := range row {
			if row[k].State == shape.Built {
				return false
			}
			if c.check == nil || row[k].State == shape.LeftOut {
				continue
			}
			if kind, _ := c.rows.Cell(i, c.check.Column(k)); kind != row[k].Kind {
				return false
			}
		}
	}
	return true
}

// withheld tells what the masks take out of the first n rows.
func (c *cells) withheld(n int, tell func(any)) error {
	for i := range n {
		row, err := c.row(i)
		if err != nil {
			return err
		}
		for k := range row {
			if c.out[k].masked && row[k].State != shape.LeftOut {
				tell(row[k].Go())
			}
		}
	}
	return nil
}

// checkAll checks the first n rows.
func (c *cells) checkAll(n int) error {
	for i := range n {
		if _, err := c.row(i); err != nil {
			return err
		}
	}
	return nil
}

// appendIndent appends the first n rows as JSON with two spaces a level; of
// the keys only those named, all if none are.
func (c *cells) appendIndent(dst []byte, n int, keys []string) ([]byte, error) {
	if n == 0 {
		return append(dst, "[]"...), nil
	}
	order := c.order(keys)
	dst = append(dst, '[')
	for i := range n {
		row, err := c.row(i)
		if err != nil {
			return dst, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, "\n  {"...)
		first := true
		for _, k := range order {
			cell, out := &row[k], &c.out[k]
			if cell.State == shape.LeftOut || out.removed {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, out.key...)
			if out.masked {
				dst = append(dst, out.json...)
			} else {
				dst = appendCellJSON(dst, cell)
			}
		}
		if !first {
			dst = append(dst, "\n  "...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "\n]"...), nil
}

// order gives the places of the keys to write.
func (c *cells) order(keys []string) []int {
	var order []int
	if len(keys) == 0 {
		for k := range c.out {
			order = append(order, k)
		}
		return order
	}
	for _, key := range keys {
		k := slices.IndexFunc(c.out, func(o outColumn) bool { return o.name == key })
		if k >= 0 && !slices.Contains(order, k) {
			order = append(order, k)
		}
	}
	return order
}

// appendCellJSON appends a cell as JSON, nested data two levels deep.
func appendCellJSON(dst []byte, c *shape.Cell) []byte {
	if c.State == shape.Built {
		return value.AppendIndent(dst, c.Value, 2)
	}
	switch c.Kind {
	case value.Null:
		return append(dst, "null"...)
	case value.Text:
		return value.AppendString(dst, c.Text)
	case value.Bool, value.Int:
		return append(dst, c.Text...)
	case value.Exact, value.Float:
		if isNumber(c.Text) {
			return append(dst, c.Text...)
		}
	}
	return value.AppendIndent(dst, c.Kind.Value(c.Text), 2)
}

// isNumber tells whether a number is one that JSON knows: no NaN, no infinity.
func isNumber(b []byte) bool {
	if len(b) > 1 && b[0] == '-' {
		b = b[1:]
	}
	return len(b) > 0 && b[0] >= '0' && b[0] <= '9'
}

// setItem makes an item the value of data.
func (p *prepared) setItem(e *expr.Env, i int, ru *rule) {
	if p.rows != nil && !ru.whole && p.rows.plain(i, i+1) {
		e.SetRow("data", p.rows.rows, i)
		return
	}
	e.Set("data", p.item(i, ru.unmasked))
}

// setItems makes the list the value of items. An expression that reads some
// fields of it reads them from the cells.
func (p *prepared) setItems(e *expr.Env, whole, unmasked bool) {
	if p.rows != nil && !whole && p.rows.plain(0, p.n) {
		kept := *p.rows.rows
		kept.Cut(p.n)
		e.Set("items", &kept)
		return
	}
	e.Set("items", p.items(unmasked))
}

// cellTable writes the rows of a table whose columns are columns of the rows.
func (r *renderer) cellTable(b *block, p *prepared) error {
	c := p.rows
	at := make([]int, len(b.columns))
	for i := range b.columns {
		at[i] = slices.IndexFunc(c.out, func(o outColumn) bool { return o.name == b.columns[i].path[0] })
	}
	for i := range p.n {
		row, err := c.row(i)
		if err != nil {
			return err
		}
		err = r.tableRow(len(at), func(k int) error {
			if at[k] >= 0 {
				r.cellText(&row[at[k]], &c.out[at[k]], b.unmasked)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) cellText(c *shape.Cell, out *outColumn, unmasked bool) {
	switch {
	case c.State == shape.LeftOut || c.State == shape.Shown && c.Kind == value.Null:
	case out.masked && !unmasked && out.removed:
	case out.masked && !unmasked:
		r.cellValue(out.text)
	case c.State == shape.Shown && (c.Kind == value.Int || c.Kind == value.Bool):
		r.buf = append(r.buf, c.Text...)
	case c.State == shape.Shown && c.Kind == value.Text:
		start := len(r.buf)
		r.buf = defuse(appendCell(r.buf, c.Text), start, inText)
	default:
		r.cellValue(c.Go())
	}
}

// flatColumns tells whether all columns are columns of the rows.
func (b *block) flatColumns() bool {
	return !slices.ContainsFunc(b.columns, func(c column) bool { return c.cell != nil || len(c.path) != 1 })
}
