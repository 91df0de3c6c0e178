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
func (b *bench) peakOf(reader string, n int) (float64, error) {
	peaks := make([]float64, 0, processes)
	for range processes {
		var rows int
		var peak float64
		if err := runChild(fmt.Sprintf("%s %s/rows/%d", reader, b.url, n), &rows, &peak); err != nil {
			return 0, err
		}
		if rows != n {
			return 0, fmt.Errorf("%s: %d rows of %d", reader, rows, n)
		}
		peaks = append(peaks, peak)
	}
	return median(peaks), nil
}

// memory measures the peak memory of whole processes, and the time to the first row.
func (b *bench) memory() error {
	n, many := b.sizes.rows, b.sizes.manyRows
	peak := map[string]float64{}
	for _, one := range []struct {
		reader string
		n      int
	}{{"scan", n}, {"scan", many}, {"query", n}, {"unmarshal", n}} {
		var err error
		if peak[fmt.Sprint(one.reader, one.n)], err = b.peakOf(one.reader, one.n); err != nil {
			return err
		}
	}
	scan, scanMany := peak[fmt.Sprint("scan", n)], peak[fmt.Sprint("scan", many)]
	query, unmarshal := peak[fmt.Sprint("query", n)], peak[fmt.Sprint("unmarshal", n)]
	over := " rows over HTTP, peak memory of the process: "
	b.figure(count(n)+over+"Scan, reference json.Unmarshal", inBytes(scan), inBytes(unmarshal), times(scan/unmarshal), atMost(32, scan/mib, "MiB"))
	r := scanMany / scan
	b.figure(count(many)+over+"Scan, reference Scan of "+count(n), inBytes(scanMany), inBytes(scan), times(r),
		goal{"at most 32 MiB, the same within 10 %", scanMany <= 32*mib && math.Abs(r-1) <= 0.1})
	r = query / unmarshal
	b.figure(count(n)+over+"Query, reference json.Unmarshal", inBytes(query), inBytes(unmarshal), times(r), atMost(0.35, r, "times"))
	return b.firstRow(n)
}

var errNoRow = errors.New("no row")

// firstRow measures the time until the first row is available.
func (b *bench) firstRow(n int) error {
	url := fmt.Sprintf("%s/rows/%d", b.url, n)
	client, err := newClient(url)
	if err != nil {
		return err
	}
	results, err := b.interleave(
		func() error {
			for _, err := range webdelivery.Scan[event](client.Stats.Events.Rows(context.Background(), eventsQuery)) {
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
