// Package schemas holds the language of a spec, written in CUE. The loader
// checks every spec against it, the reference is made from its comments, and
// editors read a copy of it beside the spec.
package schemas

import (
	"bytes"
	"embed"
	"io/fs"
)

// ImportPath is the path under which a spec may import the language.
const ImportPath = "fusion.serve/schema"

// Vendored is where a module keeps its copy of the language, from the
// module's root, so that editors and cue vet find it without a network.
const Vendored = "cue.mod/pkg/fusion.serve/schema/schema.cue"

// Version is the version of the language. It changes its first number when a
// spec that was right before is no longer right.
const Version = "1.0.0"

//go:embed *.cue
var language embed.FS

// parts are the files of the language in the order of the reference.
var parts = []string{"server.cue", "backend.cue", "fsm.cue", "presenter.cue", "tool.cue", "binding.cue", "rule.cue", "case.cue"}

// Source is the language in CUE: its parts as one file, so that a module keeps
// one copy.
var Source = joined()

func joined() []byte {
	const clause = "package schema\n"
	var all []byte
	for _, name := range parts {
		part, err := language.ReadFile(name)
		if err != nil {
			panic(err) // an embedded file that cannot be read is a broken build
		}
		if len(all) > 0 {
			part = bytes.TrimPrefix(part, []byte(clause))
		}
		all = append(all, part...)
	}
	return all
}

//go:embed all:starter
var starter embed.FS

// File is a file of the starter spec.
type File struct {
	Name string // from the new folder, with slashes
	Data []byte
}

// Starter gives the files of a new, working spec in order of name: the spec
// with its SQL and its tests, the set-up for editors and the vendored
// language.
func Starter() []File {
	var files []File
	add := func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := starter.ReadFile(name)
		files = append(files, File{Name: name[len("starter/"):], Data: data})
		return err
	}
	if err := fs.WalkDir(starter, "starter", add); err != nil {
		panic(err) // an embedded file that cannot be read is a broken build
	}
	return append(files, File{Name: Vendored, Data: Source})
}
