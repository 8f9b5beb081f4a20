package bind

import "slices"

// Effects is where a binding may change something.
type Effects struct {
	// Databases are those of its writing statements, each once.
	Databases []string
	// Elsewhere: it also makes requests that may change something.
	Elsewhere bool
}

// Home gives the one database in which all that the binding changes can be
// undone and committed as a whole; "" if there is none.
func (e Effects) Home() string {
	if e.Elsewhere || len(e.Databases) != 1 {
		return ""
	}
	return e.Databases[0]
}

// None tells whether the binding changes nothing.
func (e Effects) None() bool { return !e.Elsewhere && len(e.Databases) == 0 }

// Effects tells where the binding may change something. What undos do does not
// count: they only run after what they undo.
func (b *Binding) Effects() Effects {
	var e Effects
	b.effects(&e)
	return e
}

func (b *Binding) effects(e *Effects) {
	if b.query != nil && b.writes {
		for _, name := range b.database.names() {
			if !slices.Contains(e.Databases, name) {
				e.Databases = append(e.Databases, name)
			}
		}
	}
	if b.http != nil && b.http.changes {
		e.Elsewhere = true
	}
	for _, s := range b.steps {
		s.binding.effects(e)
	}
}
