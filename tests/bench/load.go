package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// children are the other processes of a run: this program started again.
var children = map[string]func(in io.Reader, out io.Writer) error{"load": load, "floor": floor}

// job is what the load generator reads from its standard input.
type job struct {
	Address string
	Period  time.Duration
	Callers [][]request // each on a connection of its own, in turn, until the period is over
}

// request is one request as it goes over the wire, and a text that must be in
// the body of its answer.
type request struct {
	Bytes  []byte
	Expect string
}

// maxCalls bounds the calls of one caller.
const maxCalls = 1_000_000

// outcome is what the load generator prints.
type outcome struct {
	Calls    int
	Took     time.Duration
	P50, P99 time.Duration
}

// load runs callers in a closed loop over keep-alive connections.
func load(in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	if host, _, err := net.SplitHostPort(j.Address); err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("%q is no loopback address", j.Address)
	}
	times := make([][]time.Duration, len(j.Callers))
	errs := make([]error, len(j.Callers))
	var all sync.WaitGroup
	began := time.Now()
	for i := range j.Callers {
		all.Go(func() { times[i], errs[i] = caller(j.Address, j.Callers[i], began.Add(j.Period)) })
	}
	all.Wait()
	o := outcome{Took: time.Since(began)}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	every := slices.Concat(times...)
	slices.Sort(every)
	if o.Calls = len(every); o.Calls == 0 {
		return errors.New("no call was answered in the whole period")
	}
	o.P50, o.P99 = every[o.Calls/2], every[o.Calls*99/100]
	return json.NewEncoder(out).Encode(o)
}

// caller makes its requests in turn until the end and gives how long each took.
func caller(address string, requests []request, end time.Time) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(end.Add(10 * time.Second)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 16<<10)
	took := make([]time.Duration, 0, 1<<16)
	var body []byte
	for len(took) < maxCalls {
		began := time.Now()
		if began.After(end) {
			break
		}
		q := &requests[len(took)%len(requests)]
		if _, err := conn.Write(q.Bytes); err != nil {
			return nil, err
		}
		if body, err = readAnswer(r, body[:0]); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if !bytes.Contains(body, []byte(q.Expect)) {
			return nil, fmt.Errorf("%q is not in the answer %q", q.Expect, body)
		}
	}
	return took, nil
}

// readAnswer reads one HTTP/1.1 answer with status 200 and appends its body.
func readAnswer(r *bufio.Reader, body []byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	status, length, chunked := string(bytes.TrimSpace(line)), 0, false
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		name, v, _ := bytes.Cut(line, []byte(":"))
		v = bytes.TrimSpace(v)
		if bytes.EqualFold(name, []byte("Content-Length")) {
			length, err = strconv.Atoi(string(v))
		} else if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			chunked = bytes.EqualFold(v, []byte("chunked"))
		}
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", line, err)
		}
	}
	if chunked {
		body, err = readChunks(r, body)
	} else {
		body, err = readN(r, body, length)
	}
	if err == nil && status != "HTTP/1.1 200 OK" {
		err = fmt.Errorf("%s: %s", status, body)
	}
	return body, err
}

func readChunks(r *bufio.Reader, body []byte) ([]byte, error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return nil, fmt.Errorf("size of a chunk: %w", err)
		}
		if body, err = readN(r, body, int(n)); err != nil {
			return nil, err
		}
		if _, err := r.Discard(2); err != nil {
			return nil, err
		}
		if n == 0 {
			return body, nil
		}
	}
}

func readN(r *bufio.Reader, body []byte, n int) ([]byte, error) {
	at := len(body)
	body = slices.Grow(body, n)[:at+n]
	_, err := io.ReadFull(r, body[at:])
	return body, err
}
