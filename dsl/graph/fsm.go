package graph

import "time"

// FSM is a state machine. It says which tools a caller may use, and when.
type FSM struct {
	Name string
	At   Place
	Path string

	Initial string
	States  []*State // in order of declaration
	// Key says whose state it is: a text over ctx and args; without a hole it is
	// one state for all callers. It is nil only in a broken machine.
	Key   *Text
	Store Store
	// TTL is how long a key is kept that nobody moves; after it the machine
	// starts anew. 0: for ever.
	TTL time.Duration
	// Resolve settles a key in doubt: a query with one row, whose column state
	// names the state. It sees @key, @state, @event, @tool and @call. Nil: a
	// person decides.
	Resolve *Binding
	// Broken says that the machine has a fault: it has been told, no tool is bound
	// to the machine, and names in it may name nothing.
	Broken bool
}

// State gives the state of that name, or nil.
func (f *FSM) State(name string) *State {
	return byName(f.States, name, func(s *State) string { return s.Name })
}

// State is one state of a machine.
type State struct {
	Name  string
	At    Place
	Path  string
	Final bool
	On    []*Event // in order of declaration
	After []*After // sorted by Delay
}

// Event is what a state does when an event is sent.
type Event struct {
	Name string
	At   Place
	Path string
	// Targets are looked at in order; the first whose When holds (nil: it
	// does) is taken. Without one the state stays.
	Targets []*Target
}

// Target is where an event leads.
type Target struct {
	At   Place
	When *Text // over ctx, args and result; nil: always
	To   string
}

// After is a transition that time makes.
type After struct {
	At    Place
	Delay time.Duration // since the state was entered
	To    string
}

// StoreKind says where states are kept.
type StoreKind string

// The kinds of store.
const (
	StoreMemory   StoreKind = "memory"
	StoreDatabase StoreKind = "database"
	StoreRedis    StoreKind = "redis"
)

// Store is where the states of a machine are kept.
type Store struct {
	At       Place
	Kind     StoreKind
	Database string // of StoreDatabase: the name of the database
	URL      Text   // of StoreRedis: redis:// or rediss://, with secrets as markers
}

// Gate binds a tool to states of a machine.
type Gate struct {
	At  Place
	FSM *FSM
	// In are the states in which the tool may be used; never empty.
	In []string
	// Send is the event that a successful call sends; "" for none.
	Send string
}
