package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// exported gives the name of a file with the difficult events.
func exported(t *testing.T, extension string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events."+extension)
	require.NoError(t, export1(t.Context(), t, service(t, difficult()...), program.Streams{Err: io.Discard}, "-o", name))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	return name
}

func TestCSV(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(exported(t, "csv"))
	require.NoError(t, err)
	assert.Equal(t, "event_timestamp_ms,rule_id,client_ip,client_asn,client_browser\r\n"+
		"2026-11-20T12:00:01.234,=1+1,192.0.2.1,9007199254740993,\"He said \"\"hi\"\", then left\"\r\n"+
		"2026-11-20T12:00:02.000,日本 ☃ 𝄞,2001:db8::1,9223372036854775807,\"one\ntwo\r\nthree\r\"\r\n"+
		"2026-11-20T12:00:03.000,,,,\r\n", string(text))

	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, [][]string{
		{"event_timestamp_ms", "rule_id", "client_ip", "client_asn", "client_browser"},
		{"2026-11-20T12:00:01.234", "=1+1", "192.0.2.1", "9007199254740993", `He said "hi", then left`},
		{"2026-11-20T12:00:02.000", "日本 ☃ 𝄞", "2001:db8::1", "9223372036854775807", "one\ntwo\nthree\r"}, // this reader makes \r\n to \n
		{"2026-11-20T12:00:03.000", "", "", "", ""},
	}, rows)
}

// The fake has no empty texts, and a service may.
func TestCSVNullIsNotEmpty(t *testing.T) {
	t.Parallel()
	srv := service(t)
	srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Body: `{"columns":[{"name":"a,b"},{"name":"c"}],"rows":[["",null]],"total_results":1}`})
	name := filepath.Join(t.TempDir(), "events.csv")
	require.NoError(t, export1(t.Context(), t, srv, program.Streams{Err: io.Discard}, "-o", name))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "\"a,b\",c\r\n\"\",\r\n", string(text))
	err = export1(t.Context(), t, srv, program.Streams{Err: io.Discard}, "-o", filepath.Join(t.TempDir(), "events.parquet"))
	require.ErrorContains(t, err, `column "a,b" cannot be written`)
}

func TestNDJSON(t *testing.T) {
	t.Parallel()
	in, err := os.Open(exported(t, "ndjson"))
	require.NoError(t, err)
	defer in.Close()
	text, err := io.ReadAll(in)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 3)
	for i, want := range []map[string]any{
		{
			"event_timestamp_ms": "2026-11-20T12:00:01.234", "rule_id": "=1+1", "client_ip": "192.0.2.1",
			"client_asn": json.Number("9007199254740993"), "client_browser": `He said "hi", then left`,
		},
		{
			"event_timestamp_ms": "2026-11-20T12:00:02.000", "rule_id": "日本 ☃ 𝄞", "client_ip": "2001:db8::1",
			"client_asn": json.Number("9223372036854775807"), "client_browser": "one\ntwo\r\nthree\r",
		},
		{"event_timestamp_ms": "2026-11-20T12:00:03.000", "rule_id": nil, "client_ip": nil, "client_asn": nil, "client_browser": nil},
	} {
		var got map[string]any
		decoder := json.NewDecoder(strings.NewReader(lines[i]))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&got))
		assert.Equal(t, want, got)
	}
}

// Another library than the one that wrote it reads the same, types and order of columns included.
func TestParquet(t *testing.T) {
	t.Parallel()
	in, err := file.OpenParquetFile(exported(t, "parquet"), false)
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
			[]any{noon.UnixMilli() + 1234, noon.UnixMilli() + 2000, noon.UnixMilli() + 3000},
		},
		{"rule_id", "String", parquet.Types.ByteArray, []any{"=1+1", "日本 ☃ 𝄞", nil}},
		{"client_ip", "String", parquet.Types.ByteArray, []any{"192.0.2.1", "2001:db8::1", nil}},
		{"client_asn", "Int(bitWidth=64, isSigned=true)", parquet.Types.Int64, []any{int64(9007199254740993), int64(9223372036854775807), nil}},
		{"client_browser", "String", parquet.Types.ByteArray, []any{`He said "hi", then left`, "one\ntwo\r\nthree\r", nil}},
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

// cells reads three values of a column.
func cells[T any](t *testing.T, read func(int64, []T, []int16, []int16) (int64, int, error), show func(T) any) []any {
	t.Helper()
	values, defined := make([]T, 3), make([]int16, 3)
	total, _, err := read(3, values, defined, nil)
	require.NoError(t, err)
	require.EqualValues(t, 3, total)
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

func TestParquetWithoutRows(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "none.parquet")
	require.NoError(t, export1(t.Context(), t, service(t), program.Streams{Err: io.Discard}, "-o", name))
	in, err := file.OpenParquetFile(name, false)
	require.NoError(t, err)
	defer in.Close()
	assert.Zero(t, in.NumRows())
	assert.Equal(t, 5, in.MetaData().Schema.NumColumns())
}

// weighed looks now and then how large the heap is while rows are written.
type weighed struct {
	writer
	rows int
	most uint64
}

func (w *weighed) write(row webdelivery.Row) error {
	if w.rows++; w.rows%10_000 == 0 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		w.most = max(w.most, stats.HeapAlloc)
	}
	return w.writer.write(row)
}

// Ten times the rows do not take more memory; kept in whatever form they would take more than the margin.
func TestMemoryIsConstant(t *testing.T) { //nolint:paralleltest // the heap is that of all tests
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(1000, 1, time.Time{}))
	client := srv.Client(t)
	end := time.Now()
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		name := filepath.Join(t.TempDir(), "events")
		heap := func(rows int) uint64 {
			query := webdelivery.EventsQuery{Dimensions: known, Start: end.Add(-time.Hour), End: end, Limit: rows}
			w := &weighed{}
			require.NoError(t, replace(name, func(out io.Writer) (err error) {
				if w.writer, err = formats[format](out, known); err != nil {
					return err
				}
				return copyRows(client.Stats.Events.Rows(t.Context(), query), known, int64(rows), w, func(int64) error { return nil })
			}))
			require.Equal(t, rows, w.rows)
			return w.most
		}
		few, many := heap(20_000), heap(200_000)
		t.Logf("%s: %.1f MB at 20,000 rows, %.1f MB at 200,000", format, float64(few)/1e6, float64(many)/1e6)
		assert.Less(t, many, few+24<<20, format)
		if format == "parquet" {
			in, err := file.OpenParquetFile(name, false)
			require.NoError(t, err)
			assert.EqualValues(t, 200_000, in.NumRows())
			assert.Greater(t, in.NumRowGroups(), 1)
			require.NoError(t, in.Close())
		}
	}
}
