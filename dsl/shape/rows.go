package shape

import (
	"bytes"
	"slices"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// RowPlan strips and checks rows as a database gave them, without building
// objects: Strip for a list that may be long. It is made once for a shape and
// a list of columns and may be used by many goroutines.
type RowPlan struct{ cols []planCol }

// planCol is one column of what leaves.
type planCol struct {
	name     string
	col      int      // of the rows, -1 if they have none
	field    *Field   // nil for a column that is not declared by name
	fits     []*Shape // what it must fit
	shape    *Shape   // the only one of fits, without null
	nullable bool
	optional bool
	enum     [][]byte // the texts of a union of strings
	scalar   bool     // checked on the text of the cell
	plain    bool     // nothing but its kind has to be checked
}

// CellState says what became of a cell.
type CellState uint8

// What becomes of a cell.
const (
	Shown   CellState = iota // Kind and Text are to be written
	LeftOut                  // the key is left out
	Built                    // Value is to be written: nested data, stripped
)

// Cell is one cell on its way out.
type Cell struct {
	State CellState
	Kind  value.Kind
	Text  []byte // belongs to the rows: not to be changed
	Value any
}

// Go gives the cell as a value; nil if it is left out.
func (c *Cell) Go() any {
	switch c.State {
	case LeftOut:
		return nil
	case Built:
		return c.Value
	}
	return c.Kind.Value(c.Text)
}

// Columns plans rows with these columns for a struct shape; nil for a shape
// of another kind, for which rows have to be stripped as objects. Columns
// that are not declared are dropped, unless the struct has patterns or is
// open: then they follow the declared ones.
func (s *Shape) Columns(cols []string) *RowPlan {
	if s == nil || s.Kind != Struct {
		return nil
	}
	p := &RowPlan{}
	for _, f := range s.Fields {
		c := newPlanCol(f.Name, lastIndex(cols, f.Name), f.Shape)
		c.field, c.optional = f, f.Optional
		p.cols = append(p.cols, c)
	}
	for i, name := range cols {
		if s.Field(name) != nil || lastIndex(cols, name) != i {
			continue
		}
		if fits := s.undeclared(name); fits != nil {
			p.cols = append(p.cols, newPlanCol(name, i, fits...))
		}
	}
	return p
}

// lastIndex is the column of that name; of several the last counts, as in an object.
func lastIndex(cols []string, name string) int {
	for i := len(cols) - 1; i >= 0; i-- {
		if cols[i] == name {
			return i
		}
	}
	return -1
}

// undeclared are the shapes that a field must fit that is not declared by
// name; none: there may be no such field.
func (s *Shape) undeclared(name string) []*Shape {
	var found []*Shape
	for _, p := range s.KeyPatterns {
		if p.Re.MatchString(name) {
			found = append(found, p.Shape)
		}
	}
	if found == nil && s.Rest != nil {
		found = []*Shape{s.Rest}
	}
	return found
}

func newPlanCol(name string, col int, fits ...*Shape) planCol {
	c := planCol{name: name, col: col, fits: fits}
	if len(fits) != 1 {
		return c
	}
	s := fits[0]
	c.nullable = s.TakesNull()
	if s.Kind == Union {
		if alts := s.notNull(); len(alts) == 1 {
			s = alts[0]
		} else {
			c.enum = enumTexts(alts)
		}
	}
	c.shape = s
	switch s.Kind {
	case Any, Bool:
		c.scalar = true
	case Int, Float:
		c.scalar = true
		c.plain = s.Min == nil && s.Max == nil && s.MultipleOf == "" && len(s.Not) == 0
	case String:
		c.scalar, c.plain = true, s.plainText()
	case Const:
		c.enum = enumTexts([]*Shape{s})
	}
	return c
}

func enumTexts(alts []*Shape) [][]byte {
	var l [][]byte
	for _, v := range constants(alts) {
		t, ok := v.(string)
		if !ok {
			return nil
		}
		l = append(l, []byte(t))
	}
	return l
}

// Names are the keys of a row that leaves, in order.
func (p *RowPlan) Names() []string {
	l := make([]string, len(p.cols))
	for i := range p.cols {
		l[i] = p.cols[i].name
	}
	return l
}

// Column is the column of the rows that feeds the i-th key, -1 if none does.
func (p *RowPlan) Column(i int) int { return p.cols[i].col }

// Row strips one row: a cell for each of Names, appended to cells, and what
// is wrong with it, the row's number first in each path. The answer is the
// one of Strip on the row as an object.
func (p *RowPlan) Row(rows *value.Rows, row int, cells []Cell) ([]Cell, []Fault) {
	start := len(cells)
	cells = slices.Grow(cells, len(p.cols))[:start+len(p.cols)]
	var faults []Fault
	for i := range p.cols {
		c, cell := &p.cols[i], &cells[start+i]
		*cell = Cell{}
		if !c.cell(rows, row, cell) {
			c.slow(rows, row, cell, &faults)
		}
	}
	return cells, faults
}

// cell takes the fast way; false: a fault, or data that has to be built.
func (c *planCol) cell(rows *value.Rows, row int, cell *Cell) bool {
	if c.col < 0 {
		cell.State = LeftOut
		return c.optional
	}
	k, text := rows.Cell(row, c.col)
	if k == value.Null || k == value.JSON && string(text) == "null" {
		if c.nullable {
			return true
		}
		cell.State = LeftOut
		return c.optional
	}
	cell.Kind, cell.Text = k, text
	if c.enum != nil {
		return k == value.Text && c.isOneOf(text)
	}
	if !c.scalar {
		return false
	}
	switch c.shape.Kind {
	case Any:
		return k != value.JSON
	case Bool:
		if k == value.Int && len(text) == 1 && text[0]&^1 == '0' {
			cell.Kind, cell.Text = value.Bool, boolText(text[0] == '1')
			return true
		}
		return k == value.Bool
	case String:
		return k == value.Text && (c.plain || len(textFaults(nil, c.shape, text)) == 0)
	}
	return c.number(cell)
}

func (c *planCol) isOneOf(text []byte) bool {
	for _, t := range c.enum {
		if string(t) == string(text) {
			return true
		}
	}
	return false
}

var falseText, trueText = []byte("false"), []byte("true")

func boolText(b bool) []byte {
	if b {
		return trueText
	}
	return falseText
}

func (c *planCol) number(cell *Cell) bool {
	switch cell.Kind {
	case value.Int:
	case value.Exact, value.Float:
		if !isDecimal(cell.Text) { // 1e+21, NaN
			return false
		}
		if c.shape.Kind == Int && !cell.makeWhole() {
			return false
		}
	default:
		return false
	}
	return c.plain || len(c.shape.numberFaults(nil, cell.Text)) == 0
}

// makeWhole gives a whole number its plain form: 3.00 is 3.
func (cell *Cell) makeWhole() bool {
	if !isWhole(cell.Text) {
		return false
	}
	if i := bytes.IndexByte(cell.Text, '.'); i >= 0 {
		cell.Text = cell.Text[:i]
	}
	if len(cell.Text) < 19 { // surely within int64
		cell.Kind = value.Int
	}
	return true
}

// slow strips the cell as a value: for nested data, and to tell what is wrong.
func (c *planCol) slow(rows *value.Rows, row int, cell *Cell, faults *[]Fault) {
	k := checker{out: true, coerce: true}
	k.at(row)
	switch {
	case c.col >= 0:
		k.enter(c.name)
		if c.field != nil && c.field.Secret {
			k.secret++
		}
		v := rows.Value(row, c.col)
		if v == nil && c.optional && !c.nullable { // a JSON null
			*cell = Cell{State: LeftOut}
			return
		}
		for _, s := range c.fits {
			v = k.value(s, v)
		}
		*cell = Cell{State: Built, Value: v}
	case c.field.HasDefault:
		*cell = Cell{State: Built, Value: value.DeepClone(c.field.Default)}
	default:
		k.missing(c.field)
	}
	*faults = append(*faults, k.faults...)
}
