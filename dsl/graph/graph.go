package graph

// Graph is one spec, checked and resolved. It is not changed after dsl made it.
type Graph struct {
	Dir     string // folder that relative paths start from when nothing nearer is known
	Files   []string
	Package string

	Server     Server
	Env        []*EnvVar
	Databases  []*Database
	APIs       []*API
	FSMs       []*FSM
	Presenters []*Presenter
	Groups     []*Group
	Tools      []*Tool // in order of declaration: file in load order, then line
	Tests      []*Test
}

// Tool gives the tool of that dotted name, or nil.
func (g *Graph) Tool(name string) *Tool {
	return byName(g.Tools, name, func(t *Tool) string { return t.Name })
}

// Presenter gives the presenter of that name, or nil.
func (g *Graph) Presenter(name string) *Presenter {
	return byName(g.Presenters, name, func(p *Presenter) string { return p.Name })
}

// Database gives the database of that name, or nil.
func (g *Graph) Database(name string) *Database {
	return byName(g.Databases, name, func(d *Database) string { return d.Name })
}

// API gives the HTTP service of that name, or nil.
func (g *Graph) API(name string) *API {
	return byName(g.APIs, name, func(a *API) string { return a.Name })
}

// FSM gives the state machine of that name, or nil.
func (g *Graph) FSM(name string) *FSM {
	return byName(g.FSMs, name, func(f *FSM) string { return f.Name })
}

// Group gives the group of that prefix, or nil.
func (g *Graph) Group(name string) *Group {
	return byName(g.Groups, name, func(x *Group) string { return x.Name })
}

func byName[T any](l []*T, name string, of func(*T) string) *T {
	for _, x := range l {
		if of(x) == name {
			return x
		}
	}
	return nil
}
