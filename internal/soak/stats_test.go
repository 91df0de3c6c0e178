package soak

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const (
	wafEvents     = 150 // of three rules in turn, one event per second
	ruleCount     = 3
	shapingEvents = 30
	span          = wafEvents * time.Second
)

func ruleName(k int) string { return fmt.Sprint("soak-", k) }

// attack is one of the events of this test, in the form of a row. Its ASN is above 2^53 and odd.
type attack struct {
	Time time.Time  `stats:"event_timestamp_ms"`
	IP   netip.Addr `stats:"client_ip"`
	Rule string     `stats:"rule_id"`
	ASN  int64      `stats:"client_asn"`
}

// attack returns the i-th event of the round, and the values that its row must have.
func (s *soak) attack(i int) attack {
	return attack{
		Time: s.eventsFrom.Add(time.Duration(i) * time.Second),
		IP:   netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}),
		Rule: ruleName(i % ruleCount),
		ASN:  1<<53 + 1 + 2*int64(i),
	}
}

// attacks returns the events of one rule, in order of time.
func (s *soak) attacks(rule int) []attack {
	var all []attack
	for i := rule; i < wafEvents; i += ruleCount {
		all = append(all, s.attack(i))
	}
	return all
}

// addEvents adds the events of a round to those that the fake generates.
func (s *soak) addEvents() {
	s.eventsFrom = s.srv.Clock().Now().UTC().Add(-20 * time.Minute).Truncate(time.Second)
	var events []testserver.Event
	for i := range wafEvents {
		a := s.attack(i)
		events = append(events, testserver.Event{
			Time: a.Time, Type: testserver.TypeWAF, Severity: "CRITICAL", Action: "BLOCK", WAFAction: "BLOCK",
			ClientIP: a.IP, RuleID: a.Rule, ASN: a.ASN,
		})
	}
	for i := range shapingEvents {
		events = append(events, testserver.Event{
			Time: s.eventsFrom.Add(time.Duration(i) * time.Second), Type: testserver.TypeBlockCountry, CountryCode: "AQ",
		})
	}
	s.srv.AddEvents(events...)
}

func (w *worker) eventsQuery(rule, limit int) webdelivery.EventsQuery {
	return webdelivery.EventsQuery{
		Dimensions: []string{"event_timestamp_ms", "client_ip", "rule_id", "client_asn"},
		Start:      w.eventsFrom, End: w.eventsFrom.Add(span), Filter: filters.Eq("rule_id", ruleName(rule)),
		SortBy: []webdelivery.Sort{webdelivery.Asc("event_timestamp_ms")}, Limit: limit,
	}
}

// isAttack compares a row with the event that it must be.
func (w *worker) isAttack(operation string, row webdelivery.Row, want attack) {
	at, err1 := row.At(0).Time()
	ip, err2 := row.At(1).Addr()
	asn, err3 := row.At(3).Int64()
	if err1 != nil || err2 != nil || err3 != nil || (attack{at, ip, row.At(2).String(), asn}) != want {
		w.problem(operation, "%v %v %v %v is not %+v", at, ip, row.At(2), asn, want)
	}
}

func (w *worker) queryEvents(ctx context.Context, c *webdelivery.Client) error {
	rule, limit := w.IntN(ruleCount), 1+w.IntN(80)
	want := w.attacks(rule)
	result, err := c.Stats.Events.Query(ctx, w.eventsQuery(rule, limit))
	if !w.read("Stats.Events.Query", err) {
		return err
	}
	if result.TotalResults != int64(len(want)) || len(result.Rows) != min(limit, len(want)) {
		w.problem("Stats.Events.Query", "%d rows of %d, and there are %d", len(result.Rows), result.TotalResults, len(want))
		return nil
	}
	for i, row := range result.Rows {
		w.isAttack("Stats.Events.Query", row, want[i])
	}
	return nil
}

func (w *worker) eventRows(ctx context.Context, c *webdelivery.Client) error {
	rule := w.IntN(ruleCount)
	return w.streamed("Stats.Events.All", w.attacks(rule), c.Stats.Events.All(ctx, w.eventsQuery(rule, 1000)))
}

// streamed compares rows as they arrive. It ends one stream in five early.
func (w *worker) streamed(operation string, want []attack, rows iter.Seq2[webdelivery.Row, error]) error {
	stop := len(want)
	if w.IntN(5) == 0 {
		stop = w.IntN(stop)
	}
	n := 0
	for row, err := range rows {
		if err != nil {
			w.read(operation, err)
			return err
		}
		if n == len(want) {
			w.problem(operation, "more rows than %d", n)
			return nil
		}
		w.isAttack(operation, row, want[n])
		if n++; n == stop+1 {
			break
		}
	}
	if w.read(operation, nil); n != min(stop+1, len(want)) {
		w.problem(operation, "%d rows, and there are %d", n, len(want))
	}
	return nil
}

