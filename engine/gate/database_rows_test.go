package gate

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// An administrator makes the tables as the program does.
func TestTablesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, table := range []*db.Table{stateTable, historyTable} {
		for _, sql := range table.Make[db.Postgres] {
			if !strings.Contains(text, strings.Join(strings.Fields(sql), " ")+";") {
				t.Errorf("docs/security.md does not say:\n%s", sql)
			}
		}
	}
}

// What one process tells another is what the other one hears.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		id    ID
		event string
		want  Change
	}{
		{ID{"ward", "ann"}, `{"topic":"state","fsm":"ward","key":"ann"}`, Change{ID: ID{"ward", "ann"}}},
		{ID{"ward", ""}, `{"topic":"state","fsm":"ward","key":""}`, Change{ID: ID{"ward", ""}}},
		{ID{"w", "a\"\\\n\x01ü"}, `{"topic":"state","fsm":"w","key":"a\"\\\n\u0001ü"}`, Change{ID: ID{"w", "a\"\\\n\x01ü"}}},
		// 8000 bytes would be too many.
		{ID{"ward", strings.Repeat("k", 8000-len(`{"topic":"state","fsm":"ward","key":""}`))}, `{"topic":"state","fsm":"ward"}`, Change{ID: ID{FSM: "ward"}, All: true}},
	} {
		event := eventOf(c.id)
		if event != c.event {
			t.Errorf("%q: %s, want %s", c.id, event, c.event)
		}
		if got, ok := changeOf(event); !ok || got != c.want {
			t.Errorf("%s: %+v, want %+v", event, got, c.want)
		}
	}
	if n := len(eventOf(ID{"ward", strings.Repeat("k", 7999-len(`{"topic":"state","fsm":"ward","key":""}`))})); n != 7999 {
		t.Errorf("the longest event has %d bytes", n)
	}
	for _, other := range []string{"", "what", "[]", `{"topic":"resource","fsm":"x","key":"k"}`, `{"topic":"state"}`, `{"topic":1,"fsm":"x"}`} {
		if got, ok := changeOf(other); ok {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

// FuzzEvent: an event of anybody is read without harm, and ours come back as
// they were.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{"", "{", `{"topic":"state"}`, `{"topic":"state","fsm":"cart"}`, `{"topic":"state","fsm":"cart","key":"a"}`, `{"topic":"other","fsm":1}`, "\xff"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, fsm, key string) {
		changeOf(fsm)
		if !utf8.ValidString(fsm) || !utf8.ValidString(key) {
			return // keys hold no such bytes, see Key.Of
		}
		id := ID{FSM: fsm, Key: key}
		got, ok := changeOf(eventOf(id))
		if want := (Change{ID: id}); got != want && !(got.All && got.FSM == fsm && len(key)+len(fsm) > maxEvent/6) || !ok {
			t.Errorf("%q came back as %+v", id, got)
		}
	})
}
