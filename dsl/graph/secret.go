package graph

import (
	"regexp"
	"strings"
)

// While a spec is loaded, the value of a secret variable of env is a marker:
// it can be joined to other strings, so that a value made from a secret is
// one too, but it tells nothing. Markers are opened when the program opens
// its databases and services.
const (
	markOpen  = "\x02env."
	markClose = "\x03"
)

// Marker stands for the value of the secret variable.
func Marker(name string) string { return markOpen + name + markClose }

// HasSecret tells whether a secret went into the string.
func HasSecret(s string) bool { return strings.Contains(s, markOpen) }

// Reveal puts the values of the secrets into the string.
func Reveal(s string, get func(name string) string) string {
	return replaceMarkers(s, get)
}

// Concealed is the string as it may be shown: a secret as env.NAME, the user
// part of a URL as ***, whether it was marked as a secret or not.
func Concealed(s string) string {
	s = quotedMarker.ReplaceAllString(s, "env.$1$2")
	return userPart.ReplaceAllString(s, "://***@")
}

// quotedMarker is a marker as it is, or as a quoted string shows it; one that
// is all of the string goes with its quotes.
var quotedMarker = regexp.MustCompile(`"(?:\x02|\\x02|\\u0002)env\.([^"\\\x03]*)(?:\x03|\\x03|\\u0003)"|(?:\x02|\\x02|\\u0002)env\.([^"\\\x03]*)(?:\x03|\\x03|\\u0003)`)

// userPart is what stands between :// and the last @ before the path: a
// password may hold an @ that somebody forgot to escape.
var userPart = regexp.MustCompile(`://[^/?#\s"]*@`)

func replaceMarkers(s string, get func(string) string) string {
	if !HasSecret(s) {
		return s
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, markOpen)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, after, ok := strings.Cut(rest, markClose)
		if !ok {
			return b.String()
		}
		b.WriteString(get(name))
		s = after
	}
}
