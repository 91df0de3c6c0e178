package redisqueue

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

const (
	tick        = 50 * time.Millisecond // between two exchanges with Redis, or longer if there is little to learn
	idleTick    = time.Second           // the same of a process without calls, and at most
	replyWithin = 3 * time.Second       // timeout of an exchange
	atOnce      = 1000                  // maximum calls that an exchange adds or stores
	atOnceBytes = 1 << 20               // of URIs that an exchange adds or reads, not many more
	lifetime    = "3456000000"          // of keys without a result, in ms: 40 days, more than Keep and waitFor
)

// permitted begins each script. It refuses a user that lacks any permission: otherwise one that cannot send could add
// calls and become the sender. The errors of redis.call do not name the command in Redis 7.0.
const permitted = `
for _, command in ipairs({'get', 'mget', 'set', 'del', 'exists', 'pexpire', 'time', 'xadd', 'xlen', 'xrange', 'xdel'}) do
  if not redis.acl_check_cmd(command, KEYS[1], KEYS[1], KEYS[1], KEYS[1], KEYS[1]) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. command .. "' command")
  end
end`

// addScript adds calls that are not there, up to a maximum: an entry of the stream, and a key whose value begins with
// the ID of the entry until it is the result. KEYS are the stream and the prefix of the results. ARGV are the maximum,
// and the ID and URIs of each call.
const addScript = "#!lua" + permitted + `
for i = 2, #ARGV, 2 do
  local key = KEYS[2] .. ARGV[i]
  if redis.call('EXISTS', key) == 0 and redis.call('XLEN', KEYS[1]) < tonumber(ARGV[1]) then
    redis.call('SET', key, redis.call('XADD', KEYS[1], '*', 'call', ARGV[i], 'uris', ARGV[i + 1]), 'PX', ` + lifetime + `)
  end
end
return redis.call('PEXPIRE', KEYS[1], ` + lifetime + `)`

// sendScript stores results and deletes their entries, which succeeds even at the memory limit, and writes a beat, unless
// the last one is of another process and not the one that this process knows. Then the sender reads entries, and learns
// which of its calls are gone. KEYS are the stream, the prefix of the results, and the lease. ARGV is an order, and the
// result is a reply, as JSON.
const sendScript = "#!lua flags=allow-oom" + permitted + `
local order, reply = cjson.decode(ARGV[1]), {}
local function put(name, value) reply[name] = reply[name] or {}; table.insert(reply[name], value) end
for _, s in ipairs(order.Store or {}) do
  local key = KEYS[2] .. s.Call
  local entry = string.match(redis.call('GET', key) or '', '^%d+%-%d+')
  if s.Life ~= 0 and (entry or s.Entry) then redis.call('XDEL', KEYS[1], entry or s.Entry) end
  if entry and s.Life < 0 then redis.call('DEL', key)
  elseif entry and s.Life > 0 then redis.call('SET', key, s.Text, 'PX', s.Life)
  elseif entry then redis.call('SET', key, entry .. ' ' .. s.Text, 'KEEPTTL') end
end
local beat = redis.call('GET', KEYS[3]) or ''
if beat == '' then order.Last = '0-0' end -- Redis has lost its data
if order.Beat and (beat == '' or beat == order.Known or string.find(beat, order.Name, 1, true)) then
  redis.call('SET', KEYS[3], order.Beat, 'PX', ` + lifetime + `)
  local now, size = redis.call('TIME'), 0
  while size < order.Room do
    local e = redis.call('XRANGE', KEYS[1], '(' .. order.Last, '+', 'COUNT', 1)[1]
    if not e then break end
    local call, uris, age = e[2][2], e[2][4] or '', now[1] * 1000 + now[2] / 1000 - string.match(e[1], '^%d+')
    order.Last, size = e[1], size + #uris + 1000
    put('Entries', {ID = e[1], Call = call, URIs = uris, Known = redis.call('GET', KEYS[2] .. call) or '', Age = age})
  end
  for _, call in ipairs(order.Open or {}) do
    if redis.call('EXISTS', KEYS[2] .. call) == 0 then put('Gone', call) end
  end
end
reply.Last = order.Last
return cjson.encode(reply)`

type order struct {
	Store       []stored `json:",omitempty"`
	Known, Name string   // the last beat that this process knows, and its name
	Beat        string   `json:",omitempty"` // "" if there is none to write
	Last        string   // the entry that was read last
	Room        int      // bytes of the entries to read, of which each takes 1,000 in addition
	Open        []string `json:",omitempty"` // calls that may be gone
}

// stored is the result of a call, and its life in ms. With 0, it is only what the service has accepted so far, and the
// entry stays. With -1, the caller has left.
type stored struct {
	Entry      string `json:",omitempty"`
	Call, Text string
	Life       int64
}

type reply struct {
	Last    string // the entry that was read last
	Entries []struct {
		ID, Call, URIs, Known string  // Known: the value of the key of the call
		Age                   float64 // in ms, by the clock of Redis
	}
	Gone []string
}

