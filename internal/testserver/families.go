package testserver

import (
	"slices"
	"strings"
)

// family is one family of security statistics (service document, section 4.3).
type family struct {
	path    string // base path
	belongs func(*record) bool

	dimensions []string
	groupings  [][]string // valid grouping sets; nil for raw events, which are not aggregated

	needs []string // parameters besides those of every family
	takes []string // optional parameters besides filters
	limit int      // without the parameter limit
	top   int      // k of a top-K; 0 for other families
}

var granular, orderAndLimit = []string{"granularity"}, []string{"sortby", "limit"}

func (f *family) raw() bool { return f.groupings == nil }

// families are all families. The fake decides which events belong to which family; see the methods of [record].
var families = []*family{
	{
		path: "/stats/security/events", belongs: (*record).isSecurity, dimensions: allDimensions(),
		takes: orderAndLimit, limit: 10,
	},
	trends("waf", (*record).isWAF, granular, orderAndLimit,
		"event_severity", "event_type", "event_action", "client_browser", "client_country_code", "client_asn", "rule_id",
		"domain", "property", "waf_action",
		"event_severity event_action", "event_severity waf_action", "rule_id event_severity", "rule_id event_action", "rule_id waf_action",
		"rule_id event_severity waf_action", "client_country_code client_asn", "client_country_code event_action",
		"client_country_code rule_id", "domain property", "domain event_action"),
	trends("request", (*record).isAny, nil, slices.Concat(granular, orderAndLimit), // open point 12
		"event_severity", "event_type", "event_action", "client_browser", "client_country_code", "client_asn", "domain",
		"property",
		"event_type event_action", "event_type event_severity", "client_country_code client_asn",
		"client_country_code event_type", "client_country_code event_action", "domain property", "domain event_type",
		"domain event_type event_action"),
	trends("trafficshaping", (*record).isShaping, granular, orderAndLimit,
		"event_type", "event_action", "client_browser", "client_country_code", "client_asn", "domain", "property",
		"event_type event_action", "client_country_code client_asn", "client_country_code event_type",
		"client_country_code event_action", "domain property", "domain event_type"),
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
}

func allDimensions() []string {
	var names []string
	for _, d := range dimensions {
		names = append(names, d.name)
	}
	return names
}

// trends returns a family with these grouping sets: each listed set with and without the time, and the time alone.
func trends(area string, belongs func(*record) bool, needs, takes []string, sets ...string) *family {
	f := &family{
		path: "/stats/security/" + area + "/trends", belongs: belongs, needs: needs, takes: takes, limit: 10,
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

// topKDimensions are the dimensions of a top-K besides that of its category.
var topKDimensions = []string{"client_country_code", "event_action", "event_type", "domain", "property"}

// topK returns a family with these grouping sets: the dimension of the category alone, and with one other.
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

// wafTopK returns a family without limit and sortby (section 8: k is 20).
func wafTopK(category, key string) *family {
	f := topK("waf", category, key, (*record).isWAF)
	f.top, f.limit = 20, 20
	return f
}

func shapingTopK(category, key string, belongs func(*record) bool) *family {
	f := topK("trafficshaping", category, key, belongs)
	f.top, f.takes, f.limit = 1000, orderAndLimit, 10
	return f
}
