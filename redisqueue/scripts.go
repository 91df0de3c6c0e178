package redisqueue

import "github.com/redis/go-redis/v9"

// script is a script and its hash.
type script struct{ text, hash string }

func newScript(body string) script {
	text := prelude + body
	return script{text, redis.NewScript(text).Hash()}
}

// A queue is four kinds of keys in Redis, all with one hash tag. Every key expires.
//
//	calls     a stream with one entry per call that has not ended. Fields: v, the version of the entry; p, the process
//	          that wrote it; c, the number of the call in that process; n and b, its URIs and their bytes; u, the URIs
//	          as JSON; k, wait if a caller waits in that process, and keep if the result is kept for Result.
//	          Its group "g" knows which entries a batch holds: each batch is a consumer.
//	leases    a sorted set: each batch, by the end of its lease. The batch newer:V has calls of version V that an older
//	          process has set aside; its lease has always ended
//	state     a hash:
//	            size                 URIs in calls
//	            uris:BATCH           URIs of a batch that have not ended
//	            turn, turnEnds       the process that acquires permits for the fleet, and until when without a sign of life
//	            requests, accepted, failures, err    the statistics
//	            fails:ID             the processes that could not send the entry
//	            safe:ID              exists if the last batch with the entry has certainly not been carried out
//	            doubt:ID             exists if an earlier batch with the entry may have been carried out
//	to:P      a stream of messages to process P. Field m is a result; lost has entries that Redis does not know; look
//	          asks the process to look for work
//	result:ID the result of a call that nobody waits for
//
// All instants are microseconds of the clock of Redis. They have 16 digits, which a number of Lua (a double) holds
// exactly. Scripts must write them with %.0f.
//
// KEYS: state, calls, leases. ARGV[1] is how long keys are kept, in milliseconds; ARGV[2] is the process that asks.
const prelude = `
local state, calls, leases = KEYS[1], KEYS[2], KEYS[3]
local base = string.sub(state, 1, -6) -- without "state"
local keep, me = ARGV[1], ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- Another program may have written the fields.
local function number(field)
  local n = tonumber(redis.call('HGET', state, field) or 0) or 0
  return n > 0 and n < 1e17 and math.floor(n) or 0
end

local function add(field, n)
  if n ~= 0 then redis.call('HSET', state, field, string.format('%.0f', math.max(0, number(field) + n))) end
end

local function touch()
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], keep) end
end

-- Redis at its memory limit rejects a script at its first write, if that needs memory. Scripts that free memory begin
-- with touch, which needs none, so that they are never rejected.

-- The entry that was last given to a batch. It creates the group if there is none.
local last
local function delivered()
  if last then return last end
  if redis.call('EXISTS', calls) == 1 then
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', calls)) do
      local f = {}
      for i = 1, #group, 2 do f[group[i]] = group[i + 1] end
      if f.name == 'g' then
        last = f['last-delivered-id']
        return last
      end
    end
  end
  redis.call('XGROUP', 'CREATE', calls, 'g', '0', 'MKSTREAM')
  last = '0-0'
  return last
end

local function fieldsOf(entry)
  local f = {id = entry[1]}
  for i = 1, #entry[2], 2 do f[entry[2][i]] = entry[2][i + 1] end
  -- Another program may have written it.
  for _, name in ipairs({'n', 'b', 'v'}) do f[name] = math.floor(math.max(0, math.min(tonumber(f[name]) or 0, 1e9))) end
  for _, name in ipairs({'p', 'c', 'u', 'k'}) do f[name] = f[name] or '' end
  return f
end

local function find(id)
  local found = redis.call('XRANGE', calls, id, id)
  return found[1] and fieldsOf(found[1])
end

local function heldBy(id, batch)
  if redis.call('EXISTS', calls) == 0 then return false end
  delivered()
  local found
  if batch then
    found = redis.call('XPENDING', calls, 'g', id, id, 1, batch)
  else
    found = redis.call('XPENDING', calls, 'g', id, id, 1)
  end
  return #found > 0
end

-- The oldest entry that belongs to no batch, or nil.
local function head()
  if redis.call('EXISTS', calls) == 0 then return nil end
  local found = redis.call('XRANGE', calls, '(' .. delivered(), '+', 'COUNT', 1)
  return found[1] and fieldsOf(found[1])
end

-- A batch whose lease has ended, and that a process of this version can read.
local function overdue(version)
  for _, batch in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', string.format('%.0f', now), 'LIMIT', 0, 100)) do
    if tonumber(string.match(batch, '^newer:(%d+)$') or 0) <= version then return batch end
  end
end

-- Gives the turn to the asking process, unless another one has it. No turn lasts longer than half an hour.
local function turn(lasts)
  local holder, ends = redis.call('HGET', state, 'turn'), number('turnEnds')
  if holder and holder ~= me and ends > now and ends < now + 1800e6 then return 0 end
  redis.call('HSET', state, 'turn', me, 'turnEnds', string.format('%.0f', now + lasts))
  return 1
end

local function giveBackTurn()
  if redis.call('HGET', state, 'turn') == me then redis.call('HDEL', state, 'turn', 'turnEnds') end
end

local function tell(process, ...)
  redis.pcall('XADD', base .. 'to:' .. process, '*', ...) -- fails if another program has written the key
  redis.pcall('PEXPIRE', base .. 'to:' .. process, keep)
end

local function drop(f)
  redis.call('XACK', calls, 'g', f.id)
  redis.call('XDEL', calls, f.id)
  redis.call('HDEL', state, 'fails:' .. f.id, 'safe:' .. f.id, 'doubt:' .. f.id)
  add('size', -f.n)
end
`

