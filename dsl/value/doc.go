// Package value is the one data model of a running server: what arguments,
// rows, upstream answers and results are made of between the wire and the
// bindings. It knows nothing but the standard library, and everybody may
// import it.
//
// A value is one of
//
//	nil                 NULL, JSON null
//	bool
//	int64               a whole number
//	float64             float4, float8 and JSON numbers with a fraction or an exponent
//	Number              a number whose exact digits matter (numeric, integers beyond int64)
//	string
//	*Object             a struct whose keys keep their order
//	[]any               a list
//	*Rows               a list of flat structs as a database gave it, still in wire text
//
// Numbers on the wire follow section 1 of the wire format: exact digits for
// SQL int and numeric, the shortest form that reads back for float64.
package value
