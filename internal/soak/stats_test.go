package soak

import (
	"context"
	"fmt"
	"iter"
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
		SortBy: []string{"event_timestamp_ms"}, Limit: limit,
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
