// Package redisqueue is one purge queue for a whole fleet, through Redis 7 or Valkey. It gathers the purges of all
// processes into few requests, as webdelivery.PurgeQueue does within one process:
//
//	rdb := redis.NewClient(&redis.Options{
//		Addr:                  "redis.example.com:6379",
//		ContextTimeoutEnabled: true,
//		DialTimeout:           500 * time.Millisecond,
//		ReadTimeout:           500 * time.Millisecond,
//		WriteTimeout:          500 * time.Millisecond,
//		MaxRetries:            -1,
//		DialerRetries:         1,
//	})
//	client, err := webdelivery.NewClient(baseURL, "acme", auth,
//		webdelivery.WithPurgeLimiter(limiter)) // of redislimit.New(rdb)
//	if err != nil {
//		return err
//	}
//	queue := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme"})
//	defer queue.Close(context.Background())
//	receipt, err := queue.Purge(ctx, webdelivery.Exact("https://www.example.com/app.css"))
//
// Use it if many machines react to the same change: 500 machines with one URI each need about 3 requests and 2 s.
// With redislimit alone, each of them sends its own request, and the last one waits for more than 4 minutes.
//
// # How it works
//
// A call of [Queue.Purge] lies in Redis until a process takes it. One process of the fleet has the turn: it acquires
// the next permit from the limiter of its client. When the permit comes, it takes everything that waits, up to
// MaxURIs, and sends it in one request. It then writes the result of each call to Redis. Each process waits for the
// results of its own callers with one blocking read.
//
// The process that adds a call to an empty queue gets the turn. It passes the turn on when nothing is left.
//
// Identical URIs of one request are sent once. If the service refuses URIs, only their callers fail, see
// [webdelivery.QueueError].
//
// # If a process dies
//
// A process renews the lease of what it has taken. If it is killed, its lease ends after Options.Lease, and another
// process sends these URIs again. A URI may therefore be purged twice, which does no harm. The permit of a killed
// process is lost for 16 s, see package redislimit: until then the fleet sends one request per second.
//
// If a request fails, callers of Purge in the same process get the error. Other processes send the URIs of the other
// callers, because the fault may lie in the process: a wrong password, or a transport that panics. Such a call fails
// when three processes have failed to send it, or after six tries, which take some minutes. For the time of a lease,
// a process whose request failed sends only its own URIs, in requests of its own. URIs that the service refuses are
// no such failure.
//
// A process that hangs does not stop the fleet. If it has got no permit for the time of a lease, another one gets the
// turn. If its requests get no response for 45 s, another one sends the URIs as well, except with Options.Wait.
//
// Once a request may have been carried out, the outcome of its calls is never again not applied.
//
// Every process with a queue checks for work once per lease and a half at the latest, also if it has no callers. URIs
// of [Queue.Enqueue] wait in Redis until there is such a process, but not for longer than Options.Keep.
//
// # If Redis is down
//
// [Queue.Purge] and [Queue.Enqueue] return a [*webdelivery.QueueError] whose cause is an [*UnavailableError]. If
// Redis does not answer at all, they do so after 5 s. webdelivery.OutcomeOf returns not applied if Redis did not get
// the URIs, and unknown if it may have got them. Callers whose URIs Redis has got wait on while Redis is down, but
// not for longer than Options.Lease and 5 s. All callers end with their contexts.
//
// With Options.FallbackLocal, the process purges these URIs alone, through its own PurgeQueue. Give its limiter
// redislimit.FallbackLocal as well, so that all processes together keep the limit.
//
// # If Redis loses data
//
// A Redis without persistence loses its data when it restarts, and a failover may lose the last second. Then:
//
//   - A caller that waits in Purge notices it within one and a half leases. Its process adds the URIs again. They may
//     then be purged twice.
//   - URIs of Enqueue are lost, and their ids are unknown: Result returns [ErrUnknownID]. Use Purge, or a Redis that
//     stores what it acknowledges (appendonly yes, appendfsync always), if each of them counts.
//   - Results of Enqueue are lost.
//
// Redis must not evict keys: set maxmemory-policy to noeviction. At its memory limit Redis takes no new calls, and
// Purge returns an [*UnavailableError] with the outcome not applied.
//
// # Options of the client of Redis
//
// See package redislimit. DialerRetries bounds how often go-redis dials a Redis that is down, and redis.SetLogger
// decides where it logs that. The scripts of a queue are never retried, whatever MaxRetries is. A queue needs one
// connection for the results, and up to 8 others. A [redis.ClusterClient] is supported: all keys have the same hash
// tag. A [redis.Ring] is not.
//
// # The keys
//
// The names begin with prefix:{name:service:action}, for example webdelivery:queue:{acme:1f2e3d4c:purge}:. service is
// the beginning of a hash of base URL and customer: processes with other customers have other queues, whatever their
// names are. The keys hold URIs, results and random ids, no credentials. A waiting call with one URI takes about 300
// bytes. Each key expires after Options.Keep if no process uses it.
//
// Each call has a version: a newer release reads older calls, and an older release leaves newer ones to newer
// processes.
//
// The user of Redis needs the commands of streams, the scripts (evalsha, eval) and expiry (pexpire). It also needs
// time, hget, hset, hdel, hincrby, zadd, zrem, zrange, zrangebyscore, zscore, set, get and exists.
package redisqueue
