package presenters

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// summaryMark stands before the text of a summary.
const summaryMark = "📊 **Summary**: "

// uiBlocks writes the blocks of an item or, for a list, those of the collection.
func (r *renderer) uiBlocks(p *prepared) error {
	blocks := p.plan.ui
	if p.list {
		blocks = p.plan.coll.ui
	}
	for i := range blocks {
		b := &blocks[i]
		if b.reads {
			if p.list {
				p.setItems(r.env, b.whole, b.unmasked)
			} else {
				r.env.Set("data", p.item(0, b.unmasked))
			}
		}
		if b.when != nil {
			holds, err := b.when.Bool(r.env)
			if err != nil {
				return err
			}
			if !holds {
				continue
			}
		}
		if err := r.uiBlock(b, p); err != nil {
			return err
		}
	}
	return nil
}

// truncation says that rows were left out.
func (r *renderer) truncation(p *prepared) error {
	if b := p.plan.limit.block; b != nil {
		p.setItems(r.env, b.whole, false)
		return r.uiBlock(b, p)
	}
	hidden := "more"
	if p.omitted > 0 {
		hidden = strconv.FormatInt(p.omitted, 10)
	}
	start := len(r.buf)
	r.string("<ui_passthrough type=\"summary\">\n" + summaryMark)
	r.buf = fmt.Appendf(r.buf, "⚠️ Dataset truncated. %d shown, %s hidden. Use filters to narrow results.", p.n, hidden)
	r.endUI(start, sideUI{kind: "summary"}, start+len("<ui_passthrough type=\"summary\">\n"))
	return nil
}

// uiBlock writes one block: the opening tag, the body, the closing tag.
func (r *renderer) uiBlock(b *block, p *prepared) error {
	start := len(r.buf)
	s := sideUI{width: b.width, priority: b.priority}
	r.string(`<ui_passthrough type="`)
	name := b.kind.String()
	if b.name != nil {
		var err error
		if name, err = r.aside(b.name); err != nil {
			return err
		}
	}
	s.kind = name
	r.buf = append(appendAttr(r.buf, name), '"')
	if b.title != nil {
		title, err := r.aside(b.title)
		if err != nil {
			return err
		}
		if title != "" {
			r.string(` title="`)
			r.buf = append(appendAttr(r.buf, title), '"')
			s.title = title
		}
	}
	r.attr("width", b.width)
	r.attr("priority", b.priority)
	r.string(">\n")
	body := len(r.buf)
	if err := r.body(b, name, p); err != nil {
		return err
	}
	r.endUI(start, s, body)
	return nil
}

func (r *renderer) endUI(start int, s sideUI, body int) {
	s.body = span{body, len(r.buf)}
	r.string("\n</ui_passthrough>")
	if r.end(start) {
		if r.side.ui == nil {
			r.side.ui = make([]sideUI, 0, 4)
		}
		r.side.ui = append(r.side.ui, s)
	}
}

func (r *renderer) attr(name, v string) {
	if v == "" {
		return
	}
	r.buf = append(append(append(r.buf, ' '), name...), `="`...)
	r.buf = append(appendAttr(r.buf, v), '"')
}

// aside gives a text that does not stand in the body.
func (r *renderer) aside(t text) (string, error) {
	if s, ok := t.(words); ok {
		return string(s), nil
	}
	b, err := t.Append(nil, r.env, nil)
	return string(b), err
}

// body writes what stands between the tags.
func (r *renderer) body(b *block, lang string, p *prepared) error {
	switch b.kind {
	case markdown:
		return r.words(b.body, r.plain)
	case summary:
		r.string(summaryMark)
		return r.words(b.body, r.plain)
	case mermaid, codeBlock:
		return r.fenced(lang, func() error { return r.words(b.body, r.plain) })
	case echarts, jsonBlock:
		return r.fenced(lang, func() error {
			v, err := b.tree.Value(r.env)
			if err != nil {
				return err
			}
			start := len(r.buf)
			r.buf = defuse(value.AppendIndent(r.buf, v, 0), start, inJSON)
			return nil
		})
	case list:
		return r.list(b)
	}
	return r.table(b, p)
}

