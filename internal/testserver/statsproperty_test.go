package testserver_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// record is an event for the naive evaluation below: the values of its row by dimension.
type record struct {
	time time.Time
	cell map[string]any // nil, int64 or string
}

const layout = "2006-01-02T15:04:05.000"

var awkward = []string{"", "a", "A", "b,c", "b;c", `d\e`, "==", "!=", "ü", "a b", "null", "7"}

// population generates events with few different values, and their records.
func population(random *rand.Rand, n int) (all []testserver.Event, records []record) {
	pick := func() string { return awkward[random.IntN(len(awkward))] }
	types := []string{"CUSTOM", "WAF", "OTHER", "BLOCK_IP", "RATE_LIMIT_COUNTRY", ""}
	for range n {
		e := testserver.Event{
			Time: noon.Add(-time.Duration(random.IntN(4*60*60*1000)) * time.Millisecond),
			Type: types[random.IntN(len(types))], Severity: pick(), Action: pick(), Browser: pick(), CountryCode: pick(),
			ASN: int64(random.IntN(4)) * 1e16, RuleID: pick(), Domain: pick(), Property: pick(), WAFAction: pick(), RequestPath: pick(),
		}
		ip := any(nil)
		if last := random.IntN(5); last > 0 {
			e.ClientIP = netip.AddrFrom4([4]byte{9, 10, 0, byte(last * 7)})
			ip = e.ClientIP.String()
		}
		all = append(all, e)
		r := record{time: e.Time, cell: map[string]any{
			"event_timestamp_ms": e.Time.Format(layout), "event_type": e.Type, "event_severity": e.Severity, "event_action": e.Action,
			"client_browser": e.Browser, "client_country_code": e.CountryCode, "client_asn": e.ASN, "rule_id": e.RuleID,
			"domain": e.Domain, "property": e.Property, "waf_action": e.WAFAction, "request_path": e.RequestPath, "client_ip": ip,
		}}
		for name, value := range r.cell {
			if value == "" || value == int64(0) {
				r.cell[name] = nil
			}
		}
		records = append(records, r)
	}
	slices.SortStableFunc(records, func(a, b record) int { return a.time.Compare(b.time) })
	return all, records
}

// query is a random valid query.
type query struct {
	family, granularity string
	start, end          time.Time
	dimensions          []string
	filter              string
	passes              func(map[string]any) bool
	sortby              []string
	limit               int
}

func (q query) pairs() []string {
	return []string{
		"starttime", q.start.Format("2006-01-02T15:04:05"), "endtime", q.end.Format("2006-01-02T15:04:05"),
		"dimensions", strings.Join(q.dimensions, ","), "filters", q.filter, "sortby", strings.Join(q.sortby, ","),
		"granularity", q.granularity, "limit", fmt.Sprint(q.limit),
	}
}

func randomQuery(random *rand.Rand, sets map[string][][]string, records []record) query {
	families := []string{events, waf, requests, shaping}
	q := query{family: families[random.IntN(len(families))], limit: random.IntN(12) * random.IntN(40)}
	q.start = noon.Add(-time.Duration(random.IntN(5*60*60)) * time.Second)
	q.end = q.start.Add(time.Duration(1+random.IntN(5*60*60)) * time.Second)
	filterable := []string{"event_action", "event_type", "client_browser", "client_country_code", "client_asn", "domain", "property"}
	sortable := []string{"event_timestamp_ms"}
	if q.family == events {
		filterable = append(filterable, "event_timestamp_ms", "client_ip", "rule_id", "request_path", "event_severity", "waf_action")
		q.dimensions = slices.Clone(filterable)
		shuffle(random, q.dimensions)
		q.dimensions = q.dimensions[:1+random.IntN(5)]
		sortable = append(sortable, q.dimensions...)
	} else {
		q.granularity = []string{"day", "hour", "5minute"}[random.IntN(3)]
		q.dimensions = slices.Clone(sets[q.family][random.IntN(len(sets[q.family]))])
		shuffle(random, q.dimensions)
		sortable = slices.Concat(q.dimensions, []string{"hits"})
	}
	for range random.IntN(4) {
		q.sortby = append(q.sortby, []string{"", "-"}[random.IntN(2)]+sortable[random.IntN(len(sortable))])
	}
	q.filter, q.passes = randomFilter(random, filterable, records)
	return q
}

func shuffle(random *rand.Rand, names []string) {
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
}

// randomFilter returns an expression of values that occur, and its own evaluation of it.
func randomFilter(random *rand.Rand, dimensions []string, records []record) (string, func(map[string]any) bool) {
	var texts []string
	var terms []func(map[string]any) bool
	for range random.IntN(4) {
		name := dimensions[random.IntN(len(dimensions))]
		equal := random.IntN(2) == 0
		want := shown(records[random.IntN(len(records))].cell[name])
		escaped := strings.ReplaceAll(strings.ReplaceAll(want, ",", `\,`), ";", `\;`)
		texts = append(texts, name+map[bool]string{true: "==", false: "!="}[equal]+escaped)
		terms = append(terms, func(cell map[string]any) bool { return (shown(cell[name]) == want) == equal })
	}
	if random.IntN(2) == 0 {
		return strings.Join(texts, ","), func(cell map[string]any) bool {
			one := len(terms) == 0
			for _, term := range terms {
				one = one || term(cell)
			}
			return one
		}
	}
	return strings.Join(texts, ";"), func(cell map[string]any) bool {
		all := true
		for _, term := range terms {
			all = all && term(cell)
		}
		return all
	}
}

