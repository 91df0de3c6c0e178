package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/webdelivery/webdelivery-go"
)

// processes is the number of child processes per figure of peak memory, which is their median.
const processes = 3

// peakOf returns the peak memory of a process that reads n rows over HTTP.
func (b *bench) peakOf(reader string, s *shape, n int) (float64, error) {
	peaks := make([]float64, 0, processes)
	for range processes {
		var rows int
		var peak float64
		if err := runChild(fmt.Sprintf("%s %s %s", reader, s.name, b.rowsURL(s, n)), &rows, &peak); err != nil {
			return 0, err
		}
		if rows != n {
			return 0, fmt.Errorf("%s: %d rows of %d", reader, rows, n)
		}
		peaks = append(peaks, peak)
	}
	return median(peaks), nil
}

// rowsURL returns the address of n rows.
func (b *bench) rowsURL(s *shape, n int) string {
	return fmt.Sprintf("%s/rows/%s/%d/%d", b.url, s.name, b.seed, n)
}

// peaks are the peak memories of processes.
type peaks struct{ scan, scanMany, query, unmarshal float64 }

// memory measures the peak memory of whole processes, and the time to the first row.
func (b *bench) memory() error {
	var all []peaks
	for _, s := range shapes {
		var p peaks
		n, many := s.rows(b.sizes.rows), s.rows(b.sizes.manyRows)
		for _, one := range []struct {
			reader string
			n      int
			into   *float64
		}{{"scan", n, &p.scan}, {"scan", many, &p.scanMany}, {"query", n, &p.query}, {"unmarshal", n, &p.unmarshal}} {
			var err error
			if *one.into, err = b.peakOf(one.reader, s, one.n); err != nil {
				return err
			}
		}
		all = append(all, p)
	}
	eachShape(b, "Scan over HTTP, peak memory of the process", "at most 32 MiB", all, func(_ *shape, p peaks) (string, bool) {
		return inBytes(p.scan), p.scan <= 32*mib
	})
	eachShape(b, fmt.Sprintf("the same with %d times as many rows", b.sizes.manyRows/b.sizes.rows), "the same within 10 %", all,
		func(_ *shape, p peaks) (string, bool) {
			return inBytes(p.scanMany), p.scanMany <= 32*mib && math.Abs(p.scanMany/p.scan-1) <= 0.1
		})
	eachShape(b, "Query over HTTP, peak memory of the process", "", all, func(_ *shape, p peaks) (string, bool) { return inBytes(p.query), true })
	eachShape(b, "json.Unmarshal over HTTP, peak memory of the process", "", all, func(_ *shape, p peaks) (string, bool) { return inBytes(p.unmarshal), true })
	eachShape(b, "Query, times the peak memory of json.Unmarshal", "at most 0.35", all, func(_ *shape, p peaks) (string, bool) {
		return times(p.query / p.unmarshal), p.query/p.unmarshal <= 0.35
	})
	return b.firstRow(b.sizes.rows)
}

var errNoRow = errors.New("no row")

// firstRow measures the time until the first row is available.
func (b *bench) firstRow(n int) error {
	url := b.rowsURL(shapes[0], n)
	client, err := newClient(url)
	if err != nil {
		return err
	}
	results, err := b.interleave(
		func() error {
			for _, err := range webdelivery.Scan[event](client.Stats.Events.All(context.Background(), eventsQuery)) {
				return err
			}
			return errNoRow
		},
		all(n, func() (int, error) {
			body, err := fetch(http.DefaultClient, url+"/")
			if err != nil {
				return 0, err
			}
			return unmarshalAll(body)
		}),
	)
	if err != nil {
		return err
	}
	streamed, whole := results[0], results[1]
	b.figure(count(n)+" rows over HTTP: time to the first row, reference json.Unmarshal", inTime(streamed.time()), inTime(whole.time()),
		faster(whole.ratio(streamed)), goal{})
	return nil
}
