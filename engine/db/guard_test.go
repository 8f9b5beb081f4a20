package db

import (
	"context"
	"testing"
)

// wild is an engine whose every call panics.
type wild struct{}

func (wild) query(context.Context, *Session, *Stmt, []any, Limit) (*Answer, error) { panic("boom") }
func (wild) begin(_ context.Context, _ *Session, readOnly bool) (tx, error) {
	if readOnly {
		panic("boom")
	}
	return wildTx{}, nil
}
func (wild) empty(context.Context) (bool, error)                             { panic("boom") }
func (wild) script(context.Context, string) error                            { panic("boom") }
func (wild) describe(context.Context, *Session, *Stmt) (*Description, error) { panic("boom") }
func (wild) write(context.Context, *Stmt, []any) (*Answer, error)            { panic("boom") }
func (wild) ensure(context.Context, *Table) (string, error)                  { panic("boom") }
func (wild) listen(context.Context, string, func(string), func()) error      { panic("boom") }
func (wild) close()                                                          {}

// wildTx is a transaction whose every call panics.
type wildTx struct{}

func (wildTx) query(context.Context, *Stmt, []any, Limit) (*Answer, error)    { panic("boom") }
func (wildTx) own(context.Context, *Stmt, []any) (*Answer, error)             { panic("boom") }
func (wildTx) save(context.Context) error                                     { panic("boom") }
func (wildTx) undo(context.Context) error                                     { panic("boom") }
func (wildTx) release(context.Context) error                                  { panic("boom") }
func (wildTx) aside(context.Context, *Stmt, []any, func(*Answer) error) error { panic("boom") }
func (wildTx) flush(context.Context) error                                    { panic("flush") }
func (wildTx) commit(context.Context, []*aside) error                         { panic("boom") }
func (wildTx) rollback()                                                      { panic("boom") }

// A panic of a driver is an error of the call.
func TestGuard(t *testing.T) {
	d := &DB{engine: wild{}, tables: newTables(), shut: make(chan struct{})}
	ctx := t.Context()
	calls := map[string]func() error{
		"Query":    func() error { _, err := d.Query(ctx, &Stmt{}, nil, Limit{}); return err },
		"Empty":    func() error { _, err := d.Empty(ctx); return err },
		"Script":   func() error { return d.Script(ctx, "") },
		"Write":    func() error { _, err := d.Write(ctx, &Stmt{}, nil); return err },
		"Ensure":   func() error { _, err := d.Ensure(ctx, onceTable); return err },
		"Describe": func() error { _, err := d.Describe(ctx, &Stmt{}); return err },
		"begin":    func() error { return d.Tx(ctx, TxOptions{ReadOnly: true}, func(*Tx) error { return nil }) },
		"commit":   func() error { return d.Tx(ctx, TxOptions{}, func(*Tx) error { return nil }) },
		"Try": func() error {
			return d.Tx(ctx, TxOptions{}, func(t *Tx) error { return t.Try(ctx, func() error { return nil }) })
		},
		"in a transaction": func() error {
			return d.Tx(ctx, TxOptions{}, func(q *Tx) error { _, err := q.Query(ctx, &Stmt{}, nil, Limit{}); return err })
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
