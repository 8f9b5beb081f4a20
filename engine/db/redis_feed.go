package db

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// How a subscription finds out that its connection is dead, and when it tries
// again.
const (
	redisPing      = 10 * time.Second
	redisSilence   = 3 * redisPing
	redisRetry     = 50 * time.Millisecond // doubled each time
	redisRetryMost = 5 * time.Second
)

// Subscribe gives the messages of a channel until ctx ends, from one goroutine.
// connected is called each time that the server has taken the subscription:
// messages may be missing since the last one. It connects again by itself, and
// uses a connection of its own.
func (r *Redis) Subscribe(ctx context.Context, channel string, connected func(), message func([]byte)) {
	for wait := redisRetry; ; wait = min(2*wait, redisRetryMost) {
		r.listen(ctx, channel, func() { wait = redisRetry; connected() }, message)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// listen gives the messages of one connection, until it breaks.
func (r *Redis) listen(ctx context.Context, channel string, connected func(), message func([]byte)) {
	conn, err := r.dial(ctx)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Close()
		}
	}()
	c := redis.PubSubConn{Conn: conn}
	if c.Subscribe(channel) != nil {
		return
	}
	go ping(ctx, c)
	for {
		switch m := c.ReceiveWithTimeout(redisSilence).(type) {
		case redis.Subscription:
			connected()
		case redis.Message:
			message(m.Data)
		case error:
			return
		}
	}
}

// ping makes the server say something now and then, so that a connection that
// says nothing is known to be dead.
func ping(ctx context.Context, c redis.PubSubConn) {
	tick := time.NewTicker(redisPing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.Ping("") != nil {
				return
			}
		}
	}
}
