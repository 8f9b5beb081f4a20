package serve

import (
	"bytes"
	"log/slog"
	"sync"
)

// stuck is a log that takes its first line only when it is freed.
type stuck struct {
	once    sync.Once
	writing chan struct{}
	free    chan struct{}
	b       bytes.Buffer
}

func stuckLog() (*slog.Logger, *stuck) {
	s := &stuck{writing: make(chan struct{}), free: make(chan struct{})}
	return slog.New(slog.NewTextHandler(s, nil)), s
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() {
		close(s.writing)
		<-s.free
	})
	return s.b.Write(p)
}
