package testserver

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Dialect holds the wire spellings that the service document leaves open. An empty field means the first value listed.
// A value that is not listed makes the server answer 501 to everything, naming it.
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
	Vocabulary  string // words of generated events: "document" (CUSTOM, WARN), "portal" (types WAF, Rate Limit, Custom; severities High, Medium, Low, Info; actions Block, Warn)
}

type spelling struct {
	name   string
	field  func(*Dialect) *string
	values []string
}

var spellings = []spelling{
	{"TaskPage", func(d *Dialect) *string { return &d.TaskPage }, []string{"envelope", "array", "tasks"}},
	{
		"SessionReply", func(d *Dialect) *string { return &d.SessionReply },
		[]string{"id", "session_id", "sessionid", "authtoken", "token", "string", "cookie", "text"},
	},
	{"PurgeReply", func(d *Dialect) *string { return &d.PurgeReply }, []string{"201", "200", "303-body", "303-location"}},
	{"TooFast", func(d *Dialect) *string { return &d.TooFast }, []string{"503", "503-retry-after", "429", "429-retry-after"}},
	{"TransactionDenied", func(d *Dialect) *string { return &d.TransactionDenied }, []string{"403", "401", "400"}},
	{"NextURI", func(d *Dialect) *string { return &d.NextURI }, []string{"relative", "prefixed", "absolute"}},
	{"Timestamps", func(d *Dialect) *string { return &d.Timestamps }, []string{"Z", "milliseconds", "+0000", "none"}},
	{"Errors", func(d *Dialect) *string { return &d.Errors }, []string{"code", "message", "error_info", "html", "empty"}},
	{"EntriesReply", func(d *Dialect) *string { return &d.EntriesReply }, []string{"task", "task_id", "id", "entries", "empty"}},
	{"ListDeleteReply", func(d *Dialect) *string { return &d.ListDeleteReply }, []string{"empty", "task", "task_id"}},
	{"MemberOrder", func(d *Dialect) *string { return &d.MemberOrder }, []string{"documented", "rows-first", "total-first"}},
	{"Names", func(d *Dialect) *string { return &d.Names }, []string{"strings", "objects", "member", "items"}},
	{"Groupings", func(d *Dialect) *string { return &d.Groupings }, []string{"arrays", "joined"}},
	{"TopKTotal", func(d *Dialect) *string { return &d.TopKTotal }, []string{"rows", "groups"}},
	{"Vocabulary", func(d *Dialect) *string { return &d.Vocabulary }, []string{"document", "portal"}},
}

// Spelling is a field of [Dialect] that knows its values.
type Spelling struct {
	Field  string
	Values []string // the default first
}

// Spellings returns the fields of [Dialect] whose values are listed, and With makes a dialect of one of them.
func Spellings() []Spelling {
	all := make([]Spelling, len(spellings))
	for i, s := range spellings {
		all[i] = Spelling{s.name, slices.Clone(s.values)}
	}
	return all
}

// With returns the dialect with another value of a field of [Spellings]. It panics if there is no such field.
func (d Dialect) With(field, value string) Dialect {
	i := slices.IndexFunc(spellings, func(s spelling) bool { return s.name == field })
	*spellings[i].field(&d) = value
	return d
}

func (d Dialect) withDefaults() Dialect {
	d.TasksPrefix = prefix(d.TasksPrefix)
	for _, s := range spellings {
		setDefault(s.field(&d), s.values[0])
	}
	setDefault(&d.StartTimeParam, "starttime")
	setDefault(&d.EntryKey, "entry")
	setDefault(&d.EntryDeletePath, "/config/networklists/{list}/{entry}")
	setDefault(&d.BatchDeletionMethod, http.MethodPost)
	setDefault(&d.Final, "COMPLETE")
	return d
}

// check finds a spelling that nobody knows. Falling back to the default would make a test pass that proves nothing.
func (d Dialect) check() error {
	for _, s := range spellings {
		if value := *s.field(&d); !slices.Contains(s.values, value) {
			return fmt.Errorf("testserver: unknown Dialect.%s %q", s.name, value)
		}
	}
	return checkEntryPath(d.EntryDeletePath)
}

// listStamp prints an ISO 8601 UTC timestamp as network lists and their entries carry it (open point 42).
func (d Dialect) listStamp(t time.Time) string {
	if d.Timestamps == "Z" {
		return t.UTC().Format("2006-01-02T15:04:05") + "Z"
	}
	return d.stamp(t)
}

// stamp prints an ISO 8601 UTC timestamp as tasks carry it.
func (d Dialect) stamp(t time.Time) string {
	const seconds = "2006-01-02T15:04:05.000"
	switch t = t.UTC(); d.Timestamps {
	case "+0000":
		return t.Format(seconds) + "+0000"
	case "none":
		return t.Format(seconds)
	default:
		return t.Format(seconds) + "Z"
	}
}

// address spells an address in a reply, given relative to {base_url}/{customer}/v1 (open in the document; section 2.3
// and 2.6 show the relative form).
func (c *call) address(relative string) string {
	switch c.s.dialect.NextURI {
	case "prefixed":
		return c.s.base.path() + relative
	case "absolute":
		scheme := "http"
		if c.r.TLS != nil {
			scheme = "https"
		}
		return scheme + "://" + c.r.Host + c.s.base.path() + relative
	default:
		return relative
	}
}
