package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go"
)

// event is a row of the benchmarks. It has seven columns and on average 76 bytes, including its comma.
type event struct {
	Time    time.Time  `stats:"event_timestamp_ms"`
	IP      netip.Addr `stats:"client_ip"`
	Country string     `stats:"client_country_code"`
	ASN     int64      `stats:"client_asn"`
	Rule    string     `stats:"rule_id"`
	Action  string     `stats:"event_action"`
	Hits    int64      `stats:"hits"`
}

var eventsQuery = webdelivery.EventsQuery{
	Dimensions: webdelivery.DimensionsOf[event](), Limit: 1 << 30,
	Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
}

// writeRows writes a response with n rows (service document, section 2.4).
func writeRows(w io.Writer, n int) error {
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(`{"query":{},"columns":[{"name":"event_timestamp_ms"},{"name":"client_ip"},{"name":"client_country_code"},` +
		`{"name":"client_asn"},{"name":"rule_id"},{"name":"event_action"},{"name":"hits"}],"rows":[`)
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	countries, actions := []string{"CN", "DE", "US", "BR"}, []string{"BLOCK", "WARN"}
	for i := range n {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, err := fmt.Fprintf(out, `["%s","192.0.2.%d","%s",%d,"%d","%s",%d]`, at.Add(time.Duration(i)*time.Millisecond).Format("2006-01-02T15:04:05.000"),
			i%256, countries[i%4], 64496+i%1000, 942100+i%50, actions[i%2], i)
		if err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(out, `],"total_results":%d}`, n)
	return out.Flush()
}

func rowsBody(n int) []byte {
	var body bytes.Buffer
	_ = writeRows(&body, n) // a buffer returns no error
	return body.Bytes()
}

func scanAll(client *webdelivery.Client) (rows int, err error) {
	for _, err := range webdelivery.Scan[event](client.Stats.Events.Rows(context.Background(), eventsQuery)) {
		if err != nil {
			return 0, err
		}
		rows++
	}
	return rows, nil
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

// rows measures the reading of a response from memory.
func (b *bench) rows() error {
	n := b.sizes.rows
	body := rowsBody(n)
	client, err := alwaysResponding(body, webdelivery.WithMaxResponseBytes(1<<40))
	if err != nil {
		return err
	}
	results, err := b.interleave(
		all(n, func() (int, error) { return scanAll(client) }),
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
		return err
	}
	scan, query, valid, unmarshal := results[0], results[1], results[2], results[3]
	what := count(n) + " rows from memory: "
	speed := func(m measured) string {
		return fmt.Sprintf("%s, %.0f MB/s", inTime(m.time()), float64(len(body))/m.time().Seconds()/1e6)
	}
	r := scan.ratio(valid)
	b.figure(what+"Scan, reference jsontext IsValid", speed(scan), speed(valid), times(r), atMost(2, r, "times"))
	r = unmarshal.ratio(scan)
	b.figure(what+"Scan, reference json.Unmarshal", speed(scan), speed(unmarshal), faster(r), fiveTimes(r))
	each := scan.allocs / float64(n)
	b.figure("allocations per row", fmt.Sprintf("%.2f", each), fmt.Sprintf("%.2f", unmarshal.allocs/float64(n)), "", atMost(0.005, each, "per row"))
	r = query.ratio(unmarshal)
	b.figure(what+"Query, reference json.Unmarshal", speed(query), speed(unmarshal), times(r), atMost(0.35, r, "times"))
	return nil
}
