package db

import (
	"context"
	"testing"
)

// wild is an engine whose every call panics.
type wild struct{}

func (wild) query(context.Context, *Stmt, []any, Limit) (*Answer, error) { panic("boom") }
func (wild) begin(_ context.Context, readOnly bool) (tx, error) {
	if readOnly {
		panic("boom")
	}
	return wild{}, nil
}
func (wild) empty(context.Context) (bool, error)                  { panic("boom") }
func (wild) script(context.Context, string) error                 { panic("boom") }
func (wild) describe(context.Context, *Stmt) (int, string, error) { panic("boom") }
func (wild) close()                                               {}
func (wild) commit(context.Context) error                         { panic("boom") }
func (wild) rollback()                                            { panic("boom") }

// A panic of a driver is an error of the call.
func TestGuard(t *testing.T) {
	d := &DB{engine: wild{}}
	ctx := t.Context()
	calls := map[string]func() error{
		"Query":    func() error { _, err := d.Query(ctx, &Stmt{}, nil, Limit{}); return err },
		"Empty":    func() error { _, err := d.Empty(ctx); return err },
		"Script":   func() error { return d.Script(ctx, "") },
		"Describe": func() error { _, _, err := d.Describe(ctx, &Stmt{}); return err },
		"begin":    func() error { return d.Tx(ctx, true, func(Querier) error { return nil }) },
		"commit":   func() error { return d.Tx(ctx, false, func(Querier) error { return nil }) },
		"in a transaction": func() error {
			return d.Tx(ctx, false, func(q Querier) error { _, err := q.Query(ctx, &Stmt{}, nil, Limit{}); return err })
		},
	}
	for name, call := range calls {
		if err := call(); err == nil || err.Error() != "the database driver panicked: boom" {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if err := d.Close(ctx); err != nil { // no call is counted as running
		t.Error(err)
	}
}
