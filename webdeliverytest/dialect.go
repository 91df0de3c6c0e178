package webdeliverytest

import "github.com/webdelivery/webdelivery-go/internal/testserver"

// Dialect selects the forms on the wire that the service document leaves open. An empty field means the default, which is
// the first value in its comment. If a comment lists several values, no other value is valid.
//
// The fields under "Requests" must be set on the client as well, with [webdelivery.WithDialect]. The SDK reads every form
// of a response without configuration.
type Dialect struct {
	// Requests: what the server accepts.
	TasksPrefix    string // path in front of /tasks; default ""
	StartTimeParam string // query parameter for the start time of statistics; default "starttime"
	EntryKey       string // key of an entry in the body of POST entries; default "entry"

	// EntryDeletePath is the path for the deletion of an entry. Its elements {list} and {entry} stand for the ids. The
	// default is "/config/networklists/{list}/{entry}".
	EntryDeletePath string

	BatchDeletionMethod string // method for entries_batch_deletion_uri; default "POST"

	// Responses in general.
	TaskPage string // task lists: "envelope" (service document, section 2.6), "array", "tasks" (an object with that member)

	// SessionReply is the form of the session id: "id", "session_id", "sessionid", "authtoken", "token" (members of an
	// object), "string" (in JSON), "cookie", "text".
	SessionReply string

	// PurgeReply is the status of an accepted purge: "201", "200", "303-body" or "303-location". The body of "303-body" has
	// the code 201. "303-location" has no body; its Location ends in the transaction id.
	PurgeReply string

	TooFast string // purges above the rate: "503", "503-retry-after" (with Retry-After), "429", "429-retry-after"
	NextURI string // addresses: "relative" to /{customer}/v1, "prefixed" with the whole path, "absolute"

	// Timestamps is the form of times: "Z" (network lists in whole seconds, tasks in milliseconds). With the other
	// values, all times have milliseconds: "milliseconds" (with Z), "+0000", "none" (no zone designator).
	Timestamps string

	Final  string // transaction_status of a successful transaction; default "COMPLETE"
	Errors string // error bodies except those of purges: "code", "message", "error_info" (JSON objects), "html", "empty"

	TransactionDenied string // status if authentication fails for GET of a transaction: "403", "401", "400"

	// Responses to changes of network lists.

	// EntriesReply is the response to POST entries: "task", "task_id", "id" (objects with the task's id), "entries" (an
	// array), "empty" (204).
	EntriesReply    string
	ListDeleteReply string // response to DELETE of a list: "empty" (204), "task", "task_id"

	// Responses of statistics.

	// MemberOrder is the order of a result's members: "documented" (service document, section 2.4), "rows-first" (columns
	// after rows), "total-first".
	MemberOrder string

	// Names is the form of dimensions, groupings and metrics: "strings", "objects", "member" or "items".
	//   - "strings" is an array of strings, "objects" an array of {name} objects.
	//   - "member" is an object with the array of strings in the member dimensions, groupings or metrics.
	//   - "items" is an object with the array of {name} objects in the member items.
	Names string

	Groupings string // a grouping set: "arrays" (of names in the form of Names), "joined" (one name with commas)
	TopKTotal string // total_results of a top-K: "rows" (at most k), "groups" (all groups, also those not returned)

	// Vocabulary selects the words in the events of WithEvents: "document" (such as CUSTOM and WARN) or "portal". The words
	// of "portal" are the types WAF, Rate Limit and Custom, the severities High, Medium, Low and Info, and the actions
	// Block and Warn.
	Vocabulary string
}

// WithDialect selects other forms on the wire where the service document leaves them open. See [Dialect].
func WithDialect(dialect Dialect) Option {
	return func(set *settings) error {
		set.config.Dialect = testserver.Dialect(dialect)
		return nil // the fake checks it
	}
}
