package serve

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// peer is what mcp-go knows of a client on stdio: the client of a 2025
// revision for as long as it is there, or one request of 2026-07-28.
type peer struct {
	id          string
	subscriber  json.RawMessage // id of the request; nil: a client of a 2025 revision
	notes       chan mcp.JSONRPCNotification
	initialized atomic.Bool
	filter      atomic.Pointer[mcp.SubscriptionFilter]
}

var _ server.SessionWithSubscriptionFilter = (*peer)(nil)

func newPeer(request []byte) *peer {
	return &peer{id: rand.Text(), subscriber: request, notes: make(chan mcp.JSONRPCNotification, 100)}
}

// SessionID is the key under which mcp-go keeps the peer.
func (p *peer) SessionID() string { return p.id }

// Initialize is called when the client has said hello: before that a client of
// a 2025 revision gets no notifications.
func (p *peer) Initialize() { p.initialized.Store(true) }

// Initialized tells whether the peer may get notifications.
func (p *peer) Initialized() bool { return p.initialized.Load() }

// NotificationChannel takes what mcp-go has to tell.
func (p *peer) NotificationChannel() chan<- mcp.JSONRPCNotification { return p.notes }

// SetSubscriptionFilter notes what subscriptions/listen asked for.
func (p *peer) SetSubscriptionFilter(f mcp.SubscriptionFilter) { p.filter.Store(&f) }

// SubscriptionFilter gives it; a client of a 2025 revision has none and gets
// everything.
func (p *peer) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	if f := p.filter.Load(); f != nil {
		return *f, true
	}
	return mcp.SubscriptionFilter{}, p.subscriber != nil
}

// pump writes the notifications of a peer, and what its watcher (nil: it has
// none) hears, until the function that it gives is called, which first writes
// those that wait.
func (c *stdio) pump(p *peer, wt *watcher) (stop func()) {
	ended := make(chan struct{})
	var pumping sync.WaitGroup
	var wake chan struct{}
	if wt != nil && p.subscriber == nil {
		wake = wt.wake
	}
	pumping.Go(func() {
		for {
			select {
			case n := <-p.notes:
				c.tell(p, n)
				if wt != nil {
					wake = wt.wake // a subscription was acknowledged
				}
			case <-wake:
				c.write([]byte(wt.take()))
			case <-ended:
				for len(p.notes) > 0 {
					c.tell(p, <-p.notes)
				}
				if wt != nil && len(wt.wake) > 0 {
					c.write([]byte(wt.take()))
				}
				return
			}
		}
	})
	return func() {
		if wt != nil {
			wt.end()
		}
		close(ended)
		pumping.Wait()
	}
}

// tell writes one notification, under the id of its subscription.
func (c *stdio) tell(p *peer, n mcp.JSONRPCNotification) {
	if p.subscriber != nil {
		meta := make(map[string]any, len(n.Params.Meta)+1)
		maps.Copy(meta, n.Params.Meta) // shared with other peers
		meta[mcp.MetaKeySubscriptionID] = p.subscriber
		n.Params.Meta = meta
	}
	line, err := json.Marshal(n)
	if err != nil {
		c.s.opts.Log.Error("writing a notification", "method", n.Method, "cause", err.Error())
		return
	}
	c.write(line)
}
