package bind

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/shape"
	"github.com/fusion-serve/fusion-serve/dsl/value"
	"github.com/fusion-serve/fusion-serve/engine/db"
)

// FuzzArguments: whatever a text is, it comes back from a parameter, from a
// list and from inside a struct, and nothing else happens.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "'; DROP TABLE orders; --", "\x00", "\xff\xfe", `\"'`, "@id ?1 $1", "é\u2028"} {
		f.Add(s)
	}
	d := opened(f, "sqlite::memory:")
	echo := compile(f, tool("query", "SELECT @x AS x, (SELECT count(*) FROM orders) AS n WHERE @x IN (@l) AND json_extract(@o, '$.k') = @x",
		map[string]*shape.Shape{"x": str, "l": list, "o": {Kind: shape.Any}}))
	f.Fuzz(func(t *testing.T, s string) {
		clean := string(value.AppendJSON(nil, s)) // what is no UTF-8 cannot come in as an argument
		v, err := value.Parse([]byte(clean))
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(s, 0) {
			return // SQLite's JSON functions end a text at NUL
		}
		o := echo.Run(t.Context(), only(d), env(value.Of("x", v, "l", []any{v}, "o", value.Of("k", v))))
		wants(t, o, `[{"x":`+clean+`,"n":3}]`)
	})
}

// One binding serves many callers at a time.
func TestConcurrentRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, d *db.DB) {
		b := compile(t, nested("query", "SELECT id, customer_id, CAST(@ctx.now AS text) AS now FROM orders WHERE id = 10 AND @ctx.now IS NOT NULL"))
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				e := env(value.Of())
				now := fmt.Sprint("now ", i)
				e.Set("ctx", value.Of("now", now))
				for range 5 {
					o := b.Run(t.Context(), only(d), e)
					if o.Err != nil {
						t.Error(o.Err)
						return
					}
					if got, _ := o.Result.([]any)[0].(*value.Object).Get("now"); got != now {
						t.Errorf("got %v, want %v", got, now)
					}
				}
			})
		}
		callers.Wait()
	})
}
