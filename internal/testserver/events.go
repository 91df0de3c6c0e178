package testserver

import (
	"iter"
	"net/netip"
	"slices"
	"time"
)

// Event is one security event record. A field with its zero value is absent: null in a row.
type Event struct {
	Time time.Time // in whole milliseconds; the rest is cut off

	Severity           string     // event_severity
	Type               string     // event_type: one of the constants below, or any other
	Action             string     // event_action
	ConnectionRemoteIP netip.Addr // client_connection_remote_ip
	ClientIP           netip.Addr // client_ip
	Browser            string     // client_browser
	CountryCode        string     // client_country_code
	ASN                int64      // client_asn, a number in rows
	RuleID             string     // rule_id
	Domain             string     // domain
	Property           string     // property
	WAFAction          string     // waf_action
	RequestPath        string     // request_path
}

// Values of event_type. The document shows CUSTOM alone; the other names are this fake's. The last four are what it
// calls traffic shaping: blocking and rate limiting by IP address/range and geo-location (section 4.3).
const (
	TypeRequest          = "REQUEST" // no rule applied
	TypeWAF              = "WAF"
	TypeCustom           = "CUSTOM"
	TypeBlockIP          = "BLOCK_IP"
	TypeBlockCountry     = "BLOCK_COUNTRY"
	TypeRateLimitIP      = "RATE_LIMIT_IP"
	TypeRateLimitCountry = "RATE_LIMIT_COUNTRY"
)

// isShaping tells what belongs to the traffic shaping families.
func (e *Event) isShaping() bool {
	switch e.Type {
	case TypeBlockIP, TypeBlockCountry, TypeRateLimitIP, TypeRateLimitCountry:
		return true
	default:
		return false
	}
}

// isWAF tells what belongs to the WAF families: an event of a rule that is not one of traffic shaping.
func (e *Event) isWAF() bool { return e.RuleID != "" && !e.isShaping() }

// isAny tells what belongs to raw events and request trends.
func (e *Event) isAny() bool { return true }

func (e *Event) isIPRateLimit() bool      { return e.Type == TypeRateLimitIP }
func (e *Event) isCountryRateLimit() bool { return e.Type == TypeRateLimitCountry }

// AddEvents adds security events to those that are generated. One in the future shows when the Clock gets there.
func (s *Server) AddEvents(events ...Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.added, events)
	for i := range all {
		all[i].Time = all[i].Time.UTC().Truncate(time.Millisecond)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.Time.Compare(b.Time) })
	s.added = all
}

// EventCount returns how many raw events there are with start <= time < end: what a query of raw events without filters
// has in total_results.
func (s *Server) EventCount(start, end time.Time) int {
	s.mu.Lock()
	h := s.history()
	s.mu.Unlock()
	start = latest(start, rawSince(h.now))
	count := 0
	for range h.between(start, end) {
		count++
	}
	return count
}

// history is all that happened until now.
type history struct {
	now     time.Time
	traffic generator
	added   []Event // ascending in time
}

// history takes what there is at the moment; s.mu is held.
func (s *Server) history() history {
	return history{now: s.cfg.Clock.Now(), traffic: s.traffic, added: s.added}
}

// between goes through the events with start <= time < end that are not in the future, ascending in time; of those at
// the same millisecond the added ones come first. What is yielded is valid until the next.
func (h history) between(start, end time.Time) iter.Seq[*Event] {
	from, until := ceilMilli(start), min(ceilMilli(end), h.now.UnixMilli()+1)
	first := h.firstAdded(from)
	added := h.added[first:max(first, h.firstAdded(until))]
	return func(yield func(*Event) bool) {
		for e := range h.traffic.between(from, until) {
			for len(added) > 0 && !added[0].Time.After(e.Time) {
				if !yield(&added[0]) {
					return
				}
				added = added[1:]
			}
			if !yield(e) {
				return
			}
		}
		for i := range added {
			if !yield(&added[i]) {
				return
			}
		}
	}
}

// firstAdded is the place of the first added event that is not before a time in Unix milliseconds.
func (h history) firstAdded(milli int64) int {
	place, _ := slices.BinarySearchFunc(h.added, milli, func(e Event, milli int64) int {
		return int(min(1, max(-1, e.Time.UnixMilli()-milli)))
	})
	return place
}

// ceilMilli is the first whole millisecond that is not before t.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
