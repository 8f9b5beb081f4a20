package dsl

import (
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// valueKind is the kind of a value of a spec.
type valueKind uint8

const (
	noKind valueKind = iota // not known: broken or not concrete
	aString
	anInt
	aFloat
	aBool
	aNull
	aStruct
	aList
	aBytes
)

func (k valueKind) String() string {
	switch k {
	case aString:
		return "a string"
	case anInt:
		return "a whole number"
	case aFloat:
		return "a fraction"
	case aBool:
		return "true or false"
	case aNull:
		return "null"
	case aStruct:
		return "a struct"
	case aList:
		return "a list"
	case aBytes:
		return "bytes"
	}
	return "no value"
}

// kind tells the kind of a value, from its source if that is literal.
func (n *node) kind() valueKind {
	switch e := n.literal().(type) {
	case *ast.BasicLit:
		switch e.Kind {
		case token.STRING:
			if e.Value[0] != '\'' && (e.Value[0] != '#' || !isBytes(e.Value)) {
				return aString
			}
		case token.INT:
			return anInt
		case token.FLOAT:
			return aFloat
		case token.TRUE, token.FALSE:
			return aBool
		case token.NULL:
			return aNull
		}
	case *ast.ListLit:
		return aList
	}
	if n.isPlainStruct() {
		return aStruct
	}
	v := n.value()
	if d, ok := v.Default(); ok {
		v = d
	}
	switch v.Kind() {
	case cue.StringKind:
		return aString
	case cue.IntKind:
		return anInt
	case cue.FloatKind, cue.NumberKind:
		return aFloat
	case cue.BoolKind:
		return aBool
	case cue.NullKind:
		return aNull
	case cue.BytesKind:
		return aBytes
	case cue.StructKind:
		return aStruct
	case cue.ListKind:
		return aList
	}
	// A struct or list with a mistake somewhere inside is one still.
	switch v.IncompleteKind() {
	case cue.StructKind:
		return aStruct
	case cue.ListKind:
		return aList
	}
	return noKind
}

func isBytes(lit string) bool {
	for i := range len(lit) {
		if lit[i] != '#' {
			return lit[i] == '\''
		}
	}
	return false
}

// isPlainStruct tells whether every source of the value is a struct whose
// fields are written out.
func (n *node) isPlainStruct() bool {
	if !n.whole || len(n.exprs) == 0 {
		return false
	}
	for _, e := range n.exprs {
		s, ok := unparen(e).(*ast.StructLit)
		if !ok {
			return false
		}
		for _, d := range s.Elts {
			if _, _, ok := plainField(d); !ok {
				return false
			}
		}
	}
	return true
}
