package webdelivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// inBorders runs a test against services that count the events at the very start and end of a time range or do not
// (open point 33).
func inBorders(t *testing.T, test func(e *anExport)) {
	t.Helper()
	for _, startExclusive := range []bool{false, true} {
		for _, endInclusive := range []bool{false, true} {
			t.Run(fmt.Sprintf("start exclusive %t, end inclusive %t", startExclusive, endInclusive), func(t *testing.T) {
				t.Parallel()
				inExport(t, nil, func(e *anExport) {
					e.service.startExclusive, e.service.endInclusive = startExclusive, endInclusive
					test(e)
				})
			})
		}
	}
}

// stored returns a cursor as another process reads it.
func (e *anExport) stored(cursor webdelivery.Cursor) (read webdelivery.Cursor) {
	e.Helper()
	text, err := json.Marshal(cursor)
	require.NoError(e, err)
	require.NoError(e, json.Unmarshal(text, &read))
	return read
}

// sorted returns events in ascending order.
func sorted(events []anEvent) []anEvent {
	slices.SortStableFunc(events, func(a, b anEvent) int { return a.at.Compare(b.at) })
	return events
}

// An export runs every hour for nine days, as in the recipe. Five events of day 1 arrive late, and five of day 7. The
// first five do not hide the others, although the service no longer has them.
func TestNineDaysOfHourlyRuns(t *testing.T) {
	t.Parallel()
	inBorders(t, func(e *anExport) {
		first := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		e.query.Start = first.Add(-time.Hour)
		arrivals := map[anEvent]time.Time{}
		for at := first; at.Before(first.AddDate(0, 0, 10)); at = at.Add(20 * time.Minute) {
			arrivals[anEvent{at, "in time"}] = at
		}
		for _, day := range []int{1, 7} {
			for second := range 5 {
				at := first.AddDate(0, 0, day).Add(10*time.Hour + time.Duration(second)*time.Second)
				arrivals[anEvent{at, "late"}] = at.Add(3 * time.Hour)
			}
		}
		var cursor webdelivery.Cursor
		got, reports := map[string]int{}, map[string]int64{}
		for run := range 9 * 24 {
			now := first.Add(time.Duration(1+run)*time.Hour + 10*time.Minute)
			time.Sleep(time.Until(now))
			e.service.events = nil
			for event, arrival := range arrivals {
				if !arrival.After(now) && !event.at.Before(webdelivery.EventsRetention(now)) {
					e.service.events = append(e.service.events, event)
				}
			}
			sorted(e.service.events)
			e.query.End = now.Add(-5 * time.Minute)
			export := e.client.Stats.NewExport(e.query, e.stored(cursor))
			for row, err := range export.All(e.Context()) {
				if incomplete, ok := errors.AsType[*webdelivery.IncompleteError](err); ok {
					reports[now.Format("02 15:04")] = incomplete.Total - incomplete.Got
					continue
				}
				require.NoError(e, err)
				got[row.At(0).String()+row.At(1).String()]++
			}
			cursor = export.Cursor()
		}
		assert.Equal(e, map[string]int64{"21 13:10": 5, "27 13:10": 5}, reports)
		assert.Len(e, got, 9*72+1) // three an hour, up to 00:05 of the tenth day
		assert.Equal(e, int64(9*72+1), cursor.Count())
	})
}

// If an event is reported as missing and then arrives, it does not hide another one that is late.
func TestAMissingEventThatArrives(t *testing.T) {
	t.Parallel()
	inExport(t, nil, func(e *anExport) {
		time.Sleep(time.Until(exported.Add(time.Hour)))
		for second := range 20 {
			e.service.events = append(e.service.events, anEvent{exported.Add(time.Duration(second) * time.Second), "in time"})
		}
		all := e.service.events
		e.service.body = func(n int, _ string) (string, bool) { // announces an event that is not there yet
			return `{"columns":[{"name":"event_timestamp_ms"},{"name":"rule_id"}],"rows":[],"total_results":20}`, n == 0
		}
		e.service.events, e.service.pieces = all[:19], 10
		missing := func(rows int, from webdelivery.Cursor) (int64, webdelivery.Cursor) {
			export := e.client.Stats.NewExport(e.query, e.stored(from))
			names, err := e.read(export, math.MaxInt)
			assert.Len(e, names, rows)
			incomplete, ok := errors.AsType[*webdelivery.IncompleteError](err)
			if !ok {
				require.NoError(e, err)
				return 0, export.Cursor()
			}
			return incomplete.Total - incomplete.Got, export.Cursor()
		}
		n, cursor := missing(19, webdelivery.Cursor{})
		assert.Equal(e, int64(1), n)
		e.service.pieces, e.service.events = 0, all
		n, cursor = missing(1, cursor)
		assert.Zero(e, n)
		e.service.events = sorted(append(slices.Clone(all), anEvent{exported.Add(3 * time.Second), "late"}))
		n, cursor = missing(0, cursor)
		assert.Equal(e, int64(1), n)
		n, _ = missing(0, cursor)
		assert.Zero(e, n, "it was reported before")
	})
}

