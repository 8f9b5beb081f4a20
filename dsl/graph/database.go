package graph

import "time"

// Database is a declared database.
type Database struct {
	Name    string
	At      Place
	URL     Text // may hold secret markers
	Pool    Pool
	Session *Session      // nil: none
	Timeout time.Duration // of a statement; 0: none
	Init    []File        // run on an empty embedded database and on the fresh database of a test
}

// Pool bounds the connections of a database; written as a number it is Max.
type Pool struct {
	Max         int           // default 10
	Min         int           // kept open, default 0
	MaxLifetime time.Duration // of a connection; default 1h
	MaxIdle     time.Duration // unused, then closed; default 30m
	Acquire     time.Duration // how long a call waits for a connection; default 5s
}

// Session is set inside the transaction of every call: row-level security.
// A setting that is nil is UNAUTHORIZED.
type Session struct {
	At       Place
	Role     *Text
	Settings []NodeField
}
