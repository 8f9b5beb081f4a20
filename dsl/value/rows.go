package value

import (
	"slices"
	"strconv"
)

// Kind says what the text of a cell is.
type Kind uint8

// The kinds of a cell and the text that goes with each.
const (
	Null  Kind = iota // no text
	Bool              // true or false
	Int               // digits, within int64
	Exact             // a decimal number, becomes a Number
	Float             // a float64 in wire form
	Text              // the string itself, not escaped
	JSON              // a JSON document
)

// Rows is the answer of a query: flat structs that share their columns, the
// cells as wire text in one buffer. It is built once, by one goroutine, and
// not changed after.
type Rows struct {
	cols  []string
	kinds []Kind // row-major
	ends  []int  // end of each cell in buf
	buf   []byte
}

// NewRows makes an empty answer with these columns.
func NewRows(cols []string) *Rows { return &Rows{cols: cols} }

// Grow makes room for rows more rows with bytes more bytes of text, so that
// they are added without copying what is there.
func (r *Rows) Grow(rows, bytes int) {
	r.kinds = slices.Grow(r.kinds, rows*len(r.cols))
	r.ends = slices.Grow(r.ends, rows*len(r.cols))
	r.buf = slices.Grow(r.buf, bytes)
}

// Add appends the next cell, row by row, column by column.
func (r *Rows) Add(k Kind, text []byte) {
	r.buf = append(r.buf, text...)
	r.kinds = append(r.kinds, k)
	r.ends = append(r.ends, len(r.buf))
}

// AddFunc appends the next cell with the bytes that app appends.
func (r *Rows) AddFunc(k Kind, app func(dst []byte) []byte) {
	r.buf = app(r.buf)
	r.kinds = append(r.kinds, k)
	r.ends = append(r.ends, len(r.buf))
}

// Cols gives the column names. The slice must not be changed.
func (r *Rows) Cols() []string { return r.cols }

// Col is the place of a column, or -1.
func (r *Rows) Col(name string) int {
	for i, c := range r.cols {
		if c == name {
			return i
		}
	}
	return -1
}

// Len is the number of whole rows.
func (r *Rows) Len() int {
	if r == nil || len(r.cols) == 0 {
		return 0
	}
	return len(r.kinds) / len(r.cols)
}

// Size is the number of bytes in all cells.
func (r *Rows) Size() int { return len(r.buf) }

// Cut keeps the first n rows.
func (r *Rows) Cut(n int) {
	c := n * len(r.cols)
	if c >= len(r.kinds) {
		return
	}
	r.kinds, r.ends = r.kinds[:c], r.ends[:c]
	if c == 0 {
		r.buf = r.buf[:0]
		return
	}
	r.buf = r.buf[:r.ends[c-1]]
}

// Cell gives the kind and the text of one cell. The text must not be changed.
func (r *Rows) Cell(row, col int) (Kind, []byte) {
	i := row*len(r.cols) + col
	start := 0
	if i > 0 {
		start = r.ends[i-1]
	}
	return r.kinds[i], r.buf[start:r.ends[i]:r.ends[i]]
}

// Value gives one cell as a value. A JSON cell that does not parse is its text.
func (r *Rows) Value(row, col int) any {
	k, b := r.Cell(row, col)
	return k.Value(b)
}

// Value reads the text of a cell of that kind, as Rows.Value does.
func (k Kind) Value(b []byte) any {
	switch k {
	case Null:
		return nil
	case Bool:
		return len(b) > 0 && b[0] == 't'
	case Int:
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return Number(b)
		}
		return n
	case Exact:
		return Number(b)
	case Float:
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return Number(b)
		}
		return f
	case JSON:
		v, err := Parse(b)
		if err != nil {
			return string(b)
		}
		return v
	}
	return string(b)
}

// Object gives one row as an object.
func (r *Rows) Object(row int) *Object {
	o := NewObject(len(r.cols))
	for c, name := range r.cols {
		o.Set(name, r.Value(row, c))
	}
	return o
}

// List gives all rows as a list of objects.
func (r *Rows) List() []any {
	l := make([]any, r.Len())
	for i := range l {
		l[i] = r.Object(i)
	}
	return l
}