// enqueueScript adds a call. ARGV: the longest turn (0: the process does not take it), and the most URIs in the queue.
// Then follow the fields v, c, n, b, u, k. It returns the id of the entry, and 1 if the process has the turn. If the queue
// is full, it returns "".
var enqueueScript = newScript(`
local lasts, most, n = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7])
delivered()
local size = number('size')
if most >= 0 and size > 0 and size + n > most then return {'', 0} end
local id = redis.call('XADD', calls, '*', 'v', ARGV[5], 'p', me, 'c', ARGV[6], 'n', ARGV[7], 'b', ARGV[8], 'u', ARGV[9], 'k', ARGV[10])
local mine = 0
pcall(function() -- whatever fails now, Redis has the call
  add('size', n)
  if lasts > 0 then mine = turn(lasts) end
  touch()
end)
return {id, mine}
`)

// What takeScript answers.
const (
	takenAll  = 0 // the batch has all calls, or another process has the turn
	takenFull = 1 // the batch is full; this process keeps the turn
	takenPart = 2 // take again
)

// takeScript makes a batch of the calls that wait, the oldest first. Calls of batches whose lease has ended come before
// them. ARGV: the longest turn, the batch, its lease, and the newest version that the process can read. Then follow the
// most URIs and bytes of a batch, those that it has already, and the most calls of one script. The first call always fits.
//
// It returns one of the codes above, the URIs and bytes that the batch has now, and the calls. Each has id, process,
// number, URIs, kind, and 1 if an earlier batch with the call may have been carried out.
var takeScript = newScript(`
touch()
local lasts, batch, lease, version = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local maxURIs, maxBytes = tonumber(ARGV[7]), tonumber(ARGV[8])
delivered()
local uris, bytes, mostCalls = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local taken, stop = {}, false

local function fits(f, again)
  if uris + bytes > 0 and (uris + f.n > maxURIs or bytes + f.b > maxBytes) then
    stop = 'full'
  elseif #taken == mostCalls then
    stop = 'part'
  else
    uris, bytes = uris + f.n, bytes + f.b
    local doubt = again and redis.call('HEXISTS', state, 'doubt:' .. f.id) or 0
    if again and doubt == 0 and redis.call('HDEL', state, 'safe:' .. f.id) == 0 then
      redis.call('HSET', state, 'doubt:' .. f.id, 1)
      doubt = 1
    end
    taken[#taken + 1] = {f.id, f.p, f.c, f.u, f.k, tostring(doubt)}
    return true
  end
  return false
end

-- XCLAIM with FORCE also takes entries that no batch has held yet.
local function claim(ids)
  if #ids == 0 then return end
  ids[#ids + 1], ids[#ids + 2] = 'FORCE', 'JUSTID'
  redis.call('XCLAIM', calls, 'g', batch, 0, unpack(ids))
end

local function setAside(f)
  redis.call('XCLAIM', calls, 'g', 'newer:' .. f.v, 0, f.id, 'FORCE', 'JUSTID')
  redis.call('ZADD', leases, 0, 'newer:' .. f.v)
  tell(f.p, 'look', '1')
end

-- A batch that is taken in parts must not be overdue itself.
redis.call('ZADD', leases, 'XX', string.format('%.0f', now + lease), batch)
local old = overdue(version)
while old and not stop do
  local pending = redis.call('XPENDING', calls, 'g', '-', '+', 100, old)
  local ids = {}
  for _, p in ipairs(pending) do
    local f = find(p[1])
    if not f then
      redis.call('XACK', calls, 'g', p[1])
    elseif f.v > version then
      setAside(f)
    elseif fits(f, true) then
      ids[#ids + 1] = f.id
    else
      break
    end
  end
  claim(ids)
  if not stop and #pending < 100 then
    redis.call('XGROUP', 'DELCONSUMER', calls, 'g', old)
    redis.call('ZREM', leases, old)
    redis.call('HDEL', state, 'uris:' .. old)
    old = overdue(version)
  end
end

while not stop do
  local entries = redis.call('XRANGE', calls, '(' .. last, '+', 'COUNT', 100)
  local ids = {}
  for _, entry in ipairs(entries) do
    local f = fieldsOf(entry)
    if f.v > version then
      setAside(f)
    elseif fits(f) then
      ids[#ids + 1] = f.id
    else
      break
    end
    last = f.id
  end
  claim(ids)
  if #entries > 0 then redis.call('XGROUP', 'SETID', calls, 'g', last) end
  if #entries < 100 then break end
end

if #taken > 0 then
  redis.call('ZADD', leases, string.format('%.0f', now + lease), batch)
  redis.call('HSET', state, 'uris:' .. batch, string.format('%.0f', uris))
end
local code = 0
if stop == 'part' then
  code = 2
elseif stop == 'full' then
  code = turn(lasts)
else
  giveBackTurn()
end
touch()
return {code, uris, bytes, taken}
`)

