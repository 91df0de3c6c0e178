package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// family is one family of security statistics (section 4.3).
type family struct {
	name     string
	path     string
	key      string // dimensions to query if the service does not return its grouping sets
	raw      bool   // not aggregated: no metrics, no groupings
	granular bool   // granularity is required
	most     int    // rows of a top-K
}

var (
	events        = family{name: "raw events", path: "/stats/security/events", key: "event_action", raw: true}
	wafTrends     = family{name: "WAF trends", path: "/stats/security/waf/trends", key: "rule_id", granular: true}
	requestTrends = family{name: "request trends", path: "/stats/security/request/trends", key: "client_country_code"}
	shapingTrends = family{name: "traffic shaping trends", path: "/stats/security/trafficshaping/trends", key: "client_country_code", granular: true}

	trends        = []family{wafTrends, requestTrends, shapingTrends}
	wafByClientIP = wafTopK("clientip", "client_ip")
)

// families are all families. The document does not name the dimension of a path.
var families = []family{
	events, wafTrends, requestTrends, shapingTrends,
	wafTopK("browser", "client_browser"),
	wafByClientIP,
	wafTopK("country", "client_country_code"),
	wafTopK("requestpath", "request_path"),
	wafTopK("ruleid", "rule_id"),
	wafTopK("severity", "event_severity"),
	shapingTopK("browser", "client_browser"),
	shapingTopK("clientip", "client_ip"),
	shapingTopK("country", "client_country_code"),
	shapingTopK("ratelimitclientip", "client_ip"),
	shapingTopK("ratelimitcountry", "client_country_code"),
	shapingTopK("requestpath", "request_path"),
}

func wafTopK(category, key string) family {
	return family{name: "WAF top-K by " + category, path: "/stats/security/waf/topk/" + category, key: key, most: 20}
}

func shapingTopK(category, key string) family {
	const path = "/stats/security/trafficshaping/topk/"
	return family{name: "traffic shaping top-K by " + category, path: path + category, key: key, most: 1000}
}

const (
	statsTime = "2006-01-02T15:04:05"
	timestamp = "event_timestamp_ms"
	hits      = "hits"
)

// edit changes a query.
type edit func(url.Values)

func with(name, value string) edit { return func(q url.Values) { q.Set(name, value) } }
func without(name string) edit     { return func(q url.Values) { q.Del(name) } }

// span sets the time to query.
func span(from, to time.Time) edit {
	return func(q url.Values) {
		q.Set("starttime", from.Format(statsTime))
		q.Set("endtime", to.Format(statsTime))
	}
}

// ending adds to the value of a parameter.
func ending(name, text string) edit { return func(q url.Values) { q.Set(name, q.Get(name)+text) } }

// query returns a valid query. Its day ended a while ago, so its numbers no longer change.
func (p *probe) query(f family, edits ...edit) url.Values {
	if p.span[0] == "" {
		end := p.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
		p.span = [2]string{end.Add(-24 * time.Hour).Format(statsTime), end.Format(statsTime)}
	}
	q := url.Values{"dimensions": {f.key}, "starttime": {p.span[0]}, "endtime": {p.span[1]}}
	if !f.raw {
		q.Set("metrics", hits)
	}
	if f.granular {
		q.Set("granularity", "hour")
	}
	for _, e := range edits {
		e(q)
	}
	if name := p.startName(); name != "starttime" && q.Has("starttime") {
		q.Set(name, q.Get("starttime"))
		q.Del("starttime")
	}
	return q
}

// startName finds out which spelling of starttime the service accepts (open point 10).
func (p *probe) startName() string {
	if p.startParam != "" {
		return p.startParam
	}
	for _, name := range []string{"starttime", "startime"} {
		p.startParam = name
		if p.get(events.path+"/data?"+p.query(events).Encode()).status == http.StatusOK {
			return name
		}
	}
	p.startParam = "starttime"
	return p.startParam
}

