package expr_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/expr"
	"github.com/fusion-serve/fusion-serve/dsl/value"
)

func eval(t *testing.T, e *expr.Env, src string) string {
	t.Helper()
	v, err := must(expr.Compile(text(src), untyped("data", "items", "x"), expr.WantAny)).Eval(e)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return string(value.AppendJSON(nil, v))
}

// TestSetRow: a row reads as its object, and what was taken from it stays
// when the next row is set.
func TestSetRow(t *testing.T) {
	rows := sampleRows()
	byRow, byObject := expr.NewEnv(), expr.NewEnv()
	var kept []any
	p := must(expr.Compile(text("[data, {d: data}]"), untyped("data"), expr.WantAny))
	for i := range rows.Len() {
		byRow.SetRow("data", rows, i)
		byObject.Set("data", rows.Object(i))
		for _, src := range []string{
			"data", "data.id", "data.amount", "data.doc", "data.nope", "get(data.doc, 'a')", "data['status']", "len(data)", "keys(data)",
			"values(data)", "toPairs(data)", "json(data)", "'id' in data", "data == data", "[data]", "{a: data}.a.id", "let d = data; d.id",
			"get(data, 'id')", "type(data)", "str(data)", "data == {id: data.id, doc: data.doc, amount: data.amount, status: data.status}",
			"data ?? 1", "default(data, 1)", "map([data, data], .id)", "reduce([1], data, 0)", "data in [data]", "uniq([data, data])",
		} {
			if got, want := eval(t, byRow, src), eval(t, byObject, src); got != want {
				t.Errorf("row %d: %s gives %s, as an object %s", i, src, got, want)
			}
		}
		v, err := p.Eval(byRow)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, v)
	}
	for i, v := range kept {
		want := string(value.AppendJSON(nil, []any{rows.Object(i), value.Of("d", rows.Object(i))}))
		if got := string(value.AppendJSON(nil, v)); got != want {
			t.Errorf("row %d became %s, was %s", i, got, want)
		}
	}
	if got := string(value.AppendJSON(nil, byRow.Get("data"))); got != string(value.AppendJSON(nil, rows.Object(2))) {
		t.Errorf("Get gives %s", got)
	}
	byRow.Set("data", int64(1))
	byRow.SetRow("data", rows, 1)
	if got := eval(t, byRow, "data.id"); got != `"a"` {
		t.Errorf("after Set and SetRow data.id is %s", got)
	}
}

// TestRowReadsOnlyItsColumns: a rule over a row makes one value, however
// many columns there are.
func TestRowReadsOnlyItsColumns(t *testing.T) {
	cols := make([]string, 200)
	for i := range cols {
		cols[i] = fmt.Sprint("c", i)
	}
	rows := value.NewRows(cols)
	for range cols {
		rows.Add(value.Text, []byte("some text that would be copied"))
	}
	p := must(expr.Compile(text("data.c3 == 'x'"), untyped("data"), expr.WantBool))
	e := expr.NewEnv()
	e.SetRow("data", rows, 0)
	if n := testing.AllocsPerRun(100, func() {
		e.SetRow("data", rows, 0)
		if ok, err := p.Bool(e); ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n > 2 {
		t.Errorf("%v allocations for one column", n)
	}
	e.Set("items", rows)
	count := must(expr.Compile(text("len(items)"), untyped("items"), expr.WantAny))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := count.Eval(e); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("len(items) takes %v allocations", n)
	}
}

func TestFork(t *testing.T) {
	rows := sampleRows()
	e := expr.NewEnv()
	e.Set("x", int64(1))
	e.SetRow("data", rows, 0)
	f := e.Fork()
	f.Set("x", 2)
	f.SetRow("data", rows, 1)
	e.Set("items", []any{})
	for _, c := range []struct {
		env  *expr.Env
		want string
	}{{e, `[1,"b",[]]`}, {f, `[2,"a",null]`}} {
		if got := eval(t, c.env, "[x, data.id, items]"); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if e.Get("nope") != nil {
		t.Error("an unset name is not nil")
	}
	e.Set("x", (*value.Object)(nil))
	if got := eval(t, e, "x == nil"); got != "true" {
		t.Errorf("a nil object == nil is %s", got)
	}
}

// TestScopeIsNotShared: With makes a new scope.
func TestScopeIsNotShared(t *testing.T) {
	base := untyped("a")
	left, right := base.With("b", nil), base.With("c", textShape).With("c", intShape)
	for _, c := range []struct {
		scope     *expr.Scope
		src, want string
	}{
		{base, "b", "s.cue:1:1: there is no \"b\" here (did you mean \"a\"?)"},
		{left, "a == b", ""},
		{left, "c + 1", "s.cue:1:1: there is no \"c\" here (did you mean \"a\"?)"},
		{right, "c + 1", ""},
		{right, "c + 'x'", "s.cue:1:3: + is for two numbers or two texts, not a whole number and a text: write str(…)"},
		{nil, "1 + 1", ""},
	} {
		_, faults := expr.Compile(text(c.src), c.scope, expr.WantAny)
		if faults.Error() != c.want {
			t.Errorf("%s: %s, want %s", c.src, faults.Error(), c.want)
		}
	}
}

// TestProgramsAreShared: programs, templates and trees are used by many
// goroutines at once, each with its own Env (run with -race).
func TestProgramsAreShared(t *testing.T) {
	p := must(expr.Compile(text("let n = 2; map(filter(items, .amount > n or .id matches '^b'), ({i: #index, id: .id + data.id}))"), untyped("data", "items"), expr.WantAny))
	tmpl := template(t, "{{ data.id }} {{ count(items, .status == 'paid') }} {{ json(data.customer) }} {{ data.id matches data.status }}")
	want := `[{"i":0,"id":"bINV-3"},{"i":1,"id":"aINV-3"}]|INV-3 2 {"name":"Ann","tags":["x","y"]} false`
	data, items := sampleData(), sampleRows()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e := expr.NewEnv()
			e.Set("data", data)
			e.Set("items", items)
			for range 200 {
				v, err := p.Eval(e)
				if err != nil {
					t.Error(err)
					return
				}
				got := append(value.AppendJSON(nil, v), '|')
				if got, err = tmpl.Append(got, e, nil); err != nil || string(got) != want {
					t.Errorf("got %s (%v), want %s", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
