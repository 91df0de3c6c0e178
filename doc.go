// Package webdelivery is a client for a web-delivery management service. It tracks tasks, purges caches, queries
// security statistics and manages network lists. Use it in deploy pipelines, security automation and reports.
//
// This function creates a [Client], purges one object, and waits until the caches have removed it:
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
// Create one Client per customer and keep it. It is safe for concurrent use and needs no Close. It has one field for
// each area of the service. Calls return (T, error), take requests as values, and never change their arguments.
//
// # Services
//
// To purge many URIs, use a [PurgeQueue]. Each time the service can take a request, it sends all waiting URIs in one.
// Close the queue at the end:
//
//	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
//	if err != nil {
//		return err
//	}
//	receipt, err := queue.Purge(ctx, webdelivery.Exact(uri)) // from any number of goroutines
//
// Collections are sequences. A sequence reads all pages up to the last one, and ends with the first error:
//
//	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{Since: yesterday}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(task.ID, task.Status)
//	}
//
// Statistics come as a whole (Query), or row by row in constant memory (All). [Scan] reads rows into your own
// structs. Package filters builds filters:
//
//	type Event struct {
//		Time time.Time   `stats:"event_timestamp_ms"`
//		IP   *netip.Addr `stats:"client_ip"` // nil if the row has null
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
// A plan brings a network list to the entries that you want. You can print it before it changes anything, store it as
// JSON, and apply it later:
//
//	plan, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{})
//	if err != nil {
//		return err
//	}
//	fmt.Print(plan)
//	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
//
// If a request of the service has no method here, send it with [Client.Do].
//
// Comments name the section of the [service document] that they follow. Where the document leaves something open, an
// [open point] states the decision of the SDK. If your service spells a request differently there, set its spelling
// with [WithDialect].
//
// # Errors
//
// Use errors.As for a type, and errors.Is for a sentinel. The most common errors are:
//
//   - [*ValidationError]: an argument is invalid by the service document or for the SDK. The call has sent nothing.
//     It matches [ErrInvalid].
//   - [*Error]: the call failed on its way, or the service rejected it. It holds the status, the service's
//     description and the number of attempts. It matches [ErrNotFound], [ErrUnauthorized], [ErrRateLimited] and
//     others.
//   - [*TaskError], [*TransactionError]: a task or a purge ended badly. The calls succeeded; the operation failed.
//   - [*PlanError]: the list or a guard does not allow the plan. The call has read the list, but changed nothing.
//
// If the context of a call ends, its error matches context.Canceled or context.DeadlineExceeded. If a write returns
// an error, [OutcomeOf] says whether the service carried it out. The [list of errors] has all types and sentinels.
//
// The text of every error is safe to log. It holds no credential, and it quotes and shortens the service's own words.
//
// # Retries
//
// The client retries a request only if that is safe. It waits for a random time between 0 and a ceiling. The ceiling
// doubles from 500 ms to 20 s ([WithRetry]).
//
//	GET, HEAD, DELETE          after connection failures, cut responses, 408, 429, 5xx except 501; 4 attempts
//	purge                      the same, but 429 and 503 mean "too fast": for 5 minutes, at the pace of its permits
//	POST /sessions             the same, 2 attempts; never after the service refused the password
//	any other write            only if the service certainly did not process it: no connection, 429,
//	                           503 with Retry-After; 3 attempts
//
// The client waits for as long as Retry-After asks, in seconds or until a date. If that exceeds MaxWait
// ([RetryPolicy]) or the rest of the context, the call does not retry and returns the response as an error. For a
// purge that the service refuses as too fast, ThrottleTimeout replaces MaxWait.
//
// If a retried DELETE gets 404 because an earlier attempt may have succeeded, the call succeeds. Unknown hosts,
// certificates that either side does not trust, proxies that refuse, and unusable responses are not retried.
//
// All retries of a client, except those of purges refused as too fast, share one budget of about a hundred. Successes
// refill it. So a service in trouble does not get four times as many requests from every client.
//
// Each attempt has 30 s ([WithAttemptTimeout]), from its connection to the last byte of the response. Only its
// context limits the whole call. A streamed statistics response has no time limit as long as data arrives
// ([WithIdleTimeout]). It is retried until its first row has arrived, and not after that.
//
// # Limits
//
// The service accepts 2 purges per second and customer, and counts them when they arrive. So each submission waits
// for a permit, retries included. All clients of a process with the same origin and customer share the permits, in
// the order of their calls. At any time, at most two purges are on their way or have arrived within the last 1.05 s.
// So no three arrive within a second, even if connections are slow or the network stalls for up to 5 s.
// [WithPurgeLimiter] replaces these permits. Module redislimit has permits that many processes share.
//
// If purges come too fast, the service answers 503 (or 429). Then the interval between permits doubles, up to 16 s on
// average. A longer Retry-After is kept, up to a day. Each accepted purge shortens the interval a little, and
// each minute without any purge halves it. So processes that do not know of each other find their shares. With 8 of
// them, the service refuses about 30 % of the requests, and no purge is lost. A 503 can also be a fault of the
// service, so the outcome of a purge is [OutcomeUnknown] until a retry is accepted.
//
// A response that is read whole may have up to 32 MiB ([WithMaxResponseBytes]). If the SDK sends many requests by
// itself, at most 4 run at once. One request adds at most 5,000 entries to a network list.
//
// # Sessions
//
// With [SessionAuth], the client logs in at the first call. If the service refuses the session (401, or 403 to a
// purge or a transaction), the client logs in once for all calls concerned. It sends each of them once more. After a
// refused login, no login is sent for 1, 2, 4 up to 30 s. If a login gets a 4xx other than 408 and 429, the calls
// that need it return [ErrUnauthorized], whatever the status. With [BasicAuth] and [SessionToken] nothing cools down: a
// 401 is returned, and a wrong password is sent with every call.
//
// # Guarantees
//
// The client sends credentials only to the origin of the base URL. It follows no redirect, and refuses an address in
// a response that leads elsewhere. Nothing is lost silently: if an announced page, row or byte is missing, the call
// returns an error. No goroutine outlives its call, except those of a PurgeQueue, which end with Close, and a login that
// every caller has left at its deadline: the next caller has its result, and it ends by its own time limits.
//
// A wait for a task or a purge ends with its context, and by itself when nothing could be read for 10 minutes. Time that
// the service asks to wait, with Retry-After, does not count ([WaitMaxOutage]).
//
// net/http makes two exceptions. A dial continues after its call has ended, and its connection is kept for the next
// call. If a service overflows the window of an HTTP/2 stream, the calls on that transport hang, even past the end of
// their contexts. The [fault tables] show what happens after each fault.
//
// Your own code is a transport, limiter, log handler or callback. If it panics in your goroutine, the panic passes through
// the SDK, which releases its locks and permits; in a goroutine that the SDK started it ends the program, as in any Go
// program. If it ignores the end of its context, it blocks the call whose goroutine it runs in.
//
// # Testing
//
// Package webdeliverytest is a fake service for the tests of your programs. It is strict, and simulates faults and
// time. In a testing/synctest bubble, tests do not wait. The programs under examples in the repository also run
// against it. examples/emulator is the fake as a program.
//
// # Versions
//
// The module follows semver. Before 1.0, a minor version may break programs; CHANGELOG.md names each replacement, and
// [Versions] says what is promised. The SDK speaks version v1 of the service. If the service adds
// something, programs continue to work. The SDK ignores unknown members of a response, and passes unknown statuses
// and types through as strings. (Service document, [section 9].)
//
// [service document]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md
// [open point]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/open-points.md
// [list of errors]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/errors.md
// [fault tables]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/internals/reliability.md#faults
// [Versions]: https://github.com/webdelivery/webdelivery-go#versions
// [section 9]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#9-versioning
package webdelivery
