package gate

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fusion-serve/fusion-serve/engine/db"
)

// Redis is a store on a Redis server. Each of its changes is one script, which
// the server runs as one step.
//
// All keys of a machine have the same hash tag, so that a cluster keeps them
// on one node, where one script may touch them. With p for
// fusion:name:{machine}, there are
//
//	p:state:key  hash    state, version, entered, expires; of a hold call, hold, doubt;
//	                     last: the call that moved it last
//	p:moves:key  list    the last moves, newest first, as JSON
//	p:moved      zset    keys by when they were moved
//	p:held       zset    held keys by since when
//	p:expiry     zset    keys by when they may be forgotten; no held ones
//
// Times are microseconds since 1970, but Redis forgets a key by itself, by its
// own clock, at a millisecond. What it forgets leaves the sets with a later
// move of another key.
//
// Moves are published on fusion:number:name:events:state, as JSON of the ID.
// Other events than those of states may have channels beside it. Channels are
// not kept apart by logical database, hence its number.
type Redis struct {
	client *db.Redis
	name   string
}

// redisMoves is how many moves of a key are kept.
const redisMoves = 50

// OpenRedis makes the store of a server; servers of one name share their
// states. A Redis that is down is no error: calls fail until it is back.
func OpenRedis(c db.RedisConfig, name string) (*Redis, error) {
	client, err := db.OpenRedis(c)
	if err != nil {
		return nil, err
	}
	return &Redis{client: client, name: name}, nil
}

// Close closes the connections.
func (r *Redis) Close() { r.client.Close() }

// Check asks the server whether it may lose states, which puts their machines
// back, and says what to do then. A server that does not tell, as many hosted
// ones do not, has no warnings. An error means that it cannot be reached.
func (r *Redis) Check(ctx context.Context) (warnings []string, err error) {
	if _, err := r.client.Do(ctx, "PING"); err != nil {
		return nil, err
	}
	if policy := r.setting(ctx, "maxmemory-policy"); policy != "" && policy != "noeviction" {
		warnings = append(warnings, "the Redis server drops states when its memory is full (maxmemory-policy is "+policy+"): set maxmemory-policy to noeviction")
	}
	if r.setting(ctx, "appendonly") == "no" {
		warnings = append(warnings, "the Redis server forgets the last moves when it starts again (appendonly is no): set appendonly to yes")
	}
	return warnings, nil
}

// setting gives a setting of the server, "" if it does not tell.
func (r *Redis) setting(ctx context.Context, name string) string {
	answer, err := r.client.Do(ctx, "CONFIG", "GET", name)
	if pair, ok := answer.([]any); err == nil && ok && len(pair) == 2 {
		return text(pair[1])
	}
	return ""
}

func (r *Redis) prefix(fsm string) string { return "fusion:" + r.name + ":{" + fsm + "}:" }

func (r *Redis) channel() string {
	return "fusion:" + strconv.Itoa(r.client.Database()) + ":" + r.name + ":events:state"
}

// eval runs a script, which gives 1, or 0 where the record is another one.
func (r *Redis) eval(ctx context.Context, s *db.RedisScript, id ID, args ...any) error {
	done, err := r.client.Eval(ctx, s, append([]any{r.prefix(id.FSM), id.Key}, args...)...)
	if err != nil {
		return err
	}
	if done != int64(1) {
		return ErrConflict
	}
	return nil
}

// script makes a script that knows the keys of a machine. They are made from
// the one key that it is given, which tells a cluster where it belongs.
func script(lua string) *db.RedisScript {
	return db.NewRedisScript(1, `
		local p, key = KEYS[1], ARGV[1]
		local state, moves = p .. 'state:' .. key, p .. 'moves:' .. key
		local moved, held, expiry = p .. 'moved', p .. 'held', p .. 'expiry'
		-- may_expire has Redis forget a record when its time is over, which is never while it is held.
		local function may_expire(at)
			if at == '0' then
				redis.call('PERSIST', state)
				redis.call('PERSIST', moves)
				redis.call('ZREM', expiry, key)
			else
				local ms = string.sub(at, 1, -4)
				redis.call('PEXPIREAT', state, ms)
				redis.call('PEXPIREAT', moves, ms)
				redis.call('ZADD', expiry, at, key)
			end
		end
	`+lua)
}

// loadFields are the fields of a record in the order in which readRecord takes
// them.
var loadFields = []any{"state", "version", "entered", "hold", "doubt"}

// Load gives the record of an ID.
func (r *Redis) Load(ctx context.Context, id ID) (Record, error) {
	answer, err := r.client.Do(ctx, "HMGET", append([]any{r.prefix(id.FSM) + "state:" + id.Key}, loadFields...)...)
	if err != nil {
		return Record{}, err
	}
	fields, _ := answer.([]any)
	return readRecord(fields)
}

