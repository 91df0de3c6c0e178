// Package redislimit shares the purge limit of a customer between any number of processes, through Redis 7 or Valkey:
//
//	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379"))
//	defer rdb.Close()
//	limiter, err := redislimit.New(rdb)
//	if err != nil {
//		return err
//	}
//	client, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth("alice", password),
//		webdelivery.WithPurgeLimiter(limiter))
//
// The user of Redis needs these rights, and in a cluster also +command +cluster|slots:
//
//	~webdelivery:purge:* +evalsha +eval +get +set +pttl +pexpire +hello +ping
//
// Of all purges of the customer, at most two arrive within any second, as the service demands ([section 8]), while
// Redis keeps its data, its clock runs forward, and a purge arrives within 5 s of being written. After a loss of data
// (a restart, a failover) or a jump of the clock, two purges too many may leave. The service refuses them, and the
// clients send them again.
//
// The limit is kept in two slots, keys with a time to live. A purge takes a slot before it leaves, and the slot is free
// 1.05 s after the purge has arrived. Of any three purges, two share a slot. If a process dies with a permit, its slot is
// free after 16 s. A client names its keys by the origin of its base URL and its customer, so one limiter serves any.
//
// If Redis is unreachable for 3 s, there is no permit, unless [FallbackLocal] is set. Far from Redis permits are fewer:
// 40 processes together get 1.9 a second within 1 ms of Redis, and 1.6 if each way takes 75 ms.
//
// Redis may be full, but must not evict keys (maxmemory-policy noeviction): with another policy, a full Redis drops the
// slots at once, and nothing limits the fleet. Valkey, Sentinel and Redis Cluster work as well, a redis.Ring does not. If
// the clock of Redis is set back, there may be fewer permits for a minute.
//
// [section 8]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#8-limits
package redislimit
