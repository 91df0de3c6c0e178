package redislimit

import "github.com/redis/go-redis/v9"

// A budget is one hash in Redis. All instants are microseconds of virtual time. They have 16 digits, which a number of
// Lua (a double) holds exactly. Scripts must write them with %.0f, because Lua itself prints only 14 digits.
//
// Virtual time is the clock of Redis plus an offset. It never runs backwards: if the clock is set back, the offset grows
// by the same amount.
//
//	last         the virtual time at which the hash was last written
//	offset       the distance from the clock of Redis to virtual time
//	resume       the end of the last pause: no permit before it
//	run          the run of Redis that last wrote the hash: its run id, a colon, and its replication id. A replica that
//	             takes over has another run id; a former master that takes over again has another replication id
//	id1, id2     the leases on slot 1 and slot 2; empty if the purge has arrived
//	end1, end2   the instant from which the slot is free; for a lease, unless it ends earlier
//	blocks       the leases that the hash has lost: "<id> <end> <1 if the purge may be under way, otherwise 0>;", and so on.
//	             No caller gets a permit before the last of these ends
//	gone         the ids that ended last, newest first. A question with such an id takes nothing
//	head, tail   the number of the first ticket that may still wait, and of the next ticket that is given out
//	waiting      the number of tickets that wait
//	ticket:N     who holds ticket N: "<promise> <id>". The holder asks again before the promise, or loses the ticket
//	number:ID    the number of the ticket of ID
//
// Every script begins with prelude. ARGV[1] is the duration of the longest lease, from the grant to the free slot.
// ARGV[2] is the number of the question, a random text. Every script returns {code, wait, number, run}. The number
// proves that the answer belongs to the question. The run shows a process whether it talks to another Redis.
//
// Redis at its memory limit rejects a script at its first write, if that needs memory. The first write of prelude needs
// none and changes nothing, so permits are given at the limit, too. The purges of package redisqueue then free memory.
const prelude = `
redis.call('HDEL', KEYS[1], '')
local numbers = {'last', 'offset', 'resume', 'end1', 'end2', 'head', 'tail', 'waiting'}
local texts = {'run', 'id1', 'id2', 'gone', 'blocks'}
local longest = tonumber(ARGV[1])
local f = {} -- the fields
for i, value in ipairs(redis.call('HMGET', KEYS[1], unpack(numbers))) do f[numbers[i]] = tonumber(value or 0) end
for i, value in ipairs(redis.call('HMGET', KEYS[1], unpack(texts))) do f[texts[i]] = value or '' end

local clock = redis.call('TIME')
clock = clock[1] * 1000000 + clock[2]
local changed = f.last > clock + f.offset -- whether something must be kept even if the script itself changes nothing
f.offset = math.max(f.offset, f.last - clock)
local now = clock + f.offset

-- A Redis that was restarted, or that was a replica, may have lost the last leases. No caller gets a permit until they are
-- over. A hash that does not exist may just be unused. Then the uptime shows since when all leases are known. The uptime
-- is the difference of two times without their fractions, so it can be a second too long.
local function inform(section)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and info or ''
end
local info = inform('server')
local run = string.match(info, 'run_id:(%w+)')
run = run and run .. ':' .. (string.match(inform('replication'), 'master_replid:(%w+)') or '') or ''
if run ~= '' and run ~= f.run then
  local known = 0
  if f.last == 0 then known = math.max(0, tonumber(string.match(info, 'uptime_in_seconds:(%-?%d+)') or 0) - 1) * 1000000 end
  f.resume = math.max(f.resume, now + longest - known)
  f.run = run
  changed = true
end

local blocks = {}
for id, ends, open in string.gmatch(f.blocks, '(%w+) (%d+) ([01]);') do
  ends = tonumber(ends)
  if ends > now then blocks[#blocks + 1] = {id = id, ends = ends, open = open == '1'} end
end

local function answer(code, wait) return {code, wait, ARGV[2], run} end

local function isGone(id) return string.find(f.gone, id, 1, true) end

local function drop(number, id)
  redis.call('HDEL', KEYS[1], 'ticket:' .. number, 'number:' .. id)
  f.waiting = f.waiting - 1
  changed = true
end

local function keep()
  f.last = now
  local last, lines = math.max(now, f.resume, f.end1, f.end2), {}
  for _, b in ipairs(blocks) do
    lines[#lines + 1] = string.format('%s %.0f %d;', b.id, b.ends, b.open and 1 or 0)
    last = math.max(last, b.ends)
  end
  f.blocks = table.concat(lines)
  local args = {}
  for _, name in ipairs(numbers) do
    args[#args + 1] = name
    args[#args + 1] = string.format('%.0f', f[name])
  end
  for _, name in ipairs(texts) do
    args[#args + 1] = name
    args[#args + 1] = f[name]
  end
  redis.call('HSET', KEYS[1], unpack(args))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((last - now) / 1000) + 60000))
end
`

// What askScript answers.
const (
	answerWait    = 0
	answerGranted = 1
	answerRefused = 2
)

