package testserver

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Dialect selects the forms on the wire that the service document leaves open. An empty field means the default. If a
// value is unknown, the server answers every request with 501 and names the value. spellings has the values;
// webdeliverytest.Dialect says what those of its fields mean.
type Dialect struct {
	// Requests: what the server accepts.
	TasksPrefix, StartTimeParam, EntryKey, EntryDeletePath, BatchDeletionMethod string

	// Responses. webdeliverytest has these, too.
	SessionReply, PurgeReply, TooFast, Final, Errors, EntriesReply, NextURI, NoRows, Total, Absent, Vocabulary string

	TaskPage string // task lists: "envelope" (service document, section 2.6), "array", "tasks" (an object with that member)

	TransactionDenied string // status if authentication fails for GET of a transaction: "403", "401", "400"
	ListDeleteReply   string // response to DELETE of a list: "empty" (204), "task", "task_id"

	// MemberOrder is the order of a result's members: "documented" (service document, section 2.4), "rows-first"
	// (columns after rows), "total-first".
	MemberOrder string

	// Names is the form of dimensions, groupings and metrics: "strings", "objects", "member" or "items".
	//   - "strings" is an array of strings, "objects" an array of {name} objects.
	//   - "member" is an object with the array of strings in the member dimensions, groupings or metrics.
	//   - "items" is an object with the array of {name} objects in the member items.
	Names string

	Groupings string // a grouping set: "arrays" (of names in the form of Names), "joined" (one name with commas)
}

// Spelling is a field of [Dialect] with a list of valid values.
type Spelling struct {
	Field  string
	Values []string // the default first
}

var spellings = []Spelling{
	{"TaskPage", []string{"envelope", "array", "tasks"}},
	{"SessionReply", []string{"id", "session_id", "sessionid", "authtoken", "token", "string", "cookie", "text"}},
	{"PurgeReply", []string{"201", "200", "303-body", "303-location"}},
	{"TooFast", []string{"503", "503-retry-after", "429", "429-retry-after"}},
	{"TransactionDenied", []string{"403", "401", "400"}},
	{"NextURI", []string{
		"relative", "prefixed", "absolute", "query", "last-element", "no-scheme", "other-scheme", "other-host", "other-prefix",
	}},
	{"Errors", []string{"code", "message", "error_info", "html", "empty"}},
	{"EntriesReply", []string{"task", "task_id", "id", "entries", "empty"}},
	{"ListDeleteReply", []string{"empty", "task", "task_id"}},
	{"MemberOrder", []string{"documented", "rows-first", "total-first"}},
	{"Names", []string{"strings", "objects", "member", "items"}},
	{"Groupings", []string{"arrays", "joined"}},
	{"NoRows", []string{"array", "null"}},
	{"Total", []string{"integer", "float"}},
	{"Absent", []string{"null", "empty", "dash"}},
	{"Vocabulary", []string{"document", "portal"}},
}

// Spellings returns the fields of [Dialect] that have a list of values. [Dialect.With] sets such a field.
func Spellings() []Spelling { return slices.Clone(spellings) }

// With returns a copy of the dialect in which the field has the value. It panics if there is no such field.
func (d Dialect) With(field, value string) Dialect {
	*spelled(&d, field) = value
	return d
}

func spelled(d *Dialect, field string) *string {
	return reflect.ValueOf(d).Elem().FieldByName(field).Addr().Interface().(*string)
}

func (d Dialect) withDefaults() Dialect {
	if d.TasksPrefix = strings.Trim(d.TasksPrefix, "/"); d.TasksPrefix != "" {
		d.TasksPrefix = "/" + d.TasksPrefix
	}
	for _, s := range spellings {
		field := spelled(&d, s.Field)
		*field = cmp.Or(*field, s.Values[0])
	}
	d.StartTimeParam = cmp.Or(d.StartTimeParam, "starttime")
	d.EntryKey = cmp.Or(d.EntryKey, "entry")
	d.EntryDeletePath = cmp.Or(d.EntryDeletePath, "/config/networklists/{list}/{entry}")
	d.BatchDeletionMethod = cmp.Or(d.BatchDeletionMethod, http.MethodPost)
	d.Final = cmp.Or(d.Final, "COMPLETE")
	return d
}

// check rejects an unknown value. If it fell back to the default, a test could pass without proving anything.
func (d Dialect) check() error {
	for _, s := range spellings {
		if value := *spelled(&d, s.Field); !slices.Contains(s.Values, value) {
			return fmt.Errorf("testserver: unknown Dialect.%s %q", s.Field, value)
		}
	}
	return checkEntryPath(d.EntryDeletePath)
}

// listStamp formats a time as an ISO 8601 UTC timestamp of network lists and their entries (open point 42).
func listStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") + "Z" }

// taskStamp formats a time as an ISO 8601 UTC timestamp of tasks.
func taskStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000") + "Z" }

// address returns the form of an address in a response; relative is relative to {base_url}/{customer}/v1. The document
// leaves the form open; its sections 2.3 and 2.6 show the relative one.
func (c *call) address(relative string) string {
	switch c.s.dialect.NextURI {
	case "prefixed":
		return c.s.base.path() + relative
	case "absolute":
		return "http://" + c.r.Host + c.s.base.path() + relative
	default:
		return relative
	}
}

// pageAddress returns the address of a page: that of the request with its filters, and with count and page.
func (c *call) pageAddress(index, count int) string {
	query := maps.Clone(c.query)
	query.Set("page", strconv.Itoa(index))
	query.Set("count", strconv.Itoa(count))
	end := "?" + query.Encode()
	whole := c.s.base.path() + c.at.path() + end
	switch c.s.dialect.NextURI {
	case "query":
		return end
	case "last-element":
		return path.Base(c.at.path()) + end
	case "no-scheme":
		return "//" + c.r.Host + whole
	case "other-scheme":
		return "https://" + c.r.Host + whole
	case "other-host":
		return "http://service.internal:8080" + whole
	case "other-prefix":
		return "/internal" + whole
	default:
		return c.address(c.at.path() + end)
	}
}
