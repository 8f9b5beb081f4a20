package dsl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// evaluate has CUE evaluate the spec and tells its errors.
func (d *doc) evaluate(v cue.Value) {
	if err := v.Validate(); err != nil {
		d.cueErrors(err, nil)
	}
}

// loadErrors tells what kept CUE from reading the package. That a brace is
// missing at the end is mostly an echo of what came before.
func (d *doc) loadErrors(err error) {
	all := errors.Errors(err)
	for i, e := range all {
		format, args := e.Msg()
		if i > 0 && strings.HasSuffix(fmt.Sprintf(format, args...), "found 'EOF'") {
			continue
		}
		d.cueError(withMessage(e), nil)
	}
}

// withMessage gives the error inside one that says nothing itself: CUE wraps
// what kept it from reading a file without a package.
func withMessage(e errors.Error) errors.Error {
	format, args := e.Msg()
	for cause := error(e); fmt.Sprintf(format, args...) == "" && cause != nil; cause = errors.Unwrap(cause) {
		if inner, ok := cause.(errors.Error); ok {
			e = inner
			format, args = e.Msg()
		}
	}
	return e
}

// cueErrors tells errors of CUE in our words; n is the value that they were
// found at, if they do not say themselves where they are.
func (d *doc) cueErrors(err error, n *node) {
	all := errors.Errors(err)
	for i := 0; i < len(all); i++ {
		e := all[i]
		format, args := e.Msg()
		if strings.HasSuffix(format, "errors in empty disjunction:") {
			count, _ := args[0].(int)
			members := all[i+1:]
			if count > 0 && count < len(members) {
				members = members[:count]
			}
			i += len(members)
			d.disjunction(e, members, n)
			continue
		}
		d.cueError(e, n)
	}
}

func (d *doc) cueError(e errors.Error, n *node) {
	format, args := e.Msg()
	x := cueFault{d: d, err: e, node: n, format: format, args: args}
	if x.told() {
		return
	}
	x.path = d.pathOf(e)
	x.pos = userPositions(errors.Positions(e))
	message := x.message()
	if message == "" { // the file could not be read far enough: the cause says why
		if cause := errors.Unwrap(e); cause != nil {
			d.cueErrors(cause, n)
			return
		}
		message = e.Error()
	}
	d.tell(x.at(), x.path, message)
}

// tell adds a fault of CUE's once.
func (d *doc) tell(at graph.Place, path, message string) {
	message = graph.Concealed(message)
	key := at.String() + message
	d.toldAt[path] = true
	if !d.told[key] {
		d.told[key] = true
		d.faults.Add(at, path, "%s", message)
	}
}

// cueFault is one error of CUE on its way into our words.
type cueFault struct {
	d      *doc
	err    errors.Error
	node   *node
	format string
	args   []any
	path   string
	pos    []token.Pos // in the author's files, sorted
}

// told tells whether the error is the echo of one that was told already, or
// is in tests that nobody asked for.
func (x *cueFault) told() bool {
	if p := x.err.Path(); len(p) > 0 && p[0] == "tests" && !x.d.options.WithTests {
		return true
	}
	if strings.HasPrefix(x.format, "unreferenced alias") && x.d.envNeeds[x.arg(0)] {
		return true
	}
	return len(x.d.replaced) > 0 && strings.Contains(x.err.Error(), "explicit error (_|_ literal)")
}

func (x *cueFault) at() graph.Place {
	if len(x.pos) > 0 {
		return x.d.at(x.pos[0])
	}
	if x.node != nil {
		return x.node.at()
	}
	if v := x.d.lookup(x.err.Path()); v.Exists() {
		c := &node{doc: x.d, val: v, has: true}
		c.findSource()
		return c.at()
	}
	return graph.Place{}
}

// arg is an argument of the message as CUE writes it, cut to one line.
func (x *cueFault) arg(i int) string {
	if i >= len(x.args) {
		return ""
	}
	s := strings.Join(strings.Fields(fmt.Sprint(x.args[i])), " ")
	switch {
	case strings.HasPrefix(s, "{"):
		return "a struct"
	case strings.HasPrefix(s, "["):
		return "a list"
	}
	if r := []rune(s); len(r) > 60 {
		s = string(r[:57]) + "..."
	}
	return s
}

