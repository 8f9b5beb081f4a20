package api

import (
	"fmt"
	"net/http"
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 5

// followHere follows a redirect to the same scheme, host and port only, so
// that neither credentials nor a body reach another host. A write is repeated
// as it is (307, 308) or answered by a GET (303); where the service only says
// that the address is another one (301, 302), net/http would turn the write
// into a GET, and nothing would be written.
func followHere(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case next.URL.User != nil || !sameHost(next.URL, first.URL):
		return refusal("the service redirects to another host")
	case len(via) > maxRedirects:
		return refusal(fmt.Sprintf("the service redirects more than %d times", maxRedirects))
	case next.Method != first.Method && next.Response != nil && next.Response.StatusCode != http.StatusSeeOther:
		return refusal(fmt.Sprintf("the service redirects a %s to another address: correct the path", first.Method))
	}
	return nil
}
