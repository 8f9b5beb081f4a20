package graph

import "github.com/fusion-serve/fusion-serve/dsl/value"

// Server is what the spec says of the server as a whole.
type Server struct {
	At           Place
	Name         string
	Version      string
	Title        string
	Description  string
	Instructions string
	Docs         string
	Icon         string
	Exposition   string // flat or grouped
	Separator    string // _ or .
	PageSize     int    // tools a page of tools/list; 0: all on one page
	HTTP         HTTP
	Local        *value.Object // claims of the caller where there is no token to check; nil: none declared
	Tags         []string
	Deny         []*ErrorRule // without SQLState and Status
	Errors       []*ErrorRule
}

// HTTP is where and for whom the server listens.
type HTTP struct {
	Addr    string // default 127.0.0.1:8383
	Path    string // default /mcp
	Origins []string
	Hosts   []string
	MaxBody int64 // bytes of a request body, default 4 MiB
}
