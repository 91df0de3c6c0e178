package rowjson_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// BenchmarkRows reads 10,000 rows with texts: as rows, into a struct, and each value as a new string.
func BenchmarkRows(b *testing.B) {
	const rows = 10_000
	columns := `{"name":"time"},{"name":"ip"},{"name":"country"},{"name":"asn"},{"name":"path"}`
	for name, path := range map[string]string{"ASCII": "/login/%d", "beyond ASCII": "/menü/%d", "escapes": `/a\"b/%d`} {
		var body bytes.Buffer
		fmt.Fprintf(&body, `{"columns":[%s],"rows":[`, columns)
		for i := range rows {
			if i > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `["2026-11-20T08:30:00.%03d","192.0.2.%d","CN",%d,"`+path+`"]`, i%1000, i%256, 64496+i%1000, i%1000)
		}
		fmt.Fprintf(&body, `],"total_results":%d}`, rows)
		read := func(b *testing.B, each func(rowjson.Row)) {
			b.SetBytes(int64(body.Len()))
			b.ReportAllocs()
			for b.Loop() {
				r := rowjson.NewReader(bytes.NewReader(body.Bytes()), rowjson.Config{Limit: rowjson.Limit{Bytes: 1 << 30, Err: errTooLarge}})
				for r.Next() {
					each(r.Row())
				}
				if r.Err() != nil || r.Count() != rows {
					b.Fatal(r.Count(), r.Err())
				}
			}
		}
		b.Run(name+"/rows", func(b *testing.B) { read(b, func(rowjson.Row) {}) })
		b.Run(name+"/struct", func(b *testing.B) {
			var into struct {
				Country string `column:"country"`
				ASN     int64  `column:"asn"`
				Path    string `column:"path"`
			}
			target, err := fields.Target(&into)
			if err != nil {
				b.Fatal(err)
			}
			read(b, func(row rowjson.Row) {
				if wrong := target.Store(row); wrong != nil {
					b.Fatal(wrong)
				}
			})
		})
		b.Run(name+"/String", func(b *testing.B) {
			length := 0
			read(b, func(row rowjson.Row) {
				for i := range row.Len() {
					length += len(row.At(i).String())
				}
			})
		})
	}
}
