package webdeliverytest

import (
	"net/netip"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// TaskSpec describes a task that begins now (service-interface section 2.1). The zero value is one that has ended well.
type TaskSpec struct {
	ID         string                // "" makes one; an existing task is replaced
	Operation  string                // operation; "" means without that member
	Status     string                // status at all times; "" means IN_PROGRESS, then COMPLETE or FAILED
	Duration   time.Duration         // until it ends, by Server.Clock; 0 means it has ended already, negative means never
	Error      *TaskError            // how it ends; nil means well
	User       webdelivery.Reference // who began it; zero means without that member
	Target     webdelivery.Reference // what it works on; zero means without that member
	ForeignURI string                // in place of the task's own uri
}

// TaskError is how a task ends badly: the members of error_info (service-interface section 2.1).
type TaskError struct {
	Message, Type string   // message and type
	Details       []string // the message of each of details

	Incomplete bool // the member complete stays false although the task ended
}

// AddTask adds a task and returns its id, a new one when the spec has none.
func (s *Server) AddTask(spec TaskSpec) (id string) { return s.fake.AddTask(spec.spec()) }

func (t TaskSpec) spec() testserver.TaskSpec {
	return testserver.TaskSpec{
		ID: t.ID, Operation: t.Operation, Status: t.Status, Duration: t.Duration, Error: (*testserver.TaskError)(t.Error),
		User: testserver.Ref(t.User), Target: testserver.Ref(t.Target), ForeignURI: t.ForeignURI,
	}
}

// NetworkListSpec describes a network list that is created now (service-interface section 2.6). The zero value is an
// empty list of addresses.
type NetworkListSpec struct {
	ID          string                      // "" makes a UUID; an existing list is replaced
	Type        webdelivery.NetworkListType // "" means ListTypeIP
	Name        string                      // name; it may be that of another list
	Description string                      // description; always there when one list is read

	NoDescription bool // items of the collection lack the member description
	Deprecated    bool // hidden from collections that do not ask for it

	// Entries is what the list holds at first, at most 50,000; one that is there twice counts once. Their values are not
	// checked, so that a client can be shown what it does not expect.
	Entries []string
}

// AddNetworkList adds a list and returns its id. It panics if the type is none, or there are more than 50,000 entries.
func (s *Server) AddNetworkList(spec NetworkListSpec) (id string) {
	return s.fake.AddNetworkList(spec.spec())
}

func (l NetworkListSpec) spec() testserver.NetworkListSpec {
	return testserver.NetworkListSpec{
		ID: l.ID, Type: string(l.Type), Name: l.Name, Description: l.Description, NoDescription: l.NoDescription,
		Deprecated: l.Deprecated, Entries: l.Entries,
	}
}

// ChangeEntries changes a list as somebody else would: at once, without a task, first removing and then adding. It
// panics if the list does not exist or would pass 50,000 entries.
func (s *Server) ChangeEntries(id string, add, remove []string) {
	s.fake.ChangeEntries(id, add, remove)
}

// Entries returns what a list holds now, as it was written and in order of addition; nil when it does not exist. The slice
// is the caller's.
func (s *Server) Entries(id string) []string { return s.fake.Entries(id) }

// Event is one security event record (service-interface section 2.5). A field with its zero value is absent: null in a
// row. A text that is not UTF-8 stands in rows as it is, as an attacker may have sent it. The three bytes of half a
// surrogate pair, such as "\xed\xa0\x80", become its escape.
type Event struct {
	Time time.Time // event_timestamp_ms; what is below a millisecond is cut off

	Severity           string     // event_severity
	Type               string     // event_type: a constant of this package, "Rate Limit", or any other
	Action             string     // event_action
	ConnectionRemoteIP netip.Addr // client_connection_remote_ip
	ClientIP           netip.Addr // client_ip
	Browser            string     // client_browser
	CountryCode        string     // client_country_code
	ASN                int64      // client_asn
	RuleID             string     // rule_id; an event of the WAF families has one
	Domain             string     // domain
	Property           string     // property
	WAFAction          string     // waf_action
	RequestPath        string     // request_path
}

// Values of event_type. The service document shows CUSTOM alone; the others are this fake's. They say which families an
// event belongs to. "Rate Limit", which portals of such services show, is traffic shaping too, by address and by country.
const (
	EventTypeRequest          = "REQUEST"            // no rule applied: no security event, so in request trends alone
	EventTypeWAF              = "WAF"                // a rule of the WAF applied
	EventTypeCustom           = "CUSTOM"             // a rule of the customer's own applied
	EventTypeBlockIP          = "BLOCK_IP"           // traffic shaping: blocked by address
	EventTypeBlockCountry     = "BLOCK_COUNTRY"      // traffic shaping: blocked by country
	EventTypeRateLimitIP      = "RATE_LIMIT_IP"      // traffic shaping: too many requests of an address
	EventTypeRateLimitCountry = "RATE_LIMIT_COUNTRY" // traffic shaping: too many requests of a country
)

// AddEvents adds security events to those of [WithEvents]. One in the future shows when [Server.Clock] gets there.
func (s *Server) AddEvents(events ...Event) {
	all := make([]testserver.Event, len(events))
	for i, e := range events {
		all[i] = testserver.Event(e)
	}
	s.fake.AddEvents(all...)
}

// EventCount returns how many raw events there are with start <= time < end: total_results of a query without a filter.
func (s *Server) EventCount(start, end time.Time) int { return s.fake.EventCount(start, end) }

// FailTransactions makes the next n purges, which are accepted as ever, end with this transaction_status,
// transaction_status_description and code; 0 means 200. Statuses that the SDK takes for a failure are in its open point
// 9, "FAILED" among them.
func (s *Server) FailTransactions(n int, status, description string, code int) {
	s.fake.FailTransactions(n, status, description, code)
}

// ExpireSessions ends every session that exists. A request with one of them gets 401, or 403 from purges and transactions
// ([Dialect].TransactionDenied has other spellings).
func (s *Server) ExpireSessions() { s.fake.ExpireSessions() }
