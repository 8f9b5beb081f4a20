package presenters

import (
	"regexp"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// failsInside is about calls whose handler or presenter fails.
func failsInside(in *value.Object) bool {
	if !isKind("call", "serverCall")(in) {
		return false
	}
	a := actionOf(in)
	h := get(a, "handler")
	if get(h, "throws") != nil || get(h, "readCtx") != nil {
		return true
	}
	p := get(a, "presenter")
	data, null := get(h, "returns"), get(h, "returns") == nil
	if p == nil || null || get(h, "response") != nil {
		return false
	}
	if s := shapeOf(get(p, "schema")); s != nil {
		items, ok := data.([]any)
		if !ok {
			items = []any{data}
		}
		for _, x := range items {
			if _, faults := s.Strip(x); len(faults) > 0 {
				return true
			}
		}
	}
	return any1(p, func(o *value.Object) bool {
		cb, ok := asCallback(o)
		return ok && strings.HasPrefix(cb.src, "a.b")
	})
}

// internalError is the whole envelope of section 4: whether a call may be
// repeated depends on the kind of the tool.
func internalError(in *value.Object, _ result) result {
	a := actionOf(in)
	action := text1(get(in, "name")) + "/" + text1(get(get(in, "args"), "action"))
	if isKind("serverCall")(in) {
		action = strings.Replace(text1(get(in, "name")), "_", "/", 1)
	}
	recovery := "Do not repeat this call: it may have taken effect. Give the incident id to the user."
	if get(a, "verb") == "query" || get(a, "readOnly") == true || get(a, "idempotent") == true {
		recovery = "This may be a transient error. Retry the same call with identical parameters."
	}
	text := "<tool_error code=\"INTERNAL_ERROR\" severity=\"error\">\n<message>[" + action + "] Something went wrong. Incident test.</message>\n<recovery>" + recovery + "</recovery>\n</tool_error>"
	return result{value: value.Of("content", []any{textBlock(text)}, "isError", true)}
}

func echoes(in *value.Object) bool {
	return isKind("call", "serverCall")(in) && get(handlerOf(in), "echoArgs") == true
}

// withoutDiscriminator takes the discriminator out of the arguments that a
// handler echoes. In flat exposition one that was sent is an unknown argument.
func withoutDiscriminator(in *value.Object, want result) result {
	args := get(in, "args")
	if isKind("serverCall")(in) && get(args, "action") != nil {
		action := strings.Replace(text1(get(in, "name")), "_", "/", 1)
		return result{value: value.Of("content", []any{textBlock(unrecognized(action, "action"))}, "isError", true)}
	}
	a := actionOf(in)
	if get(a, "api") == "fluent" && get(a, "params") == nil || get(a, "api") != "fluent" && get(a, "schema") == nil {
		// A tool without parameters takes none (features, T10).
		args, _ := args.(*value.Object)
		for _, k := range args.Keys() {
			if k != "action" {
				return result{value: value.Of("content", []any{textBlock(unrecognized(text1(get(in, "name"))+"/"+text1(get(args, "action")), k))}, "isError", true)}
			}
		}
	}
	return eachText(want, func(_ int, s string) string {
		v, err := value.Parse([]byte(s))
		o, ok := v.(*value.Object)
		if err != nil || !ok {
			return s
		}
		o.Delete("action")
		return string(value.AppendIndent(nil, o, 0))
	})
}

func unrecognized(action, key string) string {
	return "<validation_error action=\"" + action + "\">\n<field name=\"(root)\">Unrecognized key: \"" + key + "\" You sent: (missing). Remove or correct unrecognized fields: '" + key +
		"'. Check for typos.</field>\n<recovery>Fix the fields above and call the tool again. Do not explain the error.</recovery>\n</validation_error>"
}

func hasOwnDiscriminator(in *value.Object) bool {
	return any1(in, func(o *value.Object) bool { return text1(get(o, "discriminator")) != "" })
}

// discriminatorIsAction writes action where a discriminator of its own stood.
func discriminatorIsAction(in *value.Object, want result) result {
	own := ""
	walk(in, func(o *value.Object) {
		if d := text1(get(o, "discriminator")); d != "" {
			own = d
		}
	})
	b := string(value.AppendJSON(nil, want.value))
	b = strings.ReplaceAll(b, `\"`+own+`\"`, `\"action\"`)
	b = strings.ReplaceAll(b, `"`+own+`"`, `"action"`)
	b = strings.ReplaceAll(b, "`"+own+"`", "`action`")
	v, err := value.Parse([]byte(b))
	if err != nil {
		return want
	}
	want.value = v
	return want
}

// unknownArguments finds arguments that no parameter of the action has.
func unknownArguments(in *value.Object) (known []string, unknown []string) {
	schema, args := get(in, "schema"), get(in, "args")
	if a := actionOf(in); a != nil {
		schema = get(a, "schema")
	}
	for _, f := range elements(get(schema, "fields")) {
		known = append(known, text1(get(f, "name")))
	}
	o, _ := args.(*value.Object)
	for _, k := range o.Keys() {
		if !contains(known, k) && k != "action" {
			unknown = append(unknown, k)
		}
	}
	return known, unknown
}

func hasNearName(in *value.Object) bool {
	if !isKind("validationError", "call", "serverCall")(in) {
		return false
	}
	known, unknown := unknownArguments(in)
	for _, k := range unknown {
		if value.Near(k, known) != "" {
			return true
		}
	}
	return false
}

func nearName(in *value.Object, want result) result {
	known, unknown := unknownArguments(in)
	var near []string
	for _, k := range unknown {
		if n := value.Near(k, known); n != "" {
			near = append(near, "'"+n+"'")
		}
	}
	add := func(s string) string {
		return strings.Replace(s, "Check for typos.</field>", "Check for typos. Did you mean "+strings.Join(near, ", ")+"?</field>", 1)
	}
	if o, ok := want.value.(*value.Object); ok {
		if s := text1(get(o, "text")); s != "" {
			o.Set("text", add(s))
		}
	}
	return eachText(want, func(_ int, s string) string { return add(s) })
}

func isDefinition(in *value.Object) bool { return isKind("toolDef", "exposition", "toolsList")(in) }

// ourDefinition is what section 6 says of definitions beyond the recorded
// ones: no unknown arguments, defaults are not required, no artificial bounds,
// and in flat exposition title, icons, annotations and joined names too.
func ourDefinition(in *value.Object, want result) result {
	o, ok := want.value.(*value.Object)
	if !ok || want.failed {
		return want
	}
	o.Delete("ttlMs") // the server's part of a list; its tests look at it
	o.Delete("cacheScope")
	defs, grouped := elements(get(o, "tools")), get(get(in, "attach"), "toolExposition") == "grouped" || get(in, "exposition") == "grouped"
	if isKind("toolDef")(in) {
		defs, grouped = []any{o}, true
	}
	for _, d := range defs {
		def := d.(*value.Object)
		if s, ok := get(def, "inputSchema").(*value.Object); ok {
			ourParams(s, grouped, defaulted(in))
		}
		def.Delete("outputSchema") // ours is made from the presenter
		if !grouped {
			ourFlat(in, def)
		}
		if a, ok := get(def, "annotations").(*value.Object); ok && grouped {
			ourAnnotations(in, a)
		}
	}
	return want
}

// ourParams closes the parameters of a tool.
func ourParams(s *value.Object, grouped bool, defaulted []string) {
	props, _ := get(s, "properties").(*value.Object)
	var required []any
	for _, r := range elements(get(s, "required")) {
		if _, ok := get(get(props, r.(string)), "default"), true; ok && !contains(defaulted, r.(string)) {
			required = append(required, r)
		}
	}
	s.Delete("required")
	if required != nil {
		s.Set("required", required)
	}
	s.Set("additionalProperties", false)
	ourSchemaOf(s)
	if !grouped {
		return
	}
	for _, name := range defaulted {
		p, ok := get(props, name).(*value.Object)
		if ok {
			p.Set("description", strings.ReplaceAll(text1(get(p, "description")), "Required for: ", "For: "))
		}
	}
}

// defaulted names the parameters with a default.
func defaulted(in *value.Object) (names []string) {
	walk(in, func(o *value.Object) {
		if _, ok := o.Get("default"); ok && get(o, "name") != nil {
			names = append(names, text1(get(o, "name")))
		}
	})
	return names
}

func ourSchemaOf(v any) {
	walk(v, func(o *value.Object) {
		o.Delete("$schema")
		o.Delete("x-mcp-header")
		if get(o, "type") == "integer" {
			if get(o, "minimum") == int64(-9007199254740991) {
				o.Delete("minimum")
			}
			if get(o, "maximum") == int64(9007199254740991) {
				o.Delete("maximum")
			}
		}
		if get(o, "format") != nil {
			o.Delete("pattern")
		}
	})
}

// ourSchema compares a JSON Schema as a value.
func ourSchema(in *value.Object, want result) result {
	ourSchemaOf(want.value)
	walk(want.value, func(o *value.Object) {
		if l := elements(get(o, "prefixItems")); l != nil { // as long as the tuple
			o.Set("items", false)
			o.Set("minItems", int64(len(l)))
			o.Set("maxItems", int64(len(l)))
		}
	})
	return want
}

// ourFlat adds what the recorded flat exposition lost.
func ourFlat(in *value.Object, def *value.Object) {
	for _, t := range elements(get(in, "tools")) {
		sep := text1(get(in, "separator"))
		if sep == "" {
			sep = "_"
		}
		name := text1(get(def, "name"))
		if get(t, "api") != "fluent" {
			if prefix := text1(get(t, "name")) + sep; strings.HasPrefix(name, prefix) && get(t, "groups") != nil {
				def.Set("name", strings.ReplaceAll(name, ".", sep))
			}
			continue
		}
		if strings.ReplaceAll(text1(get(t, "name")), ".", sep) != name {
			continue
		}
		for _, k := range []string{"title", "icons"} {
			if x := get(t, k); x != nil {
				def.Set(k, x)
			}
		}
	}
}

// ourAnnotations says of a group what its actions say: a spec annotates tools.
func ourAnnotations(in *value.Object, a *value.Object) {
	t := get(in, "tool")
	if get(t, "api") == "fluent" || get(t, "annotations") == nil {
		return
	}
	read, destroys, repeats := true, false, true
	for _, x := range elements(get(t, "actions")) {
		read = read && get(x, "readOnly") == true
		destroys = destroys || get(x, "destructive") == true
		repeats = repeats && get(x, "idempotent") == true
	}
	*a = *value.Of("readOnlyHint", read, "destructiveHint", destroys, "idempotentHint", repeats)
}

func hasFlatConflict(in *value.Object) bool {
	return isKind("exposition")(in) && get(in, "exposition") == "flat" && len(conflictsOf(in)) > 0
}

// conflictsOf finds parameters that two actions of a tool declare with
// different types.
func conflictsOf(in *value.Object) (names []string) {
	for _, t := range elements(get(in, "tools")) {
		types := map[string]any{}
		for _, a := range elements(get(t, "actions")) {
			for _, f := range elements(get(get(a, "schema"), "fields")) {
				name := text1(get(f, "name"))
				if was, ok := types[name]; ok && was != get(f, "type") && get(f, "type") != "enum" && was != "enum" && !(was == "integer" || was == "number") {
					names = append(names, name)
				}
				types[name] = get(f, "type")
			}
		}
	}
	return names
}

// flatDefinitions writes the definitions of actions with plain parameters: in
// flat exposition each is a tool of its own.
func flatDefinitions(in *value.Object, _ result) result {
	var defs []any
	for _, t := range elements(get(in, "tools")) {
		for _, a := range elements(get(t, "actions")) {
			props, required := &value.Object{}, []any{}
			for _, f := range elements(get(get(a, "schema"), "fields")) {
				props.Set(text1(get(f, "name")), value.Of("type", get(f, "type")))
				required = append(required, get(f, "name"))
			}
			schema := value.Of("type", "object", "properties", props)
			if len(required) > 0 {
				schema.Set("required", required)
			}
			schema.Set("additionalProperties", false)
			tool, action := text1(get(t, "name")), text1(get(a, "name"))
			defs = append(defs, value.Of("name", tool+"_"+action, "description", tool+" → "+action,
				"inputSchema", schema, "annotations", value.Of("destructiveHint", false)))
		}
	}
	return result{value: value.Of("tools", defs)}
}

var threeParted = regexp.MustCompile(`^\w+\.\w+\.\w+$`)

func hasThreeParts(in *value.Object) bool {
	return isKind("toolDef")(in) && threeParted.MatchString(text1(get(get(in, "tool"), "name")))
}

// threeParts is the grouped definition of a tool with a module.
func threeParts(in *value.Object, want result) result {
	name := text1(get(get(in, "tool"), "name"))
	parts := strings.Split(name, ".")
	read := get(get(in, "tool"), "verb") == "query"
	return result{value: value.Of("name", parts[0],
		"description", parts[0]+". Select operation via the `action` parameter. Modules: "+parts[1]+" ("+parts[2]+")",
		"inputSchema", value.Of("type", "object",
			"properties", value.Of("action", value.Of("type", "string", "enum", []any{parts[1] + "." + parts[2]}, "description", "Module and operation (module.action format)")),
			"required", []any{"action"}, "additionalProperties", false),
		"annotations", value.Of("readOnlyHint", read, "destructiveHint", get(get(in, "tool"), "verb") == "mutation", "idempotentHint", false))}
}

// capsBlocks is about responses of several blocks with a byte cap.
func capsBlocks(in *value.Object) bool {
	return isKind("egress")(in) && len(elements(get(get(in, "response"), "content"))) > 1
}

const capNotice = "\n\n[SYSTEM INTERVENTION: Payload truncated at 1KB to prevent memory crash. You MUST use pagination (limit/offset) or filters to retrieve smaller result sets.]"

// blockOneCapped cuts the first block to what the others leave of 1 KB; where
// they leave no room the answer is an error.
func blockOneCapped(in *value.Object, want result) result {
	o := value.DeepClone(get(in, "response")).(*value.Object)
	content := elements(get(o, "content"))
	room, total := 1024, 0
	for i, c := range content {
		n := len(text1(get(c, "text")))
		total += n
		if i > 0 {
			room -= n
		}
	}
	if total <= 1024 || get(in, "maxPayloadBytes") != int64(1024) {
		return want
	}
	if room -= len(capNotice); room < 0 {
		text := "<tool_error code=\"TOO_LARGE\" severity=\"error\">\n<message>[inv/get] The answer is larger than 1024 bytes.</message>\n<recovery>Ask for less: narrow the arguments.</recovery>\n</tool_error>"
		return result{value: value.Of("content", []any{textBlock(text)}, "isError", true)}
	}
	content[0].(*value.Object).Set("text", text1(get(content[0], "text"))[:room]+capNotice)
	return result{value: o}
}

// optionalNulls are the fields of the schema that may be left out, do not take
// null, and are null in the data.
func optionalNulls(in *value.Object) (names []string) {
	data, _ := dataOf(in).(*value.Object)
	for _, f := range elements(get(get(get(in, "presenter"), "schema"), "fields")) {
		name := text1(get(f, "name"))
		if v, ok := data.Get(name); ok && v == nil && get(f, "optional") == true && get(f, "nullable") != true {
			names = append(names, name)
		}
	}
	return names
}

func hasOptionalNull(in *value.Object) bool {
	return isKind("presenter")(in) && len(optionalNulls(in)) > 0
}

// optionalNull takes the complaints about such fields back; with no other the
// data is sent without them.
func optionalNull(in *value.Object, want result) result {
	if !want.failed {
		return want
	}
	names := optionalNulls(in)
	var left []string
	lines := strings.Split(want.text, "\n")
	for _, l := range lines[1:] {
		about := false
		for _, n := range names {
			about = about || strings.HasPrefix(l, "  • '"+n+"': ")
		}
		if !about {
			left = append(left, l)
		}
	}
	if left != nil {
		want.text = lines[0] + "\n" + strings.Join(left, "\n")
		return want
	}
	o := value.DeepClone(dataOf(in)).(*value.Object)
	for _, n := range names {
		o.Delete(n)
	}
	return result{value: value.Of("content", []any{textBlock(string(value.AppendIndent(nil, o, 0)))})}
}
