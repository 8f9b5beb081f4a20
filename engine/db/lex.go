package db

import (
	"fmt"
	"strings"
)

// TokenKind says what a piece of SQL text is.
type TokenKind uint8

// The kinds of tokens.
const (
	Space    TokenKind = iota // blanks and comments
	Word                      // a keyword or a bare name
	Quoted                    // a quoted name
	Literal                   // a text: '…', E'…', $tag$…$tag$
	Numeral                   // a number
	Operator                  // one or more operator characters
	Punct                     // one of ( ) [ ] , ; . : or the cast ::
	Param                     // @name or @dotted.name
	Native                    // $1, ?1: a parameter in the engine's own way
)

// Token is a piece of SQL text. The tokens of a text lie one after the other
// and are the whole text.
type Token struct {
	Kind       TokenKind
	Start, End int // bytes
}

// SyntaxError is a text that cannot be cut into tokens.
type SyntaxError struct {
	Off     int // byte where the unfinished piece begins
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s (byte %d)", e.Message, e.Off) }

// Lex cuts SQL into tokens as the engine does, with @name beside it. Where
// PostgreSQL has an operator that ends in @ (<@, @@, @-@, ^@) and a name
// follows at once, it is the operator: `a <@b` has no parameter.
func Lex(d Dialect, sql string) ([]Token, *SyntaxError) {
	l := lexer{dialect: d, s: sql}
	for l.i < len(sql) {
		start := l.i
		kind, problem := l.next()
		if problem != "" {
			return nil, &SyntaxError{Off: start, Message: problem}
		}
		if l.i == start { // a byte that no rule knows
			l.i++
		}
		l.tokens = append(l.tokens, Token{Kind: kind, Start: start, End: l.i})
	}
	return l.tokens, nil
}

type lexer struct {
	dialect Dialect
	s       string
	i       int
	tokens  []Token
}

func (l *lexer) at(off int) byte {
	if l.i+off < len(l.s) {
		return l.s[l.i+off]
	}
	return 0
}

const operatorChars = "+-*/<>=~!@#%^&|?"

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isName(c byte) bool { return isNameStart(c) || isDigit(c) }

// next moves over one token. A problem is told for an unfinished one.
func (l *lexer) next() (TokenKind, string) {
	c := l.at(0)
	switch {
	case strings.IndexByte(" \t\n\r\f\v", c) >= 0:
		for l.i < len(l.s) && strings.IndexByte(" \t\n\r\f\v", l.s[l.i]) >= 0 {
			l.i++
		}
		return Space, ""
	case c == '-' && l.at(1) == '-':
		if n := strings.IndexByte(l.s[l.i:], '\n'); n >= 0 {
			l.i += n
		} else {
			l.i = len(l.s)
		}
		return Space, ""
	case c == '/' && l.at(1) == '*':
		return Space, l.comment()
	case c == '\'':
		return Literal, l.quoted('\'', false, "a text that begins here has no closing '")
	case c == '"', c == '`':
		return Quoted, l.quoted(c, false, fmt.Sprintf("a name that begins here has no closing %c", c))
	case c == '[' && l.dialect == SQLite:
		return Quoted, l.bracketed()
	case (c == 'e' || c == 'E') && l.at(1) == '\'' && l.dialect == Postgres:
		l.i++
		return Literal, l.quoted('\'', true, "a text that begins here has no closing '")
	case isNameStart(c):
		l.name()
		return Word, ""
	case isDigit(c) || c == '.' && isDigit(l.at(1)):
		l.number()
		return Numeral, ""
	case c == '$':
		return l.dollar()
	case c == '?' && isDigit(l.at(1)):
		l.i++
		l.digits()
		return Native, ""
	case strings.IndexByte(operatorChars, c) >= 0:
		return l.operator(), ""
	}
	l.i++
	if c == ':' && l.at(0) == ':' {
		l.i++
	}
	return Punct, ""
}

// comment moves over a comment; PostgreSQL's nest.
func (l *lexer) comment() string {
	depth := 0
	for l.i < len(l.s) {
		switch {
		case l.at(0) == '/' && l.at(1) == '*' && (depth == 0 || l.dialect == Postgres):
			depth++
			l.i += 2
		case l.at(0) == '*' && l.at(1) == '/':
			depth--
			l.i += 2
			if depth == 0 {
				return ""
			}
		default:
			l.i++
		}
	}
	return "a comment that begins here has no closing */"
}

// quoted moves over a quoted piece in which the quote is doubled, and with
// escapes also written after a backslash.
func (l *lexer) quoted(q byte, escapes bool, problem string) string {
	for l.i++; l.i < len(l.s); l.i++ {
		switch {
		case escapes && l.s[l.i] == '\\':
			l.i++
		case l.s[l.i] != q:
		case l.at(1) == q:
			l.i++
		default:
			l.i++
			return ""
		}
	}
	l.i = len(l.s)
	return problem
}

func (l *lexer) bracketed() string {
	n := strings.IndexByte(l.s[l.i:], ']')
	if n < 0 {
		return "a name that begins here has no closing ]"
	}
	l.i += n + 1
	return ""
}

func (l *lexer) name() {
	for l.i < len(l.s) && (isName(l.s[l.i]) || l.s[l.i] == '$' && l.dialect == Postgres) {
		l.i++
	}
}

func (l *lexer) digits() {
	for l.i < len(l.s) && isDigit(l.s[l.i]) {
		l.i++
	}
}

// number moves over a number and what is glued to it: 1.5e-3, 0x1f, 1_000.
func (l *lexer) number() {
	start := l.i
	for l.i < len(l.s) {
		c := l.s[l.i]
		exponent := l.i > start && (l.s[l.i-1] == 'e' || l.s[l.i-1] == 'E') && (c == '+' || c == '-') && isDigit(l.at(1))
		if !isName(c) && c != '.' && !exponent {
			return
		}
		l.i++
	}
}

// dollar moves over $1, a dollar-quoted text, or a lone $.
func (l *lexer) dollar() (TokenKind, string) {
	if isDigit(l.at(1)) {
		l.i++
		l.digits()
		return Native, ""
	}
	j := l.i + 1
	for j < len(l.s) && isName(l.s[j]) {
		j++
	}
	if l.dialect == SQLite || j >= len(l.s) || l.s[j] != '$' {
		l.i++
		return Punct, ""
	}
	tag := l.s[l.i : j+1]
	n := strings.Index(l.s[j+1:], tag)
	if n < 0 {
		return Literal, fmt.Sprintf("a text that begins here has no closing %s", tag)
	}
	l.i = j + 1 + n + len(tag)
	return Literal, ""
}

// endInAt are the operators of PostgreSQL that end in @.
var endInAt = map[string]bool{"<@": true, "@@": true, "@-@": true, "^@": true, "?<@": true, "^<@": true}

// operator moves over an operator or a parameter: what stands before an @
// that begins a name is an operator of its own, unless both are one.
func (l *lexer) operator() TokenKind {
	start := l.i
	for l.i < len(l.s) && strings.IndexByte(operatorChars, l.s[l.i]) >= 0 {
		if l.i > start && (l.at(0) == '-' && l.at(1) == '-' || l.at(0) == '/' && l.at(1) == '*') {
			return Operator
		}
		if l.i > start && l.at(0) == '?' && isDigit(l.at(1)) {
			return Operator
		}
		if l.at(0) == '@' && isNameStart(l.at(1)) {
			switch {
			case endInAt[l.s[start:l.i+1]]:
				l.i++
				return Operator
			case l.i > start:
				return Operator
			}
			l.param()
			return Param
		}
		l.i++
	}
	return Operator
}

func (l *lexer) param() {
	for {
		l.i++ // @ or the dot
		for l.i < len(l.s) && isName(l.s[l.i]) {
			l.i++
		}
		if l.at(0) != '.' || !isNameStart(l.at(1)) {
			return
		}
	}
}

// firstToken gives the byte at which the first token that is no space begins.
func firstToken(sql string) int {
	tokens, _ := Lex(SQLite, sql)
	for _, t := range tokens {
		if t.Kind != Space {
			return t.Start
		}
	}
	return 0
}

// readers are the words that begin a PostgreSQL statement which keeps to the
// transaction it stands in. Others do not ask whether that is read-only: DO
// and CALL may end it and begin one that writes, COPY writes files and runs
// programs, SET and BEGIN change what the next statement may do.
var readers = map[string]bool{"SELECT": true, "WITH": true, "VALUES": true, "TABLE": true, "SHOW": true, "EXPLAIN": true}

// onlyReads tells whether a PostgreSQL statement may run where nothing may be
// written.
func onlyReads(sql string) bool {
	word, _ := firstWord(Postgres, sql)
	return word == "" || readers[word]
}

// firstWord gives the first word of a statement in capitals, and where it
// stands; "" if nothing does.
func firstWord(d Dialect, sql string) (word string, off int) {
	tokens, _ := Lex(d, sql)
	for _, t := range tokens {
		if word := sql[t.Start:t.End]; t.Kind != Space && word != "(" {
			return strings.ToUpper(word), t.Start
		}
	}
	return "", 0
}

// writers are the words that begin a statement which writes, on either engine.
// A word that is in neither list is the engine's to refuse: it may be misspelt.
var writers = map[string]bool{
	"INSERT": true, "UPDATE": true, "DELETE": true, "REPLACE": true, "MERGE": true, "TRUNCATE": true,
	"CREATE": true, "ALTER": true, "DROP": true, "GRANT": true, "REVOKE": true, "COMMENT": true,
	"CALL": true, "DO": true, "COPY": true, "VACUUM": true, "REINDEX": true, "REFRESH": true,
}

// Writes tells whether the first word of a statement says that it writes, and
// where that word stands. One that begins otherwise may write all the same; a
// read-only transaction refuses it then.
func Writes(d Dialect, sql string) (off int, writes bool) {
	word, off := firstWord(d, sql)
	return off, writers[word]
}

// statementStart gives the byte at which the n-th statement of a PostgreSQL
// script begins, counting from 0; the last one if there are fewer.
func statementStart(sql string, n int) int {
	tokens, _ := Lex(Postgres, sql)
	start, fresh := 0, true
	for _, t := range tokens {
		switch {
		case t.Kind == Space:
		case sql[t.Start:t.End] == ";":
			if !fresh {
				n--
			}
			fresh = true
		case fresh:
			if start, fresh = t.Start, false; n <= 0 {
				return start
			}
		}
	}
	return start
}
