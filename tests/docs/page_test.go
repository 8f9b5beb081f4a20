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
//	cue check with F  is one together with the file F of the tree
//	cue parse         is well-formed; for parts of something larger
//	json              is well-formed
//	… none: WHY       is not run, because
//	text WHY          likewise: it is a picture, the answer of an agent
//
// A block that says nothing is a fault.
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
	with   string   // of check with
	notRun string   // why it is not run
	text   string   // ends with a line break
}

func (s *snippet) has(mode string) bool { return slices.Contains(s.modes, mode) }

// modesOf says what may stand behind a language.
var modesOf = map[string][]string{
	"sh":   {"run", "serve", "postgres"},
	"cue":  {"check", "parse"},
	"text": {"output"},
}

// snippets reads the fenced blocks of a page.
func snippets(page string) ([]*snippet, error) {
	var all []*snippet
	var open *snippet
	var fence, indent string
	for i, line := range strings.Split(page, "\n") {
		text := strings.TrimLeft(line, " ")
		switch {
		case open != nil && strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]+" ") == "":
			all = append(all, open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~"):
			info := strings.TrimLeft(text, text[:1])
			fence, indent = text[:len(text)-len(info)], line[:len(line)-len(text)]
			var err error
			if open, err = opening(info); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			open.line = i + 1
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", open.line)
	}
	return all, nil
}

// opening reads an info string.
func opening(info string) (*snippet, error) {
	lang, rest, _ := strings.Cut(strings.TrimSpace(info), " ")
	s := &snippet{lang: lang}
	if why, ok := strings.CutPrefix(rest, "none:"); ok {
		s.notRun = strings.TrimSpace(why)
	} else if lang == "text" && !strings.HasPrefix(rest, "output") && !strings.HasPrefix(rest, "file=") {
		s.notRun = rest
	} else if err := s.words(strings.Fields(rest)); err != nil {
		return nil, err
	}
	if lang == "json" && s.notRun == "" {
		s.modes = append(s.modes, "parse")
	}
	switch runs := len(s.modes) > 0 || s.file != ""; {
	case !runs && s.notRun == "":
		return nil, fmt.Errorf("the block says neither how it is run nor why not (tests/docs/page_test.go tells how)")
	case s.has("postgres") && !s.has("run") && !s.has("serve"):
		return nil, fmt.Errorf("postgres stands beside run or serve")
	case s.with != "" && !s.has("check"):
		return nil, fmt.Errorf("with stands behind check")
	}
	return s, nil
}

// words reads the words of an info string that is run.
func (s *snippet) words(words []string) error {
	for i := 0; i < len(words); i++ {
		if path, ok := strings.CutPrefix(words[i], "file="); ok {
			s.file = path
		} else if words[i] == "with" && i+1 < len(words) {
			i++
			s.with = words[i]
		} else if slices.Contains(modesOf[s.lang], words[i]) {
			s.modes = append(s.modes, words[i])
		} else {
			return fmt.Errorf("%q says nothing about a %q block (tests/docs/page_test.go tells what does)", words[i], s.lang)
		}
	}
	return nil
}
