package presenters

import "strings"

// Failure is a declared error on its way out.
type Failure struct {
	Code       string
	Message    string
	Suggestion string
	Actions    []string // exposed names
	Details    []Detail
	Severity   string // "" for none
	RetryAfter string // "30 seconds", "" for none
}

// Detail is one key of a failure's details.
type Detail struct{ Key, Text string }

// Response renders the tool_error envelope.
func (f *Failure) Response() *Response {
	b := append(make([]byte, 0, 256), "<tool_error"...)
	b = xmlAttr(b, "code", f.Code)
	b = xmlAttr(b, "severity", f.Severity)
	b = append(b, ">\n<message>"...)
	b = append(appendElement(b, f.Message), "</message>\n"...)
	if f.Suggestion != "" {
		b = append(b, "<recovery>"...)
		b = append(appendElement(b, f.Suggestion), "</recovery>\n"...)
	}
	if len(f.Actions) > 0 {
		b = append(b, "<available_actions>\n"...)
		for _, a := range f.Actions {
			b = append(b, "  <action>"...)
			b = append(appendElement(b, a), "</action>\n"...)
		}
		b = append(b, "</available_actions>\n"...)
	}
	if len(f.Details) > 0 {
		b = append(b, "<details>\n"...)
		for _, d := range f.Details {
			b = append(xmlAttr(append(b, "  <detail"...), "key", d.Key), '>')
			b = append(appendElement(b, d.Text), "</detail>\n"...)
		}
		b = append(b, "</details>\n"...)
	}
	if f.RetryAfter != "" {
		b = append(b, "<retry_after>"...)
		b = append(appendElement(b, f.RetryAfter), "</retry_after>\n"...)
	}
	return errorText(append(b, "</tool_error>"...), f.Code, f.Severity != "warning")
}

func xmlAttr(b []byte, name, v string) []byte {
	if v == "" && name != "key" {
		return b
	}
	b = append(append(append(b, ' '), name...), `="`...)
	return append(appendAttr(b, v), '"')
}

func errorText(b []byte, code string, isError bool) *Response {
	return &Response{Blocks: []Content{{Type: "text", Text: b}}, Code: code, IsError: &isError}
}

// Required is the failure of a field that must be there.
func Required(field string) *Failure {
	return &Failure{
		Code:       "MISSING_REQUIRED_FIELD",
		Message:    `Required field "` + field + `" is missing.`,
		Suggestion: `Provide the "` + field + `" parameter and retry.`,
	}
}

// Extent says what an unexpected failure may have left behind.
type Extent uint8

// The extents of a failure.
const (
	Unknown    Extent = iota // a part of the call may have taken effect
	Nothing                  // all was rolled back
	Repeatable               // the same call again does no harm: a query, an idempotent tool
)

// Internal renders an unexpected failure: incident is the id under which the
// log has the cause.
func Internal(action, incident string, extent Extent) *Response {
	f := Failure{
		Code:       "INTERNAL_ERROR",
		Message:    "[" + action + "] Something went wrong. Incident " + incident + ".",
		Suggestion: "Do not repeat this call: it may have taken effect. Give the incident id to the user.",
		Severity:   "error",
	}
	switch extent {
	case Nothing:
		f.Suggestion = "Nothing was changed. Give the incident id to the user."
	case Repeatable:
		f.Suggestion = "This may be a transient error. Retry the same call with identical parameters."
	}
	r := f.Response()
	r.Incident = incident
	return r
}

// UnknownTool renders the answer to a name that is no tool.
func UnknownTool(name string) *Response {
	return (&Failure{
		Code:       "UNKNOWN_TOOL",
		Message:    `Tool "` + name + `" does not exist.`,
		Suggestion: "Check the available tools via tools/list and call a valid one.",
		Severity:   "error",
	}).Response()
}

// ActionName is the tool/action form of a dotted tool name: billing/refund,
// ping/default.
func ActionName(tool string) string {
	group, action, ok := strings.Cut(tool, ".")
	if !ok {
		action = "default"
	}
	return group + "/" + action
}

// Forbidden is the failure of a tool that is not available in a state of its
// machine (feature F4); tool and actions are exposed names.
func Forbidden(tool, state string, actions []string) *Failure {
	return &Failure{
		Code:       "FORBIDDEN",
		Message:    `Tool "` + tool + `" is not available in the current FSM state ("` + state + `").`,
		Suggestion: "This tool is gated by the FSM State Gate. Call an allowed tool to advance the state first.",
		Actions:    actions,
		Details:    []Detail{{"currentState", state}, {"blockedTool", tool}},
		Severity:   "error",
	}
}
