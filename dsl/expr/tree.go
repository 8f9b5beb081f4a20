package expr

import (
	"github.com/fusion-serve/fusion-serve/dsl/graph"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// Tree is a compiled Node: a value with holes at its leaves. It may be used
// by many goroutines, each with its own Env.
type Tree struct {
	root  branch
	reads [][]string
}

// branch is one node of a tree.
type branch struct {
	kind  graph.NodeKind
	fixed any       // Const
	text  *Template // String
	names []string  // Struct
	under []branch  // Struct, List
}

// CompileTree compiles the texts of a node.
func CompileTree(n *graph.Node, scope *Scope) (*Tree, graph.Faults) {
	t := &Tree{}
	var reads [][][]string
	var faults graph.Faults
	t.root = compileBranch(n, scope, &reads, &faults)
	if faults.Fatal() {
		return nil, faults
	}
	t.reads = joinReads(reads...)
	return t, faults
}

func compileBranch(n *graph.Node, scope *Scope, reads *[][][]string, faults *graph.Faults) branch {
	b := branch{kind: n.Kind, fixed: n.Const}
	switch n.Kind {
	case graph.String:
		t, f := CompileTemplate(&n.Text, scope)
		*faults = append(*faults, f...)
		if t != nil {
			b.text = t
			*reads = append(*reads, t.reads)
		}
	case graph.Struct:
		for _, f := range n.Fields {
			b.names = append(b.names, f.Name)
			b.under = append(b.under, compileBranch(f.Node, scope, reads, faults))
		}
	case graph.List:
		for _, x := range n.Items {
			b.under = append(b.under, compileBranch(x, scope, reads, faults))
		}
	}
	return b
}

// Value builds the value, structs and lists always new; a lone hole that is
// nil is nil. The error is an *Error.
func (t *Tree) Value(e *Env) (any, error) { return t.root.value(e, false) }

// Filled builds the value as Value does, but leaves out a key that the tree
// itself has where its lone hole is nil: what is sent to others is not null
// unless it was written so.
func (t *Tree) Filled(e *Env) (any, error) { return t.root.value(e, true) }

func (b *branch) value(e *Env, filled bool) (any, error) {
	switch b.kind {
	case graph.String:
		return b.text.Value(e)
	case graph.Struct:
		o := value.NewObject(len(b.under))
		for i := range b.under {
			v, err := b.under[i].value(e, filled)
			if err != nil {
				return nil, err
			}
			if v == nil && filled && b.under[i].kind == graph.String {
				continue
			}
			o.Set(b.names[i], v)
		}
		return o, nil
	case graph.List:
		l := make([]any, len(b.under))
		for i := range b.under {
			v, err := b.under[i].value(e, filled)
			if err != nil {
				return nil, err
			}
			l[i] = v
		}
		return l, nil
	}
	return b.fixed, nil
}

// Reads gives the paths that all holes read, as Program.Reads does.
func (t *Tree) Reads() [][]string { return t.reads }