// phrases are CUE's messages that we say in other words; the first whose
// beginning is that of the message counts.
var phrases = []struct {
	begins string
	say    func(x *cueFault) string
}{
	{"conflicting values", (*cueFault).conflict},
	{"invalid value", (*cueFault).outOfBound},
	{"field not allowed", (*cueFault).fieldNotAllowed},
	{"structural cycle", func(*cueFault) string { return "holds itself, without end" }},
	{"cycle", func(x *cueFault) string { return "is computed from itself" }},
	{"imported and not used", func(x *cueFault) string { return x.arg(0) + " is imported and not used" }},
	{"unreferenced alias or let clause", func(x *cueFault) string { return x.arg(0) + " is not used" }},
	{"reference ", (*cueFault).noReference},
	{"undefined field", (*cueFault).noField},
	{"cannot reference optional field", func(x *cueFault) string { return optionalReference(x.arg(0)) }},
	{"cannot call non-function", func(x *cueFault) string { return "there is no function " + x.arg(0) }},
	{"builtin package", func(x *cueFault) string { return noPackage(fmt.Sprint(x.args[0])) }},
	{"package %q imported but not defined", func(x *cueFault) string { return noPackage(fmt.Sprint(x.args[0])) }},
	{"import failed", (*cueFault).importFailed},
	{"non-concrete value", func(x *cueFault) string { return "has no value yet: it is only known to be " + x.arg(0) }},
}

func (x *cueFault) message() string {
	if strings.HasPrefix(x.format, "invalid interpolation") {
		return x.inner()
	}
	for _, p := range phrases {
		if strings.HasPrefix(x.format, p.begins) {
			return p.say(x)
		}
	}
	return strings.TrimSpace(fmt.Sprintf(x.format, x.args...))
}

// conflict tells two values that cannot both hold.
func (x *cueFault) conflict() string {
	a, b := x.arg(0), x.arg(1)
	in := x.err.InputPositions()
	x.pos = userPositions(in[:min(2, len(in))])
	if isTypeName(a) {
		return x.misfit(b, a, 1, 0)
	}
	if isTypeName(b) {
		return x.misfit(a, b, 0, 1)
	}
	if len(in) >= 2 && in[0].IsValid() && in[1].IsValid() && in[0].Compare(in[1]) > 0 {
		a, b = b, a
	}
	s := "is set twice, to " + a + " and to " + b
	if len(x.pos) > 1 {
		s += " (also at " + x.d.at(x.pos[1]).String() + ")"
	}
	return s
}

// misfit tells a value that does not fit a constraint; v and c are their
// places among the inputs.
func (x *cueFault) misfit(val, constraint string, v, c int) string {
	in := x.err.InputPositions()
	said := ""
	if len(in) > max(v, c) {
		x.pos = userPositions(in[v : v+1])
		// CUE names a constraint's place where it has one of its own.
		for _, at := range slices.Concat(in[c:], in[:c]) {
			if at.IsValid() && (len(x.pos) == 0 || !samePos(at, x.pos[0])) {
				said = " (said at " + x.d.at(at).String() + ")"
				break
			}
		}
	}
	return val + " does not fit " + constraint + said
}

func (x *cueFault) outOfBound() string { return x.misfit(x.arg(0), x.arg(1), 0, 1) }

func isTypeName(s string) bool {
	switch s {
	case "string", "int", "number", "float", "bool", "bytes":
		return true
	}
	return strings.HasPrefix(s, "=~") || strings.HasPrefix(s, "!~") || strings.HasPrefix(s, ">") || strings.HasPrefix(s, "<") || strings.HasPrefix(s, "!=")
}

func (x *cueFault) fieldNotAllowed() string {
	path := x.err.Path()
	if len(path) == 0 {
		return "unknown field"
	}
	name := unquoteLabel(path[len(path)-1])
	var known []string
	parent := x.d.lookup(path[:len(path)-1])
	if !parent.Exists() {
		return "unknown field"
	}
	if it, err := parent.Fields(cue.Optional(true)); err == nil {
		for it.Next() {
			if n := it.Selector().Unquoted(); n != name {
				known = append(known, n)
			}
		}
	}
	return "unknown field" + meant(name, known, "known here: ")
}

func optionalReference(name string) string {
	return fmt.Sprintf("%s is written with a ?, and CUE cannot refer to an optional field: give its type a name (#%s: …) and use that in both places", name, definitionName(name))
}

func definitionName(name string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	if b.Len() == 0 {
		return "Name"
	}
	return b.String()
}

