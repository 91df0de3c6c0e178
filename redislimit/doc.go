// Package redislimit shares the purge budget of one customer between any number of processes, through Redis 7 or
// Valkey. A [Limiter] fits WithPurgeLimiter of package webdelivery:
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
// It gives one permit every 550 ms, with no burst, to all processes together that use the same Redis, prefix and
// customer. The service takes 2 purges a second (service-interface section 8); three arrivals span two intervals, so
// 550 ms leaves 100 ms for one request being slower on its way than the next.
//
// # How permits are given
//
// A caller reserves the next free instant by a small script that runs in Redis, on the clock of Redis, so clocks of
// machines need not agree. He sleeps until then, and asks once more whether the reservation still holds: a permit that
// is free at once costs one round trip, one that was waited for two. Permits come in the order in which callers asked,
// whatever process they are in. When the wait would pass the deadline of the caller's context, nothing is reserved.
//
// The second question is what makes these hold for callers who are already waiting:
//   - a pause, which moves all of them and keeps their order;
//   - a Redis that went away: no permit;
//   - a Redis that lost its data, and a process that was stopped and overslept: they queue again.
//
// A caller who gives up while he waits, or whose process dies, leaves his reservation unused, and those behind him do
// not move up. Thousands of callers that wait without a deadline and are then cancelled together therefore hold up
// every other process for as long as they had queued. Let few wait at a time: a PurgeQueue asks for one permit at a
// time, however many callers it has.
//
// # When Redis is out of reach
//
// Then there is no permit (fail closed): Wait returns an [*UnavailableError]. So it does when Redis refuses the script
// or answers nonsense, and when it has not answered within a second. Each Wait asks Redis anew. With [FallbackLocal]
// each process uses its own share of the budget instead.
//
// # What the client of Redis should be told
//
//   - ContextTimeoutEnabled: true. Without it go-redis waits for a reply as long as ReadTimeout says (5 s by default)
//     and looks at no context. A Limiter returns by the caller's context all the same, and within a second, but leaves
//     behind a goroutine that waits for go-redis. With it that goroutine ends within the second.
//   - DialTimeout, ReadTimeout, WriteTimeout: well below a second. They tell a dead Redis from a slow one; those of
//     go-redis are 5 s.
//   - MaxRetries: -1. go-redis repeats a script whose reply did not come, up to 3 times. Each run reserves a permit, of
//     which only the last is used; and what is out of reach is reported later.
//
// All processes of a budget use one Redis: a budget is one key, so a cluster is fine. The key is a hash with the name
// prefix:customer, "webdelivery:purge:acme" by default; what is not a letter, digit or one of "-_.~" in the customer is
// escaped as in a query. It holds no secret, and expires by itself once the last permit is an interval old. Its field
// free is the next free instant, in microseconds of Unix time, so free minus now is the length of the queue. The user
// of Redis must be allowed evalsha, eval, time, hmget, hset and pexpire on it.
//
// A Redis that loses the key (a restart without persistence, a failover, an eviction) gives the next permit at once:
// one that comes too early.
package redislimit
