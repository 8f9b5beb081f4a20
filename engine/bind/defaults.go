package bind

import (
	"errors"
	"net/http"
	"slices"

	"github.com/fusion-serve/fusion-serve/engine/api"
	"github.com/fusion-serve/fusion-serve/engine/db"
	"github.com/fusion-serve/fusion-serve/presenters"
)

// Default is what becomes of a refusal for which no error rule speaks. What
// the database or the service said is not passed on.
type Default struct {
	States  []string // SQLSTATEs, or classes of two characters
	Status  []int    // of a service's answer
	Trouble string   // neither: what went wrong on the way

	Code       string
	Message    string
	Suggestion string
	Retry      bool // the same call may succeed a little later
	// Log: the operator should know of it.
	Log bool
	// Means is for the page of error codes.
	Means string
}

// later is the advice of every refusal that passes.
const later = "Retry after a short delay."

// kinds of trouble on the way
const (
	unreachable   = "database not reachable"
	noConnection  = "no free connection in time"
	slowStatement = "database did not answer in time"
	serviceAway   = "service not reachable"
	slowService   = "service did not answer in time"
)

// Defaults is the one table of what refusals become.
var Defaults = []Default{
	{States: []string{"23505"}, Code: "CONFLICT", Means: "unique violation",
		Message: "There is an entry with these values already.", Suggestion: "Look it up, or send other values."},
	{States: []string{"23P01"}, Code: "CONFLICT", Means: "exclusion violation",
		Message: "This overlaps with an entry that is there already.", Suggestion: "Look it up, or send other values."},
	{States: []string{"23503"}, Code: "CONFLICT", Means: "foreign key violation, in either direction: the state does not tell which",
		Message:    "This refers to an entry that does not exist, or others still refer to this one.",
		Suggestion: "Check that what the arguments name exists, and that nothing depends on what is to be removed."},
	{States: []string{"23502"}, Code: "VALIDATION_ERROR", Means: "not null violation",
		Message: "A value that is needed is missing.", Suggestion: "Send the optional arguments too."},
	{States: []string{"23514"}, Code: "VALIDATION_ERROR", Means: "check violation",
		Message: "A value is not allowed here.", Suggestion: "Send other values."},
	{States: []string{"22001", "22003", "22007", "22008", "22P02"}, Code: "VALIDATION_ERROR",
		Means:   "text too long, number out of range, no date or time, text of another form",
		Message: "A value does not have the form or the size that is stored here.", Suggestion: "Send other values."},
	{States: []string{"42501"}, Code: "FORBIDDEN", Log: true, Means: "insufficient privilege, row-level security included",
		Message: "This may not be done here.", Suggestion: "Do not retry. Tell the user that the permission is missing."},
	{States: []string{"40001", "40P01"}, Code: "CONFLICT", Retry: true,
		Means:   "serialization failure, deadlock; after three tries if nothing outside the database had happened",
		Message: "Others changed the same data at the same time.", Suggestion: later},
	{States: []string{"55P03"}, Code: "CONFLICT", Retry: true, Means: "lock not available",
		Message: "Somebody else is changing the same data.", Suggestion: later},
	{States: []string{"57014"}, Code: "TIMEOUT", Log: true, Means: "statement cancelled, by its timeout for one",
		Message: "The database did not answer in time.", Suggestion: "Ask for less at a time."},
	{States: []string{"53"}, Code: "SERVER_BUSY", Retry: true, Log: true, Means: "too many connections, out of memory or disk",
		Message: "The database takes no more work at the moment.", Suggestion: later},
	{Trouble: noConnection, Code: "SERVER_BUSY", Retry: true, Log: true, Means: "`pool: acquire` ran out, or the time of a call that was waiting",
		Message: "The database is at capacity.", Suggestion: later + " Send requests sequentially or in smaller batches."},
	{Trouble: unreachable, Code: "SERVER_BUSY", Retry: true, Log: true, Means: "no connection, a refused login, a server that starts or stops (08, 28, 57P01 to 57P03, 3D000)",
		Message: "The database cannot be reached at the moment.", Suggestion: later + " Tell the user if it stays so."},
	{Trouble: slowStatement, Code: "TIMEOUT", Log: true, Means: "`timeout` of the database ran out",
		Message: "The database did not answer in time.", Suggestion: "Ask for less at a time."},

	{Status: []int{401}, Code: "UNAUTHORIZED", Log: true, Means: "our credentials are not accepted",
		Message: "The service behind this does not accept our credentials.", Suggestion: "Do not retry. Tell the user that the operator must renew them."},
	{Status: []int{403}, Code: "FORBIDDEN", Log: true, Means: "forbidden",
		Message: "The service behind this does not permit it.", Suggestion: "Do not retry. Tell the user that the permission is missing."},
	{Status: []int{404}, Code: "NOT_FOUND", Means: "not found",
		Message: "Nothing found for these arguments.", Suggestion: ""},
	{Status: []int{409}, Code: "CONFLICT", Means: "conflict",
		Message: "This conflicts with what is there already.", Suggestion: "Look up the current state first."},
	{Status: []int{422}, Code: "VALIDATION_ERROR", Means: "unprocessable",
		Message: "The service behind this does not take these values.", Suggestion: "Send other values."},
	{Status: []int{429}, Code: "RATE_LIMITED", Retry: true, Log: true, Means: "too many requests; its Retry-After is passed on",
		Message: "Too many requests to the service behind this.", Suggestion: later},
	{Trouble: serviceAway, Code: "SERVER_BUSY", Retry: true, Log: true, Means: "no connection, or it failed too often just now",
		Message: "The service behind this cannot be reached at the moment.", Suggestion: later + " Tell the user if it stays so."},
	{Trouble: slowService, Code: "TIMEOUT", Log: true, Means: "`timeout` of the service ran out",
		Message: "The service behind this did not answer in time.", Suggestion: "Retry once."},
}