// loop does all that this process does with Redis, except Result and Stats, so one connection is enough for thousands
// of callers.
func (q *Queue) loop() {
	defer close(q.ended)
	for done := false; !done; {
		began := time.Now()
		q.exchange(q.ctx)
		q.mu.Lock()
		pause := idleTick
		if q.term != nil {
			pause = tick
		} else if len(q.calls) > 0 { // long waits and many calls need no quick answer
			pause = min(pause, max(tick, time.Since(q.called)/20)+time.Duration(len(q.calls))*tick/5000)
		}
		done = q.ctx.Err() != nil || !q.worksLocked() && q.term == nil && (len(q.stores) == 0 || q.trouble != nil)
		q.mu.Unlock()
		if !done {
			time.Sleep(tick - time.Since(began))
			select {
			case <-time.After(pause - tick):
			case <-q.wake:
			case <-q.ctx.Done():
			}
		}
	}
	q.all.Wait()
	if q.term != nil || len(q.stores) > 0 { // it hands over, and stores what was known late
		q.exchange(context.WithoutCancel(q.ctx))
	}
}

// exchange adds calls, reads the results of those that wait, and does what the sender has to do, in one pipeline.
func (q *Queue) exchange(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, replyWithin)
	defer cancel()
	why := ""
	if q.term != nil { // only this goroutine changes it
		why = q.why()
	}
	pipe, add, send, length := q.rdb.Pipeline(), &redis.Cmd{}, &redis.Cmd{}, &redis.IntCmd{}
	q.mu.Lock()
	adding, size := []any{q.options.MaxPending}, 0
	keys, calls := []string{q.keys + "lease"}, []*call(nil)
	for _, c := range q.calls {
		if c.added || len(adding) < 2*atOnce && size < atOnceBytes {
			keys, calls = append(keys, q.keys+"result:"+c.id), append(calls, c)
			if !c.added {
				adding, size = append(adding, c.id, c.payload), size+len(c.payload)
			}
		}
	}
	all := []string{q.keys + "calls", q.keys + "result:", q.keys + "lease"}
	if size > 0 {
		add = pipe.Eval(ctx, addScript, all[:2], adding...)
	}
	o := q.orderLocked(why)
	if o.Beat != "" || len(o.Store) > 0 {
		text, _ := json.Marshal(o) //nolint:errchkjson,musttag // no value of this type fails, and Lua knows these names
		send = pipe.Eval(ctx, sendScript, all, text)
	}
	if len(q.calls) == 0 {
		length = pipe.XLen(ctx, all[0])
	}
	q.mu.Unlock()
	states, sent := pipe.MGet(ctx, keys...), time.Now()
	_, err := pipe.Exec(ctx)

	q.mu.Lock()
	defer q.mu.Unlock()
	if values := states.Val(); values != nil {
		q.heard, q.length = time.Now(), length.Val()
		if last, _ := values[0].(string); last != q.lastBeat {
			q.lastBeat, q.seen, q.beat = last, time.Now(), beat{}
			_ = json.Unmarshal([]byte(last), &q.beat) //nolint:musttag // "" if Redis has lost it
		}
		for i, c := range calls {
			text, found := values[i+1].(string)
			q.noteLocked(c, text, found, add.Err())
		}
	}
	if text, _ := send.Text(); text != "" {
		var r reply
		_ = json.Unmarshal([]byte(text), &r) //nolint:musttag // as above
		q.sentLocked(o, r, sent)
	}
	q.troubleLocked(redisError(err))
}

// troubleLocked notes why Redis does not work, or nil, and ends the calls for which waiting does not help.
func (q *Queue) troubleLocked(err error) {
	q.trouble = err
	if refused(err) { // other processes may be able to
		q.endTermLocked()
		q.rest = time.Now().Add(standBack)
	}
	for _, c := range q.calls {
		silent := c.added && time.Since(q.heard) > 2*q.options.Lease || !c.added && time.Since(c.since) > q.options.Lease
		if err != nil && (silent || refused(err)) {
			q.endLocked(c, result{err: err})
		}
	}
}

// noteLocked notes what Redis knows of a call, after it was added with a result of err.
func (q *Queue) noteLocked(c *call, text string, found bool, err error) {
	added := c.added
	if c.added = found; found {
		c.stored = text
	}
	switch {
	case strings.HasPrefix(text, "{"):
		q.endLocked(c, decode(text))
	case found && !strings.HasPrefix(c.id, awaited): // Enqueue waits for no more
		q.endLocked(c, result{})
	case added && !found: // Redis has lost the call
		c.since = time.Now()
	case !found && err == nil && c.stored == "":
		q.endLocked(c, result{err: failed(c.uris, ErrFull, webdelivery.OutcomeNotApplied)})
	case !found && err == nil: // it was lost, and may have been sent
		q.endLocked(c, result{err: ErrFull})
	}
}
