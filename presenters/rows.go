package presenters

import "github.com/fusion-serve/fusion-serve/dsl/value"

// cells is a list that leaves straight from the text of its cells.
type cells struct {
	rows *value.Rows
}

// cells plans rows that need not become objects; nil if they must.
func (p *plan) cells(rows *value.Rows, checked bool) (*cells, error) {
	return nil, nil
}

func (c *cells) object(i int, unmasked bool) any { return c.rows.Object(i) }

func (c *cells) appendIndent(dst []byte, n int, keys []string) []byte {
	return value.AppendIndent(dst, picked(c.rows.List()[:n], keys), 0)
}