// fenced writes a body between two fences that are longer than the longest
// run of backticks in it.
func (r *renderer) fenced(lang string, body func() error) error {
	start := len(r.buf)
	info := fenceInfo(lang)
	r.string("```")
	r.string(info)
	r.string("\n")
	inner := len(r.buf)
	if err := body(); err != nil {
		return err
	}
	f := fence(r.buf[inner:])
	if more := f[3:]; more != "" {
		r.string(more)
		copy(r.buf[start+len(more):], r.buf[start:])
		copy(r.buf[start:], more)
	}
	r.string("\n")
	r.string(f)
	if strings.Contains(info, "<") { // a tag may begin there and end in the body
		r.buf = defuseHoles(r.buf, start, inText, []span{{start, start + len(f) + len(info)}})
	}
	return nil
}

// fenceInfo is a language as it may stand behind a fence: on one line, and
// without a backtick, which would end the fence.
func fenceInfo(lang string) string {
	safe := string(defuse(appendBroken(nil, lang, " "), 0, inText))
	return strings.ReplaceAll(safe, "`", "")
}

func (r *renderer) list(b *block) error {
	v, err := b.tree.Value(r.env)
	if err != nil {
		return err
	}
	items, err := listOf(v, "list")
	if err != nil {
		return err
	}
	var scratch []byte
	for i, x := range items {
		if i > 0 {
			r.string("\n")
		}
		r.string("- ")
		start := len(r.buf)
		scratch = value.AppendText(scratch[:0], x)
		r.buf = defuse(appendBullet(r.buf, string(scratch)), start, inText)
	}
	return nil
}

// listOf gives the elements of a value that must be a list; nil has none.
func listOf(v any, what string) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, nil
	case *value.Rows:
		return v.List(), nil
	}
	return nil, fmt.Errorf("a %s block needs a list, its hole gave %s", what, kindOf(v))
}

func (r *renderer) table(b *block, p *prepared) error {
	r.tableHead(b.columns)
	if b.tree == nil && p.rows != nil && b.flatColumns() {
		return r.cellTable(b, p)
	}
	var rows []any
	if b.tree != nil {
		v, err := b.tree.Value(r.env)
		if err == nil {
			rows, err = listOf(v, "table")
		}
		if err != nil {
			return err
		}
	} else {
		rows, _ = p.items(b.unmasked).([]any)
	}
	before := r.env.Get("data")
	defer r.env.Set("data", before)
	for i, row := range rows {
		err := r.tableRow(len(b.columns), func(i int) error {
			c := &b.columns[i]
			if c.cell == nil {
				r.cellValue(at(row, c.path))
				return nil
			}
			r.env.Set("data", row)
			return r.words(c.cell, r.cell)
		})
		if err != nil {
			return fmt.Errorf("table row %d: %w", i+1, err)
		}
	}
	return nil
}

// tableHead writes the titles of the columns and the line below them.
func (r *renderer) tableHead(columns []column) {
	r.string("|")
	for _, c := range columns {
		r.string(" ")
		r.buf = appendCell(r.buf, c.title)
		r.string(" |")
	}
	r.string("\n|")
	for range columns {
		r.string(" --- |")
	}
}

// tableRow writes a row of n cells.
func (r *renderer) tableRow(n int, cell func(i int) error) error {
	r.string("\n|")
	r.buf = append(r.buf, ' ')
	for i := range n {
		if i > 0 {
			r.buf = append(r.buf, " | "...)
		}
		if err := cell(i); err != nil {
			return err
		}
	}
	r.buf = append(r.buf, " |"...)
	return nil
}

// cellValue appends a value as a cell.
func (r *renderer) cellValue(v any) {
	start := len(r.buf)
	switch v := v.(type) {
	case int64:
		r.buf = strconv.AppendInt(r.buf, v, 10)
	case string:
		r.buf = defuse(appendCell(r.buf, v), start, inText)
	case *value.Object, []any, *value.Rows:
		r.buf = defuse(appendCell(r.buf, value.AppendJSON(nil, v)), start, inText)
	default:
		r.buf = value.AppendText(r.buf, v)
	}
}

// at follows a path of keys; nil if it leads nowhere.
func at(v any, path []string) any {
	for _, k := range path {
		o, ok := v.(*value.Object)
		if !ok {
			return nil
		}
		v, _ = o.Get(k)
	}
	return v
}

func (k kind) String() string {
	switch k {
	case echarts:
		return "echarts"
	case jsonBlock:
		return "json"
	case mermaid:
		return "mermaid"
	case summary:
		return "summary"
	}
	return "markdown"
}
