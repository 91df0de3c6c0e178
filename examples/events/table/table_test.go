package table_test

import (
	"bytes"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/events/table"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	// difficult are events whose texts and numbers are easily damaged.
	difficult = []webdeliverytest.Event{
		{
			Time: noon.Add(1234 * time.Millisecond), RuleID: "=1+1", ClientIP: netip.MustParseAddr("192.0.2.1"),
			ASN: 1<<53 + 1, Browser: `He said "hi", then left`,
		},
		{
			Time: noon.Add(2 * time.Second), RuleID: "日本 ☃ 𝄞", ClientIP: netip.MustParseAddr("2001:db8::1"),
			ASN: math.MaxInt64, Browser: "one\ntwo\r\nthree\r",
		},
		{Time: noon.Add(3 * time.Second)},
		{Time: noon.Add(4 * time.Second), RuleID: "/\xff\xed\xa0\x80"}, // bytes that are not UTF-8, and half of a surrogate pair
	}
	columns = []string{"event_timestamp_ms", "rule_id", "client_ip", "client_asn", "client_browser"}
)

func service(t *testing.T, events ...webdeliverytest.Event) *webdeliverytest.Server {
	t.Helper()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithNow(func() time.Time { return noon.Add(time.Hour) }))
	srv.AddEvents(events...)
	return srv
}

// written returns events in a format.
func written(t *testing.T, format string, events ...webdeliverytest.Event) []byte {
	t.Helper()
	text, err := write(t, service(t, events...), format, columns)
	require.NoError(t, err)
	return text
}

// write writes the events of the hour after noon.
func write(t *testing.T, srv *webdeliverytest.Server, format string, columns []string) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	var all []table.Column // in the order of a row
	for i, name := range columns {
		all = append(all, table.Column{Name: name, At: i})
	}
	w, err := table.Formats[format](&out, all, false)
	if err != nil {
		return nil, err
	}
	query := webdelivery.EventsQuery{Dimensions: columns, Start: noon, End: noon.Add(time.Hour)}
	for row, err := range srv.Client(t).Stats.Events.All(t.Context(), query) {
		require.NoError(t, err)
		if err := w.Write(row); err != nil {
			return nil, err
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes(), nil
}

func TestCSV(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "event_timestamp_ms,rule_id,client_ip,client_asn,client_browser\r\n"+
		"2026-11-20T12:00:01.234Z,=1+1,192.0.2.1,9007199254740993,\"He said \"\"hi\"\", then left\"\r\n"+
		"2026-11-20T12:00:02.000Z,日本 ☃ 𝄞,2001:db8::1,9223372036854775807,\"one\ntwo\r\nthree\r\"\r\n"+
		"2026-11-20T12:00:03.000Z,,,,\r\n"+
		"2026-11-20T12:00:04.000Z,/\ufffd\ufffd,,,\r\n", string(written(t, "csv", difficult...)))
}

func TestNDJSON(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `{"event_timestamp_ms":"2026-11-20T12:00:01.234Z","rule_id":"=1+1","client_ip":"192.0.2.1",`+
		`"client_asn":9007199254740993,"client_browser":"He said \"hi\", then left"}`+"\n"+
		`{"event_timestamp_ms":"2026-11-20T12:00:02.000Z","rule_id":"日本 ☃ 𝄞","client_ip":"2001:db8::1",`+
		`"client_asn":9223372036854775807,"client_browser":"one\ntwo\r\nthree\r"}`+"\n"+
		`{"event_timestamp_ms":"2026-11-20T12:00:03.000Z","rule_id":null,"client_ip":null,"client_asn":null,"client_browser":null}`+"\n"+
		`{"event_timestamp_ms":"2026-11-20T12:00:04.000Z","rule_id":"/`+"\ufffd\ufffd"+`","client_ip":null,"client_asn":null,"client_browser":null}`+
		"\n", string(written(t, "ndjson", difficult...)))
}

