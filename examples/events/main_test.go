package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const dataPath = "/stats/security/events/data"

// service starts a fake with these events, whose time is always an hour after noon.
func service(t *testing.T, events []webdeliverytest.Event, options ...webdeliverytest.Option) *webdeliverytest.Server {
	t.Helper()
	now := webdeliverytest.WithNow(func() time.Time { return noon.Add(time.Hour) })
	srv := webdeliverytest.NewServer(t, append(options, now)...)
	srv.AddEvents(events...)
	return srv
}

// inFakeTime runs a test with a fake in fake time, which begins when the fake's clock stands still.
func inFakeTime(t *testing.T, events []webdeliverytest.Event, test func(t *testing.T, srv *webdeliverytest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon.Add(time.Hour)))
		test(t, service(t, events, webdeliverytest.InMemory()))
	})
}

var events = []webdeliverytest.Event{
	{Time: noon.Add(1234 * time.Millisecond), RuleID: "a", ClientIP: netip.MustParseAddr("192.0.2.1"), ASN: 64496},
	{Time: noon.Add(2 * time.Second), RuleID: "b", ClientIP: netip.MustParseAddr("2001:db8::1"), ASN: 64511},
	{Time: noon.Add(3 * time.Second)},
}

// export1 exports the hour after noon with these flags.
func export1(ctx context.Context, t *testing.T, srv *webdeliverytest.Server, s program.Streams, args ...string) error {
	t.Helper()
	args = append([]string{
		"-start", "2026-11-20T12:00:00Z", "-end", "2026-11-20T14:00:00+01:00",
		"-columns", "event_timestamp_ms,rule_id,client_ip,client_asn,client_browser",
	}, args...)
	set, err := parse(args, program.Streams{Err: io.Discard}, noon.Add(time.Hour))
	require.NoError(t, err)
	return export(ctx, srv.Client(t), set, s)
}

// An export has at most -limit events. A time range without events gives a file without rows.
func TestLimitAndNothing(t *testing.T) {
	t.Parallel()
	srv := service(t, events)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-limit", "1"}, "a,192.0.2.1\r\n"},
		{[]string{"-limit", "0"}, "a,192.0.2.1\r\nb,2001:db8::1\r\n,\r\n"},
		{[]string{"-limit", "9"}, "a,192.0.2.1\r\nb,2001:db8::1\r\n,\r\n"},
		{[]string{"-filter", "client_asn==64511"}, "b,2001:db8::1\r\n"},
		{[]string{"-filter", "rule_id==none"}, ""},
		{[]string{"-end", "2026-11-20T12:00:01Z"}, ""},
	} {
		var out bytes.Buffer
		args := append([]string{"-columns", "rule_id,client_ip"}, tt.args...)
		require.NoError(t, export1(t.Context(), t, srv, program.Streams{Out: &out, Err: io.Discard}, args...))
		assert.Equal(t, "rule_id,client_ip\r\n"+tt.want, out.String(), "%s", tt.args)
	}
}

// The header and each row have the columns of -columns, in this order, with any order of the service.
func TestColumns(t *testing.T) {
	t.Parallel()
	srv := service(t, events[:1])
	for _, tt := range []struct{ columns, format, want string }{
		{"client_ip,event_timestamp_ms,rule_id", "csv", "client_ip,event_timestamp_ms,rule_id\r\n192.0.2.1,2026-11-20T12:00:01.234Z,a\r\n"},
		{"rule_id, client_asn", "csv", "rule_id,client_asn\r\na,64496\r\n"},
		{"client_asn,event_timestamp_ms", "ndjson", `{"client_asn":64496,"event_timestamp_ms":"2026-11-20T12:00:01.234Z"}` + "\n"},
	} {
		var out bytes.Buffer
		require.NoError(t, export1(t.Context(), t, srv, program.Streams{Out: &out, Err: io.Discard}, "-columns", tt.columns, "-format", tt.format))
		assert.Equal(t, tt.want, out.String())
	}
	name := filepath.Join(t.TempDir(), "events.parquet")
	require.NoError(t, export1(t.Context(), t, srv, program.Streams{Err: io.Discard}, "-columns", "client_ip,event_timestamp_ms", "-o", name))
	in, err := file.OpenParquetFile(name, false)
	require.NoError(t, err)
	defer in.Close()
	require.Equal(t, 2, in.MetaData().Schema.NumColumns())
	assert.Equal(t, "client_ip", in.MetaData().Schema.Column(0).Name())
	assert.Equal(t, "event_timestamp_ms", in.MetaData().Schema.Column(1).Name())
	assert.Equal(t, []string{fmt.Sprintf("[192.0.2.1 %d]", noon.UnixMilli()+1234)}, rowsOf(t, name))
}

