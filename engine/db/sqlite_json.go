package db

import "strings"

// jsonFunctions give a JSON document in SQLite, whose computed columns have no
// declared type that would say so.
var jsonFunctions = map[string]bool{
	"json": true, "json_array": true, "json_object": true, "json_group_array": true, "json_group_object": true,
	"json_insert": true, "json_replace": true, "json_set": true, "json_patch": true, "json_remove": true,
}

// jsonItems tells for the columns of a statement, from the last one backwards,
// whether each is one call of a JSON function. It looks at the list of the
// outermost SELECT or RETURNING and stops at a *, which stands for more than
// one column.
func jsonItems(sql string) []bool {
	words, _ := wordsOf(SQLite, sql)
	var found []bool
	items := splitItems(words)
	for i := len(items) - 1; i >= 0; i-- {
		item := words[items[i].start:items[i].end]
		if last := len(item) - 1; last < 0 || item[last] == "*" {
			break
		}
		found = append(found, isJSONCall(item))
	}
	return found
}

// wordsOf gives the tokens of a statement that are no blanks, in lower case,
// and where each begins.
func wordsOf(d Dialect, sql string) (words []string, starts []int) {
	tokens, _ := Lex(d, sql)
	words = make([]string, 0, len(tokens))
	for _, t := range tokens {
		if t.Kind != Space {
			words = append(words, strings.ToLower(sql[t.Start:t.End]))
			starts = append(starts, t.Start)
		}
	}
	return words, starts
}

// item is one of the result list: words[start:end].
type item struct{ start, end int }

// splitItems gives the result list: what stands between the first outermost
// SELECT, or the last outermost RETURNING, and the end of its list.
func splitItems(words []string) []item {
	start := -1
	outermost(words, func(i int, w string) bool {
		if w == "returning" || w == "select" && start < 0 {
			start = i + 1
		}
		return true
	})
	if start < 0 {
		return nil
	}
	var items []item
	begin, end := start, len(words)
	outermost(words[start:], func(i int, w string) bool {
		switch w {
		case ",":
			items = append(items, item{begin, start + i})
			begin = start + i + 1
		case "from", "where", "group", "having", "window", "union", "intersect", "except", "order", "limit", ";", "returning":
			end = start + i
			return false
		}
		return true
	})
	return append(items, item{begin, end})
}

// ColumnOffset gives the byte of a statement where the column of a name is
// made: where it stands in the result list, or where the list begins. Without
// a list it is 0.
func ColumnOffset(d Dialect, sql, name string) int {
	words, starts := wordsOf(d, sql)
	items := splitItems(words)
	if len(items) == 0 || items[0].start >= len(starts) {
		return 0
	}
	for _, x := range items {
		if x.end > x.start && strings.Trim(words[x.end-1], `"`) == strings.ToLower(name) {
			return starts[x.start]
		}
	}
	return starts[items[0].start]
}

// outermost calls f with the words that stand in no parentheses.
func outermost(words []string, f func(i int, w string) bool) {
	depth := 0
	for i, w := range words {
		switch {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case depth == 0 && !f(i, w):
			return
		}
	}
}

// isJSONCall tells whether an item is one call, with or without a name behind
// it.
func isJSONCall(item []string) bool {
	if len(item) < 3 || !jsonFunctions[item[0]] || item[1] != "(" {
		return false
	}
	end := closingOf(item[1:])
	if end < 0 {
		return false
	}
	rest := item[end+2:]
	if len(rest) > 1 && rest[0] == "filter" && rest[1] == "(" {
		if closing := closingOf(rest[1:]); closing > 0 {
			rest = rest[closing+2:]
		}
	}
	return len(rest) == 0 || len(rest) == 1 || len(rest) == 2 && rest[0] == "as"
}

// closingOf gives the place of the parenthesis that closes the first one.
func closingOf(words []string) int {
	depth := 0
	for i, w := range words {
		switch w {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
