// Package dsl reads specs: CUE files go in, graphs come out, with every
// mistake at once, each with its place. It is the only code that imports CUE;
// what it gives holds none.
//
// The user's CUE is evaluated alone. Then a tree that is compiled from the
// language's own schema (package schemas) walks its values: unifying the two
// in CUE would cost more than twice the time and give worse messages. The
// stages of a load go on past a broken part and skip only what needs it.
package dsl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/schemas"
)

// Options says how to load.
type Options struct {
	// Env looks up a variable of the environment; nil: os.LookupEnv. Only the
	// variables that the spec declares are asked for.
	Env func(name string) (string, bool)
	// WithTests also reads the tests of the specs: for a file NAME.cue also
	// those of NAME_tests.cue beside it.
	WithTests bool
	// EnvMayMiss: a variable that is not set and has no default is no fault;
	// something of its type stands in for it.
	EnvMayMiss bool
}

// Load reads the specs at the paths: a folder is one spec for each package in
// it; files of one package in one folder are one spec together. The faults
// are complete and sorted; a graph is given for every spec that could be
// evaluated at all, also beside faults.
func Load(paths []string, o Options) ([]*graph.Graph, graph.Faults) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	l := &loader{options: o, places: newPlaces()}
	if len(paths) == 0 {
		l.faults.Add(graph.Place{}, "", "name the file or folder of a spec")
	}
	var graphs []*graph.Graph
	for _, p := range l.packages(paths) {
		if g := l.load(p); g != nil {
			graphs = append(graphs, g)
		}
	}
	return graphs, l.faults.Sorted()
}

type loader struct {
	*places
	options Options
	faults  graph.Faults
	warned  map[string]bool // module roots whose vendored copy was told
}

// pkg is what becomes one spec.
type pkg struct {
	dir   string // absolute
	name  string // of the package, "_" for files without one
	files []string
	whole bool // the folder's package, not single files
}

// packages sorts the paths into packages, in the order of the paths.
func (l *loader) packages(paths []string) []*pkg {
	var pkgs []*pkg
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			l.faults.Add(graph.Place{File: path}, "", "%v", err)
			continue
		}
		info, err := os.Stat(abs)
		switch {
		case errors.Is(err, os.ErrNotExist):
			l.faults.Add(graph.Place{}, "", "there is no file or folder %s", path)
		case err != nil:
			l.faults.Add(graph.Place{}, "", "%v", err)
		case info.IsDir():
			pkgs = append(pkgs, l.folder(abs, path)...)
		case filepath.Ext(abs) != ".cue":
			l.faults.Add(graph.Place{}, "", "%s is no CUE file: a spec's name ends in .cue", path)
		default:
			pkgs = l.addFile(pkgs, abs)
		}
	}
	return pkgs
}

// folder gives the packages of a folder, in order of name.
func (l *loader) folder(dir, shown string) []*pkg {
	names, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "*.cue"))
	found := map[string]*pkg{}
	var pkgs []*pkg
	for _, file := range names {
		base := filepath.Base(file)
		if base[0] == '.' || base[0] == '_' || strings.HasSuffix(base, "_test.cue") || strings.HasSuffix(base, "_tool.cue") {
			continue // as CUE does
		}
		name := packageName(file)
		if found[name] == nil {
			found[name] = &pkg{dir: dir, name: name, whole: name != "_"}
			pkgs = append(pkgs, found[name])
		}
		found[name].files = append(found[name].files, file)
	}
	if len(pkgs) == 0 {
		l.faults.Add(graph.Place{}, "", "there is no CUE file in %s", shown)
	}
	slices.SortFunc(pkgs, func(a, b *pkg) int { return strings.Compare(a.name, b.name) })
	return pkgs
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// addFile adds a file to the package of its folder that is being built from
// files, with its tests if they are wanted.
func (l *loader) addFile(pkgs []*pkg, file string) []*pkg {
	name := packageName(file)
	i := slices.IndexFunc(pkgs, func(p *pkg) bool {
		return !p.whole && p.name == name && (p.dir == filepath.Dir(file) || sameModule(p.dir, file))
	})
	if i < 0 {
		pkgs = append(pkgs, &pkg{dir: filepath.Dir(file), name: name})
		i = len(pkgs) - 1
	}
	p := pkgs[i]
	add := func(f string) {
		if !slices.Contains(p.files, f) {
			p.files = append(p.files, f)
		}
	}
	add(file)
	tests := strings.TrimSuffix(file, ".cue") + "_tests.cue"
	if l.options.WithTests {
		if _, err := os.Stat(tests); err == nil && packageName(tests) == name {
			add(tests)
		}
	}
	return pkgs
}

// sameModule tells whether a file in a folder above or below belongs to the
// package of a folder: in a module, a package may have files in the folders
// above.
func sameModule(dir, file string) bool {
	other := filepath.Dir(file)
	related := strings.HasPrefix(dir, other+string(filepath.Separator)) || strings.HasPrefix(other, dir+string(filepath.Separator))
	return related && moduleRoot(dir) != "" && moduleRoot(dir) == moduleRoot(other)
}

// packageName is the name in the package clause of a file, "_" without one. A
// file that cannot be read that far is told when it is loaded.
func packageName(file string) string {
	f, _ := parser.ParseFile(file, nil, parser.PackageClauseOnly)
	if f != nil {
		if name := f.PackageName(); name != "" {
			return name
		}
	}
	return "_"
}

