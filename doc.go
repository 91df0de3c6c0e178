// Package webdelivery drives a web-delivery management service: it watches tasks, purges caches, queries security
// statistics and keeps network lists, from deploy pipelines, security automation and reports.
//
// A first program makes a [Client], purges an object, and waits until the caches have carried it out:
//
//	func purgeObject(ctx context.Context, uri string) error {
//		client, err := webdelivery.NewClientFromEnv() // or NewClient(baseURL, customer, BasicAuth(user, password))
//		if err != nil {
//			return err
//		}
//		receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
//			Action: webdelivery.ActionPurge,
//			URIs:   []webdelivery.PurgeURI{webdelivery.Exact(uri)},
//		})
//		if err != nil {
//			return err
//		}
//		_, err = client.Purge.Wait(ctx, receipt.TransactionID)
//		return err
//	}
//
// A Client is made once, for one customer, and is safe for concurrent use. Its services follow the areas of the
// service. Calls return (T, error), take requests as values, and never change what they are given.
//
// # Services
//
// Many purges go through a [PurgeQueue], which sends what is waiting as one request whenever the service takes one, and
// is closed in the end:
//
//	queue := client.Purge.NewQueue(webdelivery.QueueOptions{})
//	receipt, err := queue.Purge(ctx, webdelivery.Exact(uri)) // from any number of goroutines
//
// Collections are sequences, which follow their pages to the last; the first error ends them:
//
//	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{Since: yesterday}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(task.ID, task.Status)
//	}
//
// Statistics are read whole (Query), or streamed row by row in constant memory (Rows, All), into the caller's own
// structs with [Scan]; package filters builds their filters:
//
//	type Event struct {
//		Time time.Time  `stats:"event_timestamp_ms"`
//		IP   netip.Addr `stats:"client_ip"`
//	}
//	query := webdelivery.EventsQuery{
//		Dimensions: webdelivery.DimensionsOf[Event](), Start: start, End: end,
//		Filter: filters.Eq("client_country_code", "CN"),
//	}
//	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(event.Time.Format(time.TimeOnly), event.IP)
//	}
//
// A network list is brought to a desired set by a plan that can be read before it runs, stored, and run again:
//
//	plan, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{})
//	if err != nil {
//		return err
//	}
//	fmt.Print(plan)
//	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
//
// What has no method is in reach of [Client.Do]. Comments name the section of the service document that they come from
// (docs/service-interface.md in the repository), or the open point that decides what it leaves open
// (docs/open-points.md). A service that spells such a thing otherwise needs one [WithDialect].
//
// # Errors
//
// If an argument is invalid by the service document or to the SDK, a call returns a [*ValidationError], which matches
// [ErrInvalid]: then the call has sent nothing. A plan that the list or a guard does not allow is a [*PlanError], because
// the list was read to know. A call that failed is an [*Error]: errors.Is compares it with [ErrNotFound],
// [ErrUnauthorized], [ErrRateLimited] and the others, errors.As gives status, the service's words and the number of
// attempts. A task or transaction that was carried out and ended badly is a [*TaskError] or [*TransactionError]: the
// calls succeeded, what they asked for did not. The error of a call whose context ended matches context.Canceled or
// context.DeadlineExceeded. [OutcomeOf] says what became of a write that returned an error.
//
// The text of every error is safe to log: it holds no credential, and what the service sent is quoted and clipped.
//
// # Retries
//
// Only what is safe is repeated, with full jitter between 0 and a ceiling that doubles from 500 ms to 20 s
// ([WithRetry]):
//
//	GET, HEAD, DELETE          after connection faults, cut replies, 408, 429, 5xx but 501; 4 attempts
//	purge                      the same, but 429 and 503 mean "too fast": for 5 minutes, at the pace of its permits
//	POST /sessions             the same, 2 attempts; never after the service refused the password
//	every other write          only when it certainly was not processed: no connection, 429,
//	                           503 with Retry-After; 3 attempts
//
// Retry-After is honoured in both its forms. One that asks for more than MaxWait (for a purge refused as too fast:
// ThrottleTimeout), or for more than the context has left, ends the call with the service's reply. A DELETE that meets
// 404 after an attempt that may have worked has succeeded. Names that do not exist, certificates that are not trusted
// by either side, proxies that refuse, and unusable replies are final. All other retries of a client draw on one budget
// of about a hundred, which successes fill again, so that a service in trouble is not asked four times as often by
// everybody.
//
// Each attempt has 30 s ([WithAttemptTimeout]), from its connection to the last byte of the reply; the call as a whole
// has what its context gives. A statistics reply that is streamed has no time limit as long as it goes on arriving
// ([WithIdleTimeout]); it is retried until its first row has arrived, and not after that.
//
// # Limits
//
// The service takes 2 purges in any second for each customer, and counts them when they arrive. Every submission,
// retries included, waits for a permit. All clients of a process that have the same origin and customer share them, in
// order of arrival. At most two purges are on their way at once or have arrived within the last 1.05 s, so no three
// arrive within a second, however long connections take and the network stalls (up to 5 s). [WithPurgeLimiter] replaces
// these permits; module redislimit has some that many processes share.
//
// The service answers 503 (or 429) to more. Then the interval between permits doubles, up to 16 s on average; a longer
// Retry-After is kept, up to 5 minutes. Each accepted purge shortens the interval a little, and each minute without any
// purge halves it. So processes that do not know of each other find their shares by themselves: with 8 of them, about
// 30 % of the requests are refused and no purge is lost. A 503 can also be a fault of the service: the outcome of a
// purge is [OutcomeUnknown] until a retry is accepted.
//
// A reply that is read whole has 32 MiB at most ([WithMaxResponseBytes]). Where the SDK makes many calls by itself, 4
// run at once. Entries of a network list are sent 5,000 a call.
//
// # Sessions
//
// With [SessionAuth] the client logs in at the first call. When the service refuses the session (401, or 403 on purge
// and transactions), one login is made for all calls that meet it, and each of them is sent again once. A refused
// login is not repeated for 1, 2, 4 up to 30 s. If a login gets a 4xx other than 408 and 429, the calls that need it fail
// with [ErrUnauthorized], whatever the status.
//
// # Guarantees
//
// Credentials go to the origin of the base URL only: no redirect is followed, and an address in a reply that leads
// elsewhere is refused. Nothing that was announced is lost silently: a page, a row or a byte that is missing from a
// reply is an error. Nothing runs after the call that started it has returned, but for a PurgeQueue, until its Close.
//
// Two things of net/http are exceptions. A dial that has begun goes on when its call ends, and its connection is kept for
// the next call. If a service overflows the window of an HTTP/2 stream, the calls on that transport hang, also past
// their contexts (docs/reliability.md in the repository).
//
// A panic or runtime.Goexit in code of yours (a transport, limiter, log handler, callback, loop body, method of a
// context or error) leaves the client usable. In your goroutine it passes through to you. In a goroutine of the SDK (a
// login, a PurgeQueue, [ReadAhead], the polls of WaitAll, the deletions of Apply, the late end of a [Permit]) it
// becomes an error of the calls concerned; that of a panic names the function. The SDK cannot recover a panic in a
// goroutine that net/http or context started, such as that of a dialer. Code of yours that ignores the end of its
// context holds up the call whose goroutine it runs in, but not Purge and Close of a PurgeQueue. In a login, it holds
// up those who wait for the login until their contexts end, and 100 ms more for the last of them.
//
// # Testing
//
// Package webdeliverytest is a fake of the service, for the tests of programs that use this package: strict, with
// faults and a clock, and in a testing/synctest bubble without any waiting. The programs under examples in the
// repository run on it, too; examples/emulator is the fake as a program.
//
// # Versions
//
// The module follows semver: before 1.0 a minor version may break something, and CHANGELOG.md says what to write
// instead; docs/compatibility.md in the repository says what is promised. It speaks version v1 of the service
// (service-interface section 9). What a service adds breaks no program: unknown members of a reply are ignored, and
// unknown statuses and types pass through as strings.
package webdelivery
