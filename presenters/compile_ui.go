package presenters

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// blocks compiles UI blocks.
func (c *compiler) blocks(l []*graph.Block, s scope) []block {
	var out []block
	for _, b := range l {
		if x, ok := c.block(b, s); ok {
			out = append(out, x)
		}
	}
	return out
}

func (c *compiler) block(b *graph.Block, s scope) (block, bool) {
	k, ok := kinds[b.Kind]
	if !ok {
		return block{}, false
	}
	c.reads = nil
	out := block{kind: k, unmasked: b.Unmasked, width: b.Width}
	if b.Priority != nil {
		out.priority = strconv.FormatInt(*b.Priority, 10)
	}
	if b.When != nil {
		if p := c.cond(b.When, b.Unmasked, s); p != nil {
			out.when = p
		}
	}
	if b.Title != nil {
		out.title = c.fixedOr(c.text(b.Title, b.Unmasked, s))
	}
	if b.Lang != nil {
		out.name = c.fixedOr(c.text(b.Lang, b.Unmasked, s))
	}
	switch k {
	case mermaid, markdown, summary, codeBlock:
		if b.Content != nil {
			out.body = c.fixedOr(c.text(&b.Content.Text, b.Unmasked, s))
		}
	case list:
		if b.Content != nil {
			if t, _ := c.listTree(b.Content, b.Unmasked, s); t != nil {
				out.tree = t
			}
		}
	case echarts, jsonBlock:
		if b.Content != nil {
			if t := c.tree(b.Content, b.Unmasked, s); t != nil {
				out.tree = t
			}
		}
	case table:
		c.table(&out, b, s)
	}
	out.reads = readsName(c.reads, "data", "items")
	out.whole = readsWhole(c.reads)
	return out, true
}

// fixedOr is a template, or its words if it has no hole.
func (c *compiler) fixedOr(t *expr.Template) text {
	switch {
	case t == nil:
		return words("")
	case t.IsStatic():
		b, _ := t.Append(nil, nil, nil)
		return words(b)
	}
	return t
}

func (c *compiler) table(out *block, b *graph.Block, s scope) {
	row := scope{Scope: s.Scope, masks: s.masks, row: s.row, item: true}
	switch {
	case b.Rows != nil:
		t, elem := c.listTree(&graph.Node{At: b.Rows.At, Path: b.Rows.Path, Kind: graph.String, Text: *b.Rows}, b.Unmasked, s)
		if t != nil {
			out.tree = t
		}
		// What the rows come from is read as a whole, masked fields and all.
		row.Scope, row.masks, row.row = s.Scope.With("data", elem), nil, elem
	case !s.list:
		c.faults.Add(b.At, b.Path, "a table of one item needs rows: the list whose elements are its rows, as in rows: \"{{ data.lines }}\"")
	default:
		row.Scope = c.base.With("data", s.row)
	}
	for i := range b.Columns {
		col := &b.Columns[i]
		if path, ok := plainPath(col.Cell.S); ok {
			out.columns = append(out.columns, column{title: col.Title, path: path})
			c.columnPath(col, path, b.Unmasked, row)
			continue
		}
		t := c.text(&col.Cell, b.Unmasked, row)
		if t == nil {
			continue
		}
		out.columns = append(out.columns, column{title: col.Title, cell: c.fixedOr(t)})
	}
}

// columnPath checks a column that is a path of the row.
func (c *compiler) columnPath(col *graph.Column, path []string, unmasked bool, row scope) {
	if !unmasked {
		c.faults = append(c.faults, maskedReads(&col.Cell, [][]string{append([]string{"data"}, path...)}, row.masks)...)
	}
	at := row.row
	for i, name := range path {
		switch {
		case at == nil:
			return
		case isLeaf(at.Kind) && i == 0:
			c.faults = append(c.faults, col.Cell.Fault(0, "a row has no fields here: write {{ data }} for the row itself"))
			return
		case isLeaf(at.Kind):
			c.faults = append(c.faults, col.Cell.Fault(0, "there are no fields below %s", strings.Join(path[:i], ".")))
			return
		case at.Kind != shape.Struct || at.Rest != nil || len(at.KeyPatterns) > 0:
			return
		}
		f := at.Field(name)
		if f == nil {
			c.faults = append(c.faults, col.Cell.Fault(0, "the row has no field %q%s", strings.Join(path[:i+1], "."), didYouMean(name, at)))
			return
		}
		at = f.Shape
	}
}

// isLeaf tells whether there are never fields in a value.
func isLeaf(k shape.Kind) bool {
	switch k {
	case shape.Null, shape.Bool, shape.Int, shape.Float, shape.String, shape.Const:
		return true
	}
	return false
}

func didYouMean(name string, s *shape.Shape) string {
	known := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		known[i] = f.Name
	}
	if near := value.Near(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// plainPath reads a column that is a path of the row: customer.name.
func plainPath(s string) ([]string, bool) {
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if !isName(p) || p == "" {
			return nil, false
		}
	}
	return parts, true
}
