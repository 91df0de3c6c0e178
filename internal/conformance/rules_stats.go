package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// named are the dimensions that the document names (section 2.5).
const named = "event_timestamp_ms,event_severity,event_type,event_action,client_connection_remote_ip,client_ip,client_browser," +
	"client_country_code,client_asn,rule_id,domain,property,waf_action"

// resultRules are the rules about the result of a query (sections 2.4 and 2.5).
func resultRules() []Rule {
	return []Rule{
		stated("2.4", "query of a result echoes the query, with a start of 0", func(p *probe) {
			echo := p.result(events, with("limit", "3"), with("dimensions", "event_type,client_ip")).at("query")
			p.strict = true
			for i, name := range []string{"starttime", "endtime"} {
				p.want(echo.at(name).text() == p.span[i], "%s is %q, sent was %q", name, echo.at(name).value, p.span[i])
			}
			for name, want := range map[string]int64{"start": 0, "limit": 3} {
				p.want(echo.at(name).integer() == want, "%s is %d instead of %d", name, echo.at(name).integer(), want)
			}
			got := fmt.Sprint(echo.at("dimensions").value)
			p.want(got == "[event_type client_ip]", "dimensions are %s", got)
		}),
		stated("2.4", "a filter on the customer is appended to the supplied filters with AND", func(p *probe) {
			for filters, want := range map[string]string{"": p.ownFilter(), "rule_id==1;rule_id!=2": "rule_id==1;rule_id!=2;" + p.ownFilter()} {
				result := p.result(events, func(q url.Values) {
					if filters != "" {
						q.Set("filters", filters)
					}
				})
				p.strict = true
				got := result.at("query").at("filters").text()
				p.want(got == want, "for the filters %q it is %q", filters, got)
			}
		}),
		open("2.4", 18, "filter on the customer behind filters joined with OR", func(p *probe) {
			p.saw("%s", p.result(events, with("filters", "event_action==WARN,event_type==CUSTOM")).at("query").at("filters").text())
		}),
		stated("2.4", "columns are objects with a name, in the order asked for", func(p *probe) {
			result := p.result(events, with("dimensions", timestamp+",event_type,client_ip"))
			p.strict = true
			p.want(slices.Equal(columns(result), []string{timestamp, "event_type", "client_ip"}), "columns are %q", columns(result))
		}),
		stated("2.4", "event_timestamp_ms is the first column of raw events even when not requested", func(p *probe) {
			result := p.result(events, with("dimensions", "client_ip"))
			p.want(slices.Equal(columns(result), []string{timestamp, "client_ip"}), "columns are %q", columns(result))
		}),
		stated("2.4", "rows are arrays with a value for each column", func(p *probe) {
			result := p.result(events, with("dimensions", "event_type,client_ip"))
			count := len(columns(result))
			p.need(result.has("rows") && (result.at("rows").null() && result.total() > 0 || result.rows() > 0), "there are no events in the last day")
			p.strict = true
			for _, row := range result.at("rows").items() {
				p.want(len(row.items()) == count, "%s has %d values for %d columns", row.path, len(row.items()), count)
			}
		}),
		stated("2.4", "timestamps of rows are strings without zone designator", func(p *probe) {
			result := p.someRows(with("dimensions", timestamp))
			p.strict = true
			for _, value := range result.values(timestamp) {
				p.want(unzoned.MatchString(value.text()), "%s is %q", value.path, value.value)
			}
		}),
		stated("2.4", "numeric dimensions are numbers", func(p *probe) {
			values := p.someRows(with("dimensions", "client_asn"), with("limit", "100")).values("client_asn")
			found := false
			for _, value := range values {
				_, number := value.value.(json.Number)
				found = found || number
				p.want(number || value.null(), "%s is %s", value.path, value.kind())
			}
			p.need(found, "no event has a client_asn")
		}),
		stated("2.4", "total_results is an integer", func(p *probe) {
			result := p.result(events)
			p.strict = true
			result.at("total_results").integer()
		}),
		open("2.4", 50, "rows and total_results of a result without rows", func(p *probe) {
			result := p.result(events, with("filters", "event_action==conformance-absent"))
			p.saw("rows: %s, total_results: %v", result.at("rows").kind(), result.at("total_results").value)
		}),
		stated("2.4", "total_results is independent of limit", func(p *probe) {
			one, more := p.result(events, with("limit", "1")).total(), p.result(events, with("limit", "20")).total()
			p.want(one == more, "it is %d with limit 1 and %d with limit 20", one, more)
		}),
		open("2.4", 51, "a dimension that an event lacks", func(p *probe) {
			lacking := map[string]bool{}
			for _, name := range []string{"client_browser", "client_asn", "rule_id", "waf_action"} {
				for _, value := range p.someRows(with("dimensions", name), with("limit", "1000")).values(name) {
					if text, _ := value.value.(string); value.null() || value.value == "" || text == "-" {
						lacking[fmt.Sprintf("%s: %v", name, value.value)] = true
					}
				}
			}
			p.saw("%s", list(lacking))
		}),
		open("2.4", 30, "order of the members of a result", func(p *probe) {
			p.saw("%s", strings.Join(p.data(events).members(), ", "))
		}),

		open("2.5", 43, "words of event_type, event_action and event_severity", func(p *probe) {
			const names = "event_type,event_action,event_severity"
			result := p.someRows(with("dimensions", names), with("limit", "1000"))
			var words []string
			for name := range strings.SplitSeq(names, ",") {
				values := map[string]bool{}
				for _, value := range result.different(name) {
					values[value] = true
				}
				words = append(words, name+": "+list(values))
			}
			p.saw("%s", strings.Join(words, "; "))
		}),
		open("2.5", 35, "event_timestamp_ms of an aggregated row", func(p *probe) {
			sets := p.names(wafTrends, "groupings")
			i := slices.IndexFunc(sets, func(set []string) bool { return slices.Contains(set, timestamp) })
			p.need(i >= 0, "no grouping set of WAF trends has it")
			rows := p.result(wafTrends, with("dimensions", strings.Join(sets[i], ",")), with("granularity", "hour"), with("sortby", timestamp),
				with("limit", "1000"))
			values := rows.values(timestamp)
			p.need(len(values) > 0, "there are no WAF events in the last day")
			p.saw("by hour, of %s to %s, it is %v to %v", p.span[0], p.span[1], values[0].value, values[len(values)-1].value)
		}),
		open("2.5", 0, "dimensions of raw events", func(p *probe) {
			var refused []string
			for name := range strings.SplitSeq(named, ",") {
				if p.data(events, with("dimensions", name)).status != http.StatusOK {
					refused = append(refused, name)
				}
			}
			p.saw("of those that the document names these are rejected: %q", refused)
		}),
		stated("2.5", "the only metric is hits", func(p *probe) {
			for _, f := range []family{wafTrends, requestTrends, shapingTrends} {
				names := p.names(f, "metrics")
				p.want(fmt.Sprint(names) == "[[hits]]", "metrics of %s are %v", f.name, names)
			}
		}),
		stated("2.5", "grouping sets that groupings returns are accepted", func(p *probe) {
			for _, f := range []family{wafTrends, requestTrends, shapingTrends} {
				sets := p.names(f, "groupings")
				for _, set := range sets[:min(5, len(sets))] {
					r := p.data(f, with("dimensions", strings.Join(set, ",")), with("granularity", "hour"))
					p.want(r.status == http.StatusOK, "%q of %s returned %d", set, f.name, r.status)
				}
			}
		}),
		stated("2.5", "dimensions that are not a grouping set are rejected", func(p *probe) {
			for _, f := range []family{wafTrends, requestTrends, shapingTrends} {
				all := slices.Concat(p.names(f, "dimensions")...)
				p.need(len(all) > 1, "%s has one dimension", f.name)
				for _, set := range p.names(f, "groupings") {
					p.need(len(set) < len(all), "all dimensions of %s are a grouping set", f.name)
				}
				p.data(f, with("dimensions", strings.Join(all, ","))).refused("with all dimensions of " + f.name)
			}
		}),
		stated("4.2", "a dimension that does not exist is rejected", func(p *probe) {
			p.data(events, with("dimensions", "conformance_absent")).refused("with an unknown dimension")
		}),
	}
}

var unzoned = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?$`)

// ownFilter returns the filter that a service appends.
func (p *probe) ownFilter() string { return "customer==" + escape(p.Customer) }

func columns(result node) []string {
	var names []string
	for _, c := range result.at("columns").items() {
		names = append(names, c.at("name").text())
	}
	return names
}

// someRows returns a result of raw events that has rows.
func (p *probe) someRows(edits ...edit) node {
	result := p.result(events, edits...)
	p.need(result.rows() > 0, "there are no events in the last day")
	return result
}

// singles returns the dimensions that are a grouping set by themselves.
func (p *probe) singles(f family) (names []string) {
	for _, set := range p.names(f, "groupings") {
		if len(set) == 1 {
			names = append(names, set[0])
		}
	}
	return names
}