// moduleRoot is the folder above dir that has a cue.mod, "" if there is none.
func moduleRoot(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, "cue.mod", "module.cue")); err == nil && !info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// config says to CUE where the package is. The language is laid over the
// module's vendored copy in every case, so that a file without a module may
// import it too, without a network, and the program's version always wins.
func (l *loader) config(p *pkg) *load.Config {
	overlay := map[string]load.Source{}
	root := moduleRoot(p.dir)
	if root == "" {
		root = p.dir
		overlay[filepath.Join(root, "cue.mod", "module.cue")] = load.FromString("module: \"fusion.local/spec@v0\"\nlanguage: version: \"v0.17.0\"\n")
	}
	vendored := filepath.Join(root, filepath.FromSlash(schemas.Vendored))
	overlay[vendored] = load.FromBytes(schemas.Source)
	l.compareVendored(root, vendored)
	return &load.Config{
		Dir: p.dir, ModuleRoot: root, Overlay: overlay,
		Package: p.name, Env: registryOf(root),
	}
}

// registryOf keeps CUE off the network for a module that names no
// dependencies: an import that is not there is then told at once.
func registryOf(root string) []string {
	module, err := os.ReadFile(filepath.Join(root, "cue.mod", "module.cue"))
	if err == nil && bytes.Contains(module, []byte("deps:")) {
		return nil
	}
	return []string{"CUE_REGISTRY=none"}
}

// compareVendored warns when editors read another language than this program.
func (l *loader) compareVendored(root, file string) {
	have, err := os.ReadFile(file)
	if err != nil || bytes.Equal(have, schemas.Source) || l.warned[root] {
		return
	}
	if l.warned == nil {
		l.warned = map[string]bool{}
	}
	l.warned[root] = true
	l.faults.Warn(graph.Place{File: l.shown(file), Line: 1, Col: 1}, "",
		"this copy of the language differs from the program's: editors may find mistakes that are none; replace it with the one that `fusion-serve init` writes")
}

// load makes one package into a graph; nil if it cannot be evaluated at all.
func (l *loader) load(p *pkg) *graph.Graph {
	args := p.files
	if p.whole {
		args = []string{"."}
	}
	insts := load.Instances(args, l.config(p))
	if len(insts) != 1 {
		l.faults.Add(graph.Place{File: l.shown(p.dir)}, "", "holds %d packages where one was looked for", len(insts))
		return nil
	}
	inst := insts[0]
	d := &doc{places: l.places, options: l.options, inst: inst, g: &graph.Graph{Dir: p.dir, Package: p.name}}
	d.run()
	l.faults = append(l.faults, d.faults...)
	if d.root == nil {
		return nil
	}
	return d.g
}

// doc is one package on its way into a graph.
type doc struct {
	*places
	options Options
	inst    *build.Instance
	g       *graph.Graph
	faults  graph.Faults
	told    map[string]bool // CUE's own errors that were told: place and message
	toldAt  map[string]bool // paths with a fault of CUE's
	// replaced are the places of names of nothing, which are error values now.
	replaced []token.Pos
	types    typeCache
	envNeeds map[string]bool // names that env refers to, which may be all that does
	root     *node
	spec     *item
}

func (d *doc) run() {
	d.told, d.toldAt, d.types = map[string]bool{}, map[string]bool{}, typeCache{}
	for _, f := range d.inst.BuildFiles {
		d.g.Files = append(d.g.Files, f.Filename)
	}
	if d.inst.Err != nil {
		d.loadErrors(d.inst.Err)
		return
	}
	d.checkShadows()
	d.fillEnv()
	d.secretComparisons()
	d.eraseSchema()
	v, ok := d.build()
	if !ok {
		return
	}
	d.root = &node{doc: d, val: v, has: true}
	d.rootSource()
	d.evaluate(v)
	d.checkSpec()
	d.decode()
	d.resolve()
	d.secretPlaces()
}

// build compiles the package. A reference to nothing is told and made into an
// error value, so that the rest is checked too.
func (d *doc) build() (v cue.Value, ok bool) {
	const tries = 4
	for range tries {
		ctx := cuecontext.New()
		v = ctx.BuildInstance(d.inst)
		if d.inst.Err == nil {
			return v, true
		}
		err := d.inst.Err
		d.inst.Err, d.inst.ResolutionErr = nil, nil
		if !d.buildErrors(err) {
			return v, false
		}
	}
	return v, false
}

// eraseSchema takes the language out of the package and those it imports.
func (d *doc) eraseSchema() {
	for _, inst := range append(d.inst.Dependencies(), d.inst) {
		for _, f := range inst.Files {
			if !isOurs(f.Pos()) {
				eraseSchema(f)
			}
		}
	}
}

// rootSource makes the files the sources of the whole spec.
func (d *doc) rootSource() {
	d.root.whole = true
	for _, f := range d.inst.Files {
		s := &ast.StructLit{}
		for _, x := range f.Decls {
			switch x.(type) {
			case *ast.Package, *ast.ImportDecl:
			default:
				s.Elts = append(s.Elts, x)
			}
		}
		d.root.exprs = append(d.root.exprs, s)
	}
}