// After any failure the old file is unchanged. The only other files are those for -resume.
func TestBrokenExports(t *testing.T) {
	t.Parallel()
	const head = `{"columns":[{"name":"event_timestamp_ms"},{"name":"rule_id"},{"name":"client_ip"},{"name":"client_asn"},{"name":"client_browser"}],`
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		for name, tt := range map[string]struct {
			fault webdeliverytest.FaultRule // of the second request, which asks for the rows, unless Skip is 0
			want  string
		}{
			"cut":     {webdeliverytest.FaultRule{Cut: webdeliverytest.CutChunked, Skip: 1}, "of 3 events: "},
			"refused": {webdeliverytest.FaultRule{Status: 403, Skip: 1}, "403 Forbidden"},
			"rows are gone": {
				webdeliverytest.FaultRule{Body: head + `"rows":[["2026-11-20T12:00:01.234","a",null,null,null]],"total_results":1}`, Skip: 1},
				(&webdelivery.IncompleteError{Got: 1, Total: 3}).Error(),
			},
			"other columns": {
				webdeliverytest.FaultRule{Body: `{"columns":[{"name":"event_timestamp_ms"}],"rows":[["2026-11-20T12:00:01.234"]],"total_results":3}`, Skip: 1},
				"after 0 of 3 events: the columns have changed from",
			},
			"no columns": {
				webdeliverytest.FaultRule{Body: `{"columns":[],"rows":[],"total_results":0}`},
				`the response has no column "event_timestamp_ms", only []`,
			},
		} {
			t.Run(format+"/"+name, func(t *testing.T) {
				t.Parallel()
				inFakeTime(t, events, func(t *testing.T, srv *webdeliverytest.Server) {
					tt.fault.Path = dataPath
					srv.Fail(tt.fault)
					file := filepath.Join(t.TempDir(), "events."+format)
					require.NoError(t, os.WriteFile(file, []byte("yesterday's"), 0o600))
					err := export1(t.Context(), t, srv, program.Streams{Err: io.Discard}, "-o", file)
					require.ErrorContains(t, err, tt.want)
					switch {
					case tt.fault.Skip == 0: // nothing has begun
						assertOnly(t, file, "yesterday's")
						return
					case format == "parquet" && name == "rows are gone":
						assertOnly(t, file, "yesterday's", "events-00001.parquet", "events.parquet.cursor")
					default:
						assertOnly(t, file, "yesterday's", "events."+format+".cursor", "events."+format+".partial")
					}
					assert.ErrorContains(t, err, "events -resume "+file)
				})
			})
		}
	}
}

// assertOnly checks that the folder has only a file with this text, and these others. If text is "", the file must not
// exist. Only their owner can read them.
func assertOnly(t *testing.T, file, text string, others ...string) {
	t.Helper()
	if text != "" {
		others = append(others, filepath.Base(file))
	}
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
		info, err := entry.Info()
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode(), entry.Name())
	}
	require.ElementsMatch(t, others, names)
	if text == "" {
		return
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text, string(got))
}

