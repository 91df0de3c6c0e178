// Package redislimit shares a customer's purge limit among any number of processes, through Redis 7 or Valkey:
//
//	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379")) // close it at the end
//	limiter, err := redislimit.New(rdb)                                                 // handle the errors
//	client, err := webdelivery.NewClient(baseURL, "acme", auth, webdelivery.WithSharedLimiter(limiter))
//
// The Redis user needs these permissions, and in a cluster also +command +cluster|slots:
//
//	~webdelivery:purge:* +evalsha +eval +get +set +pttl +pexpire +hello +ping
//
// At most two of the customer's purges reach the service in any second, as it requires ([section 8]), provided that
// Redis keeps its data, its clock runs forward, and each purge arrives within 5 s of being written. After a loss of
// data (a restart, a failover) or a clock jump, two too many may be sent; they are refused, and sent again.
//
// The limit is kept in two slots, which are keys with a time to live. A purge takes a slot before it is sent, and the
// slot becomes free 1.05 s after the purge has arrived: at most 1.9 permits a second. If a process dies while it holds a
// permit, its slot becomes free after 16 s. The keys contain the origin of the client's base URL and the customer, so
// one limiter can serve all.
//
// If Redis is unreachable for 3 s, or refuses a command, for example because of a missing permission, acquiring a
// permit fails, unless [FallbackLocal] is set. go-redis logs each failed connection (see its SetLogger). Distance to
// Redis costs throughput: each slot stays taken one round trip longer.
//
// Redis may reach its memory limit, but must not evict keys (maxmemory-policy noeviction): under any other policy, a
// full Redis drops the slots, and nothing limits the fleet. Valkey, Sentinel and Redis Cluster are supported;
// redis.Ring is not. If the clock of Redis is set back, there are no permits for a second or two, or, during a pause
// after a refusal, for up to a minute.
//
// If the service refuses a purge as too fast, no process gets a permit for a while, unless it has accepted one
// since the last refusal in that process. So a purge that is always refused delays the others only once.
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
package redislimit
