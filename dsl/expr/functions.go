package expr

import (
	"strings"
)

// Function describes one function of the language; the page of the language
// that lists them is made from this, and a test runs each example.
type Function struct {
	Name string
	// Signature is name(argument type, …) result. ? marks an argument that
	// may be left out, ... one that may be repeated, |nil one that may be nil.
	Signature string
	Doc       string
	Example   string // an expression
	Gives     string // its result as JSON
	// Helper marks the functions that are not of expr-lang, or not as there:
	// the helpers for people.
	Helper bool
}

// Functions gives all functions, those with a closure first, then by group.
func Functions() []Function {
	out := append([]Function(nil), closureDocs...)
	for i := range functions {
		out = append(out, functions[i].Function)
	}
	return out
}

type function struct {
	Function
	run   func(r *run, off int, args []any) (any, error)
	typ   func(args []code) typ // nil: what the signature says
	flow  flow
	makes bool // makes a list or a struct

	params   []param
	least    int
	variadic bool
	result   typ
}

// flow says what of the arguments goes into the result.
type flow uint8

const (
	flowNone    flow = iota // nothing: all arguments are read whole
	flowCompare             // the arguments or their elements, after they were compared
	flowLists               // elements of the arguments, unread
	flowElement             // an element of the first argument, unread
	flowLength              // the number of elements
	flowKeys                // which keys there are
)

// functions is the table of all functions without a closure.
var functions = declared(textFunctions, numberFunctions, listFunctions, helpers)

var functionPlaces = placesOf(functions)

func declared(groups ...[]function) []function {
	var out []function
	for _, g := range groups {
		for _, f := range g {
			f.Name, _, _ = strings.Cut(f.Signature, "(")
			f.declare()
			out = append(out, f)
		}
	}
	return out
}

func placesOf(l []function) map[string]int {
	m := make(map[string]int, len(l))
	for i := range l {
		m[l[i].Name] = i
	}
	return m
}

func functionNamed(name string) (*function, bool) {
	i, ok := functionPlaces[name]
	if !ok {
		return nil, false
	}
	return &functions[i], true
}

// closureDocs describes the functions with a closure, in which # is the
// element, .x its field x and #index its place.
var closureDocs = []Function{
	{Name: "all", Signature: "all(list, closure) bool", Doc: "true if the closure holds for every element", Example: "all([1, 2], # > 0)", Gives: "true"},
	{Name: "any", Signature: "any(list, closure) bool", Doc: "true if it holds for one element at least", Example: "any([1, 2], # > 1)", Gives: "true"},
	{Name: "none", Signature: "none(list, closure) bool", Doc: "true if it holds for no element", Example: "none([1, 2], # > 2)", Gives: "true"},
	{Name: "one", Signature: "one(list, closure) bool", Doc: "true if it holds for exactly one element", Example: "one([1, 2], # > 1)", Gives: "true"},
	{Name: "count", Signature: "count(list, closure?) int", Doc: "for how many elements it holds; without a closure, how many are true", Example: "count([1, 2, 3], # > 1)", Gives: "2"},
	{Name: "filter", Signature: "filter(list, closure) list", Doc: "the elements for which it holds", Example: "filter([1, 2, 3], # > 1)", Gives: "[2,3]"},
	{Name: "map", Signature: "map(list, closure) list", Doc: "what the closure gives for each element; a struct needs its own parentheses", Example: "map([1, 2], ({n: #}))", Gives: `[{"n":1},{"n":2}]`},
	{Name: "find", Signature: "find(list, closure) any", Doc: "the first element for which it holds, or nil", Example: "find([1, 2, 3], # > 1)", Gives: "2"},
	{Name: "findLast", Signature: "findLast(list, closure) any", Doc: "the last element for which it holds, or nil", Example: "findLast([1, 2, 3], # > 1)", Gives: "3"},
	{Name: "findIndex", Signature: "findIndex(list, closure) int", Doc: "the place of the first such element, from 0, or nil", Example: "findIndex([1, 2, 3], # > 1)", Gives: "1"},
	{Name: "findLastIndex", Signature: "findLastIndex(list, closure) int", Doc: "the place of the last such element, from 0, or nil", Example: "findLastIndex([1, 2, 3], # > 1)", Gives: "2"},
	{Name: "sum", Signature: "sum(list, closure?) number", Doc: "the sum of what it gives for each element; without a closure, of the elements", Example: "sum([1, 2, 3], # * 2)", Gives: "12"},
	{Name: "groupBy", Signature: "groupBy(list, closure) struct", Doc: "lists of elements by what it gives for them, in order of appearance", Example: "groupBy([1, 2, 3], # > 1 ? 'many' : 'one')", Gives: `{"one":[1],"many":[2,3]}`},
	{Name: "sortBy", Signature: `sortBy(list, closure, order? text) list`, Doc: `the elements in the order of what it gives for them, "asc" or "desc"; equal ones stay as they are`, Example: "sortBy([2, 3, 1], #, 'desc')", Gives: "[3,2,1]"},
	{Name: "reduce", Signature: "reduce(list, closure, start? any) any", Doc: "what the closure gives for the last element; in it #acc is what it gave for the one before (first: the start, or the first element)", Example: "reduce([1, 2, 3], #acc + #, 0)", Gives: "6"},
}
