// Package expr is the only place that knows the expression language: it
// parses, types, compiles, bounds and runs the expressions and the texts with
// holes of a spec. It knows values, shapes and source places; it does not
// know what an expression is for.
//
// The language is that of expr-lang, whose lexer and parser read it. Typing
// and evaluation are done here, over package value, because its own machine
// works on plain Go maps: every row would have to be converted, keys would
// lose their order and numbers their digits. A test runs random expressions
// through both and compares. Where ours differs on purpose:
//
//   - a struct keeps the order of its keys, so keys, values, toPairs and
//     groupBy follow it; a map literal keeps its source order;
//   - exact numbers stay exact while they are only picked; among themselves
//     they also compare exactly. Arithmetic sees whole numbers within 64 bits
//     as they are and everything else as float64;
//   - a whole number that leaves 64 bits, a division by zero and a result that
//     is not a finite number are errors;
//   - texts are counted, sliced and searched by characters, not bytes; a text
//     has no [i];
//   - sorting is stable; #index is there in every closure; groupBy has text keys;
//   - round, floor and ceil give whole numbers where one fits;
//   - there is no clock (ctx.now is one), no type of time, no bytes, no $env,
//     and nothing that depends on the machine;
//   - comparing with a text that an enum does not have is a fault.
//
// Bounds of one evaluation: see limits.go. All of them end in an *Error with
// its place, never in a panic.
package expr
