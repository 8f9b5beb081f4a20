package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestGuard dials nothing: it asks for each kind of host what is refused.
func TestGuard(t *testing.T) {
	const (
		public   = "api.example.com"
		local    = "localhost"
		intern   = "billing.internal"
		short    = "billing"
		mdns     = "printer.LOCAL."
		literal  = "10.0.0.5"
		mapped   = "::ffff:10.0.0.5"
		metadata = "169.254.169.254"
	)
	for _, c := range []struct{ host, address, want string }{
		{public, "93.184.216.34", ""},
		{public, "2606:2800:220:1::1", ""},
		{public, "127.0.0.1", "this machine's own"},
		{public, "127.8.9.10", "this machine's own"},
		{public, "::1", "this machine's own"},
		{public, "::ffff:127.0.0.1", "this machine's own"},
		{public, "64:ff9b::7f00:1", "this machine's own"},
		{public, "2002:7f00:0001::1", "this machine's own"},
		{public, "0.0.0.0", "unspecified"},
		{public, "::", "unspecified"},
		{public, "::ffff:0.0.0.0", "unspecified"},
		{public, "0.1.2.3", "reserved"},
		{public, "10.0.0.5", "private"},
		{public, "172.16.3.4", "private"},
		{public, "192.168.1.1", "private"},
		{public, "::ffff:192.168.1.1", "private"},
		{public, "64:ff9b::a00:5", "private"},
		{public, "100.64.0.1", "private"},
		{public, "fd12:3456::1", "private"},
		{public, metadata, "link-local"},
		{public, "::ffff:169.254.169.254", "link-local"},
		{public, "fd00:ec2::254", "link-local"},
		{public, "fe80::1%eth0", "link-local"},
		{public, "224.0.0.1", "multicast"},
		{public, "ff02::1", "multicast"},
		{public, "255.255.255.255", "reserved"},
		{public, "240.0.0.1", "reserved"},
		{public, "198.18.0.1", "reserved"},
		{public, "192.0.0.8", "reserved"},
		{public, "::7f00:1", "reserved"},
		{public, "2001::1", "reserved"},
		{public, "fec0::1", "reserved"},
		{public, "64:ff9b:1::1", "reserved"},

		{local, "127.0.0.1", ""},
		{local, "::1", ""},
		{local, "10.0.0.5", "private"},
		{intern, "10.0.0.5", ""},
		{intern, "127.0.0.1", ""},
		{intern, "100.64.0.1", ""},
		{intern, "fd12:3456::1", ""},
		{intern, metadata, "link-local"},
		{intern, "fd00:ec2::254", "link-local"},
		{intern, "0.0.0.0", "unspecified"},
		{short, "10.0.0.5", ""},
		{mdns, "192.168.1.9", ""},

		{literal, "10.0.0.5", ""},
		{literal, "::ffff:10.0.0.5", ""},
		{literal, "10.0.0.6", "private"},
		{mapped, "10.0.0.5", ""},
		{metadata, metadata, ""},
		{metadata, "169.254.169.253", "link-local"},
	} {
		if got := guardOf(c.host).refuses(netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.host, c.address, got, c.want)
		}
	}
}

func TestControl(t *testing.T) {
	for _, c := range []struct{ network, address, want string }{
		{"tcp4", "93.184.216.34:443", ""},
		{"tcp4", "127.0.0.1:80", "the host of the service has the address 127.0.0.1, which is this machine's own"},
		{"tcp6", "[::ffff:10.0.0.1]:80", "the host of the service has the address ::ffff:10.0.0.1, which is private"},
		{"unix", "/var/run/docker.sock", "the service would be reached by unix"},
		{"tcp4", "nowhere", "the service has no address"},
	} {
		got := ""
		if err := guardOf("api.example.com").control(t.Context(), c.network, c.address, nil); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.network, c.address, got, c.want)
		}
	}
}

// TestRebinding asks a name server of its own that gives a public name the
// address of this machine: the server behind it must not be reached.
func TestRebinding(t *testing.T) {
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	names := nameServer(t, [4]byte{127, 0, 0, 1})

	c, err := New(Config{Name: "pay", BaseURL: "http://pay.example.com:" + port})
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = newTransport("pay.example.com", names)
	_, err = c.Do(t.Context(), &Request{Method: "GET", Target: "/"})
	const want = "service pay: the host of the service has the address 127.0.0.1, which is this machine's own"
	var e *Error
	if !errors.As(err, &e) || !e.Refused || e.Error() != want {
		t.Errorf("got %v, want refused: %s", err, want)
	}
	if reached {
		t.Error("the server was reached")
	}

	// The same name server, for a name that may be of this machine.
	c.http.Transport = newTransport("pay.internal", names)
	if r, err := c.Do(t.Context(), &Request{Method: "GET", Target: "/"}); err != nil || r.Status != 200 || !reached {
		t.Errorf("a private name: %v", err)
	}
}

// nameServer answers every question with one address.
func nameServer(t *testing.T, a [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1},
					Body:   &dnsmessage.AResource{A: a},
				}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
