// Package docs runs every fenced snippet of README.md and docs/. How a snippet
// is run stands in its info string, behind the language:
//
//	sh run            runs in a fresh copy of the tree, fusion-serve on PATH; must end with 0.
//	                  The snippets of one page share the copy, in their order
//	sh serve          as run, and its last command is a server: it must print its URL and
//	                  list its tools; it is stopped at the next one or at the end of the page
//	… postgres        beside run or serve: DATABASE_URL is a fresh PostgreSQL database
//	text output       is what the sh run above it printed
//	… file=PATH       is put into the page's copy under this path, for the snippets below
//	cue check         is a whole spec that fusion-serve check finds no fault in
//	cue parse, json parse    is well-formed; for parts of something larger
//
// Any other snippet is not run and must say why, in a comment right above it:
//
//	<!-- not run: needs an account -->
package docs

import (
	"fmt"
	"slices"
	"strings"
)

// snippet is one fenced block.
type snippet struct {
	line   int // of the opening fence, from 1
	lang   string
	modes  []string // words of the info string behind the language, without file=
	file   string   // of file=
	notRun string   // why it is not run
	text   string   // ends with a line break
}

func (s *snippet) has(mode string) bool { return slices.Contains(s.modes, mode) }

// modesOf says what may stand behind a language.
var modesOf = map[string][]string{
	"sh":   {"run", "serve", "postgres"},
	"cue":  {"check", "parse"},
	"json": {"parse"},
	"text": {"output"},
}

// snippets reads the fenced blocks of a page.
func snippets(page string) ([]*snippet, error) {
	var all []*snippet
	var open *snippet
	var fence, indent, above string
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimLeft(line, " ")
		switch {
		case open != nil && strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]+" ") == "":
			all = append(all, open)
			open, above = nil, ""
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~"):
			info := strings.TrimLeft(text, text[:1])
			fence, indent = text[:len(text)-len(info)], line[:len(line)-len(text)]
			var err error
			if open, err = opening(info, above); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			open.line = i + 1
		case text != "":
			above = text
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", open.line)
	}
	return all, nil
}

// opening reads an info string and the line above it.
func opening(info, above string) (*snippet, error) {
	s := &snippet{}
	words := strings.Fields(info)
	if len(words) > 0 {
		s.lang, words = words[0], words[1:]
	}
	for _, w := range words {
		if path, ok := strings.CutPrefix(w, "file="); ok {
			s.file = path
		} else if slices.Contains(modesOf[s.lang], w) {
			s.modes = append(s.modes, w)
		} else {
			return nil, fmt.Errorf("%q says nothing about a %q block; see tests/docs/page_test.go", w, s.lang)
		}
	}
	if why, ok := strings.CutPrefix(above, "<!-- not run:"); ok {
		s.notRun = strings.TrimSpace(strings.TrimSuffix(why, "-->"))
	}
	switch runs := len(s.modes) > 0 || s.file != ""; {
	case runs && s.notRun != "":
		return nil, fmt.Errorf("the block is run, and the comment above says that it is not")
	case !runs && s.notRun == "":
		return nil, fmt.Errorf("the block says neither how it is run nor why not; see tests/docs/page_test.go")
	case s.has("postgres") && !s.has("run") && !s.has("serve"):
		return nil, fmt.Errorf("postgres stands beside run or serve")
	}
	return s, nil
}
