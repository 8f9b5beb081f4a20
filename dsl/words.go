package dsl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// didYouMean offers the near name, if there is one.
func didYouMean(name string, known []string) string {
	if near := value.Near(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// meant offers the near name, or else lists the known ones.
func meant(name string, known []string, intro string) string {
	if s := didYouMean(name, known); s != "" {
		return s
	}
	if len(known) == 0 {
		return ""
	}
	const most = 12
	more := ""
	if len(known) > most {
		known, more = known[:most], ", …"
	}
	return " (" + intro + strings.Join(known, ", ") + more + ")"
}

// quoted is a list of names for a sentence.
func quoted(names []string) string {
	l := make([]string, len(names))
	for i, n := range names {
		l[i] = strconv.Quote(n)
	}
	return strings.Join(l, ", ")
}

func sprint(v any) string { return fmt.Sprint(v) }