// finishScript ends calls of a batch. ARGV: the batch, and for each call its id and its result; "" for a caller of this
// process, who knows it. Calls that the batch does not hold stay as they are. It returns how many calls have ended.
var finishScript = newScript(`
touch()
local batch, ended = ARGV[3], 0
for i = 4, #ARGV, 2 do
  local id, result = ARGV[i], ARGV[i + 1]
  local f = heldBy(id, batch) and find(id)
  if f then
    drop(f)
    add('uris:' .. batch, -f.n)
    ended = ended + 1
    if f.k == 'keep' then
      redis.call('SET', base .. 'result:' .. id, result, 'PX', keep)
    elseif result ~= '' then
      tell(f.p, 'm', result)
    end
  end
end
if ended > 0 and #redis.call('XPENDING', calls, 'g', '-', '+', 1, batch) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', calls, 'g', batch)
  redis.call('ZREM', leases, batch)
  redis.call('HDEL', state, 'uris:' .. batch)
end
touch()
return ended
`)

// blameScript records that this process could not send calls of other processes. ARGV: the batch. Then follow the ids,
// each with 1 if the service has certainly not carried out the call. It returns for each call how many processes could
// not send it, and how often one could not.
var blameScript = newScript(`
touch()
local counts = {}
for i = 4, #ARGV, 2 do
  local id, processes, times = ARGV[i], 0, 0
  if heldBy(id, ARGV[3]) then
    local all = (redis.call('HGET', state, 'fails:' .. id) or '') .. me .. ' '
    redis.call('HSET', state, 'fails:' .. id, all)
    local known = {}
    for process in string.gmatch(all, '%S+') do
      times = times + 1
      if not known[process] then processes = processes + 1 end
      known[process] = true
    end
    if ARGV[i + 1] == '1' then redis.call('HSET', state, 'safe:' .. id, 1) end
  end
  counts[#counts + 1], counts[#counts + 2] = processes, times
end
touch()
return counts
`)

// freeScript ends the lease of a batch now, gives the turn back, and asks a process with a waiting call to go on. ARGV:
// the batch, or "", and 1 if its request was never sent.
var freeScript = newScript(`
touch()
local next
if redis.call('ZSCORE', leases, ARGV[3]) and redis.call('EXISTS', calls) == 1 then
  delivered()
  redis.call('ZADD', leases, 'XX', string.format('%.0f', now), ARGV[3])
  local pending = redis.call('XPENDING', calls, 'g', '-', '+', ARGV[4] == '1' and 20000 or 1, ARGV[3])
  next = pending[1] and find(pending[1][1])
  for _, p in ipairs(ARGV[4] == '1' and pending or {}) do redis.call('HSET', state, 'safe:' .. p[1], 1) end
end
giveBackTurn()
next = next or head()
if next and next.p ~= me then tell(next.p, 'look', '1') end
touch()
return 0
`)