// data sends a data query. For aggregated data, its dimensions are a grouping set of the service.
func (p *probe) data(f family, edits ...edit) response {
	grouping := with("dimensions", strings.Join(p.grouping(f), ","))
	return p.get(f.path + "/data?" + p.query(f, append([]edit{grouping}, edits...)...).Encode())
}

// result returns the result of a query. If the query does not succeed, result ends the check.
func (p *probe) result(f family, edits ...edit) node {
	r := p.data(f, edits...)
	p.need(r.status == http.StatusOK, "%s returned %d", r.request, r.status)
	return r.json()
}

// grouping returns the service's shortest grouping set without the time, or the key of the family.
func (p *probe) grouping(f family) []string {
	if f.raw {
		return []string{f.key}
	}
	if set := p.groupings[f.path]; set != nil {
		return set
	}
	set := []string{f.key}
	sets := slices.DeleteFunc(p.namesOf(f, "groupings"), func(s []string) bool { return slices.Contains(s, timestamp) })
	if len(sets) > 0 && !slices.ContainsFunc(sets, func(s []string) bool { return slices.Equal(s, set) }) {
		set = slices.MinFunc(sets, func(a, b []string) int { return len(a) - len(b) })
	}
	p.groupings[f.path] = set
	return set
}

// namesOf returns what a family lists: dimensions, groupings or metrics.
func (p *probe) namesOf(f family, what string) [][]string {
	var body any
	if r := p.get(f.path + "/" + what); r.status != http.StatusOK || !r.isJSON(&body) {
		return nil
	}
	return namesIn(body)
}

// names works like namesOf, but ends the check unless there are names.
func (p *probe) names(f family, what string) [][]string {
	names := p.namesOf(f, what)
	p.need(len(names) > 0, "%s of %s cannot be read", what, f.name)
	return names
}

// namesIn reads the body of dimensions, groupings or metrics, whose shape is open (open point 14). An item is a name,
// or an object with a name. An item of groupings may also be an array of these, or names joined by commas.
func namesIn(body any) (sets [][]string) {
	if object, ok := body.(map[string]any); ok {
		for _, member := range []string{"dimensions", "groupings", "metrics", "items"} {
			if object[member] != nil {
				body = object[member]
			}
		}
	}
	items, _ := body.([]any)
	for _, item := range items {
		switch v := item.(type) {
		case string:
			sets = append(sets, strings.Split(v, ","))
		case map[string]any:
			name, _ := v["name"].(string)
			sets = append(sets, strings.Split(name, ","))
		case []any:
			sets = append(sets, slices.Concat(namesIn(v)...))
		}
	}
	return sets
}

// columns returns the names of the columns of a result.
func columns(result node) []string {
	var names []string
	for _, c := range result.at("columns").items() {
		names = append(names, c.at("name").text())
	}
	return names
}

// values returns the values of one column.
func (n node) values(column string) []node {
	at := slices.Index(columns(n), column)
	if at < 0 {
		n.wrong("has no column %s", column)
	}
	var values []node
	for _, row := range n.eachRow() {
		cells := row.items()
		if at >= len(cells) {
			row.wrong("has no value for %s", column)
		}
		values = append(values, cells[at])
	}
	return values
}

func (n node) rows() int { return len(n.eachRow()) }

// eachRow returns the rows of a result. They may be null if there are none, and the total may be 1.0 (open point 50).
func (n node) eachRow() []node {
	if n.at("rows").null() && n.total() == 0 {
		return nil
	}
	return n.at("rows").items()
}

func (n node) total() int64 {
	total := n.at("total_results")
	if number, ok := total.value.(json.Number); ok {
		total.value = json.Number(strings.TrimSuffix(number.String(), ".0"))
	}
	return total.integer()
}

// different returns the distinct strings of a column, sorted.
func (n node) different(column string) []string {
	var all []string
	for _, value := range n.values(column) {
		if text, ok := value.value.(string); ok && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// escape escapes a value for a filter expression.
func escape(value string) string { return strings.NewReplacer(",", `\,`, ";", `\;`).Replace(value) }
