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
		got, reports := map[string]int{}, map[string]webdelivery.LateError{}
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
			export := e.client.Stats.NewExport(e.query, e.stored(cursor), webdelivery.ExportOptions{})
			for row, err := range export.All(e.Context()) {
				if late, ok := errors.AsType[*webdelivery.LateError](err); ok {
					reports[now.Format("02 15:04")] = *late
					continue
				}
				require.NoError(e, err)
				got[row.At(0).String()+row.At(1).String()]++
			}
			cursor = export.Cursor()
		}
		day := func(n int) time.Time { return first.AddDate(0, 0, n) }
		assert.Equal(e, map[string]webdelivery.LateError{
			"21 13:10": {Late: 5, From: day(1), To: day(1).Add(12*time.Hour + 59*time.Minute + 59*time.Second)},
			"27 13:10": {Late: 5, From: day(7), To: day(7).Add(12*time.Hour + 59*time.Minute + 59*time.Second)},
		}, reports)
		assert.Len(e, got, 9*72+1) // three an hour, up to 00:05 of the tenth day
		assert.Equal(e, int64(9*72+1), cursor.Count())
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
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
		got, err := e.read(export, 30)
		require.NoError(e, err)
		require.Equal(e, exported.Add(30*time.Second), export.Cursor().Time())

		e.query.End = exported.Add(30 * time.Second)
		again := e.client.Stats.NewExport(e.query, e.stored(export.Cursor()), webdelivery.ExportOptions{})
		rest, err := e.read(again, math.MaxInt)
		require.NoError(e, err, "up to the last event")
		assert.Empty(e, rest)

		for _, end := range []int{45, 60, 60, 61} {
			e.query.End = exported.Add(time.Duration(end) * time.Second)
			again = e.client.Stats.NewExport(e.query, e.stored(again.Cursor()), webdelivery.ExportOptions{})
			rest, err = e.read(again, math.MaxInt)
			require.NoError(e, err, end)
			got = append(got, rest...)
		}
		assert.Equal(e, namesOf(e.service.events), got)
	})
}
