package presenters

import (
	"fmt"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// drive plays the input of a vector through our engine.
func drive(t testing.TB, in *value.Object) result {
	t.Helper()
	kind := text1(get(in, "kind"))
	switch kind {
	case "successData":
		return drivePresenter(&plan{name: "X"}, dataOf(in), nil, nil, nil)
	case "structuredData":
		return drivePresenter(&plan{name: "X"}, dataOf(in), nil, nil, func(v *View) { v.structured = true })
	case "presenter":
		p, err := planOf(get(in, "presenter"))
		if err != nil {
			return result{failed: true, text: err.Error()}
		}
		return drivePresenter(p, dataOf(in), get(in, "ctx"), get(in, "select"), nil)
	case "presenterMeta":
		return driveMeta(get(in, "presenter"))
	case "ui":
		return driveUI(get(in, "block"))
	case "helper":
		return driveHelper(text1(get(in, "helper")), elements(get(in, "args")))
	case "errorBuilder":
		return driveErrorBuilder(in)
	case "builder":
		return driveBuilder(in)
	case "validationError":
		return driveInvalid(in)
	case "toonSuccess":
		return driveToon(in)
	case "toon":
		return result{value: value.Of("text", string(toon{delim: ',', indent: 2}.root(nil, dataOf(in))))}
	case "egress":
		return driveEgress(in)
	case "call":
		return driveCall(in, "grouped")
	case "serverCall":
		return driveCall(in, "flat")
	case "toolDef", "exposition", "toolsList":
		return driveDefinitions(kind, in)
	case "jsonSchema":
		return driveSchema(in)
	}
	t.Fatalf("no driver for %s", kind)
	return result{}
}

// driveUI renders one block on its own.
func driveUI(v any) result {
	e := expr.NewEnv()
	r := newRenderer(&Call{Env: e}, 512)
	b := blocksOf([]any{v})[0]
	if get(v, "helper") == "table" {
		b = block{kind: markdown, body: raggedTable(b.columns, elements(elements(get(v, "args"))[1]))}
		decorate(&b, v)
	}
	err := r.uiBlock(&b, &prepared{plan: &plan{}})
	if err != nil {
		return result{failed: true, text: err.Error()}
	}
	u := r.side.ui[0]
	made := value.Of("type", u.kind, "content", string(r.buf[u.body.start:u.body.end]))
	return result{value: value.Of("block", made, "rendered", string(r.buf))}
}

// raggedTable writes a table whose rows need not have a cell a column, as
// those of a block do.
func raggedTable(columns []column, rows []any) text {
	r := &renderer{}
	r.tableHead(columns)
	for _, row := range rows {
		cells := elements(row)
		_ = r.tableRow(len(cells), func(i int) error {
			r.cellValue(cells[i])
			return nil
		})
	}
	return words(r.buf)
}

// driveHelper answers with one of the helpers that make a response.
func driveHelper(helper string, args []any) result {
	arg := func(i int) any {
		if i < len(args) {
			return args[i]
		}
		return nil
	}
	switch helper {
	case "success":
		return drivePresenter(&plan{name: "X"}, arg(0), nil, nil, nil)
	case "successStructured":
		return drivePresenter(&plan{name: "X"}, arg(0), nil, nil, func(v *View) { v.structured = true })
	case "toonSuccess":
		return drivePresenter(&plan{name: "X", toon: true}, arg(0), nil, nil, nil)
	case "error":
		return sentOf((&Failure{Message: text1(arg(0)), Code: text1(arg(1))}).Response())
	case "required":
		return sentOf(Required(text1(arg(0))).Response())
	case "toolError":
		return driveToolError(text1(arg(0)), arg(1))
	}
	return driveContent(helper, arg)
}

func driveToolError(code string, o any) result {
	f := &Failure{Code: code, Severity: "error"}
	message, ok := get(o, "message").(string)
	if !ok {
		return result{failed: true, text: "a message is missing"}
	}
	f.Message, f.Suggestion, f.Actions = message, text1(get(o, "suggestion")), texts(get(o, "availableActions"))
	if s := text1(get(o, "severity")); s != "" {
		f.Severity = s
	}
	details, _ := get(o, "details").(*value.Object)
	for i := range details.Len() {
		k, v := details.At(i)
		f.Details = append(f.Details, Detail{Key: k, Text: jsString(v)})
	}
	f.RetryAfter = seconds(get(o, "retryAfter"))
	return sentOf(f.Response())
}

func seconds(v any) string {
	switch n := v.(type) {
	case int64:
		if n > 0 {
			return fmt.Sprintf("%d seconds", n)
		}
	case float64:
		if n > 0 {
			return jsNumber(n) + " seconds"
		}
	}
	return ""
}

// driveContent gives one content block, which is all that these helpers make.
func driveContent(helper string, arg func(int) any) result {
	var c Content
	o := arg(1)
	switch helper {
	case "resourceLink":
		c = Content{Type: "resource_link", URI: text1(arg(0)), Name: text1(get(o, "name")), Description: text1(get(o, "description")), MimeType: text1(get(o, "mimeType"))}
	case "imageContent", "audioContent":
		c = Content{Type: helper[:5], Data: []byte(text1(arg(0))), MimeType: text1(arg(1))}
	case "embeddedResource":
		c = Content{Type: "resource", URI: text1(arg(0)), MimeType: text1(get(o, "mimeType")), Text: []byte(text1(get(o, "text"))), Blob: []byte(text1(get(o, "blob")))}
	}
	v, err := value.Parse(c.append(nil))
	if err != nil {
		panic(err)
	}
	return result{value: v}
}

func driveErrorBuilder(v any) result {
	f := &Failure{Code: text1(get(v, "code")), Message: text1(get(v, "message")), Severity: "error"}
	for _, c := range elements(get(v, "calls")) {
		call := elements(c)
		args := call[1:]
		switch call[0] {
		case "suggest":
			f.Suggestion = text1(args[0])
		case "actions":
			f.Actions = append(f.Actions, texts(args)...)
		case "severity":
			f.Severity = text1(args[0])
		case "warning", "critical":
			f.Severity = call[0].(string)
		case "retryAfter":
			f.RetryAfter = seconds(args[0])
		case "details":
			o := args[0].(*value.Object)
			for i := range o.Len() {
				k, x := o.At(i)
				f.Details = append(f.Details, Detail{Key: k, Text: jsString(x)})
			}
		}
	}
	return sentOf(f.Response())
}

// driveBuilder presents data with what the calls of a response builder add,
// all of it data. Raw blocks are what an embedded presenter's are to us: they
// stand behind the UI blocks.
func driveBuilder(v any) result {
	p := &plan{name: "X"}
	ui := 0
	var raw []any
	for _, c := range elements(get(v, "calls")) {
		call := elements(c)
		switch args := call[1:]; call[0] {
		case "llmHint":
			p.hints = append(p.hints, rule{text: jsText{args[0]}, always: true})
		case "systemRules":
			for _, x := range elements(args[0]) {
				p.rules = append(p.rules, rule{text: jsText{x}, always: true})
			}
		case "systemHint":
			for _, x := range elements(args[0]) {
				tool := string(defuse(appendBullet(nil, text1(get(x, "tool"))), 0, inText))
				p.suggest = append(p.suggest, suggestion{rule: rule{text: jsText{get(x, "reason")}}, tool: tool, exposed: tool})
			}
		case "uiBlock":
			ui++
			if len(args) > 1 {
				p.ui = append(p.ui, block{kind: markdown, name: jsText{args[0]}, body: jsText{args[1]}, reads: true})
			} else {
				p.ui = append(p.ui, blocksOf(args)...)
			}
		case "rawBlock":
			raw = append(raw, value.Of("type", "text", "text", args[0]))
		}
	}
	got := drivePresenter(p, dataOf(v), nil, nil, nil)
	if o, ok := got.value.(*value.Object); ok && raw != nil {
		content := elements(get(o, "content"))
		at := 1 + ui
		o.Set("content", append(append(append([]any{}, content[:at]...), raw...), content[at:]...))
	}
	return got
}

func driveInvalid(in any) result {
	s := shapeOf(get(in, "schema"))
	args := get(in, "args")
	checked, faults := s.Check(args)
	if len(faults) == 0 {
		return result{value: value.Of("valid", checked)}
	}
	return result{value: value.Of("text", string(Invalid(text1(get(in, "action")), s, faults).Blocks[0].Text))}
}

func driveToon(in any) result {
	data := dataOf(in)
	o := get(in, "options")
	delim, indent := get(o, "delimiter"), get(o, "indent")
	if (delim == nil || delim == "|") && indent == nil {
		return drivePresenter(&plan{name: "X", toon: true}, data, nil, nil, nil)
	}
	how := toon{delim: '|', indent: 2}
	if s, ok := delim.(string); ok {
		how.delim = s[0]
	}
	if n, ok := indent.(int64); ok {
		how.indent = int(n)
	}
	text := string(how.root(nil, data))
	return result{value: value.Of("content", []any{value.Of("type", "text", "text", text)})}
}

// driveEgress caps the first text of a response as the data block of a tool
// with that limit; what follows it stays.
func driveEgress(in any) result {
	o := value.DeepClone(get(in, "response")).(*value.Object)
	l := &limit{bytes: get(in, "maxPayloadBytes").(int64)}
	content := elements(get(o, "content"))
	var rest []byte
	for _, c := range content[1:] {
		rest = append(rest, text1(get(c, "text"))...)
	}
	text, ok := l.cutText([]byte(text1(get(content[0], "text"))), rest)
	if !ok {
		v := &View{action: "inv/get"}
		return sentOf(v.tooLarge(l).Response())
	}
	content[0].(*value.Object).Set("text", string(text))
	return result{value: o}
}

// driveMeta gives what a presenter says of itself.
func driveMeta(v any) result {
	p, err := planOf(v)
	if err != nil {
		return result{failed: true, text: err.Error()}
	}
	return result{value: (&View{plan: p}).Meta()}
}
