// Package webdelivery drives a web-delivery management service: it watches tasks, purges caches, queries security
// statistics and keeps network lists, from deploy pipelines, security automation and reports.
//
// A [Client] is made once, for one customer, and is safe for concurrent use:
//
//	client, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth(user, password))
//
// Its services follow the areas of the service. Calls return (T, error), take requests as values, and never change
// what they are given:
//
//	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
//		Action: webdelivery.ActionPurge,
//		URIs:   []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")},
//	})
//	transaction, err := client.Purge.Wait(ctx, receipt.TransactionID)
//
// Many purges go through a [PurgeQueue], which sends what is waiting as one request whenever the service takes one:
//
//	queue := client.Purge.NewQueue(webdelivery.QueueOptions{})
//	receipt, err := queue.Purge(ctx, webdelivery.Exact(uri)) // from any number of goroutines
//	err = queue.Close(ctx)
//
//	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{Since: yesterday}) {
//		...
//	}
//
// Statistics are read whole (Query), or streamed row by row in constant memory (Rows, All), into the caller's own
// structs with [Scan]:
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
//		...
//	}
//
// A network list is brought to a desired set by a plan that can be read before it runs, stored, and run again:
//
//	plan, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{})
//	fmt.Print(plan)
//	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
//
// What has no method is in reach of [Client.Do]. Comments name the section of the service document that they come from
// (docs/service-interface.md in the repository), or the open point that decides what it leaves open
// (docs/open-points.md).
//
// # Errors
//
// A request that the service document calls invalid is a [*ValidationError] and is never sent. A call that failed is an
// [*Error]: errors.Is compares it with [ErrNotFound], [ErrUnauthorized], [ErrRateLimited] and the others, errors.As
// gives status, the service's words and the number of attempts. A task or transaction that was carried out and ended
// badly is a [*TaskError] or [*TransactionError]: the calls succeeded, what they asked for did not. The error of a
// context that ends is the context's. [OutcomeOf] says what became of a write that returned an error.
//
// All errors are safe to log: they hold no credential, and what the service sent is quoted and clipped.
//
// # Retries
//
// Only what is safe is repeated, with full jitter between 0 and a ceiling that doubles from 500 ms to 20 s
// ([WithRetry]):
//
//	GET, HEAD, DELETE, purge   after connection faults, cut replies, 408, 429, 5xx but 501; 4 attempts
//	POST /sessions             the same, 2 attempts; never after the service refused the password
//	every other write          only when it certainly was not processed: no connection, 429,
//	                           503 with Retry-After; 3 attempts
//
// Retry-After is honoured in both its forms. One that asks for more than MaxWait, or for more than the context has
// left, ends the call with the service's reply. A DELETE whose second attempt meets 404 has succeeded. Names that do
// not exist, certificates that are not trusted and unusable replies are final. All retries of a client draw on one
// budget, which successes fill again, so that a service in trouble is not asked four times as often by everybody.
//
// Each attempt has 30 s ([WithAttemptTimeout]), from its connection to the last byte of the reply; the call as a whole
// has what its context gives. A statistics reply that is streamed has no time limit as long as it goes on arriving
// ([WithIdleTimeout]); it is repeated until its first byte, and not after it.
//
// # Purge limit
//
// The service takes 2 purges a second for each customer. Every submission, retries included, waits for a permit of a
// limiter that all clients of the process share for the same origin and customer: one every 550 ms, first come first
// served. A reply that says "too fast" holds back all of them. [WithPurgeLimiter] replaces it.
//
// # Sessions
//
// With [SessionAuth] the client logs in at the first call. When the service refuses the session (401, or 403 on purge
// and transactions), one login is made for all calls that meet it, and each of them is sent again once. A refused
// login is not repeated for 1, 2, 4 up to 30 s.
//
// # Guarantees
//
// Credentials go to the origin of the base URL only: no redirect is followed, and an address in a reply that leads
// elsewhere is refused. Replies are read whole or not at all: a page, an item, a row or a byte that is missing is an
// error.
// Nothing runs after the call that started it has returned.
package webdelivery