// everyEvent reads the whole time range, including the events that the fake generates.
func (w *worker) everyEvent(ctx context.Context, c *webdelivery.Client) error {
	q := w.eventsQuery(0, 0)
	q.Filter, q.SortBy = nil, nil
	n, ours := 0, 0
	for row, err := range c.Stats.Events.All(ctx, q) {
		if err != nil {
			w.read("Stats.Events.All", err)
			return err
		}
		n++
		if rule, _ := row.Get("rule_id"); strings.HasPrefix(rule.String(), "soak-") {
			ours++
		}
	}
	w.read("Stats.Events.All", nil)
	if want := w.srv.EventCount(q.Start, q.End); n != want || ours != wafEvents {
		w.problem("Stats.Events.All", "%d rows of %d, among them %d of %d", n, want, ours, wafEvents)
	}
	return nil
}

func (w *worker) scanEvents(ctx context.Context, c *webdelivery.Client) error {
	rule := w.IntN(ruleCount)
	var got []attack
	for a, err := range webdelivery.Scan[attack](c.Stats.Events.All(ctx, w.eventsQuery(rule, 0))) {
		if err != nil {
			w.read("Scan", err)
			return err
		}
		got = append(got, a)
	}
	if w.read("Scan", nil); !slices.Equal(got, w.attacks(rule)) {
		w.problem("Scan", "rule %d: %+v", rule, got)
	}
	return nil
}

// trends counts the attacks of one rule, in buckets or without.
func (w *worker) trends(ctx context.Context, c *webdelivery.Client) error {
	rule := w.IntN(ruleCount)
	q := webdelivery.TrendsQuery{
		Dimensions: []string{"event_timestamp_ms", "rule_id"}[w.IntN(2):], Metrics: []string{webdelivery.MetricHits},
		Start: w.eventsFrom, End: w.eventsFrom.Add(span), Granularity: webdelivery.Granularity5Minute,
		Filter: filters.Eq("rule_id", ruleName(rule)), Limit: 50,
	}
	result, err := c.Stats.WAFTrends.Query(ctx, q)
	if w.read("Stats.WAFTrends.Query", err) {
		w.hits("Stats.WAFTrends.Query", result.Rows, len(w.attacks(rule)))
	}
	return err
}

func (w *worker) topK(ctx context.Context, c *webdelivery.Client) error {
	rule, metrics := w.IntN(ruleCount), []string{webdelivery.MetricHits}
	start, end := w.eventsFrom, w.eventsFrom.Add(span)
	if w.IntN(2) == 0 {
		result, err := c.Stats.WAFTopK(webdelivery.WAFByRuleID).Query(ctx, webdelivery.WAFTopKQuery{
			Dimensions: []string{"rule_id"}, Metrics: metrics, Start: start, End: end, Filter: filters.Eq("rule_id", ruleName(rule)),
		})
		if w.read("Stats.WAFTopK.Query", err) {
			w.hits("Stats.WAFTopK.Query", result.Rows, len(w.attacks(rule)))
		}
		return err
	}
	var rows []webdelivery.Row
	q := webdelivery.ShapingTopKQuery{
		Dimensions: []string{"client_country_code"}, Metrics: metrics, Start: start, End: end,
		Filter: filters.Eq("client_country_code", "AQ"),
	}
	for row, err := range c.Stats.TrafficShapingTopK(webdelivery.ShapingByCountry).All(ctx, q) {
		if err != nil {
			w.read("Stats.ShapingTopK.All", err)
			return err
		}
		rows = append(rows, row.Clone())
	}
	w.read("Stats.ShapingTopK.All", nil)
	w.hits("Stats.ShapingTopK.All", rows, shapingEvents)
	return nil
}

// hits returns the sum of the last column.
func (w *worker) hits(operation string, rows []webdelivery.Row, want int) {
	sum := int64(0)
	for _, row := range rows {
		n, err := row.At(row.Len() - 1).Int64()
		if err != nil {
			w.problem(operation, "%v", err)
		}
		sum += n
	}
	if sum != int64(want) {
		w.problem(operation, "%d hits, and there were %d", sum, want)
	}
}

// names reads the dimensions, metrics and groupings of a family (service document, section 2.5).
func (w *worker) names(ctx context.Context, c *webdelivery.Client) error {
	switch w.IntN(4) {
	case 0:
		got, err := c.Stats.RequestTrends.Metrics(ctx)
		if w.read("Stats.Metrics", err) && !slices.Equal(got.Names, []string{"hits"}) {
			w.problem("Stats.Metrics", "%v", got.Names)
		}
		return err
	case 1:
		got, err := c.Stats.Events.Dimensions(ctx)
		if w.read("Stats.Dimensions", err) && (!slices.Contains(got.Names, "client_asn") || !slices.Contains(got.Names, "rule_id")) {
			w.problem("Stats.Dimensions", "%v", got.Names)
		}
		return err
	case 2:
		got, err := c.Stats.WAFTrends.Groupings(ctx)
		if w.read("Stats.Groupings", err) && !slices.ContainsFunc(got.Groupings, func(set []string) bool {
			return slices.Equal(set, []string{"rule_id"})
		}) {
			w.problem("Stats.Groupings", "%v", got.Groupings)
		}
		return err
	default:
		now := time.Now()
		got, err := c.Stats.RequestTrends.Head(ctx, webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimClientCountryCode}, Start: now.Add(-time.Hour), End: now,
		})
		if w.read("Stats.Head", err) && got.Get("Date") == "" {
			w.problem("Stats.Head", "%v", got)
		}
		return err
	}
}
