package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/fusion-serve/fusion-serve/dsl/value"
)

// stampForm is how times are written: to the microsecond, which both engines
// keep, and so that texts sort as times do.
const stampForm = "2006-01-02T15:04:05.000000Z"

// stamp gives a time as an argument; nil for the zero time.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(stampForm)
}

// text gives a cell; "" for NULL.
func cellText(rows *value.Rows, row, col int) string {
	s, _ := rows.Value(row, col).(string)
	return s
}

// number gives a cell; 0 for NULL.
func number(rows *value.Rows, row, col int) int64 {
	n, _ := rows.Value(row, col).(int64)
	return n
}

// moment gives a cell; the zero time for NULL.
func moment(rows *value.Rows, row, col int) (time.Time, error) {
	s := cellText(rows, row, col)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("a time in the tables of states: %w", err)
	}
	return t.UTC(), nil
}

// record reads recordColumns, of which the first is at.
func record(rows *value.Rows, row, at int) (r Record, err error) {
	r.State, r.Version = cellText(rows, row, at), number(rows, row, at+1)
	if r.Entered, err = moment(rows, row, at+2); err != nil || rows.Value(row, at+3) == nil {
		return r, err
	}
	h := &Hold{
		Call: cellText(rows, row, at+3), Tool: cellText(rows, row, at+4), Event: cellText(rows, row, at+5), Caller: cellText(rows, row, at+6),
	}
	if h.Since, err = moment(rows, row, at+7); err != nil {
		return r, err
	}
	if h.Until, err = moment(rows, row, at+8); err != nil {
		return r, err
	}
	doubt := rows.Value(row, at+9)
	h.Doubt = doubt == true || doubt == int64(1)
	r.Hold = h
	return r, nil
}

// pasts reads pastColumns.
func pasts(rows *value.Rows) ([]Past, error) {
	l := make([]Past, rows.Len())
	for i := range l {
		at, err := moment(rows, i, 9)
		if err != nil {
			return nil, err
		}
		l[i] = Past{
			ID: ID{FSM: cellText(rows, i, 0), Key: cellText(rows, i, 1)}, Version: number(rows, i, 2),
			Move: Move{
				From: cellText(rows, i, 3), To: cellText(rows, i, 4), Event: cellText(rows, i, 5), Tool: cellText(rows, i, 6),
				Call: cellText(rows, i, 7), Caller: cellText(rows, i, 8), At: at,
			},
		}
	}
	return l, nil
}

// eventsChannel is the channel of the database on which processes tell each
// other what has happened, as {"topic": …, …}: a topic says what it is about.
const eventsChannel = "fusion_events"

// stateTopic is the topic of moves: {"topic": "state", "fsm": …, "key": …},
// without key for any of the machine.
const stateTopic = "state"

// maxEvent is how many bytes PostgreSQL sends at most.
const maxEvent = 7999

// eventOf tells that a record was moved.
func eventOf(id ID) string {
	event := value.Of("topic", stateTopic, "fsm", id.FSM)
	short := value.AppendJSON(nil, event)
	event.Set("key", id.Key)
	if whole := value.AppendJSON(nil, event); len(whole) <= maxEvent {
		return string(whole)
	}
	return string(short)
}

// changeOf reads an event; false for one of another topic.
func changeOf(payload string) (Change, bool) {
	v, err := value.Parse([]byte(payload))
	event, ok := v.(*value.Object)
	if err != nil || !ok {
		return Change{}, false
	}
	field := func(name string) (string, bool) {
		v, _ := event.Get(name)
		s, ok := v.(string)
		return s, ok
	}
	if topic, _ := field("topic"); topic != stateTopic {
		return Change{}, false
	}
	fsm, ok := field("fsm")
	key, one := field("key")
	return Change{ID: ID{FSM: fsm, Key: key}, All: !one}, ok
}

// Feed tells of the moves of all processes. On SQLite it only says that something
// may have been moved.
func (s *Database) Feed(ctx context.Context, tell func(Change)) {
	s.db.Listen(ctx, eventsChannel, func(payload string) {
		if c, ok := changeOf(payload); ok {
			tell(c)
		}
	}, func() { tell(Change{All: true}) })
}