// byState, byStatus and byTrouble find a row of Defaults.
func byState(state string) *Default {
	return find(func(d *Default) bool {
		return slices.Contains(d.States, state) || len(state) == 5 && slices.Contains(d.States, state[:2])
	})
}

func byStatus(status int) *Default {
	return find(func(d *Default) bool { return slices.Contains(d.Status, status) })
}

func byTrouble(trouble string) *Default {
	return find(func(d *Default) bool { return d.Trouble == trouble })
}

func find(is func(*Default) bool) *Default {
	if i := slices.IndexFunc(Defaults, func(d Default) bool { return is(&d) }); i >= 0 {
		return &Defaults[i]
	}
	return nil
}

// DefaultOf gives the row for an error, nil for one that is unexpected.
func DefaultOf(err error) *Default {
	var database *db.Error
	var refused *Refused
	var service *api.Error
	switch {
	case errors.As(err, &database):
		return databaseDefault(database)
	case errors.As(err, &refused):
		return byStatus(refused.Status)
	case !errors.As(err, &service):
		return nil
	case service.Timeout:
		return byTrouble(slowService)
	case service.Unavailable:
		return byTrouble(serviceAway)
	}
	return nil
}

func databaseDefault(e *db.Error) *Default {
	d := byState(e.SQLState)
	switch {
	case d != nil:
		return d
	case e.Busy:
		return byTrouble(noConnection)
	case e.Unavailable:
		return byTrouble(unreachable)
	case e.Timeout:
		return byTrouble(slowStatement)
	}
	return nil
}

// Failure is the answer to a call that ended in err. unsure: a part of it may
// have taken effect; mayRepeat: the same call again does no harm.
func (d *Default) Failure(err error, unsure, mayRepeat bool) *presenters.Failure {
	f := &presenters.Failure{Code: d.Code, Message: d.Message, Suggestion: d.Suggestion, Severity: "error"}
	var r *Refused
	if errors.As(err, &r) && r.Status == http.StatusTooManyRequests {
		after, _ := r.Headers.Get("retry-after")
		f.RetryAfter = retryAfter(after)
	}
	switch passes := d.Retry || d.Code == "TIMEOUT"; {
	case mayRepeat || !passes:
	case unsure:
		f.Message += " A part of the call may have taken effect."
		f.Suggestion = "Do not repeat this call. Tell the user what happened."
		f.RetryAfter = ""
	default:
		f.Message += " Nothing was changed."
	}
	return f
}
