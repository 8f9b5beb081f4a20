package presenters

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
)

// renderer writes the blocks of one response into one buffer.
type renderer struct {
	call    *Call
	env     *expr.Env
	checked bool // the value was compared with its schemas by the parent

	buf    []byte
	blocks []span
	data   int    // place of block 1 among them
	holes  []span // of the text that is being written
	side   side

	// The children's blocks so far: of equal ones the first is kept.
	depth   int
	seen    []span
	seenMap map[string]bool

	bullets []span // of the block that is being written

	plain, bullet, cell func(dst []byte, s string) []byte
}

// renderers are kept for the slices that they work with. The buffer and the
// side door leave with the response.
var renderers = sync.Pool{New: func() any {
	r := &renderer{holes: make([]span, 0, 8)}
	r.plain, r.bullet, r.cell = r.marking(appendPlain), r.marking(appendBullet), r.marking(appendCell[string])
	return r
}}

func newRenderer(c *Call, size int) *renderer {
	r := renderers.Get().(*renderer)
	r.call, r.env, r.buf = c, c.Env.Fork(), make([]byte, 0, size)
	if c.Context != nil {
		r.env.SetContext(c.Context)
	}
	return r
}

// release gives the renderer back; nothing of the call stays in it.
func (r *renderer) release() {
	r.reset()
	r.call, r.env, r.buf, r.checked, r.depth = nil, nil, nil, false, 0
	renderers.Put(r)
}

// reset takes back what was written.
func (r *renderer) reset() {
	r.buf, r.blocks, r.seen, r.seenMap = r.buf[:0], r.blocks[:0], r.seen[:0], nil
	r.side, r.data = side{}, 0
}

// before writes the block that comes before the data, if there is one.
func (r *renderer) before(block []byte) {
	if block != nil {
		r.buf = append(r.buf, block...)
		r.end(0)
	}
}

// marking makes a function that appends the text of a hole and notes where it
// stands.
func (r *renderer) marking(f func(dst []byte, s string) []byte) func(dst []byte, s string) []byte {
	return func(dst []byte, s string) []byte {
		start := len(dst)
		dst = f(dst, s)
		r.holes = append(r.holes, span{start, len(dst)})
		return dst
	}
}

// words appends a text. Tags that a hole wrote or completed are made harmless.
func (r *renderer) words(t text, safe func(dst []byte, s string) []byte) error {
	start := len(r.buf)
	r.holes = r.holes[:0]
	buf, err := t.Append(r.buf, r.env, safe)
	if err != nil {
		return err
	}
	r.buf = defuseHoles(buf, start, inText, r.holes)
	return nil
}

func (r *renderer) string(s string) { r.buf = append(r.buf, s...) }

// end closes the block that began at start. A child's block that was there
// before is dropped.
func (r *renderer) end(start int) bool {
	if r.depth > 0 && r.isSeen(r.buf[start:]) {
		r.buf = r.buf[:start]
		return false
	}
	b := span{start, len(r.buf)}
	r.blocks = append(r.blocks, b)
	if r.depth > 0 {
		r.seen = append(r.seen, b)
	}
	return true
}

func (r *renderer) isSeen(text []byte) bool {
	const mapFrom = 16
	if len(r.seen) < mapFrom {
		for _, s := range r.seen {
			if bytes.Equal(r.buf[s.start:s.end], text) {
				return true
			}
		}
		return false
	}
	if r.seenMap == nil {
		r.seenMap = make(map[string]bool, 2*mapFrom)
		for _, s := range r.seen {
			r.seenMap[string(r.buf[s.start:s.end])] = true
		}
	}
	if r.seenMap[string(text)] {
		return true
	}
	r.seenMap[string(text)] = true
	return false
}

// emit writes the blocks behind the data block. In a list of parents only the
// first one's children show UI; that something was cut is always said.
func (r *renderer) emit(p *prepared, ui bool) error {
	pl := p.plan
	if p.list {
		r.env.Set("omitted", p.omitted)
		r.env.Set("total", p.count())
	}
	if p.omitted != 0 {
		if err := r.truncation(p); err != nil {
			return err
		}
	}
	if ui {
		if err := r.uiBlocks(p); err != nil {
			return err
		}
	}
	if len(p.children) > 0 {
		if err := r.emitChildren(p, ui); err != nil {
			return err
		}
	}
	if err := r.section(p, "llm_directives", sideDirective, pl.hints, pl.coll.hints, pl.extra.hints); err != nil {
		return err
	}
	if err := r.section(p, "domain_rules", sideRule, pl.rules, pl.coll.rules, pl.extra.rules); err != nil {
		return err
	}
	return r.suggestions(p)
}

func (r *renderer) emitChildren(p *prepared, ui bool) error {
	r.depth++
	var kept [len(childNames)]any // the child has its own
	for i, name := range childNames {
		kept[i] = r.env.Get(name)
	}
	for _, c := range p.children {
		if c.parent >= p.n {
			break // its row was cut
		}
		if err := r.emit(c.of, ui && c.parent == 0); err != nil {
			return fmt.Errorf("presenter %s: %w", c.of.plan.name, err)
		}
	}
	for i, name := range childNames {
		r.env.Set(name, kept[i])
	}
	r.depth--
	return nil
}

