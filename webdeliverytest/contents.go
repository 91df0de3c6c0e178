package webdeliverytest

import (
	"net/netip"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// TaskSpec describes a task that begins when it is added. The zero value is a task that has already succeeded.
// (Section 2.1.)
type TaskSpec struct {
	ID         string                // id; "" creates a new id; the id of an existing task replaces that task
	Operation  string                // operation; "" omits the member
	Status     string                // status at all times; "" means IN_PROGRESS, then COMPLETE or FAILED
	Duration   time.Duration         // time until the end, by Server.Clock; 0 means already ended, negative means never
	Error      *TaskError            // the failure that the task ends with; nil means that it succeeds
	User       webdelivery.Reference // user who initiated the task; the zero value omits the member
	Target     webdelivery.Reference // target; the zero value omits the member
	ForeignURI string                // replaces the task's own address in uri; "" keeps it
}

// TaskError is the failure that a task ends with: the members of error_info. (Section 2.1.)
type TaskError struct {
	Message, Type string   // message and type
	Details       []string // the messages in details

	Incomplete bool // the member complete stays false although the task has ended
}

// AddTask adds a task and returns its id. If the spec has no id, AddTask creates one.
func (s *Server) AddTask(spec TaskSpec) (id string) { return s.fake.AddTask(spec.spec()) }

func (t TaskSpec) spec() testserver.TaskSpec {
	return testserver.TaskSpec{
		ID: t.ID, Operation: t.Operation, Status: t.Status, Duration: t.Duration, Error: (*testserver.TaskError)(t.Error),
		User: testserver.Ref(t.User), Target: testserver.Ref(t.Target), ForeignURI: t.ForeignURI,
	}
}

// NetworkListSpec describes a network list to be created. The zero value is an empty list of type IP. (Section 2.6.)
type NetworkListSpec struct {
	ID          string                      // id; "" creates a UUID; the id of an existing list replaces that list
	Type        webdelivery.NetworkListType // type; "" means ListTypeIP
	Name        string                      // name; two lists may have the same name
	Description string                      // description; always present when a single list is read

	NoDescription bool // items of the collection lack the member description
	Deprecated    bool // deprecated; collections show the list only if they ask for deprecated ones

	// Entries are the initial entries, at most 50,000. Duplicates count once. The server does not validate their values,
	// so a test can show a client unexpected ones.
	Entries []string
}

// AddNetworkList adds a list and returns its id. It panics if the type is unknown, or if there are more than 50,000
// entries.
func (s *Server) AddNetworkList(spec NetworkListSpec) (id string) {
	return s.fake.AddNetworkList(spec.spec())
}

func (l NetworkListSpec) spec() testserver.NetworkListSpec {
	return testserver.NetworkListSpec{
		ID: l.ID, Type: string(l.Type), Name: l.Name, Description: l.Description, NoDescription: l.NoDescription,
		Deprecated: l.Deprecated, Entries: l.Entries,
	}
}

// ChangeEntries changes a list as another user of the service might. It first removes and then adds entries, takes
// effect at once and creates no task. It panics if the list does not exist or would exceed 50,000 entries.
func (s *Server) ChangeEntries(id string, add, remove []string) {
	s.fake.ChangeEntries(id, add, remove)
}

// Entries returns a copy of the current entries of a list, as they were written and in order of addition. If the list
// does not exist, Entries returns nil.
func (s *Server) Entries(id string) []string { return s.fake.Entries(id) }

// Event is a security event record. A field with its zero value is absent, and null in a row. Invalid UTF-8, as an
// attacker may send it, appears in rows unchanged. The exception is half of a surrogate pair encoded in three bytes,
// such as "\xed\xa0\x80", which appears as an escape, here \ud800. (Section 2.5.)
type Event struct {
	Time time.Time // event_timestamp_ms; truncated to milliseconds

	Severity           string     // event_severity
	Type               string     // event_type: a constant of this package, "Rate Limit", or any other
	Action             string     // event_action
	ConnectionRemoteIP netip.Addr // client_connection_remote_ip
	ClientIP           netip.Addr // client_ip
	Browser            string     // client_browser
	CountryCode        string     // client_country_code
	ASN                int64      // client_asn
	RuleID             string     // rule_id; without it, the event is in no WAF family
	Domain             string     // domain
	Property           string     // property
	WAFAction          string     // waf_action
	RequestPath        string     // request_path
}

// Values of event_type. The service document shows only CUSTOM; the fake defines the others. The value decides which
// statistics families an event belongs to. "Rate Limit", as some portals call it, also counts as traffic shaping, both
// by address and by country.
const (
	EventTypeRequest          = "REQUEST"            // no rule applied; only in request trends, not a security event
	EventTypeWAF              = "WAF"                // a WAF rule applied
	EventTypeCustom           = "CUSTOM"             // a custom rule of the customer applied
	EventTypeBlockIP          = "BLOCK_IP"           // traffic shaping: blocked by address
	EventTypeBlockCountry     = "BLOCK_COUNTRY"      // traffic shaping: blocked by country
	EventTypeRateLimitIP      = "RATE_LIMIT_IP"      // traffic shaping: too many requests from an address
	EventTypeRateLimitCountry = "RATE_LIMIT_COUNTRY" // traffic shaping: too many requests from a country
)

// AddEvents adds security events to those of [WithEvents]. An event with a time in the future appears when
// [Server.Clock] reaches that time.
func (s *Server) AddEvents(events ...Event) {
	all := make([]testserver.Event, len(events))
	for i, e := range events {
		all[i] = testserver.Event(e)
	}
	s.fake.AddEvents(all...)
}

// EventCount returns the number of raw events with start <= time < end. An unfiltered query of that range reports the
// same number in total_results.
func (s *Server) EventCount(start, end time.Time) int { return s.fake.EventCount(start, end) }

// FailTransactions sets how the transactions of the next n accepted purges end. The arguments are the members
// transaction_status, transaction_status_description and code; a code of 0 means 200. The SDK treats "FAILED" as a
// failure; open point 9 in docs/open-points.md lists the other such statuses.
func (s *Server) FailTransactions(n int, status, description string, code int) {
	s.fake.FailTransactions(n, status, description, code)
}

// FailDeploys makes the tasks of the next n changes of network lists fail. The entries change all the same, because the
// service document does not tie them to a task.
func (s *Server) FailDeploys(n int, failure TaskError) {
	s.fake.FailDeploys(n, testserver.TaskError(failure))
}

// ExpireSessions ends all current sessions. A request that uses one of them is rejected with 401, and purges and
// transactions with 403.
func (s *Server) ExpireSessions() { s.fake.ExpireSessions() }
