package shape

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// cells is a row, each cell as kind:text.
func rowsOf(cols string, rows ...string) *value.Rows {
	kinds := map[string]value.Kind{"null": value.Null, "bool": value.Bool, "int": value.Int, "exact": value.Exact, "float": value.Float, "text": value.Text, "json": value.JSON}
	r := value.NewRows(strings.Fields(cols))
	for _, row := range rows {
		for _, c := range strings.Fields(row) {
			kind, text, _ := strings.Cut(c, ":")
			r.Add(kinds[kind], []byte(text))
		}
	}
	return r
}

func rowShape() *Shape {
	return structOf(
		&Field{Name: "id", Shape: whole1()},
		&Field{Name: "name", Shape: text()},
		&Field{Name: "status", Shape: orNull(enumOf("open", "paid"))},
		&Field{Name: "price", Shape: &Shape{Kind: Float, Min: &Bound{Value: "0"}}, Optional: true},
		&Field{Name: "ok", Shape: &Shape{Kind: Bool}},
		&Field{Name: "kind", Shape: &Shape{Kind: Const, Const: "x"}, Optional: true},
		&Field{Name: "tags", Shape: listOf(text()), Optional: true},
		&Field{Name: "any", Shape: &Shape{}, Optional: true},
		&Field{Name: "level", Shape: whole1(), HasDefault: true, Default: int64(7)},
	)
}

// TestRowsAreStripped compares the plan with Strip of every row as an object.
func TestRowsAreStripped(t *testing.T) {
	cols := "secret id name status price ok kind tags any"
	rows := rowsOf(cols,
		"text:s int:1 text:a text:open exact:1.50 bool:true text:x json:[\"a\"] int:5",
		"text:s exact:2.00 text:b null: null: int:0 null: text:[\"b\"] json:{\"k\":1}",
		"text:s float:1e+21 text:c text:paid float:2 int:1 text:x null: null:",
		"text:s int:0 int:5 text:lost exact:-1 int:2 text:y json:[1] text:t",
		"text:s float:1.5 null: int:1 text:1 text:true null: text:x exact:1",
		"text:s text:1 json:\"d\" null: json:5 json:true null: json:null bool:true",
	)
	for _, s := range []*Shape{
		rowShape(),
		{Kind: Struct, Fields: rowShape().Fields[:2], Rest: &Shape{}},
		{Kind: Struct, Fields: rowShape().Fields[:2], KeyPatterns: []PatternField{
			{regexp.MustCompile("^(o|p)"), &Shape{Kind: Union, Alts: []*Shape{{Kind: Bool}, {Kind: Float}, {Kind: Null}}}},
			{regexp.MustCompile("k"), &Shape{}}, {regexp.MustCompile("^ok"), &Shape{Kind: Bool}}}},
	} {
		plan := s.Columns(rows.Cols())
		var cells []Cell
		for i := range rows.Len() {
			var faults []Fault
			cells, faults = plan.Row(rows, i, cells[:0])
			got := value.NewObject(8)
			for c, name := range plan.Names() {
				if cells[c].State != LeftOut {
					got.Set(name, cells[c].Go())
				}
			}
			want, wantFaults := s.Strip(rows.Object(i))
			for f := range wantFaults {
				wantFaults[f].below(i)
			}
			// The plan goes by columns: its faults may come in another order.
			if a, b := faultSet(faults), faultSet(wantFaults); !reflect.DeepEqual(a, b) {
				t.Errorf("row %d: got faults\n%s\nwant\n%s", i, lines(faults, "\n"), lines(wantFaults, "\n"))
			}
			if len(faults) > 0 {
				continue
			}
			if a, b := outcome(got, nil), outcome(want, nil); a != b {
				t.Errorf("row %d: got %s, want %s", i, a, b)
			}
		}
	}
}

// below puts a row in front of the paths.
func (f *Fault) below(row int) {
	f.Path = append([]any{row}, f.Path...)
	for _, a := range f.Alts {
		for i := range a {
			a[i].below(row)
		}
	}
}

func faultSet(l []Fault) map[string]bool {
	m := map[string]bool{}
	for _, f := range l {
		m[f.line()] = true
	}
	return m
}

