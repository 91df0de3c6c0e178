package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// What a reader of rows costs depends on the rows: how long the texts are, how often they come again, where they
// differ. So the benchmarks read three shapes of rows. Each is made from a seed, so a program cannot be tuned for the bytes.

// shape is a kind of rows.
type shape struct {
	name    string
	n       int    // rows of a response
	columns string // separated by blanks
	row     func(g *generator, b []byte, i int) []byte
	scan    func(*webdelivery.Client) (rows int, err error)
}

// generator makes the values of rows.
type generator struct{ *rand.Rand }

// event is a row of the first shape. It has seven columns and on average 76 bytes, including its comma.
type event struct {
	Time    time.Time  `stats:"event_timestamp_ms"`
	IP      netip.Addr `stats:"client_ip"`
	Country string     `stats:"client_country_code"`
	ASN     int64      `stats:"client_asn"`
	Rule    string     `stats:"rule_id"`
	Action  string     `stats:"event_action"`
	Hits    int64      `stats:"hits"`
}

// mixedEvent has texts of columns with 2, 300, 5,000 and any number of different ones.
type mixedEvent struct {
	Time    time.Time  `stats:"event_timestamp_ms"`
	IP      netip.Addr `stats:"client_ip"`
	Action  string     `stats:"event_action"`
	Rule    string     `stats:"rule_id"`
	Policy  string     `stats:"policy_id"`
	Request string     `stats:"request_id"`
	Hits    int64      `stats:"hits"`
}

// longEvent has texts of 200 to 2,000 bytes.
type longEvent struct {
	Time  time.Time `stats:"event_timestamp_ms"`
	Path  string    `stats:"path"`
	Agent string    `stats:"user_agent"`
	Hits  int64     `stats:"hits"`
}

var shapes = []*shape{
	{
		name: "short", n: 100_000, scan: scanRows[event],
		columns: "event_timestamp_ms client_ip client_country_code client_asn rule_id event_action hits",
		row: func(_ *generator, b []byte, i int) []byte {
			return fmt.Appendf(b, `["%s","192.0.2.%d","%s",%d,"%d","%s",%d]`, timestamp(i, true), i%256,
				[...]string{"CN", "DE", "US", "BR"}[i%4], 64496+i%1000, 942100+i%50, [...]string{"BLOCK", "WARN"}[i%2], i)
		},
	},
	{
		name: "mixed", n: 50_000, scan: scanRows[mixedEvent],
		columns: "event_timestamp_ms client_ip event_action rule_id policy_id request_id hits",
		row: func(g *generator, b []byte, i int) []byte {
			return fmt.Appendf(b, `["%s","%s","%s","94%03d0000","policy-1000%04d2000","7700%012d0077",%d]`, timestamp(i, g.oneIn(2)), g.address(),
				[...]string{"BLOCK", "WARN"}[g.IntN(2)], g.IntN(300), g.IntN(5_000), g.Int64N(1e12), g.IntN(10_000))
		},
	},
	{
		name: "long", n: 5_000, scan: scanRows[longEvent],
		columns: "event_timestamp_ms path user_agent hits",
		row: func(g *generator, b []byte, i int) []byte {
			return fmt.Appendf(b, `["%s","%s","%s",%d]`, timestamp(i, true), g.long(), g.long(), g.IntN(10_000))
		},
	},
}

func timestamp(milliseconds int, fraction bool) string {
	layout := "2006-01-02T15:04:05"
	if fraction {
		layout += ".000"
	}
	return time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond).Format(layout)
}

func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

// address returns an IPv4 or IPv6 address.
func (g *generator) address() string {
	if g.oneIn(2) {
		return fmt.Sprintf("198.%d.%d.%d", 18+g.IntN(2), g.IntN(256), g.IntN(256))
	}
	bytes := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for i := 4 + 4*g.IntN(3); i < len(bytes); i += 2 { // zeros in the middle are written as ::
		binary.BigEndian.PutUint16(bytes[i:], uint16(g.Uint32()>>16))
	}
	return netip.AddrFrom16(bytes).String()
}

// long returns a text of 200 to 2,000 bytes of JSON. Of four texts one has escapes, and one is not only ASCII.
func (g *generator) long() string {
	size, kind := 200+g.IntN(1_800), g.IntN(4)
	var b strings.Builder
	b.WriteByte('/')
	for b.Len() < size {
		switch {
		case kind == 0 && g.oneIn(8):
			b.WriteString([...]string{`\"`, `\/`, `\n`, `\u00e9`, `\\`}[g.IntN(5)])
		case kind == 1 && g.oneIn(8):
			b.WriteString([...]string{"é", "ü", "日本", "€", "😀"}[g.IntN(5)])
		default:
			b.WriteString([...]string{"login", "search", "assets", "item", "catalog"}[g.IntN(5)])
			b.WriteByte("/?&=-"[g.IntN(5)])
		}
	}
	return b.String()
}

// body returns a response with n rows (service document, section 2.4).
func (s *shape) body(n int) []byte {
	var columns []string
	for name := range strings.FieldsSeq(s.columns) {
		columns = append(columns, `{"name":"`+name+`"}`)
	}
	out := fmt.Appendf(nil, `{"query":{},"columns":[%s],"rows":[`, strings.Join(columns, ","))
	g := &generator{rand.New(rand.NewPCG(1, 0))}
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = s.row(g, out, i)
	}
	return fmt.Appendf(out, `],"total_results":%d}`, n)
}

// scanRows scans all rows of a response.
func scanRows[T any](client *webdelivery.Client) (rows int, err error) {
	for _, err := range webdelivery.Scan[T](client.Stats.Events.All(context.Background(), eventsQuery)) {
		if err != nil {
			return 0, err
		}
		rows++
	}
	return rows, nil
}
