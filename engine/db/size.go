package db

import "github.com/fusion-serve/fusion-serve/dsl/value"

// size is how large the last answer of a statement was: the next one is
// likely to be as large.
type size struct{ rows, bytes int }

// What is made room for at most, so that one large answer does not make all
// later ones large.
const (
	maxRoomRows  = 4096
	maxRoomBytes = 1 << 20
)

func (s *size) room(r *value.Rows) { r.Grow(s.rows, s.bytes) }

func (s *size) note(r *value.Rows) {
	if r != nil {
		s.rows, s.bytes = min(r.Len(), maxRoomRows), min(r.Size(), maxRoomBytes)
	}
}
