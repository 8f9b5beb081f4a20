package bind

import (
	"sort"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// mode says what a parameter is given of its value.
type mode uint8

const (
	asValue mode = iota // the value itself
	asNull              // whether it is nil: @x IS NULL
	asList              // a list of it, nil for none: IN (@x)
)

// param is a parameter of a rewritten statement.
type param struct {
	name string // without @
	mode mode
}

// rewritten is a statement in the form of one engine.
type rewritten struct {
	sql    string
	params []param // $1 is params[0]
	marks  []mark  // by out
}

// mark says where the bytes of the statement from out on come from.
type mark struct {
	out   int
	text  *graph.Text
	off   int
	fixed bool // all of them stand for the one at off
}

// origin gives the text and the byte in it that byte off of the statement
// comes from.
func (r *rewritten) origin(off int) (*graph.Text, int) {
	i := sort.Search(len(r.marks), func(i int) bool { return r.marks[i].out > off })
	m := r.marks[max(0, i-1)]
	if m.fixed {
		return m.text, m.off
	}
	return m.text, m.off + off - m.out
}

// rewriter turns @name into the parameters of one engine. What is not a
// parameter stays as it is, byte for byte.
type rewriter struct {
	dialect db.Dialect
	// piece gives the author's own SQL that stands for a name, nil for none.
	piece func(name string) *graph.Text
	// known tells whether a name is one that a parameter may have, to see a
	// parameter that is glued to an operator.
	known func(name string) bool

	out    []byte
	params []param
	marks  []mark
	faults graph.Faults
	// seen is told every name with its place.
	seen func(name string, text *graph.Text, off int)
}

func (w *rewriter) statement(text *graph.Text) *rewritten {
	w.text(text, false)
	if len(w.marks) == 0 {
		w.marks = append(w.marks, mark{text: text})
	}
	return &rewritten{sql: string(w.out), params: w.params, marks: w.marks}
}

// scan is one text on its way through the rewriter.
type scan struct {
	*rewriter
	text   *graph.Text
	tokens []db.Token
	i      int
}

func (w *rewriter) text(text *graph.Text, inPiece bool) {
	tokens, problem := db.Lex(w.dialect, text.S)
	if problem != nil {
		w.faults = append(w.faults, text.Fault(problem.Off, "%s", problem.Message))
		return
	}
	s := scan{rewriter: w, text: text, tokens: tokens}
	s.checkOne(inPiece)
	for s.i = 0; s.i < len(tokens); s.i++ {
		s.token(inPiece)
	}
}

// checkOne reports a text that is no statement or more than one.
func (s *scan) checkOne(inPiece bool) {
	any, ended := false, false
	for i, t := range s.tokens {
		switch {
		case t.Kind == db.Space:
		case inPiece && s.is(i, ";"):
			s.fault(t.Start, "a piece of choose cannot end the statement: take the ; out")
			return
		case s.is(i, ";"):
			ended = any
		case ended:
			s.fault(t.Start, "there are two statements in one query: give the second a tool of its own")
			return
		default:
			any = true
		}
	}
	switch {
	case any:
	case inPiece:
		s.fault(0, "this piece of choose is empty")
	default:
		s.fault(0, "there is no statement")
	}
}

func (s *scan) fault(off int, format string, args ...any) {
	s.faults = append(s.faults, s.text.Fault(off, format, args...))
}

func (s *scan) at(i int) string {
	if i < 0 || i >= len(s.tokens) {
		return ""
	}
	return s.text.S[s.tokens[i].Start:s.tokens[i].End]
}

// is compares a token with a keyword or a sign.
func (s *scan) is(i int, word string) bool {
	if i < 0 || i >= len(s.tokens) {
		return false
	}
	k := s.tokens[i].Kind
	return k != db.Quoted && k != db.Literal && strings.EqualFold(s.at(i), word)
}

// next gives the place of the next token that is no space, or len(s.tokens).
func (s *scan) next(i int) int {
	for i++; i < len(s.tokens) && s.tokens[i].Kind == db.Space; i++ {
	}
	return i
}

// before gives the place of the last token before i that is no space, or -1.
func (s *scan) before(i int) int {
	for i--; i >= 0 && s.tokens[i].Kind == db.Space; i-- {
	}
	return i
}

// token writes the token at s.i, and moves s.i over what belongs to it.
func (s *scan) token(inPiece bool) {
	t := s.tokens[s.i]
	switch {
	case t.Kind == db.Native:
		s.fault(t.Start, "%s is a parameter of the engine: write @name", s.at(s.i))
	case t.Kind == db.Operator:
		s.checkGlued()
	case t.Kind == db.Param:
		s.param(inPiece)
		return
	case t.Kind == db.Word && s.list():
		return
	}
	s.copy(t)
}

// copy writes a token as it is.
func (s *scan) copy(t db.Token) {
	last := len(s.marks) - 1
	if last < 0 || s.marks[last].fixed || s.marks[last].text != s.text ||
		s.marks[last].off+len(s.out)-s.marks[last].out != t.Start {
		s.marks = append(s.marks, mark{out: len(s.out), text: s.text, off: t.Start})
	}
	s.out = append(s.out, s.text.S[t.Start:t.End]...)
}

// put writes SQL of our own for the token that begins at off.
func (s *scan) put(off int, parts ...string) {
	s.marks = append(s.marks, mark{out: len(s.out), text: s.text, off: off, fixed: true})
	for _, p := range parts {
		s.out = append(s.out, p...)
	}
}

// checkGlued reports `a <@max`, which is the operator <@ and a column where
// the author has a parameter max.
func (s *scan) checkGlued() {
	op := s.at(s.i)
	if !strings.HasSuffix(op, "@") || s.i+1 >= len(s.tokens) || s.tokens[s.i+1].Kind != db.Word {
		return
	}
	if name := s.at(s.i + 1); s.known(name) {
		rest := strings.TrimSuffix(op, "@")
		s.fault(s.tokens[s.i].Start, "%s%s is the operator %s and the name %s: write %s @%s for the parameter, %s %s for the operator",
			op, name, op, name, rest, name, op, name)
	}
}

// param writes a parameter, a chosen piece, or the test for NULL that stands
// behind a parameter.
func (s *scan) param(inPiece bool) {
	t := s.tokens[s.i]
	name := s.at(s.i)[1:]
	if p := s.piece(name); p != nil {
		if inPiece {
			s.fault(t.Start, "a piece of choose cannot hold another: @%s", name)
			return
		}
		s.rewriter.text(p, true)
		return
	}
	s.seen(name, s.text, t.Start)
	s.checkOrder(name)
	s.checkRows(name)
	if end, not := s.nullTest(); end > 0 {
		n := s.number(param{name, asNull})
		if s.dialect == db.Postgres {
			n += "::bool"
		}
		if not {
			n = "(NOT " + n + ")"
		}
		s.put(t.Start, s.gap(), n)
		s.i = end
		return
	}
	s.put(t.Start, s.gap(), s.number(param{name, asValue}))
}

// gap keeps $1 from becoming a part of a name that stands right before it.
func (s *scan) gap() string {
	if s.i == 0 {
		return ""
	}
	if last := s.tokens[s.i-1]; last.Kind == db.Word || last.Kind == db.Numeral || last.Kind == db.Native || s.at(s.i-1) == "$" {
		return " "
	}
	return ""
}

// number gives the parameter in the engine's way. One name has one number, so
// that PostgreSQL sees that two expressions are the same (GROUP BY).
func (s *scan) number(p param) string {
	n := 0
	for n < len(s.params) && s.params[n] != p {
		n++
	}
	if n == len(s.params) {
		s.params = append(s.params, p)
	}
	if s.dialect == db.Postgres {
		return "$" + strconv.Itoa(n+1)
	}
	return "?" + strconv.Itoa(n+1)
}

// opensOperand are the words after which an operand begins, so that
// `@x IS NULL` there tests @x and nothing longer.
var opensOperand = map[string]bool{
	"AND": true, "OR": true, "NOT": true, "WHERE": true, "ON": true, "HAVING": true, "WHEN": true, "THEN": true,
	"ELSE": true, "CASE": true, "SELECT": true, "DISTINCT": true, "BY": true, "RETURNING": true, "FILTER": true,
}

// nullTest tells whether IS [NOT] NULL follows the parameter at s.i and tests
// it alone; end is the place of NULL.
func (s *scan) nullTest() (end int, not bool) {
	b := s.before(s.i)
	if b >= 0 && !s.is(b, "(") && !s.is(b, ",") && !(s.tokens[b].Kind == db.Word && opensOperand[strings.ToUpper(s.at(b))]) {
		return 0, false
	}
	i := s.next(s.i)
	if !s.is(i, "IS") {
		return 0, false
	}
	i = s.next(i)
	if not = s.is(i, "NOT"); not {
		i = s.next(i)
	}
	if !s.is(i, "NULL") {
		return 0, false
	}
	return i, not
}

// list writes `IN (@ids)` and `NOT IN (@ids)` if they stand at s.i.
func (s *scan) list() bool {
	in := s.i
	not := s.is(in, "NOT")
	if not {
		in = s.next(in)
	}
	open := s.next(in)
	arg := s.next(open)
	end := s.next(arg)
	if !s.is(in, "IN") || !s.is(open, "(") || arg >= len(s.tokens) || s.tokens[arg].Kind != db.Param || !s.is(end, ")") {
		return false
	}
	name := s.at(arg)[1:]
	if s.piece(name) != nil {
		return false
	}
	s.seen(name, s.text, s.tokens[arg].Start)
	n := s.number(param{name, asList})
	start := s.tokens[s.i].Start
	switch {
	case s.dialect == db.SQLite:
		for ; s.i <= open; s.i++ {
			s.copy(s.tokens[s.i])
		}
		s.put(s.tokens[arg].Start, "SELECT value FROM json_each(", n, "))")
	case not:
		s.put(start, "<> ALL(", n, ")")
	default:
		s.put(start, "= ANY(", n, ")")
	}
	s.i = end
	return true
}

// checkOrder reports a parameter that is a whole term of ORDER BY: it would
// be one constant for all rows.
func (s *scan) checkOrder(name string) {
	if after := s.next(s.i); after < len(s.tokens) && !endsTerm[strings.ToUpper(s.at(after))] {
		return
	}
	depth := 0
	for i := s.before(s.i); i >= 0; i = s.before(i) {
		switch {
		case s.is(i, ")"):
			depth++
		case s.is(i, "("):
			if depth--; depth < 0 {
				return
			}
		case depth > 0:
		case s.is(i, "BY"):
			if s.is(s.before(i), "ORDER") && (i == s.before(s.i) || s.is(s.before(s.i), ",")) {
				s.fault(s.tokens[s.i].Start, "ORDER BY @%s would sort by one constant: list the orders in choose: %s", name, name)
			}
			return
		case s.tokens[i].Kind == db.Word && endsOrder[strings.ToUpper(s.at(i))]:
			return
		}
	}
}

// endsTerm are the tokens behind a whole term of ORDER BY; a cast of it is
// one too.
var endsTerm = map[string]bool{
	",": true, ")": true, ";": true, "::": true, "ASC": true, "DESC": true, "NULLS": true, "COLLATE": true,
	"LIMIT": true, "OFFSET": true, "FETCH": true, "FOR": true, "ROWS": true, "RANGE": true, "GROUPS": true,
}

// endsOrder are the words that cannot stand inside the terms of ORDER BY.
var endsOrder = map[string]bool{
	"LIMIT": true, "OFFSET": true, "FETCH": true, "SELECT": true, "FROM": true, "WHERE": true, "ROWS": true,
	"RANGE": true, "GROUPS": true, "VALUES": true, "SET": true,
}

// checkRows reports a comparison of one value with all those of the rows above.
func (s *scan) checkRows(name string) {
	b := s.before(s.i)
	if strings.HasPrefix(name, "rows.") && b >= 0 && s.tokens[b].Kind == db.Operator {
		s.fault(s.tokens[s.i].Start, "@%s is a list: write IN (@%s)", name, name)
	}
}