// renewScript is a sign of life. ARGV: the longest turn (0: the turn ends by itself), the lease, the batches.
var renewScript = newScript(`
touch()
for i = 5, #ARGV do
  redis.call('ZADD', leases, 'XX', string.format('%.0f', now + tonumber(ARGV[4])), ARGV[i])
end
if tonumber(ARGV[3]) > 0 and redis.call('HGET', state, 'turn') == me then
  redis.call('HSET', state, 'turnEnds', string.format('%.0f', now + tonumber(ARGV[3])))
end
touch()
return 0
`)

// leaveScript removes calls that belong to no batch. ARGV: their ids. For each it returns 1 if it was removed, and 0
// if it belongs to a batch or does not exist.
var leaveScript = newScript(`
touch()
local left = {}
for i = 3, #ARGV do
  local f = not heldBy(ARGV[i]) and find(ARGV[i])
  if f then drop(f) end
  left[#left + 1] = f and 1 or 0
end
return left
`)

// lookScript looks for work. ARGV: the longest turn; the newest version that the process can read; 1 if the process takes
// the turn. Then follow ids of calls that wait in the process. If Redis does not know some of them, it sends the process a
// message: all earlier results are in the stream before it. It returns 1 if the process has the turn, and in how many
// microseconds the next lease or turn ends (-1: there is none).
var lookScript = newScript(`
touch()
local lost = {}
for i = 6, #ARGV do
  if #redis.call('XRANGE', calls, ARGV[i], ARGV[i]) == 0 then lost[#lost + 1] = ARGV[i] end
end
if #lost > 0 then tell(me, 'lost', table.concat(lost, ' ')) end

-- Another program may have deleted keys.
if redis.call('EXISTS', calls) == 1 then
  delivered()
  for _, consumer in ipairs(redis.call('XPENDING', calls, 'g')[4] or {}) do
    if not redis.call('ZSCORE', leases, consumer[1]) then redis.call('ZADD', leases, string.format('%.0f', now), consumer[1]) end
  end
end
if redis.call('XLEN', calls) == 0 then redis.call('HDEL', state, 'size') end

local first, mine = head(), 0
local work = overdue(tonumber(ARGV[4])) or first
if work and ARGV[5] == '1' then mine = turn(tonumber(ARGV[3])) end
local ends = tonumber(redis.call('ZRANGEBYSCORE', leases, '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
if work and number('turnEnds') > now then ends = math.min(ends or math.huge, number('turnEnds')) end
touch()
return {mine, ends and string.format('%.0f', math.max(0, ends - now)) or '-1'}
`)

// countScript adds to the statistics and returns them. ARGV: requests, accepted URIs, failures in a row (0: none),
// their error. It returns the URIs that are in no request, the age of the oldest in microseconds, requests, accepted,
// failures and the error.
var countScript = newScript(`
touch()
add('requests', tonumber(ARGV[3]))
add('accepted', tonumber(ARGV[4]))
if ARGV[5] ~= '' then
  if ARGV[5] == '0' then redis.call('HDEL', state, 'failures', 'err') else
    add('failures', tonumber(ARGV[5]))
    redis.call('HSET', state, 'err', ARGV[6])
  end
end
local pending = number('size')
for _, batch in ipairs(redis.call('ZRANGEBYSCORE', leases, '(' .. string.format('%.0f', now), '+inf')) do
  pending = pending - number('uris:' .. batch)
end
local first, old, age = head(), overdue(1e9), 0
if old and redis.call('EXISTS', calls) == 1 then
  delivered()
  local lost = redis.call('XPENDING', calls, 'g', '-', '+', 1, old)[1]
  if lost and (not first or lost[1] < first.id) then first = {id = lost[1]} end
end
if first then age = math.max(0, now - tonumber(string.match(first.id, '^%d+')) * 1000) end
touch()
return {math.max(0, pending), string.format('%.0f', age), number('requests'), number('accepted'), number('failures'),
  redis.call('HGET', state, 'err') or ''}
`)

// wakeScript ends a read of this process.
var wakeScript = newScript(`
redis.call('XADD', base .. 'to:' .. me, '*', 'bye', '1')
redis.call('PEXPIRE', base .. 'to:' .. me, 1000)
return 0
`)

// resultScript returns the result of a call. ARGV: its id. The first value is ended, pending or unknown.
var resultScript = newScript(`
local result = redis.call('GET', base .. 'result:' .. ARGV[3])
if result then return {'ended', result} end
if #redis.call('XRANGE', calls, ARGV[3], ARGV[3]) > 0 then return {'pending', ''} end
return {'unknown', ''}
`)
