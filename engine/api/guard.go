package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// newTransport makes the network as the requests to one host see it. names
// looks up hosts; nil: as the system does.
func newTransport(host string, names *net.Resolver) *http.Transport {
	dialer := net.Dialer{Timeout: 10 * time.Second, ControlContext: guardOf(host).control, Resolver: names}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// guard says which addresses a service may have. It is asked for each address
// that is dialled, so that no name can be resolved to one thing when it is
// checked and to another when it is used.
type guard struct {
	own      netip.Addr // the host itself, if it is an address
	loopback bool       // the host is a name of this machine
	private  bool       // the host is a name of a private network
}

// privateSuffixes are the names that stand for hosts of a private network
// only: RFC 6762 (and its appendix G), RFC 8375, and .internal, which ICANN
// reserved for that.
var privateSuffixes = []string{
	".local", ".internal", ".intranet", ".private", ".corp", ".home", ".lan", ".home.arpa",
}

// guardOf gives the guard of a service whose baseURL names that host. What is
// private by its name may have a private address; a public name may not, as
// its address is what somebody else's DNS says.
func guardOf(host string) guard {
	if a, err := netip.ParseAddr(host); err == nil {
		return guard{own: plain(a)}
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return guard{loopback: true}
	}
	if !strings.Contains(host, ".") {
		return guard{private: true}
	}
	for _, suffix := range privateSuffixes {
		if strings.HasSuffix(host, suffix) {
			return guard{private: true}
		}
	}
	return guard{}
}

func (g guard) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refusal("the service would be reached by " + network)
	}
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return refusal("the service has no address")
	}
	if kind := g.refuses(a.Addr()); kind != "" {
		return refusal(fmt.Sprintf("the host of the service has the address %s, which is %s", a.Addr(), kind))
	}
	return nil
}

// refuses says what kind of address must not be dialled, "" if it may be.
func (g guard) refuses(a netip.Addr) string {
	a = plain(a)
	if g.own.IsValid() && a == g.own {
		return ""
	}
	switch {
	case a.IsLoopback():
		if g.loopback || g.private {
			return ""
		}
		return "this machine's own"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsMulticast():
		return "multicast"
	case a.IsLinkLocalUnicast() || a == awsMetadata:
		return "link-local"
	case a.IsPrivate() || shared.Contains(a):
		if g.private {
			return ""
		}
		return "private"
	}
	for _, p := range special {
		if p.Contains(a) {
			return "reserved"
		}
	}
	return ""
}

var (
	// shared is the address space between a provider and its customers
	// (RFC 6598), which many private networks use.
	shared = netip.MustParsePrefix("100.64.0.0/10")
	// awsMetadata hands out credentials like 169.254.169.254, at an address
	// that looks like any private one.
	awsMetadata = netip.MustParseAddr("fd00:ec2::254")
	// nat64 and sixToFour carry an IPv4 address inside (RFC 6052, RFC 3056).
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	// special are the blocks of the IANA special-purpose registries that are
	// not global and that netip has no word for.
	special = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("198.18.0.0/15"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/96"),          // IPv4-compatible
		netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 inside a network
		netip.MustParsePrefix("100::/64"),       // discarded
		netip.MustParsePrefix("2001::/32"),      // Teredo
		netip.MustParsePrefix("fec0::/10"),      // site-local
	}
)

// plain gives the IPv4 address that an IPv6 one carries, else the address,
// without a zone.
func plain(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}
