package value

// Number is a decimal number with exactly the digits to be written, without
// an exponent: "1.50", "-0.000001", "1208925819614629174706176".
type Number string

// Object is a struct value: keys in the order in which they were first set.
// The zero Object is empty and ready to use.
type Object struct {
	keys  []string
	vals  []any
	index map[string]int // only from indexFrom keys on
}

const indexFrom = 12

// object4 and object8 are objects with room for a few keys: one allocation
// instead of three.
type (
	object4 struct {
		Object
		k [4]string
		v [4]any
	}
	object8 struct {
		Object
		k [8]string
		v [8]any
	}
)

// NewObject makes an empty object with room for n keys.
func NewObject(n int) *Object {
	switch {
	case n <= 4:
		o := &object4{}
		o.keys, o.vals = o.k[:0], o.v[:0]
		return &o.Object
	case n <= 8:
		o := &object8{}
		o.keys, o.vals = o.k[:0], o.v[:0]
		return &o.Object
	}
	return &Object{keys: make([]string, 0, n), vals: make([]any, 0, n)}
}

// Append gives the object one more key, which it must not have yet.
func (o *Object) Append(key string, v any) {
	o.keys = append(o.keys, key)
	o.vals = append(o.vals, v)
	switch {
	case o.index != nil:
		o.index[key] = len(o.keys) - 1
	case len(o.keys) >= indexFrom:
		o.reindex()
	}
}

// Of makes an object from alternating keys (strings) and values; for tests and constants.
func Of(pairs ...any) *Object {
	o := NewObject(len(pairs) / 2)
	for i := 0; i+1 < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// Len is the number of keys; 0 for a nil object.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.keys)
}

// At gives the i-th key and its value.
func (o *Object) At(i int) (string, any) { return o.keys[i], o.vals[i] }

// Keys gives the keys in order. The slice must not be changed.
func (o *Object) Keys() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

func (o *Object) find(key string) int {
	if o == nil {
		return -1
	}
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range o.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Get gives the value of a key and whether the object has it.
func (o *Object) Get(key string) (any, bool) {
	if i := o.find(key); i >= 0 {
		return o.vals[i], true
	}
	return nil, false
}

// Set gives a key its value; a new key goes to the end.
func (o *Object) Set(key string, v any) {
	if i := o.find(key); i >= 0 {
		o.vals[i] = v
		return
	}
	o.Append(key, v)
}

// SetAt replaces the value of the i-th key.
func (o *Object) SetAt(i int, v any) { o.vals[i] = v }

// Delete takes a key out, if it is there.
func (o *Object) Delete(key string) {
	i := o.find(key)
	if i < 0 {
		return
	}
	o.keys = append(o.keys[:i:i], o.keys[i+1:]...)
	o.vals = append(o.vals[:i:i], o.vals[i+1:]...)
	if o.index != nil {
		o.reindex()
	}
}

func (o *Object) reindex() {
	o.index = make(map[string]int, len(o.keys)*2)
	for i, k := range o.keys {
		o.index[k] = i
	}
}

// Clone copies the object itself, not the values below it.
func (o *Object) Clone() *Object {
	if o == nil {
		return nil
	}
	c := &Object{keys: append([]string(nil), o.keys...), vals: append([]any(nil), o.vals...)}
	if o.index != nil {
		c.reindex()
	}
	return c
}

// DeepClone copies a value with everything below it; rows become a list of objects.
func DeepClone(v any) any {
	switch v := v.(type) {
	case *Object:
		c := v.Clone()
		for i := range c.vals {
			c.vals[i] = DeepClone(c.vals[i])
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = DeepClone(v[i])
		}
		return c
	case *Rows:
		return v.List()
	}
	return v
}
