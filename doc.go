// Package webdelivery is a client for a web-delivery management service. It purges caches, tracks tasks, queries
// security statistics and manages network lists, in deploy pipelines, security automation and reports.
//
// This function purges one object and returns when the caches have removed it:
//
//	func purgeObject(ctx context.Context, uri string) error {
//		client, err := webdelivery.NewClientFromEnv() // or NewClient(baseURL, customer, BasicAuth(user, password))
//		if err != nil {
//			return err
//		}
//		_, err = client.Purge.SubmitAndWait(ctx, webdelivery.PurgeRequest{
//			Action: webdelivery.ActionPurge,
//			URIs:   []webdelivery.PurgeURI{webdelivery.Exact(uri)},
//		})
//		return err
//	}
//
// A Client has one field for each area of the service. Calls never change their arguments. Collections are sequences that
// read all pages and end with the first error, which comes with a zero value; ranging again sends new requests. The
// [guide] shows each area.
//
// # Concurrency
//
// A [Client], its services and a [PurgeQueue] are safe for concurrent use. Create one Client per customer and keep it; it
// needs no Close. Only one goroutine at a time may range over an [Export] or any other sequence. A [Row] of a stream is
// valid until the next one; [Row.Clone] keeps it.
//
// # Errors
//
//   - [*ValidationError]: an argument is invalid, and nothing was sent. It matches [ErrInvalid].
//   - [*Error]: a request failed, or the service rejected it. It has the status, the service's description and the
//     number of attempts, and matches [ErrNotFound], [ErrUnauthorized], [ErrRateLimited] and others.
//   - [*TaskError], [*TransactionError]: the request succeeded, but the task or the purge failed.
//   - [*PlanError], [*PartialError], [*QueueError]: part of a larger change was refused or failed.
//   - [*IncompleteError]: a collection or the rows of a query ended before everything announced had arrived.
//
// If the context of a call ends, its error matches context.Canceled or context.DeadlineExceeded; if an attempt took too
// long, os.ErrDeadlineExceeded. After a write, [OutcomeOf] says whether the service carried it out. The text of every
// error is safe to log: it contains no credential. The [list of errors] says what to do about each.
//
// # Retries
//
// The client retries only what is safe, after a random time below a ceiling that doubles from 500 ms to 20 s
// ([WithRetry]), or after the time that Retry-After asks for:
//
//	GET, HEAD, DELETE          after connection failures, cut responses, 408, 429, 5xx except 501; 4 attempts
//	purge                      the same, but 429 and 503 mean "too fast": for 5 minutes, at the pace of its permits
//	POST /sessions             the same; never after the service refused the password
//	any other write            only if the service certainly did not process it: no connection, 429,
//	                           503 with Retry-After; 3 attempts
//
// If Retry-After exceeds MaxWait ([RetryPolicy]; of purges ThrottleTimeout) or the time left in the context, the call
// returns the response as an error at once. Unknown hosts, untrusted certificates and unusable responses are not
// retried. Calls share no retries: a part of the service that is down takes none from the others. Each attempt may take
// 30 s ([WithAttemptTimeout]); only the context limits the whole call. The [fault tables] show what happens after each
// fault.
//
// # Limits
//
// The service accepts 2 purges per second for each customer, so each attempt of a purge waits for a permit. All clients
// of a process with the same origin and customer share the permits, in the order of their calls: at most two purges are
// on their way or have arrived within the last 1.05 s. After the service has answered that purges come too fast (503 or
// 429), they leave more slowly for a while, so that processes that do not know of each other divide the limit.
// [WithPurgeLimiter] replaces the permits; with [WithSharedLimiter] and module redislimit, many processes share them.
//
// A response that is read whole may have up to 32 MiB ([WithMaxResponseBytes]). A stream of rows needs constant memory
// and has no time limit as long as data keeps arriving ([WithIdleTimeout]).
//
// # Authentication
//
// [BasicAuth] sends the password with every call. [SessionAuth] logs in at the first call and, when the service refuses
// the session, once more for all calls concerned. After a refused login, calls fail for 1 to 30 s. [BasicAuthFunc] and
// [SessionAuthFunc] are for a password that is rotated. Credentials go only to the origin of the base URL.
//
// # Service document
//
// A section named in a comment is one of the [service document], which the [list of endpoints] sorts by method. Where it
// leaves something open, an [open point] records what the SDK does; if your service spells a request differently, see
// [WithDialect]. [Client.Do] sends requests that have no method here, and reads members of a response that the types
// here do not have. Unknown statuses and types are passed through as strings. Package webdeliverytest is a strict fake
// of the service for your tests.
//
// [guide]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/guide.md
// [list of endpoints]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/endpoints.md
// [service document]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md
// [open point]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/open-points.md
// [list of errors]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/errors.md
// [fault tables]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/guarantees.md#what-a-write-became
package webdelivery
