package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go"
)

var eventsQuery = webdelivery.EventsQuery{
	Dimensions: []string{"rule_id"}, Limit: 1 << 30, // whatever the query asks for, the response has the columns of its shape
	Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
}

func queryAll(client *webdelivery.Client) (rows int, err error) {
	result, err := client.Stats.Events.Query(context.Background(), eventsQuery)
	if err != nil {
		return 0, err
	}
	return len(result.Rows), nil
}

// all returns a subject that reads rows and must find n of them.
func all(n int, read func() (int, error)) subject {
	return func() error {
		rows, err := read()
		if err == nil && rows != n {
			err = fmt.Errorf("%d rows of %d", rows, n)
		}
		return err
	}
}

var errNotValid = errors.New("the rows are not valid JSON")

// rowsTable has a column for each shape.
func rowsTable() *table {
	head := []string{"Rows"}
	for _, s := range shapes {
		head = append(head, s.name)
	}
	return &table{name: "rows", head: append(head, "Goal", "")}
}

// eachShape adds a line with a figure of each shape. The worst of them decides whether the goal is met.
func eachShape[T any](b *bench, what, goal string, all []T, figure func(*shape, T) (shown string, met bool)) {
	line, verdict := []string{what}, "met"
	for i, one := range all {
		shown, met := figure(shapes[i], one)
		if line = append(line, shown); !met {
			verdict = "missed"
		}
	}
	if goal == "" {
		verdict = ""
	}
	b.byShape.add(append(line, goal, verdict)...)
}

// readRows are the costs of reading the same rows from memory.
type readRows struct {
	rows, bytes                   int
	scan, query, valid, unmarshal measured
}

// rows measures the reading of each shape from memory.
func (b *bench) rows() error {
	var all []readRows
	for _, s := range shapes {
		one, err := b.rowsOf(s)
		if err != nil {
			return fmt.Errorf("%s rows: %w", s.name, err)
		}
		all = append(all, one)
	}
	eachShape(b, "rows in memory", "", all, func(_ *shape, r readRows) (string, bool) {
		return fmt.Sprintf("%s of %d bytes", count(r.rows), r.bytes/r.rows), true
	})
	for _, one := range []struct {
		what string
		of   func(readRows) measured
	}{
		{"Scan", func(r readRows) measured { return r.scan }},
		{"Query", func(r readRows) measured { return r.query }},
		{"jsontext IsValid", func(r readRows) measured { return r.valid }},
		{"json.Unmarshal", func(r readRows) measured { return r.unmarshal }},
	} {
		eachShape(b, one.what, "", all, func(_ *shape, r readRows) (string, bool) {
			took := one.of(r).time()
			return fmt.Sprintf("%s, %.0f MB/s", inTime(took), float64(r.bytes)/took.Seconds()/1e6), true
		})
	}
	eachShape(b, "Scan, times IsValid", goalOfShapes(func(s *shape) float64 { return s.most }), all, func(s *shape, r readRows) (string, bool) {
		ratio := r.scan.ratio(r.valid)
		return times(ratio), ratio <= s.most
	})
	eachShape(b, "Scan, times faster than json.Unmarshal", "short and mixed at least 7", all, func(s *shape, r readRows) (string, bool) {
		ratio := r.unmarshal.ratio(r.scan)
		return times(ratio), ratio >= 7 || s.most < shapes[0].most
	})
	eachShape(b, "Scan, allocations per row", goalOfShapes((*shape).allocs), all, func(s *shape, r readRows) (string, bool) {
		each := r.scan.allocs / float64(r.rows)
		return fmt.Sprintf("%.3f", each), each <= s.allocs()
	})
	eachShape(b, "Query, times json.Unmarshal", "at most 0.35", all, func(_ *shape, r readRows) (string, bool) {
		ratio := r.query.ratio(r.unmarshal)
		return times(ratio), ratio <= 0.35
	})
	return nil
}

// goalOfShapes formats goals. It names a shape if its goal is not that of the shape before.
func goalOfShapes(most func(*shape) float64) string {
	goal := fmt.Sprintf("at most %.4g", most(shapes[0]))
	for i, s := range shapes[1:] {
		if most(s) != most(shapes[i]) {
			goal += fmt.Sprintf(", %s %.4g", s.name, most(s))
		}
	}
	return goal
}

func (b *bench) rowsOf(s *shape) (readRows, error) {
	n := s.rows(b.sizes.rows)
	body := s.body(b.seed, n)
	client, err := alwaysResponding(body, webdelivery.WithMaxResponseBytes(1<<40))
	if err != nil {
		return readRows{}, err
	}
	results, err := b.interleave(
		all(n, func() (int, error) { return s.scan(client) }),
		all(n, func() (int, error) { return queryAll(client) }),
		func() error {
			if !jsontext.Value(body).IsValid() {
				return errNotValid
			}
			return nil
		},
		all(n, func() (int, error) { return unmarshalAll(body) }),
	)
	if err != nil {
		return readRows{}, err
	}
	return readRows{n, len(body), results[0], results[1], results[2], results[3]}, nil
}
