package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

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
			own := "customer==" + escape(p.Customer)
			for want, change := range map[string]edit{own: without("filters"), "rule_id==1;" + own: with("filters", "rule_id==1")} {
				result := p.result(events, change)
				p.strict = true
				got := result.at("query").at("filters").text()
				p.want(got == want, "the filters are %q instead of %q", got, want)
			}
		}),
		open("2.4", 18, "filter on the customer behind filters joined with OR", func(p *probe) {
			p.saw("%s", p.result(events, with("filters", "event_action==WARN,event_type==CUSTOM")).at("query").at("filters").text())
		}),
		stated("2.4", "columns are those asked for, in that order, with event_timestamp_ms first even when not requested", func(p *probe) {
			for _, dimensions := range []string{timestamp + ",event_type,client_ip", "client_ip"} {
				got := columns(p.result(events, with("dimensions", dimensions)))
				want := timestamp + "," + strings.TrimPrefix(dimensions, timestamp+",")
				p.want(strings.Join(got, ",") == want, "for %s columns are %q", dimensions, got)
			}
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
		stated("2.4", "timestamps of rows are strings without zone designator, numeric dimensions are numbers", func(p *probe) {
			result := p.someRows(with("dimensions", timestamp+",client_asn"), with("limit", "100"))
			p.strict = true
			for _, value := range result.values(timestamp) {
				value.match(unzoned, "a timestamp without a zone")
			}
			found := false
			for _, value := range result.values("client_asn") {
				_, number := value.value.(json.Number)
				found = found || number
				p.want(number || value.null(), "%s is %s", value.path, value.kind())
			}
			p.need(found, "no event has a client_asn")
		}),
		stated("2.4", "members of a result have their types", func(p *probe) {
			result := p.result(events)
			p.strict = true
			result.is("Result")
		}),
		open("2.4", 50, "rows and total_results of a result without rows", func(p *probe) {
			result := p.result(events, with("filters", "event_action==conformance-absent"))
			p.saw("rows: %s, total_results: %v", result.at("rows").kind(), result.at("total_results").value)
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
				words = append(words, fmt.Sprintf("%s: %q", name, result.different(name)))
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
		stated("2.5", "the only metric is hits", func(p *probe) {
			for _, f := range trends {
				names := namesIn(p.read(f.path + "/metrics").value)
				p.want(fmt.Sprint(names) == "[[hits]]", "metrics of %s are %v", f.name, names)
			}
		}),
		stated("2.5", "grouping sets that groupings returns are accepted", func(p *probe) {
			for _, f := range trends {
				sets := p.names(f, "groupings")
				for _, set := range sets[:min(5, len(sets))] {
					r := p.data(f, with("dimensions", strings.Join(set, ",")), with("granularity", "hour"))
					p.want(r.status == http.StatusOK, "%q of %s returned %d", set, f.name, r.status)
				}
			}
		}),
		stated("2.5", "dimensions that are not a grouping set are rejected", func(p *probe) {
			for _, f := range trends {
				all := slices.Concat(p.names(f, "dimensions")...)
				p.need(len(all) > 1, "%s has one dimension", f.name)
				for _, set := range p.names(f, "groupings") {
					p.need(len(set) < len(all), "all dimensions of %s are a grouping set", f.name)
				}
				p.data(f, with("dimensions", strings.Join(all, ","))).refused("with all dimensions of " + f.name)
			}
		}),
	}
}

// someRows returns a result of raw events that has rows.
func (p *probe) someRows(edits ...edit) node {
	result := p.result(events, edits...)
	p.need(result.rows() > 0, "there are no events in the last day")
	return result
}
