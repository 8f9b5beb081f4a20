package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard says which names a request may use for this server (Host) and which
// web pages may send it (Origin). Without it any page in a browser on this
// machine could call the tools, by way of a name of its own that it lets point
// here (DNS rebinding).
type guard struct {
	hosts   []string // lower case; without a port every port counts
	origins []string // lower case, scheme://host[:port]
}

func newGuard(hosts, origins []string) guard {
	g := guard{}
	for _, h := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	for _, o := range origins {
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(o, "/")))
	}
	return g
}

// checkNames tells what is wrong with the lists of a spec.
func checkNames(hosts, origins []string) error {
	for _, h := range hosts {
		if h == "" || strings.ContainsAny(h, "/ *") {
			return fmt.Errorf("server.http.hosts: %q is no host name: write it as in the header Host, such as mcp.example.com or mcp.example.com:8443", h)
		}
	}
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.Trim(u.Path, "/") != "" || strings.Contains(o, "*") {
			return fmt.Errorf("server.http.origins: %q is no origin: write it as a browser does, such as https://app.example.com", o)
		}
	}
	return nil
}

// admit refuses a request with a foreign Host or Origin. A browser's request
// from an origin that is allowed gets the headers that browsers ask for; a
// preflight is answered here, done is true then as after a refusal.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) (done bool) {
	loopback := onLoopback(r)
	if !g.knowsHost(r.Host, loopback) {
		http.Error(w, "Host "+quoteShort(r.Host)+" is not a name of this server: add it to server.http.hosts.", http.StatusForbidden)
		return true
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return false
	}
	if len(origins) > 1 || !g.knowsOrigin(origins[0], loopback) {
		http.Error(w, "Origin "+quoteShort(origins[0])+" may not call this server: add it to server.http.origins.", http.StatusForbidden)
		return true
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers",
		"Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// knowsHost: on loopback the loopback names, elsewhere any address (only names
// can be rebound), and what the spec lists.
func (g *guard) knowsHost(host string, loopback bool) bool {
	name := hostName(host)
	if loopback && isLoopbackName(name) {
		return true
	}
	if !loopback {
		if _, err := netip.ParseAddr(name); err == nil {
			return true
		}
	}
	if host == "" || len(g.hosts) == 0 {
		return false
	}
	return slices.Contains(g.hosts, strings.ToLower(name)) || slices.Contains(g.hosts, strings.ToLower(host))
}

func (g *guard) knowsOrigin(origin string, loopback bool) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(g.origins, origin) {
		return true
	}
	if !loopback {
		return false
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Scheme+"://"+u.Host != origin {
		return false // an origin has a scheme, a host and a port, and nothing else
	}
	return isLoopbackName(hostName(u.Host))
}

// hostName takes the port and the brackets of an IPv6 address away. What is no
// host with a port stays as it is, and matches nothing.
func hostName(host string) string {
	name, port, bracket := host, "", false
	if name, bracket = strings.CutPrefix(host, "["); bracket {
		var closed bool
		if name, port, closed = strings.Cut(name, "]"); !closed {
			return host
		}
	} else if i := strings.IndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	if port != "" && (port[0] != ':' || strings.Trim(port[1:], "0123456789") != "") {
		return host
	}
	return name
}

func isLoopbackName(name string) bool {
	if name == "127.0.0.1" || strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback() && ip.Zone() == ""
}

// onLoopback tells whether the request came in on a loopback address.
func onLoopback(r *http.Request) bool {
	a, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// fromHere tells whether the caller sits on this machine: the peer's address
// is loopback, the request uses a loopback name, and no proxy says that it
// passes on somebody else's request.
func fromHere(r *http.Request) bool {
	if !onLoopback(r) || !isLoopbackName(hostName(r.Host)) {
		return false
	}
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().IsLoopback()
}

func quoteShort(s string) string { return `"` + strings.ToValidUTF8(shorten(s), "?") + `"` }
