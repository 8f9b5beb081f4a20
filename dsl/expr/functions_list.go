package expr

import (
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// listFunctions work on lists and structs.
var listFunctions = []function{
	{Function: Function{Signature: "len(x any) int", Doc: "the number of elements of a list, of fields of a struct, of characters of a text", Example: "len([1, 2])", Gives: "2"}, run: length, flow: flowLength},
	{Function: Function{Signature: "first(list list|nil) any", Doc: "the first element; nil of an empty list and of nil", Example: "first([1, 2])", Gives: "1"}, run: firstOf, typ: elementType, flow: flowElement},
	{Function: Function{Signature: "last(list list|nil) any", Doc: "the last element; nil of an empty list and of nil", Example: "last([1, 2])", Gives: "2"}, run: lastOf, typ: elementType, flow: flowElement},
	{Function: Function{Signature: "take(list list, n int) list", Doc: "the first n elements", Example: "take([1, 2, 3], 2)", Gives: "[1,2]"}, run: take, typ: firstType, flow: flowLists, makes: true},
	{Function: Function{Signature: "reverse(list list) list", Doc: "the elements from last to first", Example: "reverse([1, 2])", Gives: "[2,1]"}, run: reverse, typ: firstType, flow: flowLists, makes: true},
	{Function: Function{Signature: "concat(lists... list) list", Doc: "the elements of all the lists", Example: "concat([1], [2, 3])", Gives: "[1,2,3]"}, run: concat, typ: joinedType, flow: flowLists, makes: true},
	{Function: Function{Signature: "flatten(list list) list", Doc: "the elements, and in place of a list among them its elements, to any depth", Example: "flatten([1, [2, [3]]])", Gives: "[1,2,3]"}, run: flatten, makes: true},
	{Function: Function{Signature: "uniq(list list) list", Doc: "each of equal elements once", Example: "uniq([1, 2, 1])", Gives: "[1,2]"}, run: uniq, typ: firstType, flow: flowCompare, makes: true},
	{Function: Function{Signature: "sort(list list, order? text) list", Doc: `numbers or texts in order, "asc" or "desc"`, Example: "sort([2, 3, 1], 'desc')", Gives: "[3,2,1]"}, run: sorted, typ: firstType, flow: flowCompare, makes: true},
	{Function: Function{Signature: "keys(struct struct) list", Doc: "the names of the fields in their order", Example: "keys({b: 1, a: 2})", Gives: `["b","a"]`}, run: keys, typ: texts, flow: flowKeys, makes: true},
	{Function: Function{Signature: "values(struct struct) list", Doc: "the values of the fields in their order", Example: "values({b: 1, a: 2})", Gives: "[1,2]"}, run: values, makes: true},
	{Function: Function{Signature: "toPairs(struct struct) list", Doc: "the fields as lists of name and value", Example: "toPairs({b: 1})", Gives: `[["b",1]]`}, run: toPairs, makes: true},
	{Function: Function{Signature: "fromPairs(pairs list) struct", Doc: "the struct with these fields; of equal names the last one counts", Example: "fromPairs([['b', 1]])", Gives: `{"b":1}`}, run: fromPairs, makes: true},
	{Function: Function{Signature: "get(x any, at any) any", Doc: "the element or field; nil where there is none", Example: "get([1], 5)", Gives: "null"}, run: getAt},
	{Function: Function{Signature: "type(x any) text", Doc: `"nil", "bool", "int", "float", "string", "array" or "map"`, Example: "type(1.5)", Gives: `"float"`}, run: typeName},
}

func elementType(args []code) typ { return args[0].typ.element() }

func firstType(args []code) typ { return list(args[0].typ.element()) }

func joinedType(args []code) typ {
	if len(args) == 0 {
		return typ{kind: listKind}
	}
	t := args[0].typ.element()
	for _, a := range args[1:] {
		t = join(t, a.typ.element())
	}
	return list(t)
}

func length(r *run, off int, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(len([]rune(v))), nil
	case *value.Object:
		return int64(v.Len()), nil
	case *row:
		return int64(len(v.rows.Cols())), nil
	}
	l, ok := seqOf(args[0])
	if !ok {
		return nil, r.fail(off, "len is for a list, a struct or a text, not %s", kindOf(args[0]))
	}
	return int64(l.len()), nil
}

func firstOf(_ *run, _ int, args []any) (any, error) {
	l, _ := seqOf(args[0])
	if l.len() == 0 {
		return nil, nil
	}
	return l.at(0), nil
}

func lastOf(_ *run, _ int, args []any) (any, error) {
	l, _ := seqOf(args[0])
	if l.len() == 0 {
		return nil, nil
	}
	return l.at(l.len() - 1), nil
}

func take(r *run, off int, args []any) (any, error) {
	n, _ := asInt(args[1])
	if n < 0 {
		return nil, r.fail(off, "n of take must not be negative")
	}
	return r.cut(off, "list", args[0], [2]*int64{nil, &n})
}

