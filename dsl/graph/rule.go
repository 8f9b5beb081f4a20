package graph

// ErrorRule turns an outcome into a declared error.
type ErrorRule struct {
	At         Place
	Path       string
	When       *Text
	SQLState   []string
	Status     []int
	Code       string
	Message    Text
	Suggestion *Text
	Actions    []string // dotted names
	Severity   string   // error (default), warning, critical
	Details    []NodeField
	RetryAfter *Text
	Unmasked   bool
}
