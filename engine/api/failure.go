package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
)

// unreadable is an answer that is not what it says to be.
type unreadable string

func (u unreadable) Error() string { return string(u) }

// away is a token endpoint that cannot answer now.
type away string

func (a away) Error() string { return string(a) }

// failure turns what ended a request into an *Error. ctx is the caller's own.
// Texts of net/http are not passed on: they quote URLs, and what the service
// sent where it is no HTTP.
func (c *Client) failure(ctx context.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	e := &Error{}
	var refused refusal
	var bad unreadable
	var gone away
	var timeout interface{ Timeout() bool }
	var text string
	switch ended := ctx.Err(); {
	case ended != nil:
		e.Timeout = errors.Is(ended, context.DeadlineExceeded)
		e.Err = fmt.Errorf("service %s: %w: %w", c.name, errCallEnded, ended)
		return e
	case errors.As(err, &refused):
		e.Refused, text = true, string(refused)
	case errors.As(err, &bad):
		text = string(bad)
	case errors.As(err, &gone):
		e.Unavailable, text = true, string(gone)
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Timeout, text = true, fmt.Sprintf("no answer within %s", c.timeout)
	default:
		e.Unavailable, text = true, cause(err)
	}
	e.Err = fmt.Errorf("service %s: %s", c.name, text)
	return e
}

// cause says in our words why there was no answer.
func cause(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var hostname x509.HostnameError
	switch {
	case errors.As(err, &dns):
		return "looking up its host: " + dns.Err
	case errors.As(err, &hostname):
		return "its certificate is for another host"
	case errors.As(err, &certificate):
		return "its certificate does not hold: " + certificate.Err.Error()
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS"
	case errors.As(err, &alert):
		return alert.Error()
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended before the answer did"
	}
	return "what came back is no HTTP"
}
