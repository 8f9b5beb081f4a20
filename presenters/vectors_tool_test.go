package presenters

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// toolset is the tools of a vector, compiled, with what their handlers do.
type toolset struct {
	set      *Set
	g        *graph.Graph
	handlers map[string]any // of the dotted name
	limits   map[string]int64
}

// toolsOf translates the tools of a vector. The error is a load error.
func toolsOf(tools []any, exposition, separator string) (*toolset, error) {
	ts := &toolset{handlers: map[string]any{}, limits: map[string]int64{}}
	ts.g = &graph.Graph{Server: graph.Server{Exposition: exposition, Separator: separator}}
	plans := map[string]*plan{}
	for _, t := range tools {
		if err := ts.add(t, plans); err != nil {
			return nil, err
		}
	}
	set, faults := Compile(ts.g, nil)
	if faults.Fatal() {
		return nil, faults
	}
	ts.set = set
	for name, p := range plans {
		set.views[name].plan = p
	}
	for name, n := range ts.limits {
		set.views[name].plan.limit.bytes = n
	}
	for i := range set.defs { // _select names the presenter's fields
		d := &set.defs[i]
		c := &compiler{g: ts.g, names: set.names}
		d.params = d.withSelect(c)
		d.flat = d.define(c, set.names.of(d.tool.Name))
		if c.faults.Fatal() {
			return nil, c.faults
		}
	}
	return ts, nil
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*){0,2}$`)

func (ts *toolset) add(t any, plans map[string]*plan) error {
	if get(t, "api") == "fluent" {
		return ts.addFluent(t, plans)
	}
	group := &graph.Group{Name: text1(get(t, "name")), Description: text1(get(t, "description")), Select: get(t, "select") == true, ToonDescription: get(t, "toon") == true}
	group.Params = shapeOf(get(t, "common"))
	ts.g.Groups = append(ts.g.Groups, group)
	n := 0
	one := func(prefix string, a any, omit []string) error {
		n++
		if strings.Contains(text1(get(a, "name")), ".") {
			return errors.New("an action's name has a dot")
		}
		x := &graph.Tool{Name: prefix + "." + text1(get(a, "name")), Kind: "action", Description: text1(get(a, "description")), Select: group.Select}
		x.Params = merged(group.Params, shapeOf(get(a, "schema")), append(omit, texts(get(a, "omitCommon"))...))
		return ts.finish(x, t, a, plans)
	}
	for _, a := range elements(get(t, "actions")) {
		if err := one(group.Name, a, nil); err != nil {
			return err
		}
	}
	for _, g := range elements(get(t, "groups")) {
		for _, a := range elements(get(g, "actions")) {
			if err := one(group.Name+"."+text1(get(g, "name")), a, texts(get(g, "omitCommon"))); err != nil {
				return err
			}
		}
	}
	if n == 0 {
		return errors.New("a group has no action")
	}
	return nil
}

func (ts *toolset) addFluent(t any, plans map[string]*plan) error {
	x := &graph.Tool{Name: text1(get(t, "name")), Kind: text1(get(t, "verb")), Description: text1(get(t, "describe")), Instructions: text1(get(t, "instructions"))}
	x.Title = text1(get(t, "title"))
	for _, i := range elements(get(t, "icons")) {
		x.Icons = append(x.Icons, graph.Icon{Src: text1(get(i, "src")), MimeType: text1(get(i, "mimeType")), Sizes: strings.Join(texts(get(i, "sizes")), " "), Theme: text1(get(i, "theme"))})
	}
	x.Params = paramsOf(get(t, "params"))
	seen := map[string]bool{}
	for _, f := range x.Params.Fields {
		if seen[f.Name] {
			return fmt.Errorf("two declarations of %s", f.Name)
		}
		seen[f.Name] = true
	}
	if group, _, ok := strings.Cut(x.Name, "."); ok && get(t, "toon") == true && ts.g.Group(group) == nil {
		ts.g.Groups = append(ts.g.Groups, &graph.Group{Name: group, ToonDescription: true})
	}
	return ts.finish(x, t, t, plans)
}

// finish adds a tool with what both forms have.
func (ts *toolset) finish(x *graph.Tool, t, a any, plans map[string]*plan) error {
	if !toolName.MatchString(x.Name) {
		return fmt.Errorf("%q is no name of a tool", x.Name)
	}
	if ts.g.Tool(x.Name) != nil {
		return fmt.Errorf("two declarations of %s", x.Name)
	}
	flag := func(name string) *bool {
		if b, ok := get(a, name).(bool); ok {
			return &b
		}
		return nil
	}
	x.Annotations = graph.Annotations{Destructive: flag("destructive"), Idempotent: flag("idempotent"), ReadOnly: flag("readOnly")}
	if x.Annotations.ReadOnly != nil && *x.Annotations.ReadOnly && x.Kind == "action" {
		x.Kind, x.Annotations.ReadOnly = "query", nil
	}
	x.Invalidates = texts(get(t, "invalidates"))
	ts.g.Tools = append(ts.g.Tools, x)
	ts.handlers[x.Name] = get(a, "handler")
	if n, ok := get(t, "maxPayloadBytes").(int64); ok {
		ts.limits[x.Name] = n
	}
	if p := get(a, "presenter"); p != nil {
		compiled, err := planOf(p)
		if err != nil {
			return err
		}
		plans[x.Name] = compiled
	}
	return nil
}

// driveCall routes a call, checks its arguments, plays the handler and
// presents, as the engine does.
func driveCall(in any, exposition string) result {
	ts, err := toolsOf(elements(get(in, "tools")), exposition, "")
	if err != nil {
		return result{failed: true, text: err.Error()}
	}
	args, _ := get(in, "args").(*value.Object)
	args = args.Clone()
	if args == nil {
		args = &value.Object{}
	}
	renamed(in, args)
	name := text1(get(in, "name"))
	tool, args, failed := ts.set.Route(name, args, func(string) bool { return true })
	switch {
	case failed != nil:
		return sentOf(failed)
	case tool == "":
		return sentOf(UnknownTool(name))
	}
	t := ts.g.Tool(tool)
	var choose []string
	if l, ok := args.Get("_select"); ok && t.Select {
		args.Delete("_select")
		for _, x := range elements(l) {
			s, ok := x.(string)
			if !ok {
				choose = nil
				break
			}
			choose = append(choose, s)
		}
	}
	checked, faults := t.Params.Check(args)
	if len(faults) > 0 {
		return sentOf(Invalid(ActionName(tool), t.Params, faults))
	}
	return ts.handle(tool, checked, choose, get(in, "ctx"))
}

// renamed sends a discriminator of its own under our name.
func renamed(in any, args *value.Object) {
	for _, t := range elements(get(in, "tools")) {
		if d := text1(get(t, "discriminator")); d != "" {
			args.Delete(discriminator)
			if v, ok := args.Get(d); ok {
				args.Delete(d)
				args.Set(discriminator, v)
			}
		}
	}
}

// internal is the answer to an unexpected failure under test.
func (ts *toolset) internal(tool string) result {
	t := ts.g.Tool(tool)
	repeat := t.Kind == "query" || t.Annotations.Idempotent != nil && *t.Annotations.Idempotent
	extent := Unknown
	if repeat {
		extent = Repeatable
	}
	return sentOf(Internal(ActionName(tool), "test", extent))
}

func (ts *toolset) handle(tool string, args any, choose []string, ctx any) result {
	h := ts.handlers[tool]
	e := expr.NewEnv()
	e.Set("ctx", ctx)
	e.Set("args", args)
	view := ts.set.View(tool)
	present := func(data any) result {
		resp, err := view.Present(&Call{Env: e, Total: -1, Select: choose}, data)
		if err != nil {
			return ts.internal(tool)
		}
		return sentOf(resp)
	}
	switch {
	case get(h, "echoArgs") == true:
		return present(args)
	case get(h, "throws") != nil, get(h, "readCtx") != nil:
		return ts.internal(tool)
	case get(h, "response") != nil:
		return driveHelper(text1(get(get(h, "response"), "helper")), elements(get(get(h, "response"), "args")))
	case get(h, "errorBuilder") != nil:
		return driveErrorBuilder(get(h, "errorBuilder"))
	case get(h, "builder") != nil:
		return driveBuilder(get(h, "builder"))
	case get(h, "returnsJson") != nil:
		v, err := value.Parse([]byte(text1(get(h, "returnsJson"))))
		if err != nil {
			panic(err)
		}
		return present(v)
	}
	return present(get(h, "returns"))
}

// definitionsOf gives the definitions of a vector's tools as values.
func (ts *toolset) definitionsOf() []any {
	out := []any{}
	for _, d := range ts.set.Definitions(func(string) bool { return true }) {
		v, err := value.Parse(d.JSON)
		if err != nil {
			panic(err)
		}
		out = append(out, v)
	}
	return out
}

func driveDefinitions(kind string, in any) result {
	tools, exposition, separator := elements(get(in, "tools")), "flat", text1(get(in, "separator"))
	switch {
	case kind == "toolDef":
		tools, exposition = []any{get(in, "tool")}, "grouped"
	case get(in, "exposition") == "grouped", get(get(in, "attach"), "toolExposition") == "grouped":
		exposition = "grouped"
	}
	if filter := get(get(in, "attach"), "filter"); filter != nil {
		tools = filtered(tools, texts(get(filter, "tags")))
	}
	ts, err := toolsOf(tools, exposition, separator)
	if err != nil {
		return result{failed: true, text: err.Error()}
	}
	defs := ts.definitionsOf()
	if kind == "toolDef" {
		return result{value: defs[0]}
	}
	return result{value: value.Of("tools", defs)}
}

// filtered keeps the tools with all the tags, as a profile does.
func filtered(tools []any, tags []string) []any {
	var out []any
	for _, t := range tools {
		keep := true
		for _, tag := range tags {
			keep = keep && contains(texts(get(t, "tags")), tag)
		}
		if keep {
			out = append(out, t)
		}
	}
	return out
}

// driveSchema gives the JSON Schema of a schema, in which the marks of the
// recorded converter do not count.
func driveSchema(in any) result {
	v, err := value.Parse(shapeOf(get(in, "schema")).AppendSchema(nil))
	if err != nil {
		panic(err)
	}
	return result{value: v}
}