var childNames = [...]string{"data", "items", "omitted", "total"}

// section writes a block of bullets: what may stand in it, in order, are the
// rules of an item, those of the collection and those of the tool.
func (r *renderer) section(p *prepared, tag string, side sideKind, item, coll, tool []rule) error {
	auto := side == sideRule && len(p.plan.auto) > 0
	if len(item)+len(coll)+len(tool) == 0 && !auto {
		return nil
	}
	start := len(r.buf)
	r.open(tag)
	if auto {
		for _, a := range p.plan.auto {
			r.static(a)
		}
	}
	if !p.list {
		coll = nil
	}
	for _, l := range [3][]rule{item, coll, tool} {
		for i := range l {
			if err := r.rule(p, &l[i]); err != nil {
				return err
			}
		}
	}
	if r.close(start, tag) {
		for _, b := range r.bullets {
			r.side.note(sideMark{kind: side, at: b})
		}
	}
	return nil
}

func (r *renderer) open(tag string) {
	r.buf = append(append(append(r.buf, '<'), tag...), ">\n"...)
	r.bullets = r.bullets[:0]
}

// close ends a block of bullets; one without a bullet is left out.
func (r *renderer) close(start int, tag string) bool {
	if len(r.bullets) == 0 {
		r.buf = r.buf[:start]
		return false
	}
	r.buf = append(append(append(r.buf, "</"...), tag...), '>')
	return r.end(start)
}

func (r *renderer) static(s string) {
	start := len(r.buf)
	r.buf = append(append(r.buf, "- "...), s...)
	r.endBullet(start)
}

// endBullet ends the bullet that began at start; of equal ones the first is kept.
func (r *renderer) endBullet(start int) bool {
	text := r.buf[start+2:]
	for _, b := range r.bullets {
		if bytes.Equal(r.buf[b.start:b.end], text) {
			r.buf = r.buf[:start]
			return false
		}
	}
	r.bullets = append(r.bullets, span{start + 2, len(r.buf)})
	r.buf = append(r.buf, '\n')
	return true
}

func (r *renderer) rule(p *prepared, ru *rule) error {
	holds, err := r.holds(p, ru)
	if err != nil || !holds {
		return err
	}
	if ru.text == nil {
		r.static(ru.static)
		return nil
	}
	start := len(r.buf)
	r.string("- ")
	if err := r.words(ru.text, r.bullet); err != nil {
		return err
	}
	r.endBullet(start)
	return nil
}

// holds tells whether a rule is to be stated, and leaves its item (for a list
// the first one that meets the condition) or the items in the environment.
func (r *renderer) holds(p *prepared, ru *rule) (bool, error) {
	switch {
	case ru.list:
		if !p.list {
			return false, nil
		}
		if ru.when != nil || ru.text != nil {
			p.setItems(r.env, ru.whole, ru.unmasked)
		}
		if ru.when == nil {
			return true, nil
		}
		return ru.when.Bool(r.env)
	case ru.always:
		return true, nil
	case p.list && p.n == 0:
		return false, nil
	case ru.when == nil && ru.text == nil:
		return true, nil
	case !ru.perItem:
		if ru.when == nil {
			return true, nil
		}
		return ru.when.Bool(r.env)
	}
	n := 1
	if p.list {
		n = p.n
	}
	for i := range n {
		p.setItem(r.env, i, ru)
		if ru.when == nil {
			return true, nil
		}
		if holds, err := ru.when.Bool(r.env); err != nil || holds {
			return holds, r.inRow(p, i, err)
		}
	}
	return false, nil
}

// inRow names the row in which an expression failed.
func (r *renderer) inRow(p *prepared, i int, err error) error {
	if err == nil || !p.list {
		return err
	}
	return fmt.Errorf("row %d: %w", i+1, err)
}

func (r *renderer) suggestions(p *prepared) error {
	start := len(r.buf)
	opened := false
	for _, l := range [2]struct{ item, coll []suggestion }{
		{p.plan.suggest, p.plan.coll.suggest},
		{p.plan.extra.suggest, p.plan.extra.coll},
	} {
		use := l.item
		if p.list && len(l.coll) > 0 {
			use = l.coll
		}
		for i := range use {
			s := &use[i]
			if r.call.Visible != nil && !r.call.Visible(s.tool) {
				continue
			}
			holds, err := r.holds(p, &s.rule)
			if err != nil {
				return err
			}
			if !holds {
				continue
			}
			if !opened {
				r.open("action_suggestions")
				opened = true
			}
			if err := r.suggestion(s); err != nil {
				return err
			}
		}
	}
	if opened {
		r.close(start, "action_suggestions")
	}
	return nil
}

func (r *renderer) suggestion(s *suggestion) error {
	start := len(r.buf)
	r.buf = append(append(append(r.buf, "- "...), s.exposed...), ": "...)
	reason := len(r.buf)
	if s.text == nil {
		r.string(s.static)
	} else if err := r.words(s.text, r.bullet); err != nil {
		return err
	}
	end := len(r.buf)
	if r.endBullet(start) {
		r.side.note(sideMark{kind: sideSuggest, at: span{reason, end}, tool: s.exposed})
	}
	return nil
}
