package webdeliverytest

import "github.com/webdelivery/webdelivery-go/internal/testserver"

// Dialect holds the spellings on the wire that the service document leaves open. An empty field means the first value
// listed. Where several are listed, every other one is refused. What a server takes must be told to the client as well,
// with [webdelivery.WithDialect]; what it answers with is read whatever its spelling.
type Dialect struct {
	// What the server takes.
	TasksPrefix         string // path in front of /tasks; ""
	StartTimeParam      string // query parameter of statistics; "starttime"
	EntryKey            string // key of an entry in the body of POST entries; "entry"
	EntryDeletePath     string // its path elements {list} and {entry} stand for the ids; "/config/networklists/{list}/{entry}"
	BatchDeletionMethod string // method on entries_batch_deletion_uri; "POST"

	// What the server answers with.
	TaskPage     string // "envelope" (section 2.6), "array", "tasks" (an object with that member)
	SessionReply string // "id", "session_id", "sessionid", "authtoken", "token" (object members), "string", "cookie", "text"
	PurgeReply   string // "201", "200", "303-body" (its body has code 201), "303-location" (no body, the id is at the end of Location)
	TooFast      string // status of a purge above the rate: "503", "503-retry-after" (with Retry-After), "429", "429-retry-after"
	NextURI      string // addresses in replies: "relative" to /{customer}/v1, "prefixed" with the whole path, "absolute"
	Timestamps   string // "Z" (network lists in whole seconds, tasks in milliseconds); all in milliseconds: "milliseconds" (and Z), "+0000", "none" (no zone designator)
	Final        string // transaction_status of a transaction that ended well; "COMPLETE"
	Errors       string // but those of a purge: "code", "message", "error_info" (JSON objects), "html", "empty"

	TransactionDenied string // status of failed authentication at GET of a transaction: "403", "401", "400"

	// What changes of network lists answer with.
	EntriesReply    string // to POST entries: "task", "task_id", "id" (objects with the task's id), "entries" (an array), "empty" (204)
	ListDeleteReply string // to DELETE of a list: "empty" (204), "task", "task_id"

	// What statistics answer with.
	MemberOrder string // of a result: "documented" (section 2.4), "rows-first" (columns after rows), "total-first"
	Names       string // dimensions, groupings, metrics: "strings", "objects" (each {name}), "member" (an object with strings in dimensions etc.), "items" (an object with {name} in items)
	Groupings   string // a grouping set: "arrays" (of names as Names has them), "joined" (one name, commas between)
	TopKTotal   string // total_results of a top-K: "rows" (at most k), "groups" (all there are)
	Vocabulary  string // words of the events of WithEvents: "document" (CUSTOM, WARN), "portal" (types WAF, Rate Limit, Custom; severities High, Medium, Low, Info; actions Block, Warn)
}

// WithDialect makes the server spell what the service document leaves open in another way.
func WithDialect(dialect Dialect) Option {
	return func(set *settings) error {
		set.config.Dialect = testserver.Dialect(dialect)
		return nil // the fake checks it
	}
}
