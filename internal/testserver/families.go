package testserver

import (
	"slices"
	"strings"
)

// family is one family of security statistics (service-interface section 4.3).
type family struct {
	path    string // base path
	belongs func(*record) bool

	dimensions []string
	groupings  [][]string // valid grouping sets; nil for raw events, which are not aggregated

	granular granular
	ordered  bool // takes sortby
	limited  bool // takes limit
	top      int  // how many a top-K returns; 0 for others
}

// granular tells whether a family takes a granularity.
type granular int

// Whether a family takes a granularity.
const (
	never granular = iota
	optional
	required
)

func (f *family) raw() bool { return f.groupings == nil }

// families are all there are. Which events belong to which is this fake's decision: see the methods of [record].
var families = slices.Concat(
	[]*family{
		{
			path: "/stats/security/events", belongs: (*record).isSecurity, ordered: true, limited: true,
			dimensions: allDimensions(),
		},
		trends("waf", (*record).isWAF, required,
			"event_severity", "event_type", "event_action", "client_browser", "client_country_code", "client_asn", "rule_id",
			"domain", "property", "waf_action",
			"event_severity event_action", "event_severity waf_action", "rule_id event_severity", "rule_id event_action", "rule_id waf_action",
			"rule_id event_severity waf_action", "client_country_code client_asn", "client_country_code event_action",
			"client_country_code rule_id", "domain property", "domain event_action"),
		trends("request", (*record).isAny, optional,
			"event_severity", "event_type", "event_action", "client_browser", "client_country_code", "client_asn", "domain",
			"property",
			"event_type event_action", "event_type event_severity", "client_country_code client_asn",
			"client_country_code event_type", "client_country_code event_action", "domain property", "domain event_type",
			"domain event_type event_action"),
		trends("trafficshaping", (*record).isShaping, required,
			"event_type", "event_action", "client_browser", "client_country_code", "client_asn", "domain", "property",
			"event_type event_action", "client_country_code client_asn", "client_country_code event_type",
			"client_country_code event_action", "domain property", "domain event_type"),
	},
	wafTopK("browser", "client_browser"),
	wafTopK("clientip", "client_ip"),
	wafTopK("country", "client_country_code"),
	wafTopK("requestpath", "request_path"),
	wafTopK("ruleid", "rule_id"),
	wafTopK("severity", "event_severity"),
	shapingTopK("browser", "client_browser", (*record).isShaping),
	shapingTopK("clientip", "client_ip", (*record).isShaping),
	shapingTopK("country", "client_country_code", (*record).isShaping),
	shapingTopK("ratelimitclientip", "client_ip", (*record).isIPRateLimit),
	shapingTopK("ratelimitcountry", "client_country_code", (*record).isCountryRateLimit),
	shapingTopK("requestpath", "request_path", (*record).isShaping),
)

func allDimensions() []string {
	var names []string
	for _, d := range dimensions {
		names = append(names, d.name)
	}
	return names
}

// trends makes a family whose grouping sets are those listed, each with and without the time, and the time alone.
func trends(area string, belongs func(*record) bool, granular granular, sets ...string) *family {
	f := &family{
		path: "/stats/security/" + area + "/trends", belongs: belongs, granular: granular, ordered: true, limited: true,
		dimensions: []string{timeDimension}, groupings: [][]string{{timeDimension}},
	}
	for _, set := range sets {
		names := strings.Fields(set)
		if len(names) == 1 {
			f.dimensions = append(f.dimensions, names...)
		}
		f.groupings = append(f.groupings, names, slices.Concat([]string{timeDimension}, names))
	}
	return f
}

// topKDimensions are those that a top-K offers beside that of its category.
var topKDimensions = []string{"client_country_code", "event_action", "event_type", "domain", "property"}

// topK makes a family whose grouping sets are the category's dimension, alone and with one other.
func topK(area, category, key string, belongs func(*record) bool) *family {
	f := &family{
		path: "/stats/security/" + area + "/topk/" + category, belongs: belongs,
		dimensions: []string{key}, groupings: [][]string{{key}},
	}
	for _, name := range topKDimensions {
		if name != key {
			f.dimensions = append(f.dimensions, name)
			f.groupings = append(f.groupings, []string{key, name})
		}
	}
	return f
}

// wafTopK is one whose number of rows is not asked for (section 8: k is 20).
func wafTopK(category, key string) []*family {
	f := topK("waf", category, key, (*record).isWAF)
	f.top = 20
	return []*family{f}
}

func shapingTopK(category, key string, belongs func(*record) bool) []*family {
	f := topK("trafficshaping", category, key, belongs)
	f.top, f.ordered, f.limited = 1000, true, true
	return []*family{f}
}
