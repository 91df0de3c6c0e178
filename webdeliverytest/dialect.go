package webdeliverytest

import "github.com/webdelivery/webdelivery-go/internal/testserver"

// Dialect selects among the wire formats that the service document leaves open. An empty field selects the default,
// which is the first value in its comment. If a comment lists several values, no other value is valid.
//
// The fields under "Requests" must also be set on the client, with [webdelivery.WithDialect]. The SDK understands every
// form of a response without configuration.
type Dialect struct {
	// Requests: what the server accepts.
	TasksPrefix    string // path in front of /tasks; default ""
	StartTimeParam string // query parameter for the start time of statistics; default "starttime"
	EntryKey       string // key of an entry in the body of POST entries; default "entry"

	// EntryDeletePath is the path for deleting an entry. Its elements {list} and {entry} stand for the ids. The default
	// is "/config/networklists/{list}/{entry}".
	EntryDeletePath string

	BatchDeletionMethod string // method for entries_batch_deletion_uri; default "POST"

	// Responses.

	// SessionReply is the form of the session ID: "id", "session_id", "sessionid", "authtoken", "token" (members of an
	// object), "string" (in JSON), "cookie", "text".
	SessionReply string

	// PurgeReply is the status of an accepted purge: "201", "200", "303-body" or "303-location". The body of "303-body"
	// has the code 201. "303-location" has no body; its Location ends in the transaction id.
	PurgeReply string

	TooFast string // purges above the rate: "503", "503-retry-after" (with Retry-After), "429", "429-retry-after"
	Final   string // transaction_status of a successful transaction; default "COMPLETE"
	Errors  string // error bodies except those of purges: "code", "message", "error_info" (JSON objects), "html", "empty"

	// EntriesReply is the response to POST entries: "task", "task_id", "id" (objects with the task's id), "entries" (an
	// array), "empty" (204).
	EntriesReply string

	// NextURI is the form of addresses: "relative" to /{customer}/v1, "prefixed" with the whole path, "absolute". The
	// other values are what gateways make of the addresses of pages, and leave the rest relative: "query" (?page=2),
	// "last-element" (entries?page=2), "no-scheme" (//host/...), "other-scheme" (https),
	// "other-host", "other-prefix" (another path in front of /{customer}/v1).
	NextURI string

	NoRows string // rows of a result without any: "array" (empty), "null"
	Total  string // total_results: "integer", "float" (1.0)
	Absent string // a dimension that an event lacks, in rows and filters: "null", "empty" (the string ""), "dash" ("-")

	// Vocabulary selects the words in the events of WithEvents: "document" (such as CUSTOM and WARN) or "portal". The
	// words of "portal" are the types WAF, Rate Limit and Custom, the severities High, Medium, Low and Info, and the
	// actions Block and Warn.
	Vocabulary string
}

// WithDialect selects other wire formats where the service document leaves them open. See [Dialect].
func WithDialect(d Dialect) Option {
	return func(set *settings) error {
		set.config.Dialect = testserver.Dialect{
			TasksPrefix: d.TasksPrefix, StartTimeParam: d.StartTimeParam, EntryKey: d.EntryKey, EntryDeletePath: d.EntryDeletePath,
			BatchDeletionMethod: d.BatchDeletionMethod, SessionReply: d.SessionReply, PurgeReply: d.PurgeReply, TooFast: d.TooFast,
			Final: d.Final, Errors: d.Errors, EntriesReply: d.EntriesReply, NextURI: d.NextURI, NoRows: d.NoRows,
			Total: d.Total, Absent: d.Absent, Vocabulary: d.Vocabulary,
		}
		return nil // the fake checks it
	}
}