func shown(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// evaluate returns the naive result: all rows, in order.
func (q query) evaluate(records []record) (rows [][]any) {
	var matching []record
	for _, r := range records {
		if !r.time.Before(q.start) && r.time.Before(q.end) && q.belongs(r) && q.passes(r.cell) {
			matching = append(matching, r)
		}
	}
	columns := q.columns()
	if q.family == events {
		for _, r := range matching {
			rows = append(rows, cells(r, columns))
		}
	} else {
		rows = q.count(matching)
	}
	slices.SortStableFunc(rows, func(a, b []any) int {
		for _, key := range q.sortby {
			name, descending := strings.CutPrefix(key, "-")
			i := slices.Index(columns, name)
			if c := compareCells(a[i], b[i]); c != 0 && descending {
				return -c
			} else if c != 0 {
				return c
			}
		}
		return 0
	})
	return rows
}

func (q query) belongs(r record) bool {
	kind := shown(r.cell["event_type"])
	isShaping := kind == "BLOCK_IP" || kind == "RATE_LIMIT_COUNTRY"
	switch q.family {
	case waf:
		return r.cell["rule_id"] != nil && !isShaping
	case shaping:
		return isShaping
	default:
		return true
	}
}

func (q query) columns() []string {
	switch {
	case q.family != events:
		return append(slices.Clone(q.dimensions), "hits")
	case slices.Contains(q.dimensions, "event_timestamp_ms"):
		return q.dimensions
	default:
		return append([]string{"event_timestamp_ms"}, q.dimensions...)
	}
}

func cells(r record, columns []string) []any {
	row := make([]any, len(columns))
	for i, name := range columns {
		row[i] = r.cell[name]
	}
	return row
}

// count groups the matching events, and orders the groups by their values.
func (q query) count(matching []record) (rows [][]any) {
	for _, r := range matching {
		row := cells(r, q.dimensions)
		if i := slices.Index(q.dimensions, "event_timestamp_ms"); i >= 0 {
			t := r.time
			bucket := map[string]time.Time{
				"day":     time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC),
				"hour":    time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC),
				"5minute": time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute()/5*5, 0, 0, time.UTC),
			}[q.granularity]
			row[i] = bucket.Format(layout)
		}
		at := slices.IndexFunc(rows, func(known []any) bool { return slices.Equal(known[:len(row)], row) })
		if at < 0 {
			at = len(rows)
			rows = append(rows, append(row, int64(0)))
		}
		rows[at][len(row)] = rows[at][len(row)].(int64) + 1
	}
	slices.SortFunc(rows, func(a, b []any) int { return slices.CompareFunc(a, b, compareCells) })
	return rows
}

func compareCells(a, b any) int {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y)
		}
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	rank := func(v any) int {
		if v == nil {
			return 0
		}
		return 1
	}
	return rank(a) - rank(b)
}

// Every result equals the naive one. The hits of all groups are the number of matching events. A limit never changes
// total_results.
func TestRandomQueries(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			f := start(t, testserver.Config{Dialect: testserver.Dialect{
				MemberOrder: []string{"documented", "rows-first", "total-first"}[seed%3],
			}})
			all, records := population(random, 40+40*int(seed))
			f.AddEvents(all...)
			sets := map[string][][]string{}
			for _, family := range []string{waf, requests, shaping} {
				sets[family] = f.groupings(family)
			}
			answered := 0
			for range 120 {
				q := randomQuery(random, sets, records)
				want := q.evaluate(records)
				answered += len(want)
				got := f.result(q.family, q.pairs()...)
				require.Equal(t, len(want), got.Total, "%+v", q)
				shown := append([][]any{}, want[:min(q.limit, len(want))]...)
				require.JSONEq(t, marshal(t, shown), string(got.Rows), "%+v", q)
				require.Equal(t, strings.Join(q.columns(), ","), got.columns())
				if q.family == requests {
					f.checkSums(q, want)
				}
			}
			assert.Positive(t, answered)
		})
	}
}

// checkSums compares hits with the number of raw events. Raw events and request trends cover the same events.
func (f fake) checkSums(q query, rows [][]any) {
	f.t.Helper()
	sum := int64(0)
	for _, row := range rows {
		sum += row[len(row)-1].(int64)
	}
	q.sortby, q.granularity, q.dimensions, q.family = nil, "", []string{"domain"}, events
	assert.EqualValues(f.t, sum, f.result(q.family, append(q.pairs(), "metrics", "")...).Total)
}

// A OR B matches the events of A and of B, those of A AND B once. != matches the complement of ==.
func TestRandomFiltersAddUp(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 1))
	f := start(t, testserver.Config{EventsPerSecond: 0.05})
	values := map[string][]string{
		"event_action": {"WARN", "BLOCK"}, "client_country_code": {"US", "CN", "IS", ""}, "client_asn": {"64498", "", "4200000017"},
		"request_path": {`/report\;v=2\,final`, "/", `/..\..\etc\passwd`, "/a=b==c!=d"}, "client_browser": {`Opera\, mini\; "old"`, ""},
	}
	names := []string{"event_action", "client_country_code", "client_asn", "request_path", "client_browser"}
	count := func(filter string) int { return f.result(events, "filters", filter, "limit", "0").Total }
	term := func() (equal, not string) {
		name := names[random.IntN(len(names))]
		value := values[name][random.IntN(len(values[name]))]
		return name + "==" + value, name + "!=" + value
	}
	all := count("")
	for range 40 {
		a, notA := term()
		b, notB := term()
		assert.Positive(t, count(a), a)
		assert.Equal(t, count(a)+count(b), count(a+","+b)+count(a+";"+b), "%s and %s", a, b)
		assert.Equal(t, all, count(a)+count(notA), a)
		assert.Equal(t, all, count(a+","+b)+count(notA+";"+notB), "%s and %s", a, b)
	}
}
