package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Options says how to open a program.
type Options struct {
	// Env looks up a variable of the environment; nil: os.LookupEnv.
	Env func(name string) (string, bool)
	// URL replaces the URL of a database; "" or nil: as the spec says.
	URL func(database string) string
	// Fresh runs the init files on every database, a PostgreSQL one too: the
	// databases of a test.
	Fresh bool
	// Log takes what nobody but the operator may read; nil: slog.Default().
	Log *slog.Logger
	// Incident makes the id of an unexpected failure; nil: a random one.
	Incident func() string
	// Transport replaces the network between us and an HTTP service; nil, or a
	// nil answer: the real network.
	Transport func(api string) http.RoundTripper
}

// Open puts the secrets in, opens the databases and runs the init files on
// empty embedded ones. All failures come together. After an error everything
// is closed again.
func (p *Program) Open(ctx context.Context, o Options) error {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	p.log, p.incident = o.Log, o.Incident
	if p.log == nil {
		p.log = slog.Default()
	}
	if p.incident == nil {
		p.incident = randomIncident
	}
	p.dbs = make(map[string]*db.DB, len(p.graph.Databases))
	p.fleeting = map[string]bool{}
	p.secrets, p.parts = nil, nil
	p.remember(o.Env)
	secret, err := Secrets(p.graph, o.Env)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range p.graph.Databases {
		if err := p.openDatabase(ctx, d, o, secret); err != nil {
			errs = append(errs, fmt.Errorf("%s: databases.%s: %s", d.At, d.Name, p.scrub(nil, err.Error())))
		}
	}
	p.watchers = newWatchers()
	if len(errs) == 0 {
		if err := p.openStores(o, secret); err != nil {
			errs = append(errs, err)
		}
	}
	p.apis = make(map[string]*api.Client, len(p.graph.APIs))
	for _, a := range p.graph.APIs {
		if err := p.openAPI(a, o, secret); err != nil {
			errs = append(errs, fmt.Errorf("%s: apis.%s: %s", a.At, a.Name, p.scrub(nil, err.Error())))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errors.Join(append(errs, p.Close(ctx))...)
}

// Secrets gives the values of the secret variables of a spec: from the
// environment, else the declared default.
func Secrets(g *graph.Graph, env func(string) (string, bool)) (get func(name string) string, err error) {
	values := map[string]string{}
	var errs []error
	for _, v := range g.Env {
		if !v.Secret {
			continue
		}
		x, err := v.Lookup(env)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: env.%s: %w", v.At, v.Name, err))
		}
		values[v.Name], _ = x.(string)
	}
	return func(name string) string { return values[name] }, errors.Join(errs...)
}

// remember keeps the values of the secret variables that the environment
// sets, so that no log line holds one. A default stands in the spec: it is no
// secret.
func (p *Program) remember(env func(string) (string, bool)) {
	for _, v := range p.graph.Env {
		if s, set := env(v.Name); v.Secret && set && s != "" {
			p.secrets = append(p.secrets, s)
		}
	}
}

func (p *Program) openDatabase(ctx context.Context, d *graph.Database, o Options, secret func(string) string) error {
	address, secretly := "", false
	if o.URL != nil {
		address = o.URL(d.Name)
	}
	if address == "" {
		address, secretly = graph.Reveal(d.URL.S, secret), graph.HasSecret(d.URL.S)
	}
	p.hideURL(address, secretly)
	opened, err := db.Open(ctx, db.Config{
		Name: d.Name, URL: address, Pool: db.Pool(d.Pool), Timeout: d.Timeout, Dir: filepath.Dir(d.At.File),
		Session: d.Session != nil,
	})
	if err != nil {
		return err
	}
	p.dbs[d.Name] = opened
	p.fleeting[d.Name] = address == "sqlite::memory:"
	if len(d.Init) == 0 || opened.Dialect() != db.SQLite && !o.Fresh {
		return nil
	}
	if !o.Fresh {
		if empty, err := opened.Empty(ctx); err != nil || !empty {
			return err
		}
	}
	return runScripts(ctx, opened, d.Init)
}

// Fork gives a program of the same spec that has opened nothing, so that each
// test case opens its own databases.
func (p *Program) Fork() *Program {
	f := *p
	f.dbs, f.apis, f.secrets, f.parts, f.later = nil, nil, nil, nil, nil
	f.stores, f.opened, f.watchers = nil, nil, nil
	return &f
}

// Seed runs more files on a database; for tests.
func (p *Program) Seed(ctx context.Context, database string, files []graph.File) error {
	d := p.dbs[database]
	if d == nil {
		return fmt.Errorf("there is no database %q", database)
	}
	return runScripts(ctx, d, files)
}

func runScripts(ctx context.Context, d *db.DB, files []graph.File) error {
	for _, f := range files {
		sql, err := os.ReadFile(f.Path)
		if err != nil {
			return err
		}
		if err := d.Script(ctx, string(sql)); err != nil {
			return fmt.Errorf("running %s: %w", f.Name, err)
		}
	}
	return nil
}

// Close ends what Open began, waiting for calls in progress until ctx ends.
func (p *Program) Close(ctx context.Context) error {
	p.later.end()
	p.watchers.end()
	for _, s := range p.opened {
		s.Close()
	}
	var errs []error
	for _, d := range p.dbs {
		errs = append(errs, d.Close(ctx))
	}
	for _, a := range p.apis {
		a.Close()
	}
	return errors.Join(errs...)
}

// randomIncident is 8 hex digits: short enough to be read out on a telephone.
func randomIncident() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return hex.EncodeToString(b[:])
}