// askScript asks for a lease. ARGV: the id of the caller, hold, the longest wait (-1: any), the grace of a promise, the
// longest time between two questions. It returns one of these codes and waits:
//   - answerGranted, 0: the id has a lease.
//   - answerWait, w: ask again in w microseconds.
//   - answerRefused, w: the permit would come in w at the earliest, which is too late. The script takes nothing.
//   - -1, 0: the id has ended.
//
// If the id holds a lease, its answer was lost. The script then renews the lease. It never frees one, because the
// question may be a late copy, and the purge may be in flight.
var askScript = redis.NewScript(prelude + `
local id, hold, patience, grace, often = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if isGone(id) then
  if changed then keep() end
  return answer(-1, 0)
end
local own = tonumber(redis.call('HGET', KEYS[1], 'number:' .. id) or nil)

-- When is each slot free at the earliest? A purge in flight holds its slot, or both, for at least hold from now.
local at, free, held = {}, 0, nil
local resume = math.max(now, f.resume)
for _, b in ipairs(blocks) do resume = math.max(resume, b.open and math.min(b.ends, now + hold) or b.ends) end
for s = 1, 2 do
  local inFlight = f['id' .. s] ~= '' and f['end' .. s] > now
  if inFlight and f['id' .. s] == id then held = s end
  at[s] = math.max(resume, inFlight and math.min(f['end' .. s], now + hold) or f['end' .. s])
  if at[s] == now then free = free + 1 end
end

local function grant(slot)
  f['id' .. slot], f['end' .. slot] = id, now + longest
  if own then drop(own, id) end
  keep()
  return answer(1, 0)
end

-- Counts the callers before a ticket, up to limit. Callers that broke their promise lose their tickets. It also returns
-- the first promise of the others.
local function before(number, limit)
  local count, n, first = 0, f.head, math.huge
  while n < number and count < limit do
    local ticket = redis.call('HGET', KEYS[1], 'ticket:' .. n)
    if ticket then
      local promise, holder = string.match(ticket, '^(%d+) (.+)$')
      promise = tonumber(promise)
      if promise < now then
        drop(n, holder)
      else
        count = count + 1
        first = math.min(first, promise)
      end
    end
    n = n + 1
    if count == 0 then f.head = n end
  end
  if f.head == f.tail then f.waiting = 0 end
  return count, first
end

if held and resume == now then return grant(held) end
local number = own or f.tail
local place, first = before(number, math.max(free, 1))
if place < free then return grant(at[1] == now and 1 or 2) end

-- At most tail - number tickets wait behind, so at least the others wait before. The caller at place k gets slot k mod 2
-- after floor(k / 2) others, each of which holds it for at least hold.
local function forecast()
  if held then return resume - now end
  place = math.max(place, f.waiting - (f.tail - number))
  local slot = place % 2 == 0 and math.min(at[1], at[2]) or math.max(at[1], at[2])
  return slot + math.floor(place / 2) * hold - now
end
local wait = forecast()
if patience >= 0 and wait > patience and not held then
  place = before(number, 256) -- callers who are gone must not make it too late
  wait = forecast()
end
if patience >= 0 and wait > patience then
  if own then drop(own, id) end
  if changed then keep() end
  return answer(2, wait)
end

-- If a slot is free, earlier callers have not asked for it yet. If the first of them breaks its promise, ask then. The
-- first places ask more often, because later callers wait for their promises.
if free > 0 then wait = math.min(wait, first + 1 - now) end
if place < 32 then often = often / 2 end

-- Ask from time to time, because earlier callers may be gone. No caller gets a permit during a pause.
wait = math.max(math.min(wait, often), f.resume - now)
if not own and not held then
  f.tail, f.waiting = f.tail + 1, f.waiting + 1
  redis.call('HSET', KEYS[1], 'number:' .. id, string.format('%.0f', number))
end
if not held then
  redis.call('HSET', KEYS[1], 'ticket:' .. number, string.format('%.0f %s', now + wait + grace, id))
end
keep()
return answer(0, wait)
`)

// reportScript reports leases to Redis. ARGV has three values for each lease: its id, how long it may still hold its
// slot, and 1 or 0. 1 means that the lease ends now; 0 means that its purge may still be in flight. The code is 1.
//
// An end frees the slot after that time, but not later than the end of the lease. It deletes a ticket too. If Redis
// does not know the lease, it has lost its data. No caller then gets a permit for that time, or until a later end
// shortens it.
var reportScript = redis.NewScript(prelude + `
for i = 3, #ARGV, 3 do
  local id, left, ends = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2] == '1'
  local known = isGone(id)
  for s = 1, 2 do
    if f['id' .. s] == id then
      known = true
      if ends then f['id' .. s], f['end' .. s] = '', math.min(f['end' .. s], now + left) end
    end
  end
  local block
  for _, b in ipairs(blocks) do
    if b.id == id then block = b end
  end
  if block and ends and not known then
    block.ends, block.open = math.min(block.ends, now + left), false
  elseif not block and not known and left > 0 then
    if #blocks < 256 then
      blocks[#blocks + 1] = {id = id, ends = now + left, open = not ends}
    else
      f.resume = math.max(f.resume, now + left)
    end
  end
  if ends and not isGone(id) then
    local number = redis.call('HGET', KEYS[1], 'number:' .. id)
    if number then drop(number, id) end
    f.gone = string.sub(id .. ' ' .. f.gone, 1, 256 * (#id + 1))
  end
end
keep()
return answer(1, 0)
`)

// pauseScript stops all permits for the time in ARGV[3]. The code is 1.
var pauseScript = redis.NewScript(prelude + `
if now + ARGV[3] > f.resume then
  f.resume = now + ARGV[3]
  changed = true
end
if changed then keep() end
return answer(1, 0)
`)