// readRecord reads the fields of a record.
func readRecord(f []any) (Record, error) {
	if len(f) != len(loadFields) {
		return Record{}, errNotOurs
	}
	var r Record
	var err error
	if f[1] != nil {
		r.State = text(f[0])
		if r.Version, err = strconv.ParseInt(text(f[1]), 10, 64); err != nil {
			return Record{}, errNotOurs
		}
		micro, err := strconv.ParseInt(text(f[2]), 10, 64)
		if err != nil {
			return Record{}, errNotOurs
		}
		r.Entered = time.UnixMicro(micro).UTC()
	}
	if f[3] != nil {
		r.Hold = &Hold{}
		if json.Unmarshal(bytes(f[3]), r.Hold) != nil {
			return Record{}, errNotOurs
		}
		r.Hold.Doubt = f[4] != nil
	}
	return r, nil
}

// errNotOurs: somebody else has written to the key.
var errNotOurs = errors.New("a record in Redis is not one that this program has written")

func text(v any) string { return string(bytes(v)) }

func bytes(v any) []byte {
	b, _ := v.([]byte)
	return b
}

// micro is a time as the scripts have it: "0" for the zero time.
func micro(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

var holdScript = script(`
	local version, call, hold, since = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
	local now = redis.call('HMGET', state, 'version', 'call')
	if (now[1] or '0') ~= version then return 0 end
	if now[2] then return now[2] == call and 1 or 0 end -- 1: this script ran before
	redis.call('HSET', state, 'call', call, 'hold', hold)
	redis.call('ZADD', held, since, key)
	may_expire('0')
	return 1
`)

// Hold takes the key for a call.
func (r *Redis) Hold(ctx context.Context, id ID, version int64, h Hold) error {
	h.Doubt = false // it has a field of its own
	hold, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return r.eval(ctx, holdScript, id, version, h.Call, hold, micro(h.Since))
}

var moveScript = script(`
	local version, call, to, entered, expires = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
	local after, channel, event, keep = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
	local now = redis.call('HMGET', state, 'version', 'call', 'last')
	if call ~= '' and now[1] == after and now[3] == call then return 1 end -- this script ran before
	if (now[1] or '0') ~= version then return 0 end
	if now[2] and now[2] ~= call then return 0 end
	redis.call('HSET', state, 'state', to, 'version', after, 'entered', entered, 'expires', expires, 'last', call)
	redis.call('HDEL', state, 'call', 'hold', 'doubt')
	for i = 11, #ARGV do redis.call('LPUSH', moves, ARGV[i]) end
	redis.call('LTRIM', moves, 0, keep - 1)
	redis.call('ZREM', held, key)
	redis.call('ZADD', moved, entered, key)
	may_expire(expires)
	for _, gone in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', '(' .. entered, 'LIMIT', 0, 10)) do
		if redis.call('EXISTS', p .. 'state:' .. gone) == 0 then
			redis.call('ZREM', moved, gone)
			redis.call('ZREM', expiry, gone)
		end
	end
	redis.call('PUBLISH', channel, event)
	return 1
`)

// storedMove is a move in the list of its key, as JSON. A member of Move or of
// Hold that gets another name must keep the old one there, by a tag.
type storedMove struct {
	Version int64
	Move
}

// Move stores moves.
func (r *Redis) Move(ctx context.Context, id ID, version int64, moves []Move, expires time.Time) error {
	last := moves[len(moves)-1]
	args := []any{version, last.Call, last.To, micro(last.At), micro(expires), version + int64(len(moves)), r.channel(), event(id), redisMoves}
	for i, m := range moves {
		b, err := json.Marshal(storedMove{version + int64(i) + 1, m})
		if err != nil {
			return err
		}
		args = append(args, b)
	}
	return r.eval(ctx, moveScript, id, args...)
}

var releaseScript = script(`
	local call, doubt = ARGV[2], ARGV[3]
	if redis.call('HGET', state, 'call') ~= call then return 0 end
	if doubt == '1' then
		redis.call('HSET', state, 'doubt', '1')
		return 1
	end
	redis.call('HDEL', state, 'call', 'hold', 'doubt')
	redis.call('ZREM', held, key)
	may_expire(redis.call('HGET', state, 'expires') or '0')
	return 1
`)

// Release ends the hold of a call, or notes that the call is over.
func (r *Redis) Release(ctx context.Context, id ID, call string, doubt bool) error {
	over := 0
	if doubt {
		over = 1
	}
	return r.eval(ctx, releaseScript, id, call, over)
}

var forgetScript = script(`
	if redis.call('HEXISTS', state, 'call') == 1 then return 0 end
	if redis.call('DEL', state, moves) > 0 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
	redis.call('ZREM', moved, key)
	redis.call('ZREM', expiry, key)
	return 1
`)

// Forget removes an ID with its history.
func (r *Redis) Forget(ctx context.Context, id ID) error {
	return r.eval(ctx, forgetScript, id, r.channel(), event(id))
}

var listScript = db.NewRedisScript(1, `
	local p, limit, out, seen = KEYS[1], tonumber(ARGV[1]), {}, {}
	local function add(keys)
		for _, key in ipairs(keys) do
			if #out >= limit then return end
			local r = redis.call('HMGET', p .. 'state:' .. key, 'state', 'version', 'entered', 'hold', 'doubt')
			if not seen[key] and (r[2] or r[4]) then
				seen[key] = true
				table.insert(out, {key, r})
			end
		end
	end
	add(redis.call('ZRANGE', p .. 'held', 0, limit - 1))
	local from = 0
	while #out < limit do -- some may have expired
		local keys = redis.call('ZREVRANGE', p .. 'moved', from, from + limit - 1)
		if #keys == 0 then break end
		add(keys)
		from = from + limit
	end
	return out
`)

// List gives the records of a machine; held ones by how long they are held.
func (r *Redis) List(ctx context.Context, fsm string, limit int) ([]Entry, error) {
	if limit <= 0 {
		return nil, nil
	}
	answer, err := r.client.Eval(ctx, listScript, r.prefix(fsm), limit)
	if err != nil {
		return nil, err
	}
	rows, _ := answer.([]any)
	out := make([]Entry, 0, len(rows))
	for _, row := range rows {
		pair, _ := row.([]any)
		if len(pair) != 2 {
			return nil, errNotOurs
		}
		fields, _ := pair[1].([]any)
		record, err := readRecord(fields)
		if err != nil {
			return nil, err
		}
		out = append(out, Entry{ID: ID{fsm, text(pair[0])}, Record: record})
	}
	return out, nil
}

// The last moves of a machine are among those of the keys that were moved last.
var historyScript = db.NewRedisScript(1, `
	local p, key, limit, out = KEYS[1], ARGV[1], tonumber(ARGV[2]), {}
	local keys = {key}
	if key == '' then keys = redis.call('ZREVRANGE', p .. 'moved', 0, limit - 1) end
	for _, key in ipairs(keys) do
		table.insert(out, {key, redis.call('LRANGE', p .. 'moves:' .. key, 0, limit - 1)})
	end
	return out
`)

// Machines gives the machines that have records. It walks over the keys of the
// server, which takes a while on a large one.
func (r *Redis) Machines(ctx context.Context) ([]string, error) {
	before, after, _ := strings.Cut(r.prefix("\x00"), "\x00")
	glob := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	names := map[string]bool{}
	for cursor := "0"; ; {
		answer, err := r.client.Do(ctx, "SCAN", cursor, "MATCH", glob.Replace(before)+"*"+after+"*", "COUNT", 1000)
		if err != nil {
			return nil, err
		}
		pair, _ := answer.([]any)
		if len(pair) != 2 {
			return nil, errNotOurs
		}
		keys, _ := pair[1].([]any)
		for _, k := range keys {
			name, _, _ := strings.Cut(strings.TrimPrefix(text(k), before), after)
			names[name] = true
		}
		if cursor = text(pair[0]); cursor == "0" {
			return slices.Sorted(maps.Keys(names)), nil
		}
	}
}

// History gives the last moves of a machine or of one key.
func (r *Redis) History(ctx context.Context, id ID, limit int) ([]Past, error) {
	if limit <= 0 {
		return nil, nil
	}
	answer, err := r.client.Eval(ctx, historyScript, r.prefix(id.FSM), id.Key, limit)
	if err != nil {
		return nil, err
	}
	keys, _ := answer.([]any)
	var out []Past
	for _, k := range keys {
		pair, _ := k.([]any)
		if len(pair) != 2 {
			return nil, errNotOurs
		}
		list, _ := pair[1].([]any)
		for _, b := range list {
			var m storedMove
			if json.Unmarshal(bytes(b), &m) != nil {
				return nil, errNotOurs
			}
			out = append(out, Past{ID: ID{id.FSM, text(pair[0])}, Version: m.Version, Move: m.Move})
		}
	}
	if id.Key != "" {
		return out, nil
	}
	slices.SortStableFunc(out, func(a, b Past) int { return b.At.Compare(a.At) })
	return out[:min(limit, len(out))], nil
}

// event is what is published of a move.
func event(id ID) string {
	b, _ := json.Marshal([]string{id.FSM, id.Key}) // texts always have a form
	return string(b)
}

// Feed tells of moves until ctx ends, and says All whenever it has connected,
// the first time too.
func (r *Redis) Feed(ctx context.Context, tell func(Change)) {
	missed := func() { tell(Change{All: true}) }
	r.client.Subscribe(ctx, r.channel(), missed, func(b []byte) {
		var id []string
		if json.Unmarshal(b, &id) != nil || len(id) != 2 {
			missed() // a newer version of this program speaks otherwise
			return
		}
		tell(Change{ID: ID{id[0], id[1]}})
	})
}
