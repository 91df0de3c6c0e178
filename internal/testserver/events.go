package testserver

import (
	"iter"
	"net/netip"
	"slices"
	"time"
)

// Event is one security event record. A field with its zero value is absent, and null in a row. A text that is not
// UTF-8 appears in rows unchanged, except that the three bytes of half a surrogate pair become its escape.
type Event struct {
	Time time.Time // truncated to milliseconds

	Severity           string     // event_severity
	Type               string     // event_type: a constant below, "Rate Limit", or any other
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

// Values of event_type. The document shows only CUSTOM; the other names belong to this fake. The last four are traffic
// shaping: blocking and rate limiting by IP address/range and geo-location (section 4.3).
const (
	TypeRequest          = "REQUEST" // no rule applied; only in request trends, not a security event
	TypeWAF              = "WAF"
	TypeCustom           = "CUSTOM"
	TypeBlockIP          = "BLOCK_IP"
	TypeBlockCountry     = "BLOCK_COUNTRY"
	TypeRateLimitIP      = "RATE_LIMIT_IP"
	TypeRateLimitCountry = "RATE_LIMIT_COUNTRY"
)

// typeRateLimit is the portal's word for all of traffic shaping.
const typeRateLimit = "Rate Limit"

// record is an event in the statistics. Its kind is one of the constants above and decides to which families it
// belongs. Its Type may be another word for it. The kind of an added event is its Type.
type record struct {
	Event

	kind string
}

// isShaping reports whether the event belongs to the traffic shaping families.
func (e *record) isShaping() bool {
	switch e.kind {
	case TypeBlockIP, TypeBlockCountry, TypeRateLimitIP, TypeRateLimitCountry, typeRateLimit:
		return true
	default:
		return false
	}
}

// isSecurity reports whether the event is a raw event. Only plain requests are not.
func (e *record) isSecurity() bool { return e.kind != TypeRequest }

// isWAF reports whether the event belongs to the WAF families: a rule applied that is not traffic shaping.
func (e *record) isWAF() bool { return e.RuleID != "" && e.isSecurity() && !e.isShaping() }

// isAny reports whether the event belongs to the request trends, which every event does.
func (e *record) isAny() bool { return true }

// An added event of the type "Rate Limit" does not say what was limited, so it counts for addresses and for countries.
func (e *record) isIPRateLimit() bool { return e.kind == TypeRateLimitIP || e.kind == typeRateLimit }

func (e *record) isCountryRateLimit() bool {
	return e.kind == TypeRateLimitCountry || e.kind == typeRateLimit
}

// AddEvents adds security events to the generated ones. An event in the future appears when the Clock reaches its time,
// plus Config.RecordingDelay.
func (s *Server) AddEvents(events ...Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.added)
	for _, e := range events {
		e.Time = e.Time.UTC().Truncate(time.Millisecond)
		all = append(all, record{Event: e, kind: e.Type})
	}
	slices.SortStableFunc(all, func(a, b record) int { return a.Time.Compare(b.Time) })
	s.added = all
}

// EventCount returns the number of raw events with start <= time < end. A query of raw events without filters reports
// the same number in total_results.
func (s *Server) EventCount(start, end time.Time) int {
	s.mu.Lock()
	h := s.history()
	s.mu.Unlock()
	start = latest(start, rawSince(h.now))
	count := 0
	for e := range h.between(start, end) {
		if e.isSecurity() {
			count++
		}
	}
	return count
}

// history is the record of all events until now.
type history struct {
	now     time.Time
	until   time.Time // time of the latest possible recorded event
	traffic generator
	added   []record // ascending in time
}

// history returns the current history. The caller holds s.mu.
func (s *Server) history() history {
	now := s.cfg.Clock.Now()
	return history{now: now, until: now.Add(-s.cfg.RecordingDelay), traffic: s.traffic, added: s.added}
}

// between returns the recorded events with start <= time < end, ascending in time. Of events in the same millisecond,
// the added ones come first. An event is valid until the next one.
func (h history) between(start, end time.Time) iter.Seq[*record] {
	from, until := ceilMilli(start), min(ceilMilli(end), h.until.UnixMilli()+1)
	first := h.firstAdded(from)
	added := h.added[first:max(first, h.firstAdded(until))]
	return func(yield func(*record) bool) {
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

// firstAdded returns the index of the first added event at or after a time in Unix milliseconds.
func (h history) firstAdded(milli int64) int {
	place, _ := slices.BinarySearchFunc(h.added, milli, func(e record, milli int64) int {
		return int(min(1, max(-1, e.Time.UnixMilli()-milli)))
	})
	return place
}

// ceilMilli returns the first whole millisecond at or after t.
func ceilMilli(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
