// Package redislimit shares the purge budget of one customer between any number of processes, through Redis 7 or
// Valkey. Pass a [Limiter] to WithPurgeLimiter of package webdelivery:
//
//	rdb := redis.NewClient(&redis.Options{
//		Addr:                  "redis.example.com:6379",
//		ContextTimeoutEnabled: true,
//		DialTimeout:           500 * time.Millisecond,
//		ReadTimeout:           500 * time.Millisecond,
//		WriteTimeout:          500 * time.Millisecond,
//		MaxRetries:            -1,
//	})
//	client, err := webdelivery.NewClient(baseURL, "acme", auth,
//		webdelivery.WithPurgeLimiter(redislimit.New(rdb, "acme")))
//
// # What it guarantees
//
// The service accepts 2 purges per second, and counts them when they arrive. (Service document, [section 8].) All
// processes that use the same Redis, prefix and customer share one budget. Of any three of their purges, the first and
// the third arrive at least one second apart. This holds however long a connection takes and however far a process is
// from Redis. It also holds if a process or Redis is stopped for a while.
//
// The budget has two slots. A purge takes a slot before it leaves. The slot is free again 1.05 s after the purge has
// arrived. Of any three purges, two share a slot, so the later one leaves more than a second after the earlier one has
// arrived. With a fast service, the average rate is almost 1.9 purges a second.
//
// # How permits are given
//
// [Limiter.Acquire] runs a small script in Redis, which leases a free slot. All times are those of the clock of Redis,
// so the clocks of the processes may differ. A permit expires 10 s after its question; the client begins no request
// after that. When the purge has arrived, the client calls Done, and Redis learns when the slot is free. If a process
// dies with a permit, its slot is free after 16.05 s. That is 10 s to begin the request, 5 s for it to arrive, and 1.05
// s.
//
// If no slot is free, the caller gets a ticket. Callers of all processes get slots in the order in which they first
// asked. The answer says when a slot may be free. The caller sleeps until then, but at most 5 s (2.5 s for the first 32
// callers), and asks again. A caller that has not asked again 2 s after that time loses its ticket. Killed callers
// therefore leave a free slot unused for up to 7 s. A caller whose context ends returns its ticket. If the wait would
// pass the deadline of the caller's context, Acquire returns an error at once and takes nothing.
//
// Up to 4 newcomers and 4 callers with tickets ask at the same time from one Limiter. The others queue in the process
// until it is their turn.
//
// Each Acquire has a random id, so a question that Redis gets twice takes one slot. If an answer comes late, the
// process returns the lease at once. If the answer is lost, the process returns the lease with its next question.
//
// A permit costs one question, and its Done another one. Far from Redis, slots are therefore taken for longer. Measured
// purges per second of all processes together, by their distance from Redis:
//
//	one way     under 1 ms  75 ms  125 ms  250 ms  400 ms
//	per second  1.9         1.5    1.3     1.0     0.6
//
// # If Redis is down
//
// If Redis is down, there is no permit (fail closed): Acquire returns an [*UnavailableError]. The same holds if Redis
// rejects the script, returns a malformed answer, or does not answer within a second. A caller that queues for its turn
// gets the error if Redis answers no caller of the process for a second. Each Acquire sends a new question. With
// [FallbackLocal], each process uses its own share of the budget instead.
//
// A question whose caller has left goes on for up to 5 s in its goroutine. It may be setting up a connection, which
// takes several round trips: TCP, TLS, the greeting of go-redis, and the first time the script itself. If the way to
// Redis takes 100 ms or more, the first calls may fail for some seconds. Later calls use the new connection.
//
// # If Redis loses data
//
//   - After a restart, no process gets a permit until all earlier leases are over, which takes 16.05 s. The same holds
//     after a failover to a replica that has the key. The script recognizes both by the run id, the replication id and
//     the uptime of Redis. If Redis does not allow INFO in scripts, only the next two rules apply, and a process does
//     not notice another run. The replication id also changes an hour after the last replica has left; that costs the
//     same pause.
//   - A process reports its own leases to Redis if Redis was down, or if another run of Redis answers. It does so before
//     it uses a permit of that Redis. If Redis does not know a lease, no process gets a permit until that lease is over.
//     This covers a failover to an empty replica, for the leases of processes that still ask.
//   - If a purge has arrived and Redis does not know its lease, no process gets a permit for 1.05 s.
//   - The script cannot detect FLUSHALL, a deleted key or an eviction, because the run of Redis stays the same. Two
//     permits are then free at once, so up to two purges too many may be sent, and waiting callers lose their places. Use
//     a maxmemory policy that does not evict the key; it has an expiry.
//   - A [Limiter.Pause] is lost with the data. No process sends again a pause that Redis has confirmed.
//   - If the network splits and two masters take writes, each of them gives its own permits. Set min-replicas-to-write to
//     1 and min-replicas-max-lag to a few seconds, so that the master without replicas refuses to write soon. The limit
//     may break until then.
//
// # Clocks
//
// If the clock of Redis is set back, the limit still holds: the script continues from the last time that it has seen.
// If the clock is set forward, slots are free too early by that time. A clock that runs more than 4.7 % fast breaks the
// limit: it uses up the margin of 50 ms. ntpd speeds up the clock by 0.05 % at most. chrony does so by up to 8.3 %
// unless you lower its maxslewrate, to 10000 for 1 %. If a whole machine is suspended, its own clock may stand still,
// so it may use a permit that has expired. The same can happen if a process is stopped for over 5 s between the
// check of its permit and the start of its request.
//
// # Options of the client of Redis
//
//   - ContextTimeoutEnabled: true. Otherwise go-redis waits for an answer as long as ReadTimeout (5 s by default) and
//     ignores the context. A Limiter still returns when the context ends, and its next caller gets a turn after 5 s. But
//     its goroutine stays until go-redis returns.
//   - DialTimeout, ReadTimeout, WriteTimeout: well below a second, but longer than the way to Redis and back. Each of them
//     bounds one round trip. They distinguish a dead Redis from a slow one. The defaults of go-redis are 5 s.
//   - MaxRetries: -1. By default go-redis retries a script up to 3 times. This is safe, but reports later, or not at all,
//     that Redis was down. The process then notices it by the run that answers.
//
// A [redis.Client], also one for Sentinel, and a [redis.ClusterClient] are supported. A [redis.Ring] is not: it moves the
// key to another Redis when one is down, so two of them give permits.
//
// # The key
//
// A budget is one key, so a cluster is fine. The key is a hash with the name prefix:customer, "webdelivery:purge:acme"
// by default. Characters of the customer other than letters, digits and "-_.~" are escaped as in a query. It holds times
// and random ids, no secret. It expires a minute after the last lease and the last pause. Its field waiting is the
// length of the queue. The user of Redis needs the commands evalsha, eval, time, info, hmget, hget, hset, hdel and
// pexpire; in a cluster cluster|slots too.
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
package redislimit
