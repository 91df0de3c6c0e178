// Package redisqueue provides a purge queue that a whole fleet shares, through Redis 7 or Valkey. It combines the
// purges of all processes into few requests, as webdelivery.PurgeQueue does within one process:
//
//	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379"))
//	limiter, err := redislimit.New(rdb) // handle the errors
//	client, err := webdelivery.NewClient(baseURL, "acme", auth, webdelivery.WithPurgeLimiter(limiter))
//	queue, err := redisqueue.New(rdb, client, redisqueue.Options{})
//	defer queue.Close(context.Background())
//	receipts, err := queue.Purge(ctx, webdelivery.Exact("https://www.example.com/app.css"))
//
// # ACL
//
// The Redis user needs these permissions, in addition to those that package redislimit lists:
//
//	~webdelivery:queue:* +hello +ping +get +set +pttl +pexpire
//	+xadd +xlen +xrange +xread +xreadgroup +xgroup|create +xautoclaim +xclaim +xpending +xack +xdel
//
// A [redis.ClusterClient] also needs +command and +cluster|slots. Set maxmemory-policy to noeviction.
//
// # How it works
//
// Each call is stored as an entry in a Redis stream. A process with something to send waits 100 ms for more calls,
// acquires a permit from its client's limiter, takes everything that is queued by then, up to MaxURIs, and sends it in
// one request. It stores the result of each call as soon as that is known, and keeps renewing its claim on the calls
// that it has taken. If it dies, another process sends them again after Options.Lease. Purging a URI twice does no
// harm. A call that is older than Options.Keep is not sent any more; its error says so, with an unknown outcome. Short
// calls pass long ones as in a webdelivery.PurgeQueue, but only among the 64 or more that a process has taken.
//
// If the service refuses URIs, only their callers fail, and learn the outcome of each URI. A refused host does not hold
// up others, although each process learns by itself which hosts are refused.
//
// Only the service's verdict on the URIs counts as a result. If a process cannot purge, for example because of a wrong
// password or a broken network, it pauses, and others try its calls, three at most before the caller gets the error.
//
// # If Redis fails
//
// Adding a call is retried for up to a lease. A waiting caller gets an error that matches [ErrRedis] if Redis does not
// respond for two leases, and within 3 s if Redis refuses a command (NOPERM, NOAUTH, WRONGPASS); its process then
// leaves the calls to others. If Redis has lost its data, Purge calls are added again within three leases; URIs and
// results of Enqueue are lost. At its memory limit, Redis accepts no new calls until some of those it holds have ended.
// To purge without Redis, use a webdelivery.PurgeQueue of a client that has no limiter.
package redisqueue