// A resumed export yields each event once, wherever the service draws the borders of a time range.
func TestBordersOfATimeRange(t *testing.T) {
	t.Parallel()
	inBorders(t, func(e *anExport) {
		time.Sleep(time.Until(exported.Add(time.Hour)))
		for second := range 60 {
			e.service.events = append(e.service.events, anEvent{exported.Add(time.Duration(1+second) * time.Second), "event"})
		}
		e.query.End = exported.Add(61 * time.Second)
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{})
		got, err := e.read(export, 30)
		require.NoError(e, err)
		require.Equal(e, exported.Add(30*time.Second), export.Cursor().Time())

		e.query.End = exported.Add(30 * time.Second)
		again := e.client.Stats.NewExport(e.query, e.stored(export.Cursor()))
		rest, err := e.read(again, math.MaxInt)
		require.NoError(e, err, "up to the last event")
		assert.Empty(e, rest)

		for _, end := range []int{45, 60, 60, 61} {
			e.query.End = exported.Add(time.Duration(end) * time.Second)
			again = e.client.Stats.NewExport(e.query, e.stored(again.Cursor()))
			rest, err = e.read(again, math.MaxInt)
			require.NoError(e, err, end)
			got = append(got, rest...)
		}
		assert.Equal(e, namesOf(e.service.events), got)
	})
}

// A cursor that an earlier version of the SDK stored is valid. It holds a number of missing events, but not their days.
// So they are reported once more.
func TestACursorOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	const text = `{"version":1,"query":"f7680c2257b6a161a0cb57f9a5a88c3f","columns":["event_timestamp_ms","rule_id"],` +
		`"position":{"rows":10,"last":"2026-11-20T12:00:04Z","recent":["a5Nl0CG++f57eNYViMqTxfwjcjh3KNOWBGke9SP+boA=",` +
		`"T0cXCf042oNMSemjxpzgxIiUuHBatzykauUsM2RbOQ0="],"days":{"20777":10},"full":2,"missed":1},"check":"a8c3455dec2a406b"}`
	inExport(t, eventsOf(6, 2), func(e *anExport) {
		time.Sleep(time.Until(exported.Add(time.Hour)))
		e.service.events = sorted(append(e.service.events, anEvent{exported.Add(1500 * time.Millisecond), "late"}))
		var cursor webdelivery.Cursor
		require.NoError(e, json.Unmarshal([]byte(text), &cursor))
		again, err := json.Marshal(cursor)
		require.NoError(e, err)
		assert.Equal(e, text, string(again))
		assert.Equal(e, int64(10), cursor.Count())

		export := e.client.Stats.NewExport(e.query, cursor)
		names, err := e.read(export, math.MaxInt)
		assert.ElementsMatch(e, []string{"12:00:05.000 10", "12:00:05.000 11"}, names)
		var incomplete *webdelivery.IncompleteError
		require.ErrorAs(e, err, &incomplete)
		assert.Equal(e, webdelivery.IncompleteError{Got: 12, Total: 13}, *incomplete)

		export = e.client.Stats.NewExport(e.query, e.stored(export.Cursor()))
		names, err = e.read(export, math.MaxInt)
		require.NoError(e, err)
		assert.Empty(e, names)
	})
}

// Cursor may be called while a range counts and reports missing events.
func TestCursorsWhileRowsReports(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(20, 10), func(e *anExport) {
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{})
		_, err := e.read(export, 150)
		require.NoError(e, err)
		e.service.events = sorted(append(e.service.events, anEvent{exported.Add(3 * time.Second), "late"}))
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-done:
					return
				default:
					export.Cursor()
				}
			}
		}()
		_, err = e.read(export, math.MaxInt)
		close(done)
		<-stopped
		var incomplete *webdelivery.IncompleteError
		require.ErrorAs(e, err, &incomplete)
	})
}
