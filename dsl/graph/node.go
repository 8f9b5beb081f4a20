package graph

// NodeKind says what a Node is.
type NodeKind uint8

// The kinds of nodes.
const (
	Const  NodeKind = iota // Node.Const: null, bool or number
	String                 // Node.Text, with holes
	Struct                 // Node.Fields
	List                   // Node.Items
)

// Node is a tree of the spec whose strings are texts with holes.
type Node struct {
	At     Place
	Path   string
	Kind   NodeKind
	Const  any
	Text   Text
	Fields []NodeField
	Items  []*Node
}

// NodeField is a field of a struct node.
type NodeField struct {
	Name string
	At   Place
	Node *Node
}
