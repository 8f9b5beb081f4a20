package db

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Session is who runs statements, for row-level security on PostgreSQL. It is
// set inside the transaction (SET LOCAL) and ends with it.
type Session struct {
	// Role is the role to take; "" keeps the role of the login. Who makes a
	// role from a caller's claims must refuse an empty one before.
	Role string
	// Settings are names and values for current_setting.
	Settings [][2]string
}

// CheckSetting refuses the name of a setting that a session cannot have: one
// that is no name, or one that this package relies on.
func CheckSetting(name string) error {
	for part := range strings.SplitSeq(name, ".") {
		if !isPlainName(part) {
			return fmt.Errorf("%q is not the name of a setting: write one such as app.tenant", name)
		}
	}
	lower := strings.ToLower(name)
	_, ours := sessionParams[lower]
	switch {
	case ours, strings.HasPrefix(lower, "transaction_"), strings.HasPrefix(lower, "default_transaction_"):
		return fmt.Errorf("the setting %s cannot be changed: reading and writing rely on it", name)
	case lower == "role", lower == "session_authorization":
		return fmt.Errorf("the setting %s cannot be changed: write role beside settings", name)
	}
	return nil
}

func isPlainName(s string) bool {
	if s == "" || !isNameStart(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isName(s[i]) && s[i] != '$' {
			return false
		}
	}
	return true
}

func (s *Session) check() error {
	if s == nil {
		return nil
	}
	if s.Role == noRole {
		return errors.New(`a session cannot have the role "none", which is the login's`)
	}
	for _, x := range s.Settings {
		if err := CheckSetting(x[0]); err != nil {
			return err
		}
	}
	return nil
}

// noRole is what PostgreSQL calls the login's own role.
const noRole = "none"

// setters are the statements that set 1, 2, … settings.
var setters = makeSetters(16)

func makeSetters(n int) []*Stmt {
	l := make([]*Stmt, n+1)
	for i := 1; i <= n; i++ {
		l[i] = setter(i)
	}
	return l
}

func setter(n int) *Stmt {
	sql := []byte("SELECT ")
	for i := range n {
		if i > 0 {
			sql = append(sql, ", "...)
		}
		sql = fmt.Appendf(sql, "set_config($%d, $%d, true) AS s%d", 2*i+1, 2*i+2, i)
	}
	return &Stmt{SQL: string(sql), Args: 2 * n, ours: true}
}

// stmt is the statement that sets the session; nil if there is nothing to set.
func (s *Session) stmt() *Stmt {
	if s == nil {
		return nil
	}
	n := len(s.Settings)
	if s.Role != "" {
		n++
	}
	if n < len(setters) {
		return setters[n]
	}
	return setter(n)
}

// params are the parameters of stmt. The role comes last: the one before it
// may be the one that may set the rest.
func (s *Session) params() [][]byte {
	l := make([][]byte, 0, 2*len(s.Settings)+2)
	for _, x := range s.Settings {
		l = append(l, []byte(x[0]), []byte(x[1]))
	}
	if s.Role != "" {
		l = append(l, []byte("role"), []byte(s.Role))
	}
	return l
}

// Access is a database as one caller sees it. It may be used by many
// goroutines.
type Access struct {
	db  *DB
	who *Session
}

// As gives the database as a session sees it; nil is the login itself.
func (d *DB) As(who *Session) *Access { return &Access{db: d, who: who} }

// Dialect tells the engine.
func (a *Access) Dialect() Dialect { return a.db.dialect }

// Query is DB.Query for one caller. With a session it runs in a read-only
// transaction of its own, in one round trip.
func (a *Access) Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	d := a.db
	leave, err := a.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.fits(args); err != nil {
		return nil, err
	}
	start := time.Now()
	for try := 1; ; try++ {
		answer, err := d.alone(ctx, a.who, s, args, l)
		if err == nil || !d.again(ctx, start, try, err) {
			return answer, d.ofOurs(s, err)
		}
	}
}

// enter registers a call.
func (a *Access) enter() (leave func(), err error) {
	if err := a.who.check(); err != nil {
		return nil, err
	}
	if a.who != nil && a.db.dialect != Postgres {
		return nil, errors.New("a session needs a PostgreSQL database")
	}
	if err := a.db.enter(); err != nil {
		return nil, err
	}
	return a.db.calls.Done, nil
}

// ofOurs looks at the error of a statement for a table of ours that is gone.
func (d *DB) ofOurs(s *Stmt, err error) error {
	if err == nil || !s.ours {
		return err
	}
	return d.noticed(markOurs(err))
}

// Write runs a statement of ours (see Ours), which may write, as the login in a
// transaction of its own: on PostgreSQL in one round trip. If the connection
// breaks, it may have run all the same.
func (d *DB) Write(ctx context.Context, s *Stmt, args []any) (a *Answer, err error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.calls.Done()
	if err := s.fits(args); err != nil {
		return nil, err
	}
	start := time.Now()
	for try := 1; ; try++ {
		a, err := d.write(ctx, s, args)
		if err == nil || !d.again(ctx, start, try, err) {
			return a, d.ofOurs(s, err)
		}
	}
}

func (d *DB) write(ctx context.Context, s *Stmt, args []any) (a *Answer, err error) {
	defer guard(&err)
	return d.engine.write(ctx, s, args)
}

func (d *DB) alone(ctx context.Context, who *Session, s *Stmt, args []any, l Limit) (a *Answer, err error) {
	defer guard(&err)
	return d.engine.query(ctx, who, s, args, l)
}

// Query runs one statement alone, read-only: a statement that writes is
// refused with SQLSTATE 25006 on both engines.
func (d *DB) Query(ctx context.Context, s *Stmt, args []any, l Limit) (*Answer, error) {
	a := Access{db: d}
	return a.Query(ctx, s, args, l)
}

// Tx is Access.Tx without a session.
func (d *DB) Tx(ctx context.Context, o TxOptions, f func(*Tx) error) error {
	a := Access{db: d}
	return a.Tx(ctx, o, f)
}