func TestRowsTakeNumbersAsTheyAre(t *testing.T) {
	rows := rowsOf("price id name ok status", "exact:1.50 exact:3.00 text:a int:1 null:")
	plan := rowShape().Columns(rows.Cols())
	cells, faults := plan.Row(rows, 0, nil)
	var b strings.Builder
	for i, name := range plan.Names() {
		fmt.Fprintf(&b, "%s(%d)=%d/%d/%s ", name, plan.Column(i), cells[i].State, cells[i].Kind, cells[i].Text)
	}
	want := "id(1)=0/2/3 name(2)=0/5/a status(4)=0/0/ price(0)=0/3/1.50 ok(3)=0/1/true kind(-1)=1/0/ tags(-1)=1/0/ any(-1)=1/0/ level(-1)=2/0/ "
	if b.String() != want || len(faults) > 0 {
		t.Errorf("got %s\nwant %s\n%s", b.String(), want, lines(faults, "\n"))
	}
}

func TestRowsOfAMissingColumn(t *testing.T) {
	rows := rowsOf("id ok status", "int:1 int:1 null:")
	_, faults := rowShape().Columns(rows.Cols()).Row(rows, 0, nil)
	if got, want := lines(faults, "\n"), `0.name: invalid_type Expected="string" Missing=true`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestColumnsOfNoStruct(t *testing.T) {
	for _, s := range []*Shape{nil, text(), taggedUnion()} {
		if s.Columns([]string{"a"}) != nil {
			t.Errorf("a plan for %v", s)
		}
	}
}

func TestRowsDoNotAllocate(t *testing.T) {
	s := structOf(
		&Field{Name: "id", Shape: whole1()},
		&Field{Name: "sku", Shape: &Shape{Kind: String, MaxRunes: 20, MinRunes: 1, Patterns: []Pattern{{Re: regexp.MustCompile(`^[A-Z]+-\d+$`)}}}},
		&Field{Name: "status", Shape: enumOf("open", "paid")},
		&Field{Name: "due", Shape: &Shape{Kind: String, MaxRunes: -1, Format: "date"}},
		&Field{Name: "at", Shape: &Shape{Kind: String, MaxRunes: -1, Format: "date-time"}},
		&Field{Name: "uid", Shape: &Shape{Kind: String, MaxRunes: -1, Format: "uuid"}},
		&Field{Name: "price", Shape: &Shape{Kind: Float, Max: &Bound{Value: "100"}, MultipleOf: "1"}},
		&Field{Name: "ok", Shape: &Shape{Kind: Bool}},
	)
	rows := rowsOf("id sku status due at uid price ok",
		"int:12 text:AB-17 text:paid text:2026-03-01 text:2026-03-01T10:00:00Z text:123e4567-e89b-12d3-a456-426614174000 exact:7.00 int:1")
	plan := s.Columns(rows.Cols())
	cells := make([]Cell, 0, 8)
	n := testing.AllocsPerRun(100, func() {
		var faults []Fault
		if cells, faults = plan.Row(rows, 0, cells[:0]); len(faults) > 0 {
			t.Fatal(lines(faults, "\n"))
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a row, want none", n)
	}
}

func BenchmarkRowPlan(b *testing.B) {
	rows := value.NewRows([]string{"id", "name", "status", "cents", "due"})
	for i := range 1000 {
		rows.Add(value.Int, fmt.Append(nil, i+1))
		rows.Add(value.Text, []byte("Ada Lovelace"))
		rows.Add(value.Text, []byte("paid"))
		rows.Add(value.Int, []byte("129900"))
		rows.Add(value.Text, []byte("2026-03-01"))
	}
	plan := structOf(
		&Field{Name: "id", Shape: whole1()},
		&Field{Name: "name", Shape: text()},
		&Field{Name: "status", Shape: enumOf("open", "paid", "late")},
		&Field{Name: "cents", Shape: &Shape{Kind: Int}},
		&Field{Name: "due", Shape: &Shape{Kind: String, MaxRunes: -1, Format: "date"}},
	).Columns(rows.Cols())
	var cells []Cell
	b.ReportAllocs()
	for b.Loop() {
		for i := range rows.Len() {
			var faults []Fault
			if cells, faults = plan.Row(rows, i, cells[:0]); len(faults) > 0 {
				b.Fatal(lines(faults, "\n"))
			}
		}
	}
}