func (x *cueFault) noReference() string {
	name := fmt.Sprint(x.args[0])
	known := x.d.namesAt(x.pos)
	return fmt.Sprintf("there is no %s here%s", name, didYouMean(name, known))
}

func (x *cueFault) noField() string {
	name := fmt.Sprint(x.args[0])
	base, known := x.d.fieldsOfSelector(x.pos, name)
	if base == "" {
		return fmt.Sprintf("there is no field %s%s", name, didYouMean(name, known))
	}
	return fmt.Sprintf("there is no %s in %s%s", name, base, meant(name, known, "it has "))
}

// noPackage tells an import of nothing.
func noPackage(path string) string {
	builtins := []string{"strings", "strconv", "list", "math", "regexp", "struct", "time", "net", "path", "encoding/json", "encoding/yaml", "text/template"}
	return fmt.Sprintf("there is no package %q%s", path, didYouMean(path, builtins))
}

// importFailed looks for the cause, which is wrapped several times.
func (x *cueFault) importFailed() string {
	var cause error = x.err
	for {
		next := errors.Unwrap(cause)
		if next == nil {
			break
		}
		cause = next
	}
	text := cause.Error()
	if e, ok := cause.(errors.Error); ok {
		if p := userPositions(errors.Positions(e)); len(p) > 0 {
			x.pos = p
		}
		format, args := e.Msg()
		text = fmt.Sprintf(format, args...)
	}
	switch {
	case strings.Contains(text, "import cycle"):
		places := make([]string, len(x.pos))
		for i, p := range x.pos {
			places[i] = x.d.at(p).String()
		}
		return "packages import each other in a circle: " + strings.Join(places, ", ")
	case strings.HasPrefix(text, "cannot find package"):
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "cannot find package "), ":")
		if s, err := strconv.Unquote(name); err == nil {
			return noPackage(s)
		}
	}
	return "the import cannot be used: " + text
}

// inner tells the cause of an error in an interpolation, at the part of the
// string that it is in.
func (x *cueFault) inner() string {
	cause, ok := errors.Unwrap(x.err).(errors.Error)
	if !ok {
		return "invalid interpolation"
	}
	y := *x
	y.err = cause
	y.format, y.args = cause.Msg()
	if p := userPositions(x.err.InputPositions()); len(p) > 0 {
		y.pos = p[len(p)-1:]
	}
	message := y.message()
	x.pos = y.pos
	return message
}

// disjunction tells a value that fits none of several alternatives, in one
// line: the list of values if it is one, else what is wrong with the
// alternative that it comes nearest to.
func (d *doc) disjunction(head errors.Error, members []errors.Error, n *node) {
	if got, options, ok := oneOf(members); ok {
		x := cueFault{d: d, err: head, node: n, path: d.pathOf(head)}
		for _, m := range members {
			x.pos = append(x.pos, m.InputPositions()...)
		}
		x.pos = slices.DeleteFunc(userPositions(x.pos), func(p token.Pos) bool { return !d.isLiteralAt(p, got) })
		if !x.told() {
			if slices.ContainsFunc(options, isTypeName) {
				d.tell(x.at(), x.path, got+" does not fit "+strings.Join(options, " | "))
			} else {
				d.tell(x.at(), x.path, got+" is not one of "+strings.Join(options, ", ")+didYouMean(unquoteLabel(got), unquoteAll(options)))
			}
		}
		return
	}
	if len(members) == 0 {
		d.cueError(head, n)
		return
	}
	best := members[0]
	for _, m := range members[1:] {
		if len(m.Path()) > len(best.Path()) {
			best = m
		}
	}
	d.cueError(best, n)
}

// oneOf reads the members of a disjunction of values.
func oneOf(members []errors.Error) (got string, options []string, ok bool) {
	var pairs [][2]string
	for _, m := range members {
		format, args := m.Msg()
		if !strings.HasPrefix(format, "conflicting values") || len(args) < 2 {
			return "", nil, false
		}
		pairs = append(pairs, [2]string{fmt.Sprint(args[0]), fmt.Sprint(args[1])})
	}
	if len(pairs) < 2 {
		return "", nil, false
	}
	for _, got := range pairs[0] {
		options = nil
		for _, p := range pairs {
			switch got {
			case p[0]:
				options = append(options, p[1])
			case p[1]:
				options = append(options, p[0])
			}
		}
		if len(options) == len(pairs) {
			return got, options, true
		}
	}
	return "", nil, false
}

func unquoteAll(l []string) []string {
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = unquoteLabel(s)
	}
	return out
}
