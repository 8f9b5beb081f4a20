package db

import "strings"

// leavesMarks tells whether a statement may leave something on its connection
// that outlives its transaction, so that another caller would find it: a
// setting, a lock, a temporary table, a cursor, a subscription. What a
// function does inside is not seen.
func leavesMarks(sql string) bool {
	words, _ := wordsOf(Postgres, sql)
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "set", "reset", "listen", "load", "prepare", "discard", "deallocate":
		return true
	}
	for i, w := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case next == "(" && (w == "set_config" || sessionLock(w)):
			return true
		case beforeTemp[w] && (next == "temp" || next == "temporary"):
			return true
		case w == "with" && next == "hold":
			return true
		}
	}
	return false
}

// beforeTemp are the words before TEMP that make it a temporary table.
var beforeTemp = map[string]bool{"create": true, "into": true, "local": true, "global": true}

// sessionLock tells whether a function takes a lock that is held until the
// session ends.
func sessionLock(name string) bool {
	return strings.HasPrefix(name, "pg_advisory_lock") || strings.HasPrefix(name, "pg_try_advisory_lock")
}
