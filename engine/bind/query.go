package bind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// query is one query of the spec: a statement for each choice and engine.
type query struct {
	text     *graph.Text
	choices  []*choice
	variants []*variant // the first choice varies slowest
}

// choice is a choose whose parameter stands in the query.
type choice struct {
	param  string
	keys   []string
	pieces []*graph.Text
}

// variant is the query with one piece of each choice in place.
type variant struct {
	forms [2]form // by db.Dialect
}

// form is a variant for one engine.
type form struct {
	stmt *db.Stmt
	args []argument
	text *rewritten
}

// argument says what a parameter of a statement is given.
type argument struct {
	from source
	mode mode
}

// maxVariants bounds the statements of one query: each of them is prepared.
const maxVariants = 256

// compileQuery rewrites a query for both engines.
func (c *compiler) query(text *graph.Text, choose []graph.Choose, inNest bool) *query {
	q := &query{text: text}
	total := 1
	for i := range choose {
		if ch := c.choice(text, &choose[i]); ch != nil {
			q.choices = append(q.choices, ch)
			total *= len(ch.pieces)
		}
	}
	if total > maxVariants {
		c.faults = append(c.faults, text.Fault(0, "the choices of choose make %d statements: %d are the most", total, maxVariants))
		return q
	}
	for n := range total {
		q.variants = append(q.variants, c.variant(q, n, inNest))
	}
	return q
}

// choice checks one choose of a query; nil if the query does not use it.
func (c *compiler) choice(text *graph.Text, ch *graph.Choose) *choice {
	if !c.standsIn(text, ch.Param) {
		c.faults.Add(ch.At, choosePath(text, ch), "@%s does not stand in the query", ch.Param)
		return nil
	}
	if f := c.names.params.Field(ch.Param); f != nil && f.Optional && !f.HasDefault {
		c.faults.Add(ch.At, choosePath(text, ch), "the parameter %s may be left out: give it a default", ch.Param)
	}
	out := &choice{param: ch.Param}
	for i := range ch.Pieces {
		out.keys = append(out.keys, ch.Pieces[i].Key)
		out.pieces = append(out.pieces, &ch.Pieces[i].SQL)
	}
	if len(out.pieces) == 0 {
		c.faults.Add(ch.At, choosePath(text, ch), "has no piece")
		return nil
	}
	return out
}

// choosePath is the path of a choose: it stands beside the query.
func choosePath(text *graph.Text, ch *graph.Choose) string {
	return text.Path[:strings.LastIndexByte(text.Path, '.')+1] + "choose." + ch.Param
}

// standsIn tells whether a parameter stands in a query, as either engine
// reads it.
func (c *compiler) standsIn(text *graph.Text, name string) bool {
	for _, d := range dialects {
		tokens, _ := db.Lex(d, text.S)
		if slices.ContainsFunc(tokens, func(t db.Token) bool {
			return t.Kind == db.Param && text.S[t.Start+1:t.End] == name
		}) {
			return true
		}
	}
	return false
}

var dialects = [...]db.Dialect{db.SQLite, db.Postgres}

// variant makes the n-th variant. A fault that only one engine sees counts if
// the database is of that engine; where it is not known before open, that
// engine gets the text as it is, and refuses it.
func (c *compiler) variant(q *query, n int, inNest bool) *variant {
	pieces := make(map[string]*graph.Text, len(q.choices))
	for i := len(q.choices) - 1; i >= 0; i-- {
		ch := q.choices[i]
		pieces[ch.param] = ch.pieces[n%len(ch.pieces)]
		n /= len(ch.pieces)
	}
	v := &variant{}
	var faults [2]graph.Faults
	for _, d := range dialects {
		v.forms[d], faults[d] = c.form(d, q.text, pieces, inNest)
	}
	c.report(faults)
	return v
}

func (c *compiler) report(faults [2]graph.Faults) {
	if d, err := db.DialectOf(c.url); err == nil {
		c.addOnce(faults[d])
		return
	}
	if len(faults[0]) > 0 && len(faults[1]) > 0 {
		c.addOnce(faults[0])
		c.addOnce(faults[1])
	}
}

func (c *compiler) addOnce(faults graph.Faults) {
	for _, f := range faults {
		if !slices.Contains(c.faults, f) {
			c.faults = append(c.faults, f)
		}
	}
}

func (c *compiler) form(d db.Dialect, text *graph.Text, pieces map[string]*graph.Text, inNest bool) (form, graph.Faults) {
	sources := map[string]source{}
	w := &rewriter{
		dialect: d,
		piece:   func(name string) *graph.Text { return pieces[name] },
		known:   c.names.known,
	}
	w.seen = func(name string, at *graph.Text, off int) {
		s, problem := c.names.source(name, inNest)
		if problem != "" {
			w.faults = append(w.faults, at.Fault(off, "@%s: %s", name, problem))
		}
		sources[name] = s
	}
	if off, writes := db.Writes(d, text.S); writes && !c.writes {
		w.faults = append(w.faults, text.Fault(off, "a query tool reads: use kind: \"action\" or \"mutation\""))
	}
	r := w.statement(text)
	if len(w.faults) > 0 {
		r = &rewritten{sql: text.S, marks: []mark{{text: text}}}
	}
	f := form{stmt: &db.Stmt{SQL: r.sql, Args: len(r.params)}, text: r}
	for _, p := range r.params {
		f.args = append(f.args, argument{from: sources[p.name], mode: p.mode})
	}
	return f, w.faults
}

// pick gives the variant that the arguments choose.
func (q *query) pick(args *value.Object) (*variant, error) {
	n := 0
	for _, ch := range q.choices {
		v, _ := args.Get(ch.param)
		key, _ := v.(string)
		i := slices.Index(ch.keys, key)
		if i < 0 {
			return nil, fmt.Errorf("choose: there is no piece for %s = %s", ch.param, value.AppendJSON(nil, v))
		}
		n = n*len(ch.pieces) + i
	}
	return q.variants[n], nil
}

// statements gives the query's statements on a database for check --online.
func (q *query) statements(database string) []Statement {
	var l []Statement
	for _, v := range q.variants {
		s := Statement{Database: database, Source: q.text}
		for _, d := range dialects {
			s.Stmt[d] = v.forms[d].stmt
			for _, p := range v.forms[d].text.params {
				s.Params[d] = append(s.Params[d], Param{Name: p.name, List: p.mode == asList, Null: p.mode == asNull})
			}
		}
		s.Offset = func(d db.Dialect, off int) int {
			text, at := v.forms[d].text.origin(off)
			if text == q.text {
				return at
			}
			return 0
		}
		s.Place = func(d db.Dialect, off int) graph.Place {
			text, at := v.forms[d].text.origin(off)
			return text.Place(at)
		}
		l = append(l, s)
	}
	return l
}
