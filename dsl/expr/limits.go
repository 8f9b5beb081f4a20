package expr

import (
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// The bounds of an expression and of one evaluation. The author of a spec
// writes the expressions, but the model and upstream systems send the data
// they run over.
const (
	// MaxSource is the most bytes of one expression.
	MaxSource = 16 << 10
	// MaxNodes is the most nodes (names, operators, literals) of one expression.
	MaxNodes = 500
	// MaxSteps is the most steps of one evaluation: one for each turn of a
	// closure, for each element that a list function touches, for every 16
	// elements that `in` looks at, for every KiB of text that is searched or
	// made, and for every 256 looks that a regular expression may take.
	MaxSteps = 100_000
	// MaxText is the most bytes of one text made by an expression (+, join,
	// repeat, replace, json …); MaxTexts of all that one evaluation makes.
	MaxText  = 1 << 20
	MaxTexts = 8 << 20
	// MaxCells is the most elements of all lists and structs that one
	// evaluation makes.
	MaxCells = 1_000_000
	// MaxResult is the most bytes of texts and elements of a result that an
	// expression made, each counted wherever it stands: a list that is in it
	// a thousand times counts a thousand times.
	MaxResult = 64 << 20

	maxPattern = 256      // bytes of a regular expression that is computed
	maxMatch   = 16 << 20 // bytes of a text times instructions of the regular expression it is matched with
	ctxEvery   = 1 << 10  // steps between two looks at the context
)

// tick counts n steps at byte off of the expression.
func (r *run) tick(off, n int) error {
	r.steps += n
	if r.steps > MaxSteps {
		return r.fail(off, "stopped after %d steps", MaxSteps)
	}
	r.since += n
	if r.since < ctxEvery || r.ctx == nil {
		return nil
	}
	r.since = 0
	if err := r.ctx.Err(); err != nil {
		return &Error{off: off, Message: "stopped: " + err.Error(), Err: err}
	}
	return nil
}

// text counts a made text of n bytes.
func (r *run) text(off, n int) error {
	if n > MaxText {
		return r.fail(off, "the text is longer than %d bytes", MaxText)
	}
	if r.texts += n; r.texts > MaxTexts {
		return r.fail(off, "the texts made here are longer than %d bytes", MaxTexts)
	}
	return r.tick(off, 1+n>>10)
}

// room counts n elements of a made list or struct.
func (r *run) room(off, n int) error {
	if r.cells += n; r.cells > MaxCells {
		return r.fail(off, "the lists made here have more than %d elements", MaxCells)
	}
	return nil
}

// weigh counts what is in v as often as it stands there, until it is too much
// for one text.
func (r *run) weigh(off int, v any) error {
	left := MaxText
	if !weigh(v, &left, 0) {
		return r.fail(off, "the value is too large for a text of %d bytes", MaxText)
	}
	return r.tick(off, 1+(MaxText-left)>>10)
}

func weigh(v any, left *int, depth int) bool {
	if *left--; *left < 0 || depth > 2*value.MaxDepth {
		return false
	}
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case *value.Rows:
		*left -= v.Size() + v.Len()*len(v.Cols())
	case *row:
		*left -= len(v.rows.Cols())
		return weigh(v.object(), left, depth)
	case []any:
		for _, x := range v {
			if !weigh(x, left, depth+1) {
				return false
			}
		}
	case *value.Object:
		for i := range v.Len() {
			k, x := v.At(i)
			*left -= len(k)
			if !weigh(x, left, depth+1) {
				return false
			}
		}
	}
	return *left >= 0
}

// settle makes the result of an evaluation that made lists or structs
// presentable: rows in it become objects. Only what the expression made holds
// rows, so only that is changed.
func (r *run) settle(off int, v any) (any, error) {
	left := MaxResult
	switch out, state := settle(v, &left, 0); state {
	case tooLarge:
		return nil, r.fail(off, "the result is larger than %d bytes", MaxResult)
	case tooDeep:
		return nil, r.fail(off, "the result nests deeper than %d levels", value.MaxDepth)
	default:
		return out, nil
	}
}

const cellSize = 16 // bytes of an element

const (
	settled = iota
	tooLarge
	tooDeep
)

func settle(v any, left *int, depth int) (any, int) {
	if *left -= cellSize; *left < 0 {
		return nil, tooLarge
	}
	if depth > value.MaxDepth {
		return nil, tooDeep
	}
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case *row:
		o := v.object()
		_, state := settle(o, left, depth)
		return o, state
	case []any:
		for i, x := range v {
			y, state := settle(x, left, depth+1)
			if state != settled {
				return nil, state
			}
			if _, ok := x.(*row); ok {
				v[i] = y
			}
		}
	case *value.Object:
		for i := range v.Len() {
			_, x := v.At(i)
			y, state := settle(x, left, depth+1)
			if state != settled {
				return nil, state
			}
			if _, ok := x.(*row); ok {
				v.SetAt(i, y)
			}
		}
	case *value.Rows:
		*left -= v.Size() + cellSize*v.Len()*len(v.Cols())
	}
	if *left < 0 {
		return nil, tooLarge
	}
	return v, settled
}
