package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// queryRules are the rules that all data methods share (section 4.2).
func queryRules() []Rule {
	rules := make([]Rule, 0, 40)
	for _, c := range []struct {
		what    string
		of      family
		queries []edit
	}{
		{"a time with a zone designator", events, []edit{
			ending("starttime", "Z"), ending("endtime", "Z"), ending("starttime", "+00:00"), ending("endtime", "+00:00"),
		}},
		{"an empty starttime or endtime", events, []edit{with("starttime", ""), with("endtime", "")}},
		{"a starttime that is not earlier than endtime", events, []edit{
			func(q url.Values) { q["starttime"], q["endtime"] = q["endtime"], q["starttime"] },
			func(q url.Values) { q["endtime"] = q["starttime"] },
		}},
		{"a dimension that does not exist", events, []edit{with("dimensions", "conformance_absent")}},
		{"a metric other than hits", wafTrends, []edit{with("metrics", "conformance")}},
	} {
		rules = append(rules, stated("4.2", c.what+" is rejected", func(p *probe) {
			for _, query := range c.queries {
				p.data(c.of, query).refused("with " + c.what)
			}
		}))
	}
	for _, c := range []struct {
		point   int
		section string
		what    string
		of      family
		queries [2]edit
	}{
		{34, "4.2", "sortby a column that is not in the result, and a dimension that comes twice", events, [2]edit{
			with("sortby", "client_ip"), with("dimensions", "client_ip,client_ip"),
		}},
		{17, "4.2", "a backslash in a value of a filter, before a letter and at the end", events, [2]edit{
			with("filters", `client_browser==conformance\absent`), with("filters", `client_browser==conformance\`),
		}},
		{11, "4.2", "an hour of 24 in endtime, and a fraction of a second", events, [2]edit{
			func(q url.Values) { q.Set("endtime", q.Get("starttime")[:len("2006-01-02")]+"T24:00:00") }, ending("endtime", ".000"),
		}},
		{12, "4.3", "request trends with granularity, and without", requestTrends, [2]edit{with("granularity", "hour"), with("metrics", hits)}},
		{16, "7", "status of a query without endtime, and with an empty one", events, [2]edit{without("endtime"), with("endtime", "")}},
	} {
		rules = append(rules, open(c.section, c.point, c.what, func(p *probe) {
			p.saw("returned %d and %d", p.data(c.of, c.queries[0]).status, p.data(c.of, c.queries[1]).status)
		}))
	}
	return append(rules,
		stated("4.2", "a time is in the span asked for", func(p *probe) {
			for _, value := range p.someRows(with("dimensions", timestamp), with("limit", "100")).values(timestamp) {
				at := strings.Replace(value.match(unzoned, "a time")[0][:len(statsTime)], " ", "T", 1)
				p.want(at >= p.span[0] && at <= p.span[1], "%s is %q, but %s to %s was requested", value.path, value.value, p.span[0], p.span[1])
			}
		}),
		open("4.2", 10, "spelling of starttime", func(p *probe) {
			name := p.startName()
			other := map[string]string{"starttime": "startime", "startime": "starttime"}[name]
			q := p.query(events)
			q.Set(other, q.Get(name))
			q.Del(name)
			p.saw("%s is accepted, %s returns %d", name, other, p.get(events.path+"/data?"+q.Encode()).status)
		}),
		open("4.2", 41, "start as a parameter", func(p *probe) {
			edits := []edit{with("dimensions", timestamp+",client_ip"), with("sortby", timestamp), with("limit", "2")}
			r := p.data(events, append(slices.Clone(edits), with("start", "1"))...)
			if r.status != http.StatusOK {
				p.saw("returned %d", r.status)
			}
			moved, whole := r.json(), p.result(events, edits...)
			p.need(whole.rows() == 2 && moved.rows() > 0, "there are not two events in the last day")
			second, first := whole.at("rows").items()[1], moved.at("rows").items()[0]
			p.saw("start of the query is %v, begins with the second row: %t", moved.at("query").at("start").value,
				fmt.Sprint(first.value) == fmt.Sprint(second.value))
		}),
		open("4.2", 33, "an event at the very start and at the very end of a span", func(p *probe) {
			var at time.Time
			for _, value := range p.someRows(with("dimensions", timestamp), with("limit", "5000")).values(timestamp) {
				if t, whole := wholeSecond(value.text()); whole {
					at = t
				}
			}
			p.need(!at.IsZero(), "no event of the last day is at a whole second")
			found := func(from, to time.Time) bool {
				values := p.result(events, with("dimensions", timestamp), span(from, to), with("limit", "5000")).values(timestamp)
				return slices.ContainsFunc(values, func(value node) bool {
					t, whole := wholeSecond(value.text())
					return whole && t.Equal(at)
				})
			}
			p.saw("it is found at the start: %t, at the end: %t", found(at, at.Add(time.Second)), found(at.Add(-time.Second), at))
		}),
		stated("4.2", "granularity is day, hour or 5minute", func(p *probe) {
			for _, granularity := range []string{"day", "hour", "5minute"} {
				r := p.data(wafTrends, with("granularity", granularity))
				p.want(r.status == http.StatusOK, "%s returned %d", granularity, r.status)
			}
		}),
		stated("4.2", "a filter with == leaves rows with that value, and one with != the others", func(p *probe) {
			value := p.actions(1)[0]
			all, same := p.result(events).total(), p.result(events, with("filters", "event_action=="+escape(value))).total()
			kept := p.result(events, with("filters", "event_action=="+escape(value))).different("event_action")
			p.want(slices.Equal(kept, []string{value}), "rows with %q are left for ==", kept)
			left := p.result(events, with("filters", "event_action!="+escape(value)), with("limit", "100"))
			p.want(!slices.Contains(left.different("event_action"), value), "rows with that value are left")
			p.want(left.total() <= all-same, "of %d rows %d have the value and %d do not", all, same, left.total())
		}),
		stated("4.2", "a comma joins filters by OR, a semicolon by AND", func(p *probe) {
			values := p.actions(2)
			a, b := "event_action=="+escape(values[0]), "event_action=="+escape(values[1])
			total := func(filters string) int64 { return p.result(events, with("filters", filters)).total() }
			first, sum := total(a), total(a)+total(b)
			p.want(total(a+","+b) == sum, "%d rows have either value, %d one or the other", total(a+","+b), sum)
			p.want(total(a+";"+b) == 0, "%d rows have two values at once", total(a+";"+b))
			again := total(a + ";event_action!=" + escape(values[1]))
			p.want(first == again, "%d rows have the value, but %d have it and not another", first, again)
		}),
		stated("4.2", "a comma and a semicolon in a value are escaped with a backslash", func(p *probe) {
			r := p.data(events, with("filters", `client_browser==conformance\,absent\;browser`))
			r.wanted(http.StatusOK)
			p.want(r.json().total() == 0, "%d rows have a value that none has", r.json().total())
			browsers := p.someRows(with("dimensions", "client_browser"), with("limit", "1000")).different("client_browser")
			i := slices.IndexFunc(browsers, func(b string) bool { return strings.ContainsAny(b, ",;") && !strings.Contains(b, `\`) })
			p.need(i >= 0, "no browser of the last day has a comma or a semicolon in its name")
			left := p.result(events, with("dimensions", "client_browser"), with("filters", "client_browser=="+escape(browsers[i])))
			p.want(slices.Equal(left.different("client_browser"), browsers[i:i+1]), "rows with %q came for %q",
				left.different("client_browser"), browsers[i])
		}),

		stated("4.2", "sortby is ascending, and with a minus sign descending", func(p *probe) {
			for _, order := range []string{timestamp, "-" + timestamp} {
				var values []string
				for _, value := range p.someRows(with("dimensions", timestamp), with("sortby", order), with("limit", "50")).values(timestamp) {
					values = append(values, value.text())
				}
				p.need(values[0] != values[len(values)-1], "all events have the same time")
				sorted := slices.Clone(values)
				if slices.Sort(sorted); order != timestamp {
					slices.Reverse(sorted)
				}
				p.want(slices.Equal(values, sorted), "by %s the times are %s", order, strings.Join(values, ", "))
			}
		}),
		stated("4.2", "order of listing in sortby is the sort order", func(p *probe) {
			result := p.result(events, with("dimensions", "event_type,"+timestamp), with("sortby", "event_type,-"+timestamp), with("limit", "500"))
			types, times := result.values("event_type"), result.values(timestamp)
			seen, before := map[string]bool{}, ""
			for i := range types {
				kind := fmt.Sprint(types[i].value)
				p.want(kind == before || !seen[kind], "rows of the same event_type are not together")
				p.want(kind != before || i == 0 || times[i].text() <= times[i-1].text(), "%s is later than the row before it", times[i].path)
				seen[kind], before = true, kind
			}
			p.need(len(types) > 1, "there are not two events")
		}),
		stated("4.2", "aggregated data can be sorted by a metric", func(p *probe) {
			var counts []int64
			for _, value := range p.result(requestTrends, with("sortby", "-"+hits), with("limit", "100")).values(hits) {
				counts = append(counts, value.integer())
			}
			p.want(slices.IsSortedFunc(counts, func(a, b int64) int { return int(b - a) }), "hits are %v", counts)
			p.need(len(counts) > 1, "there are not two rows")
		}),

		stated("4.2", "limit is 10 by default", func(p *probe) {
			result := p.result(events)
			p.need(result.total() > 10, "there are only %d events in the last day", result.total())
			p.want(result.rows() == 10, "%d rows came of %d", result.rows(), result.total())
		}),
		stated("4.2", "limit is the maximum number of rows, and total_results does not depend on it", func(p *probe) {
			total := p.result(events).total()
			for _, limit := range []int{1, 13} {
				result := p.result(events, with("limit", strconv.Itoa(limit)))
				p.want(int64(result.rows()) == min(int64(limit), total) && result.total() == total,
					"with limit %d %d rows came of %d, and without it of %d", limit, result.rows(), result.total(), total)
			}
		}),
		stated("4.2", "limit has no upper bound", func(p *probe) {
			p.data(events, with("limit", "2000000000"), with("filters", "event_action==conformance-absent")).wanted(http.StatusOK)
		}),
		stated("4.3", "a limit of total_results returns every event", func(p *probe) {
			end, _ := time.Parse(statsTime, p.query(events).Get("endtime"))
			for span := 24 * time.Hour; span > time.Second; span /= 4 {
				from := with("starttime", end.Add(-span).Format(statsTime))
				total := p.result(events, from).total()
				if total > 5000 {
					continue
				}
				p.need(total > 10, "there are %d events in a span", total)
				all := p.result(events, from, with("limit", strconv.FormatInt(total, 10)))
				p.want(int64(all.rows()) == total, "total_results is %d, but %d rows came", total, all.rows())
				return
			}
			p.skip("there are too many events")
		}),
	)
}

// wholeSecond parses a time of a row, and reports whether it has no fraction of a second.
func wholeSecond(text string) (t time.Time, whole bool) {
	t, err := time.Parse(statsTime, strings.Replace(text, " ", "T", 1)) // accepts a fraction too
	return t, err == nil && t.Nanosecond() == 0
}

// actions returns distinct values of event_action.
func (p *probe) actions(count int) []string {
	values := p.someRows(with("limit", "1000")).different("event_action")
	p.need(len(values) >= count, "there are not %d different values of event_action", count)
	return values[:count]
}

// familyRules are the rules about each family (section 4.3).
func familyRules() []Rule {
	var rules []Rule
	for _, f := range families {
		of, required := " of "+f.name, []string{"dimensions", "starttime", "endtime"}
		if !f.raw {
			required = append(required, "metrics")
		}
		if f.granular {
			required = append(required, "granularity")
		}
		rules = append(rules,
			stated("4.3", "data"+of+" returns 200 and a result", func(p *probe) {
				r := p.data(f)
				r.wanted(http.StatusOK)
				p.strict = true
				result := r.json()
				for _, member := range []string{"query", "columns", "rows"} {
					result.at(member)
				}
			}),
			stated("4.3", strings.Join(required, ", ")+of+" are required", func(p *probe) {
				p.need(p.data(f).status == http.StatusOK, "data does not return 200 anyway")
				for _, name := range required {
					p.data(f, without(name)).refused("without " + name)
				}
			}),
			stated("4.3", "HEAD"+of+" is answered like data, without a body", func(p *probe) {
				query := p.query(f, with("dimensions", strings.Join(p.grouping(f), ",")))
				head, data := p.send(http.MethodHead, f.path+"?"+query.Encode(), nil, p.User.basic), p.data(f)
				p.want(head.status == data.status, "HEAD returned %d, data returned %d", head.status, data.status)
				p.want(head.header.Get("Content-Type") == data.header.Get("Content-Type"), "HEAD has the Content-Type %q, data %q",
					head.header.Get("Content-Type"), data.header.Get("Content-Type"))
				p.want(len(head.body) == 0, "HEAD has a body of %d bytes", len(head.body))
			}),
			returned("4.3", 36, "HEAD"+of+" without parameters", func(p *probe) response {
				return p.send(http.MethodHead, f.path, nil, p.User.basic)
			}),
		)
		described := []string{"dimensions", "groupings", "metrics"}
		if f.raw {
			described = described[:1]
		} else {
			rules = append(rules, stated("4.3", "columns"+of+" are the dimensions and hits", func(p *probe) {
				got := columns(p.result(f))
				p.want(slices.Equal(got, append(slices.Clone(p.grouping(f)), hits)), "columns are %q", got)
			}))
		}
		if f.most > 0 {
			rules = append(rules, open("4.3", 47, "dimensions that"+of+" groups by alone", func(p *probe) {
				sets := slices.DeleteFunc(p.names(f, "groupings"), func(set []string) bool { return len(set) != 1 })
				p.saw("%s", strings.Join(slices.Concat(sets...), " "))
			}), stated("8", fmt.Sprintf("a %s has at most %d rows", f.name, f.most), func(p *probe) {
				limit := with("limit", "3000")
				if f.most < 1000 { // a WAF top-K has no limit
					limit = without("limit")
				}
				rows := p.result(f, limit).rows()
				p.want(rows <= f.most, "%d rows came", rows)
			}))
		}
		for _, what := range described {
			if f.most > 0 {
				rules = append(rules, returned("4.3", 15, what+of+", beside data", func(p *probe) response {
					return p.get(f.path + "/" + what)
				}))
				continue
			}
			rules = append(rules,
				stated("4.3", what+of+" returns 200", func(p *probe) { p.get(f.path + "/" + what).wanted(http.StatusOK) }),
				open("4.3", 14, "body of "+what+of, func(p *probe) { p.saw("%s", p.read(f.path+"/"+what).outline()) }),
			)
		}
	}
	return append(rules, stated("4.3", "a WAF top-K by clientip has those with the most hits", mostHits))
}

// outline describes the shape of a value. An array has the shape of its first item.
func (n node) outline() string {
	switch v := n.value.(type) {
	case []any:
		if len(v) == 0 {
			return "an empty array"
		}
		return "an array, each item " + n.items()[0].outline()
	case map[string]any:
		var members []string
		for name := range v {
			members = append(members, name+": "+n.at(name).outline())
		}
		slices.Sort(members)
		return "an object {" + strings.Join(members, "; ") + "}"
	default:
		return n.kind()
	}
}

// mostHits checks that what a top-K leaves out has no more hits than what it has.
func mostHits(p *probe) {
	first := p.result(wafByClientIP)
	counts, keys := first.values(hits), first.values("client_ip")
	p.need(len(counts) > 0, "there are no WAF events in the last day")
	least := counts[0].integer()
	var others []string
	for i, value := range counts {
		least = min(least, value.integer())
		others = append(others, "client_ip!="+escape(keys[i].text()))
	}
	rest := p.result(wafByClientIP, with("filters", strings.Join(others, ";"))).values(hits)
	p.want(len(rest) == 0 || len(counts) == wafByClientIP.most, "%d came, although there are more than those", len(counts))
	for _, value := range rest {
		p.want(value.integer() <= least, "one with %d hits was left out for one with %d", value.integer(), least)
	}
	p.need(len(rest) > 0, "there are not more than %d", len(counts))
}

// retentionRules are the rules about retention (sections 6 and 8).
func retentionRules() []Rule {
	// of queries the day that many days ago.
	of := func(p *probe, days int, granularity string) response {
		day := p.Now().UTC().AddDate(0, 0, -days)
		return p.data(wafTrends, span(day, day.AddDate(0, 0, 1)), with("granularity", granularity))
	}
	rows := func(p *probe, days int, granularity string) int {
		r := of(p, days, granularity)
		p.need(r.status == http.StatusOK, "%s returned %d", r.request, r.status)
		return r.json().rows()
	}
	finer := func(days int, coarse, fine string) func(p *probe) {
		return func(p *probe) {
			p.need(rows(p, days, coarse) > 0, "there is no %s data of %d days ago", coarse, days)
			p.want(rows(p, days, fine) > 0, "there is no %s data of %d days ago", fine, days)
		}
	}
	older := func(days int, granularity string) func(p *probe) {
		return func(p *probe) {
			r := of(p, days, granularity)
			if r.status != http.StatusOK {
				p.saw("of %d days ago it returns %d", days, r.status)
			}
			p.saw("of %d days ago it has %d rows", days, r.json().rows())
		}
	}
	return []Rule{
		stated("6", "raw events of the previous three days are kept, and no older ones", func(p *probe) {
			first := p.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)
			old := p.result(events, span(first.AddDate(0, 0, -7), first)).total()
			p.want(old == 0, "there are %d from before %s", old, first.Format(time.DateOnly))
			p.need(rows(p, 3, "day") > 0, "there were no WAF events then")
			p.want(p.result(events, span(first, first.AddDate(0, 0, 1))).total() > 0, "there are none of %s", first.Format(time.DateOnly))
		}),
		stated("8", "trends by 5minute are kept for a week", finer(6, "hour", "5minute")),
		stated("8", "trends by hour are kept for a month", finer(27, "day", "hour")),
		open("8", 13, "trends by 5minute after a week", older(10, "5minute")),
		open("8", 13, "trends by hour after a month", older(33, "hour")),
		open("8", 13, "trends by day after a month", older(33, "day")),
		unseen("8", "trends by day are kept for ever", "for ever is long"),
	}
}
