package shape

// A shape that holds itself has one entry in $defs for all the places where
// it stands, while masks go by path. Such an entry therefore allows what any
// of the paths to it, up to maxUnroll steps long, may have become: it may
// allow too much for one place, never too little.

const (
	maxUnroll    = 12
	unrollBudget = 1 << 14
)

// maskKey is a step and where it leads.
type maskKey struct {
	step string
	to   *Shape
}

// enter goes one step down and tells what masking does there.
func (w *schemaWriter) enter(to *Shape, step string) Mask {
	w.path = append(w.path, step)
	switch {
	case w.mask == nil:
		return 0
	case w.inDefs:
		return w.loose[maskKey{step, to}]
	}
	return w.mask(w.path)
}

func (w *schemaWriter) leave() { w.path = w.path[:len(w.path)-1] }

// unroll collects what masking may do at every step of the shape, whatever
// the path to it.
func (w *schemaWriter) unroll(s *Shape) {
	w.loose = map[maskKey]Mask{}
	budget := unrollBudget
	var walk func(s *Shape)
	step := func(to *Shape, step string) {
		if to == nil || len(w.path) >= maxUnroll || budget == 0 {
			return
		}
		budget--
		w.path = append(w.path, step)
		w.loose[maskKey{step, to}] |= w.mask(w.path)
		walk(to)
		w.leave()
	}
	walk = func(s *Shape) {
		for _, f := range s.Fields {
			step(f.Shape, f.Name)
		}
		for _, p := range s.KeyPatterns {
			step(p.Shape, "*")
		}
		for _, p := range s.Prefix {
			step(p, "*")
		}
		step(s.Rest, "*")
		step(s.Items, "*")
		for _, a := range s.Alts {
			walk(a)
		}
	}
	walk(s)
}
