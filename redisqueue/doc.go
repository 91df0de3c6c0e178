// Package redisqueue provides a purge queue that a whole fleet shares, through Redis 7 or Valkey. It combines the
// purges of all processes into few requests, as webdelivery.PurgeQueue does within one process:
//
//	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379"))
//	limiter, err := redislimit.New(rdb) // handle the errors
//	client, err := webdelivery.NewClient(baseURL, "acme", auth, webdelivery.WithSharedLimiter(limiter))
//	queue, err := redisqueue.New(rdb, client, redisqueue.Options{})
//	defer queue.Close(context.Background())
//	receipts, err := queue.Purge(ctx, webdelivery.Exact("https://www.example.com/app.css"))
//
// The limiter of package redislimit is needed beside the queue: queues of another action, Wait or prefix have senders of
// their own, and other programs purge, too; all share the customer's limit.
//
// # ACL
//
// The Redis user needs these permissions, in addition to those that package redislimit lists:
//
//	~webdelivery:queue:* +hello +ping +eval +get +mget +set +del +exists +pexpire +time +xadd +xlen +xrange +xdel
//
// A [redis.ClusterClient] also needs +command and +cluster|slots. Set maxmemory-policy to noeviction.
//
// # How it works
//
// Each call is an entry of a Redis stream and a key for its result. One process at a time, the sender, reads the stream
// from its start, sends the URIs through a webdelivery.PurgeQueue of its own, and for each call that the service has
// decided stores the result and deletes the entry, in one step. With Options.Wait, it first stores the receipts beside
// the entry and waits for the transactions. So whoever sends next reads all that is open, sends what has neither result
// nor receipt, and only waits for the rest. A sender that has nothing to send, closes, or cannot purge, for example
// because of a wrong password, a broken network or a limiter that fails, makes room for another process at once, and
// does not send again for a while, up to 10 minutes, unless nobody else does. If it dies or hangs, another one takes over
// after Options.Lease, or after 2 s if it had no calls of its own. Then URIs that were under way are purged twice, which
// does no harm.
//
// A caller gets the error of senders that cannot purge after three of these and a lease. A call older than Options.Keep
// is not sent any more; its error says so, with an unknown outcome. If a transaction fails, cannot be read, or has not
// ended after an hour, all URIs of its calls that were not refused have that error. Only what the service has refused
// alone is "not applied": an earlier sender may have sent the rest. Otherwise the results are those of a
// webdelivery.PurgeQueue.
//
// # If Redis fails
//
// Adding a call is retried for up to a lease. A waiting caller gets an error that matches [ErrRedis] if Redis does not
// respond for two leases, and within 3 s if Redis refuses a command (NOPERM, NOAUTH, WRONGPASS); its process then
// leaves the calls to others. If Redis has lost its data, Purge calls are added again; URIs and results of Enqueue are
// lost. At its memory limit, Redis accepts no new calls until some of those it holds have ended. To purge without
// Redis, use a webdelivery.PurgeQueue of a client that has no limiter.
package redisqueue
