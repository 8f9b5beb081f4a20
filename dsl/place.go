package dsl

import (
	"os"
	"path/filepath"
	"strings"

	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
)

// places turns CUE's positions into places: file names relative to the folder
// the program was started in, if they are below it.
type places struct {
	cwd   string
	names map[string]string // absolute name -> as shown
	paths map[string]string // as shown -> absolute name
}

func newPlaces() *places {
	cwd, err := os.Getwd()
	if err != nil {
		cwd = ""
	}
	return &places{cwd: cwd, names: map[string]string{}, paths: map[string]string{}}
}

func (p *places) at(pos token.Pos) graph.Place {
	if !pos.IsValid() {
		return graph.Place{}
	}
	x := pos.Position()
	return graph.Place{File: p.shown(x.Filename), Line: x.Line, Col: x.Column}
}

// shown is the name of a file as a fault shows it.
func (p *places) shown(file string) string {
	if s, ok := p.names[file]; ok {
		return s
	}
	s := file
	if p.cwd != "" && filepath.IsAbs(file) {
		if rel, err := filepath.Rel(p.cwd, file); err == nil && filepath.IsLocal(rel) {
			s = rel
		}
	}
	s = filepath.ToSlash(s)
	p.names[file], p.paths[s] = s, file
	return s
}

// dir is the folder of the file of a place.
func (p *places) dir(at graph.Place) string {
	file := at.File
	if abs, ok := p.paths[at.File]; ok {
		file = abs
	}
	return filepath.Dir(file)
}

// isOurs tells whether a position is in the language's own files, where no
// author looks for a mistake.
func isOurs(pos token.Pos) bool {
	return strings.Contains(filepath.ToSlash(pos.Filename()), "cue.mod/pkg/fusion.serve/")
}
