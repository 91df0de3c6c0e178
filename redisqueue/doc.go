// Package redisqueue is one purge queue for a whole fleet, through Redis 7 or Valkey. It gathers the purges of all
// processes into few requests, as webdelivery.PurgeQueue does within one process:
//
//	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379"))
//	limiter, err := redislimit.New(rdb)
//	if err != nil {
//		return err
//	}
//	client, err := webdelivery.NewClient(baseURL, "acme", auth, webdelivery.WithPurgeLimiter(limiter))
//	if err != nil {
//		return err
//	}
//	queue, err := redisqueue.New(rdb, client, redisqueue.Options{})
//	if err != nil {
//		return err
//	}
//	defer queue.Close(context.Background())
//	receipt, err := queue.Purge(ctx, webdelivery.Exact("https://www.example.com/app.css"))
//
// # ACL
//
// The user of Redis needs this, besides what package redislimit needs:
//
//	~webdelivery:queue:* +hello +ping +get +set +pttl +pexpire
//	+xadd +xlen +xrange +xread +xreadgroup +xgroup|create +xautoclaim +xclaim +xpending +xack +xdel
//
// A [redis.ClusterClient] also needs +command and +cluster|slots. Redis must not evict keys (maxmemory-policy noeviction).
//
// # How it works
//
// Each call is an entry of a stream. A process with waiting callers waits 100 ms for others, acquires a permit from the
// limiter of its client, takes everything that waits then, up to MaxURIs, and sends it in one request. It writes the
// result of each call as soon as the URIs of that call are decided. If the service refuses URIs, only their callers fail.
// While a process works, it renews its claim. If it dies, another process with a queue sends its calls again after
// Options.Lease. Purging a URI twice does no harm.
//
// Only what the service says about the URIs is a result. If a process cannot purge, for example because of a wrong
// password or a broken network, it rests for a while, and others try its calls. After three such tries the caller gets
// the last error.
//
// # If Redis fails
//
// A call is added again and again for up to a lease, and a caller that waits gets an error that matches [ErrRedis] if
// Redis does not answer for two leases. If Redis has lost its data, calls of Purge are added again within three leases;
// URIs and results of Enqueue are lost. At its memory limit Redis takes no new calls, and those that are in it end first.
// A program that must purge without Redis can do so when a purge matches [ErrRedis], with a webdelivery.PurgeQueue of a
// client that has no limiter. The service then refuses what is too fast, and the client slows down.
package redisqueue