// elements gives the elements of a list, counted as newly made.
func (r *run) elements(off int, v any) ([]any, error) {
	l, ok := seqOf(v)
	if !ok {
		return nil, r.fail(off, "must be a list, not %s", kindOf(v))
	}
	if err := r.room(off, l.len()); err != nil {
		return nil, err
	}
	if err := r.tick(off, l.len()); err != nil {
		return nil, err
	}
	return l.all(), nil
}

func reverse(r *run, off int, args []any) (any, error) {
	l, err := r.elements(off, args[0])
	out := make([]any, len(l))
	for i, v := range l {
		out[len(l)-1-i] = v
	}
	return out, err
}

func concat(r *run, off int, args []any) (any, error) {
	out := []any{}
	for _, a := range args {
		l, err := r.elements(off, a)
		if err != nil {
			return nil, err
		}
		out = append(out, l...)
	}
	return out, nil
}

func flatten(r *run, off int, args []any) (any, error) {
	out, err := r.flatten(off, []any{}, args[0], 0)
	return out, err
}

func (r *run) flatten(off int, out []any, v any, depth int) ([]any, error) {
	if depth > value.MaxDepth {
		return nil, r.fail(off, "the list nests deeper than %d levels", value.MaxDepth)
	}
	l, err := r.elements(off, v)
	if err != nil {
		return nil, err
	}
	for _, x := range l {
		if kindOf(x) != listKind {
			out = append(out, x)
			continue
		}
		if out, err = r.flatten(off, out, x, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func uniq(r *run, off int, args []any) (any, error) {
	l, err := r.elements(off, args[0])
	if err != nil {
		return nil, err
	}
	out := []any{}
	seen := map[string]bool{}
	for _, v := range l {
		if s, ok := v.(string); ok { // the common case without comparing each with each
			if !seen[s] {
				seen[s] = true
				out = append(out, v)
			}
			continue
		}
		known, err := r.isIn(off, v, out)
		if err != nil {
			return nil, err
		}
		if !known {
			out = append(out, v)
		}
	}
	return out, nil
}

func sorted(r *run, off int, args []any) (any, error) {
	l, err := r.elements(off, args[0])
	if err != nil {
		return nil, err
	}
	desc := false
	if len(args) == 2 {
		if desc, err = r.descending(off, args[1]); err != nil {
			return nil, err
		}
	}
	return r.sorted(off, l, l, desc)
}

// fieldsOf gives the fields of a struct, counted as newly made.
func (r *run) fieldsOf(off int, v any) (*value.Object, error) {
	o := asObject(v)
	if err := r.tick(off, o.Len()); err != nil {
		return nil, err
	}
	return o, r.room(off, o.Len())
}

func keys(r *run, off int, args []any) (any, error) {
	o, err := r.fieldsOf(off, args[0])
	if err != nil {
		return nil, err
	}
	out := make([]any, o.Len())
	for i, k := range o.Keys() {
		out[i] = k
	}
	return out, nil
}

func values(r *run, off int, args []any) (any, error) {
	o, err := r.fieldsOf(off, args[0])
	if err != nil {
		return nil, err
	}
	out := make([]any, o.Len())
	for i := range out {
		_, out[i] = o.At(i)
	}
	return out, nil
}

func toPairs(r *run, off int, args []any) (any, error) {
	o, err := r.fieldsOf(off, args[0])
	if err != nil {
		return nil, err
	}
	if err := r.room(off, 2*o.Len()); err != nil {
		return nil, err
	}
	out := make([]any, o.Len())
	for i := range out {
		k, v := o.At(i)
		out[i] = []any{k, v}
	}
	return out, nil
}

func fromPairs(r *run, off int, args []any) (any, error) {
	l, err := r.elements(off, args[0])
	if err != nil {
		return nil, err
	}
	o := value.NewObject(len(l))
	for _, p := range l {
		pair, _ := p.([]any)
		if len(pair) != 2 {
			return nil, r.fail(off, "pairs of fromPairs must be lists of two: [name, value]")
		}
		name, ok := pair[0].(string)
		if !ok {
			return nil, r.fail(off, "the name of a field is a text, not %s", kindOf(pair[0]))
		}
		o.Set(name, pair[1])
	}
	return o, nil
}

func getAt(_ *run, _ int, args []any) (any, error) {
	if l, ok := seqOf(args[0]); ok {
		i, ok := asInt(args[1])
		if i < 0 {
			i += int64(l.len())
		}
		if !ok || i < 0 || i >= int64(l.len()) {
			return nil, nil
		}
		return l.at(int(i)), nil
	}
	name, ok := args[1].(string)
	if !ok {
		return nil, nil
	}
	v, _ := fieldOf(args[0], name)
	return v, nil
}

func typeName(_ *run, _ int, args []any) (any, error) {
	switch kindOf(args[0]) {
	case nilKind:
		return "nil", nil
	case boolKind:
		return "bool", nil
	case intKind:
		return "int", nil
	case numberKind:
		return "float", nil
	case textKind:
		return "string", nil
	case listKind:
		return "array", nil
	}
	return "map", nil
}
