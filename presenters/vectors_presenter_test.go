package presenters

import (
	"errors"
	"fmt"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// planOf translates a presenter of the vectors. The error is a load error.
func planOf(v any) (*plan, error) {
	p := &plan{name: text1(get(v, "name")), schema: shapeOf(get(v, "schema"))}
	if get(v, "api") == "definePresenter" && get(v, "autoRules") != false && p.schema != nil {
		for _, f := range p.schema.Fields {
			if f.Description != "" {
				p.auto = append(p.auto, f.Name+": "+f.Description)
			}
		}
	}
	p.rules = rulesOf(get(v, "rules"), false)
	p.coll.rules = rulesOf(get(v, "collectionRules"), true)
	p.suggest = suggestOf(get(v, "suggest"), false)
	p.coll.suggest = suggestOf(get(v, "collectionSuggest"), true)
	p.ui, p.coll.ui = blocksOf(get(v, "ui")), blocksOf(get(v, "collectionUi"))
	if n, ok := get(v, "limit").(int64); ok {
		p.limit.rows, p.limit.zero = int(n), n == 0
	}
	if a := get(v, "agentLimit"); a != nil {
		p.limit.rows = int(get(a, "max").(int64))
		if b := get(a, "block"); b != nil {
			p.limit.block = &blocksOf([]any{b})[0]
		}
	}
	for _, e := range elements(get(v, "embeds")) {
		child, err := planOf(get(e, "presenter"))
		if err != nil {
			return nil, err
		}
		key := text1(get(e, "key"))
		if p.schema != nil && p.schema.Kind == shape.Struct && p.schema.Rest == nil && p.schema.Field(key) == nil {
			return nil, fmt.Errorf("the schema of %s does not declare %q", p.name, key)
		}
		p.embeds = append(p.embeds, embed{key: key, plan: child})
	}
	return p, masksOf(p, get(v, "redact"))
}

func masksOf(p *plan, v any) error {
	if v == nil {
		return nil
	}
	m := mask{as: fixed("[REDACTED]")}
	switch c := get(v, "censor").(type) {
	case string:
		m.as = fixed(c)
	case *value.Object:
		cb, _ := asCallback(c)
		m.as = jsCensor{cb}
	}
	var errs []error
	for _, s := range elements(get(v, "paths")) {
		path, err := parsePath(s.(string))
		if err == nil {
			err = declaredPath(path, p.schema)
		}
		errs = append(errs, err)
		m.paths = append(m.paths, path)
	}
	p.masks = []mask{m}
	return errors.Join(errs...)
}

// jsCensor gives the text in the place of a value by a callback.
type jsCensor struct{ *callback }

func (c jsCensor) Replace(v any) any {
	e := expr.NewEnv()
	e.Set("value", v)
	out, err := c.run(e)
	if err != nil {
		return "[REDACTED]"
	}
	return out
}

// rulesOf translates a list of static rules or {dynamic: […]}.
func rulesOf(v any, list bool) []rule {
	if v == nil {
		return nil
	}
	if l, ok := v.([]any); ok {
		var out []rule
		for _, s := range l {
			out = append(out, rule{static: jsString(s), always: true, list: list})
		}
		return out
	}
	var out []rule
	for _, x := range elements(get(v, "dynamic")) {
		if cb, ok := asCallback(x); ok {
			out = append(out, rule{when: jsSaid{cb}, text: jsText{x}, perItem: true, list: list})
		} else if x != nil {
			out = append(out, rule{when: yes{}, static: jsString(x), list: list})
		}
	}
	return out
}

func suggestOf(v any, list bool) []suggestion {
	var out []suggestion
	for _, x := range elements(v) {
		if x == nil {
			continue
		}
		s := suggestion{tool: text1(get(x, "tool")), exposed: text1(get(x, "tool"))}
		s.list = list
		if cb, ok := asCallback(get(x, "when")); ok {
			s.when, s.perItem = jsCond{cb}, true
		}
		if _, ok := asCallback(get(x, "reason")); ok {
			s.text, s.perItem = jsText{get(x, "reason")}, true
		} else {
			s.static = jsString(get(x, "reason"))
		}
		out = append(out, s)
	}
	return out
}

func blocksOf(v any) []block {
	var out []block
	for _, x := range elements(v) {
		switch {
		case x == nil:
		case get(x, "helper") != nil:
			b := helperBlock(text1(get(x, "helper")), elements(get(x, "args")))
			decorate(&b, x)
			out = append(out, b)
		case get(x, "raw") != nil:
			raw := get(x, "raw")
			b := block{kind: markdown, name: jsText{get(raw, "type")}, body: jsText{get(raw, "content")}, reads: true}
			decorate(&b, raw)
			out = append(out, b)
		default: // a callback that gives the block: of the vectors only one that fails
			out = append(out, block{kind: markdown, body: jsText{x}, reads: true})
		}
	}
	return out
}

// decorate adds the title, the width and the priority, all of them data.
func decorate(b *block, v any) {
	meta, _ := get(v, "meta").(*value.Object)
	if t := get(meta, "title"); t != nil && t != "" {
		b.title = jsText{t}
	}
	b.width = text1(get(meta, "width"))
	if p, ok := meta.Get("priority"); ok {
		b.priority = jsString(p)
	}
	if cb, ok := asCallback(get(v, "when")); ok {
		b.when = jsCond{cb}
	}
}

// helperBlock translates a call of a UI helper.
func helperBlock(helper string, args []any) block {
	b := block{kind: kinds[helper], reads: true}
	arg := func(i int) any {
		if i < len(args) {
			return args[i]
		}
		return nil
	}
	switch b.kind {
	case echarts, jsonBlock, list:
		b.tree = jsTree{arg(0)}
	case codeBlock:
		b.name, b.body = jsText{arg(0)}, jsText{arg(1)}
	case table:
		for i, h := range elements(arg(0)) {
			title := string(defuse(appendCell(nil, jsString(h)), 0, inText))
			b.columns = append(b.columns, column{title: title, cell: jsCell{i}})
		}
		b.tree = jsTree{arg(1)}
	default:
		b.body = jsText{arg(0)}
	}
	return b
}

// jsCell is a cell of a row that is a list.
type jsCell struct{ i int }

func (c jsCell) Append(dst []byte, e *expr.Env, safe func([]byte, string) []byte) ([]byte, error) {
	row, _ := e.Get("data").([]any)
	if c.i >= len(row) {
		return dst, nil
	}
	return safe(dst, jsString(row[c.i])), nil
}

// dataOf gives the data of a vector.
func dataOf(v any) any {
	if raw, ok := get(v, "dataJson").(string); ok {
		x, err := value.Parse([]byte(raw))
		if err != nil {
			panic(err)
		}
		return x
	}
	return get(v, "data")
}

// drivePresenter presents data through a plan.
func drivePresenter(p *plan, data, ctx any, choose any, tweak func(*View)) result {
	e := expr.NewEnv()
	e.Set("ctx", ctx)
	v := &View{plan: p, action: "inv/get"}
	if choose != nil {
		v.selects = true
	}
	if tweak != nil {
		tweak(v)
	}
	resp, err := v.Present(&Call{Env: e, Total: -1, Select: texts(choose)}, data)
	if err != nil {
		return result{failed: true, text: err.Error()}
	}
	return sentOf(resp)
}

// sentOf reads a response as it goes over the wire.
func sentOf(r *Response) result {
	v, err := value.Parse(r.AppendResult(nil, false))
	if err != nil {
		panic(err)
	}
	return result{value: v}
}
