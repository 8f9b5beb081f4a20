package shape

// Check compares a value with the shape and gives it back with defaults
// filled in, keys in the order of the shape. A field that is not declared is
// a fault. null for an optional field that does not take null counts as left
// out. All faults are reported.
func (s *Shape) Check(v any) (any, []Fault) { panic("shape.Check") }

// Strip compares a value with the shape and gives it back with only what is
// declared, keys in the order of the shape: the way out. No default is
// filled. A NULL in an optional field without null is left out.
func (s *Shape) Strip(v any) (any, []Fault) { panic("shape.Strip") }

// AppendSchema appends the JSON Schema 2020-12 of the shape, compact, with
// every constraint; a struct without Rest says additionalProperties: false
// and always has properties.
func (s *Shape) AppendSchema(dst []byte) []byte { panic("shape.AppendSchema") }