// The program works with the service of the environment.
func TestRun(t *testing.T) {
	at := time.Now().Add(-time.Minute)
	srv := webdeliverytest.NewServer(t)
	srv.AddEvents(webdeliverytest.Event{Time: at, RuleID: "rule-1"}, webdeliverytest.Event{Time: at.Add(-time.Hour), RuleID: "rule-2"})
	programtest.UseService(t, srv)
	t.Setenv("SPLUNK_HEC_TOKEN", "")
	dir := t.TempDir() // no file may be left there
	t.Chdir(dir)
	start := func(want int, args ...string) (stdout, stderr string) {
		code, stdout, stderr := programtest.Run("events", program.Streams{}, func(s program.Streams) error { return run(t.Context(), args, s) })
		assert.Equal(t, want, code, "%s: %s", args, stderr)
		return stdout, stderr
	}
	out, told := start(program.Done, "-since", "30m")
	assert.Contains(t, out, ",rule-1,")
	assert.NotContains(t, out, "rule-2")
	assert.Empty(t, told)

	out, told = start(program.Done, "-since", "30m", "-o", "-", "-filter", "") // both mean the default
	assert.Contains(t, out, ",rule-1,")
	assert.Empty(t, told)
	out, _ = start(program.Done, "-filter", "rule_id==rule-2", "-filter", "") // the last one wins
	assert.Contains(t, out, ",rule-1,")

	out, told = start(program.Done, "-format", "ndjson", "-start", at.AddDate(0, 0, -9).Format(time.RFC3339))
	assert.Equal(t, 2, strings.Count(out, "\n"))
	assert.Contains(t, told, "earlier ones are missing")

	for want, args := range map[string][]string{
		"flag -filter: filters: at byte 13: no == or != in": {"-filter", "rule_id==abc,x"},
		`invalid value "yesterday" for flag -start`:         {"-start", "yesterday"},
		"-columns: name 2 is empty; remove a comma\n":       {"-columns", "rule_id,"},
		"-columns: name 3, \"a\", appears twice; remove":    {"-columns", "a, b, a"},
		"-start: ":                                             {"-start", "0000-01-01T00:00:00+14:00"},
		"a.csv.cursor, so no export to ":                       {"-resume", filepath.Join(dir, "a.csv")},
		"flag -since: must be above 0; ":                       {"-since", "0"},
		"such as 2026-11-20T00:00:00Z":                         {"-end", "2026-11-20"},
		`invalid value "-1h" for flag -since: want a duration`: {"-since", "-1h"},
		`unexpected argument "today"`:                          {"today"},
		"-limit -1 is below 0; use 0":                          {"-limit", "-1"},
		"parquet needs a file":                                 {"-format", "parquet"},
		"parquet needs a file; name it with -o":                {"-format", "parquet", "-o", "-"},
		"ecs needs event_timestamp_ms in -columns\n":           {"-format", "ecs", "-columns", "rule_id"},
		"-follow has no end: leave out -end and -limit\n":      {"-follow", "-limit", "1"},
		"-delay must be 1s or more\n":                          {"-follow", "-delay", "0"},
		"-follow cannot write parquet, ":                       {"-follow", "-o", "a.parquet"},
		"-lookback must be at most 3d":                         {"-follow", "-lookback", "4d"},
		"-hec, -otlp and -metrics need -follow\n":              {"-hec", "https://collector.example.com"},
		"-cursor belongs to -hec or -otlp":                     {"-follow", "-cursor", "a"},
		"-hec and -otlp: give only one":                        {"-follow", "-cursor", "a", "-hec", "https://a.example.com", "-otlp", "https://b.example.com"},
		"-otlp takes neither -o nor -format\n":                 {"-follow", "-cursor", "a", "-otlp", "https://a.example.com", "-format", "ecs"},
		"-hec needs event_timestamp_ms in -columns\n":          {"-follow", "-cursor", "a", "-hec", "https://a.example.com", "-columns", "rule_id"},
		"-hec needs a regular file for the cursor":             {"-follow", "-hec", "https://a.example.com"},
		"-otlp needs a regular file for the cursor":            {"-follow", "-cursor", dir, "-otlp", "https://a.example.com"},
		"-hec needs SPLUNK_HEC_TOKEN, which is not set":        {"-follow", "-cursor", "a", "-hec", "https://a.example.com"},
		`format "xlsx" is unknown; use -format csv`:            {"-o", filepath.Join(dir, "a.xlsx")},
		`invalid value "1 day" for flag -since`:                {"-since", "1 day"},
		dir + " is not a regular file":                         {"-format", "csv", "-o", dir},
	} {
		out, told := start(program.Misuse, args...)
		assert.Contains(t, told, want)
		assert.Empty(t, out)
	}
	_, told = start(program.Failed, "-columns", "none")
	assert.Contains(t, told, `unknown dimension "none"`)
	none := filepath.Join(dir, "none", "a.csv")
	_, told = start(program.Failed, "-o", none)
	assert.Contains(t, told, "events: "+none+" cannot be written: no such file or directory\nevents: name a file in a folder")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)

	programtest.NoService(t)
	out, _ = start(program.Done, "-since", "10m", "-columns", "domain")
	assert.Contains(t, out, "\r\nwww.example.com\r\n")
}
