package model

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// recorder is a service in which calls have their effects: it writes down what
// it is asked to do, and is slow, or fails, as services are.
type recorder struct {
	*httptest.Server
	seed uint64

	mu      sync.Mutex
	asked   uint64
	effects []effect
	odd     map[string]int // by what went wrong
}

// tooLong is longer than the spec waits for the recorder.
const tooLong = 2500 * time.Millisecond

func newRecorder(t *testing.T, seed uint64) *recorder {
	r := &recorder{seed: seed, odd: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

// serve answers a request, mostly well.
func (r *recorder) serve(w http.ResponseWriter, q *http.Request) {
	var e effect
	if err := json.NewDecoder(q.Body).Decode(&e); err != nil {
		http.Error(w, "this is no effect", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.asked++
	rng := rand.New(rand.NewPCG(r.seed, r.asked))
	r.mu.Unlock()
	e.Rest = rng.IntN(2)
	time.Sleep(upTo(rng, 10*time.Millisecond)) // what happens after a while, whether or not anybody waits for it
	switch n := rng.IntN(1000); {
	case n < 30: // refused: no effect
		r.note("refused", nil)
		http.Error(w, "no", http.StatusUnprocessableEntity)
	case n < 33:
		r.note("broken before the effect", nil)
		http.Error(w, "broken", http.StatusInternalServerError)
	case n < 36:
		r.note("broken after the effect", &e)
		http.Error(w, "broken", http.StatusInternalServerError)
	case n < 39:
		r.note("cut before the effect", nil)
		panic(http.ErrAbortHandler)
	case n < 42:
		r.note("cut after the effect", &e)
		panic(http.ErrAbortHandler)
	case n < 43:
		time.Sleep(tooLong)
		r.note("effect too late", &e)
	default:
		r.note("", &e)
		time.Sleep(upTo(rng, 10*time.Millisecond))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"rest": %d}`, e.Rest)
	}
}

// note writes an effect down, if there is one, and what was odd about it.
func (r *recorder) note(odd string, e *effect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e != nil {
		e.Serial = int64(len(r.effects) + 1)
		r.effects = append(r.effects, *e)
	}
	if odd != "" {
		r.odd[odd]++
	}
}
