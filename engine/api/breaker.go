package api

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The circuit breaker of a service: after failuresInRow failures one after
// the other, or when half of at least failuresOf tries within failuresWithin
// failed, no request is made for openFor; then one request finds out whether
// the service is back. A failure is no answer, or the answer of a gateway
// that it got none (502-504); what the service itself says is none.
const (
	failuresInRow  = 5
	failuresOf     = 20
	failuresWithin = 30 * time.Second
	openFor        = 10 * time.Second
)

// errAway marks an answer that says that the service is away.
var errAway = errors.New("the service is away")

func newBreaker(name string) *gobreaker.CircuitBreaker[*Response] {
	return gobreaker.NewCircuitBreaker[*Response](gobreaker.Settings{
		Name:         name,
		Interval:     failuresWithin,
		BucketPeriod: failuresWithin / 10,
		Timeout:      openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			tries := c.TotalSuccesses + c.TotalFailures
			return c.ConsecutiveFailures >= failuresInRow || tries >= failuresOf && 2*c.TotalFailures >= tries
		},
		IsSuccessful: func(err error) bool {
			var e *Error
			return !errors.Is(err, errAway) && (!errors.As(err, &e) || !e.Timeout && !e.Unavailable)
		},
		// A caller that gave up says nothing about the service, and neither
		// does a request that we refused.
		IsExcluded: func(err error) bool {
			var e *Error
			return errors.Is(err, errCallEnded) || errors.As(err, &e) && e.Refused
		},
	})
}

// isOpen tells whether the breaker did not let a request through.
func isOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}
