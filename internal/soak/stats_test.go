package soak

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
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
		SortBy: []string{"event_timestamp_ms"}, Limit: limit,
	}
}

func (w *worker) eventRows(ctx context.Context, c *webdelivery.Client) error {
	rule := w.IntN(ruleCount)
	rows := webdelivery.Scan[attack](c.Stats.Events.All(ctx, w.eventsQuery(rule, 1000)))
	if w.IntN(2) == 0 {
		return arrive(w, "Stats.Events.All, Scan", rows, w.attacks(rule), func(got, want attack) bool { return got == want })
	}
	return arrive(w, "Stats.Events.All", c.Stats.Events.All(ctx, w.eventsQuery(rule, 1000)), w.attacks(rule), isAttack)
}

func isAttack(row webdelivery.Row, want attack) bool {
	at, err1 := row.At(0).Time()
	ip, err2 := row.At(1).Addr()
	asn, err3 := row.At(3).Int64()
	return errors.Join(err1, err2, err3) == nil && attack{at, ip, row.At(2).String(), asn} == want
}
