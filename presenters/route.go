package presenters

import (
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Route finds the declared tool that a call of an exposed name with these
// arguments means, and the arguments without the discriminator. A name that
// is no tool gives "". A failed route (a discriminator that is missing or
// wrong) is a response.
func (s *Set) Route(name string, args *value.Object, visible func(tool string) bool) (tool string, rest *value.Object, failed *Response) {
	if s.g.Server.Exposition == "grouped" {
		return s.routeGrouped(name, args, visible)
	}
	if tool := s.byWire[name]; tool != "" && visible(tool) {
		return tool, args, nil
	}
	return "", args, nil
}

// Chooses tells whether the arguments choose an action of a group of that
// name: a group with a tool of one word has that tool's name.
func (s *Set) Chooses(name string, args *value.Object) bool {
	if s.g.Server.Exposition != "grouped" || s.byGroup[name] == nil {
		return false
	}
	_, sent := args.Get(discriminator)
	return sent
}

// routeGrouped reads the discriminator.
func (s *Set) routeGrouped(name string, args *value.Object, visible func(tool string) bool) (tool string, rest *value.Object, failed *Response) {
	g := s.byGroup[name].seen(visible)
	if g == nil {
		return "", args, nil
	}
	v, sent := args.Get(discriminator)
	action, isText := v.(string)
	switch {
	case !sent || isText && action == "":
		return "", nil, g.refuse("MISSING_DISCRIMINATOR",
			`The required field "`+discriminator+`" is missing.`,
			`Add the "`+discriminator+`" field as a string and call the tool again.`)
	case !isText:
		return "", nil, g.refuse("INVALID_DISCRIMINATOR",
			`Discriminator field "`+discriminator+`" must be a string, got `+jsType(v)+`.`,
			`Set "`+discriminator+`" to one of the available actions as a string.`)
	}
	for _, d := range g.actions {
		if d.action == action {
			rest = args.Clone()
			rest.Delete(discriminator)
			return d.tool.Name, rest, nil
		}
	}
	return "", nil, g.refuse("UNKNOWN_ACTION",
		`The action "`+action+`" does not exist.`,
		"Choose a valid action from available_actions and call the tool again.")
}

// seen is the group with the actions that a caller sees; nil if there are none.
func (g *actionGroup) seen(visible func(tool string) bool) *actionGroup {
	if g == nil {
		return nil
	}
	hidden := func(d *definition) bool { return !visible(d.tool.Name) }
	if !slices.ContainsFunc(g.actions, hidden) {
		return g
	}
	out := *g
	out.actions = slices.DeleteFunc(slices.Clone(g.actions), hidden)
	if len(out.actions) == 0 {
		return nil
	}
	return &out
}

// jsType names the type of a value as the recorded messages do.
func jsType(v any) string {
	switch k := kindOf(v); k {
	case "null", "array":
		return "object"
	default:
		return k
	}
}

// refuse is the envelope of a discriminator error, whose actions stand on one line.
func (g *actionGroup) refuse(code, message, recovery string) *Response {
	var actions []string
	for _, d := range g.actions {
		actions = append(actions, d.action)
	}
	b := append(xmlAttr([]byte("<tool_error"), "code", code), ">\n<message>"...)
	b = append(appendElement(b, message), "</message>\n<available_actions>"...)
	b = append(appendElement(b, strings.Join(actions, ", ")), "</available_actions>\n<recovery>"...)
	b = append(appendElement(b, recovery), "</recovery>\n</tool_error>"...)
	return errorText(b, code, true)
}