// Another Parquet library reads the same values, types and order of columns.
func TestParquet(t *testing.T) {
	t.Parallel()
	in, err := file.NewParquetReader(bytes.NewReader(written(t, "parquet", difficult...)))
	require.NoError(t, err)
	defer in.Close()
	require.Equal(t, 1, in.NumRowGroups())
	for i, want := range []struct {
		name, logical string
		physical      parquet.Type
		cells         []any
	}{
		{
			"event_timestamp_ms", "Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds, is_from_converted_type=false, force_set_converted_type=false)",
			parquet.Types.Int64,
			[]any{noon.UnixMilli() + 1234, noon.UnixMilli() + 2000, noon.UnixMilli() + 3000, noon.UnixMilli() + 4000},
		},
		{"rule_id", "String", parquet.Types.ByteArray, []any{"=1+1", "日本 ☃ 𝄞", nil, "/\ufffd\ufffd"}},
		{"client_ip", "String", parquet.Types.ByteArray, []any{"192.0.2.1", "2001:db8::1", nil, nil}},
		{"client_asn", "Int(bitWidth=64, isSigned=true)", parquet.Types.Int64, []any{int64(9007199254740993), int64(9223372036854775807), nil, nil}},
		{"client_browser", "String", parquet.Types.ByteArray, []any{`He said "hi", then left`, "one\ntwo\r\nthree\r", nil, nil}},
	} {
		column := in.MetaData().Schema.Column(i)
		assert.Equal(t, want.name, column.Name())
		assert.Equal(t, want.logical, column.LogicalType().String())
		assert.Equal(t, want.physical, column.PhysicalType())
		reader, err := in.RowGroup(0).Column(i)
		require.NoError(t, err)
		switch reader := reader.(type) {
		case *file.Int64ColumnChunkReader:
			assert.Equal(t, want.cells, cells(t, reader.ReadBatch, func(n int64) any { return n }))
		case *file.ByteArrayColumnChunkReader:
			assert.Equal(t, want.cells, cells(t, reader.ReadBatch, func(b parquet.ByteArray) any { return b.String() }))
		default:
			t.Errorf("a %T", reader)
		}
	}
}

// cells reads four values of a column.
func cells[T any](t *testing.T, read func(int64, []T, []int16, []int16) (int64, int, error), show func(T) any) []any {
	t.Helper()
	values, defined := make([]T, 4), make([]int16, 4)
	total, _, err := read(4, values, defined, nil)
	require.NoError(t, err)
	require.EqualValues(t, 4, total)
	var all []any
	for _, d := range defined {
		if d == 0 {
			all = append(all, nil)
			continue
		}
		all, values = append(all, show(values[0])), values[1:]
	}
	return all
}

func TestWithoutRows(t *testing.T) {
	t.Parallel()
	assert.Equal(t, strings.Join(columns, ",")+"\r\n", string(written(t, "csv")))
	assert.Empty(t, written(t, "ndjson"))
	in, err := file.NewParquetReader(bytes.NewReader(written(t, "parquet")))
	require.NoError(t, err)
	defer in.Close()
	assert.Zero(t, in.NumRows())
	assert.Equal(t, len(columns), in.MetaData().Schema.NumColumns())
}

// A service may send values that the fake does not.
func TestOddReplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ format, row, want, wrong string }{
		{"csv", `["",null]`, "client_asn,rule_id\r\n\"\",\r\n", ""},
		{"csv", `[1.50,true]`, "client_asn,rule_id\r\n1.50,true\r\n", ""},
		{"ndjson", `["\u2603" , 18446744073709551616]`, `{"client_asn":"\u2603","rule_id":18446744073709551616}` + "\n", ""},
		{"csv", "[\"a\xff\",\"\\ud800\"]", "client_asn,rule_id\r\na\ufffd,\ufffd\r\n", ""},
		{"ndjson", "[1,\"a\xff\\ud800\"]", "{\"client_asn\":1,\"rule_id\":\"a\ufffd\ufffd\"}\n", ""},
		{"parquet", `["AS64496",null]`, "", `column client_asn: "AS64496" is not a whole number`},
	} {
		srv := webdeliverytest.NewServer(t)
		srv.Fail(webdeliverytest.FaultRule{Body: `{"columns":[{"name":"client_asn"},{"name":"rule_id"}],"rows":[` + tt.row + `],"total_results":1}`})
		got, err := write(t, srv, tt.format, []string{"client_asn", "rule_id"})
		if tt.wrong != "" {
			require.ErrorContains(t, err, tt.wrong)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tt.want, string(got))
	}
}
