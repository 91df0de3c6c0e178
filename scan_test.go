package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// scanned reads a result of these columns and rows into structs.
func scanned[T any](f *fixture.Fixture, columns []string, rows ...string) (all []T, err error) {
	answers(f, resultOf(columns, rows...))
	for value, err := range webdelivery.Scan[T](f.Client.Stats.Events.All(f.Context(), fixture.FirstRows)) {
		if err != nil {
			return all, err
		}
		all = append(all, value)
	}
	return all, nil
}

type severity string

type network struct {
	ASN     uint32 `stats:"client_asn"`
	Country string `stats:"client_country_code"`
}

type everything struct {
	Time   time.Time         `stats:"event_timestamp_ms"`
	IP     netip.Addr        `stats:"client_ip"`
	Net    netip.Prefix      `stats:"net"`
	Rule   severity          `stats:"event_severity"`
	Big    int64             `stats:"big"`
	Small  int8              `stats:"small"`
	Count  uint64            `stats:"count"`
	Ratio  float32           `stats:"ratio"`
	Yes    bool              `stats:"yes"`
	Number json.Number       `stats:"number"`
	Any    webdelivery.Value `stats:"any"`
	Gone   *string           `stats:"gone"`
	There  *netip.Addr       `stats:"there"`
	Also   *int              `stats:"also"`
	Left   string
	network
}

var everyColumn = []string{
	"event_timestamp_ms", "client_ip", "net", "event_severity", "big", "small", "count", "ratio", "yes", "number", "any", "gone",
	"there", "also", "client_asn", "client_country_code", "unasked",
}

func TestScanIntoEveryType(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		row := `["2026-11-20 08:30:00.25","192.0.2.1","2001:db8::/32","high",9007199254740993,-128,18446744073709551615,0.5,true,` +
			`1.50,{"any"},null,"192.0.2.7",5,64500,"DE","x"]`
		row2 := `["2026-11-20T08:30:01","2001:db8::1","192.0.2.0/24","low",-1,127,"0",1e1,false,"1",null,"here",null,null,"1","AT",null]`
		got, err := scanned[everything](f, everyColumn, replaceAny(row, `"any"`), replaceAny(row2, "null"))
		require.ErrorContains(f, err, "number", `a json.Number takes no text`)
		require.Len(f, got, 1)
		first := got[0]
		assert.Equal(f, time.Date(2026, 11, 20, 8, 30, 0, 250_000_000, time.UTC), first.Time)
		assert.Equal(f, netip.MustParseAddr("192.0.2.1"), first.IP)
		assert.Equal(f, netip.MustParsePrefix("2001:db8::/32"), first.Net)
		assert.Equal(f, severity("high"), first.Rule)
		assert.Equal(f, int64(9007199254740993), first.Big)
		assert.Equal(f, int8(-128), first.Small)
		assert.Equal(f, uint64(18446744073709551615), first.Count)
		assert.InDelta(f, 0.5, first.Ratio, 0)
		assert.True(f, first.Yes)
		assert.Equal(f, json.Number("1.50"), first.Number)
		assert.Equal(f, "any", first.Any.String())
		assert.Nil(f, first.Gone)
		assert.Equal(f, netip.MustParseAddr("192.0.2.7"), *first.There)
		assert.Equal(f, 5, *first.Also)
		assert.Equal(f, uint32(64500), first.ASN)
		assert.Equal(f, "DE", first.Country)
		assert.Empty(f, first.Left)
	})
}

// replaceAny puts the value of the column any into a row that contains {"any"} in its place.
func replaceAny(row, value string) string {
	const mark = `{"any"}`
	for i := range len(row) - len(mark) {
		if row[i:i+len(mark)] == mark {
			return row[:i] + value + row[i+len(mark):]
		}
	}
	return row
}

// Values that were yielded do not change with the next row: texts, pointers and Values are not shared.
func TestScannedValuesAreKept(t *testing.T) {
	t.Parallel()
	type row struct {
		S string            `stats:"a"`
		P *string           `stats:"b"`
		V webdelivery.Value `stats:"c"`
		N *int              `stats:"d"`
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		got, err := scanned[row](f, []string{"a", "b", "c", "d"}, `["a1","b1","c1",1]`, `["a2","b2","c2",null]`, `["a3",null,"c3",3]`)
		require.NoError(f, err)
		require.Len(f, got, 3)
		assert.Equal(f, []string{"a1", "a2", "a3"}, []string{got[0].S, got[1].S, got[2].S})
		assert.Equal(f, []string{"b1", "b2"}, []string{*got[0].P, *got[1].P})
		assert.Nil(f, got[2].P)
		assert.Equal(f, []string{"c1", "c2", "c3"}, []string{got[0].V.String(), got[1].V.String(), got[2].V.String()})
		assert.Equal(f, []int{1, 3}, []int{*got[0].N, *got[2].N})
		assert.Nil(f, got[1].N)
	})
}

// If a value does not fit its field, the error contains the row, the column and the value. The rows before it are
// yielded.
func TestScanErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		scan  func(f *fixture.Fixture, columns []string, rows ...string) (int, error)
		value string
		says  string
	}{
		{"overflow", scanOne[int8], "128", "value 128: 128 is not a whole number of 8 bits"},
		{"underflow", scanOne[int16], "-32769", "not a whole number of 16 bits"},
		{"negative into unsigned", scanOne[uint], "-1", "-1 is not a whole number from 0, of "},
		{"fraction into an integer", scanOne[int], "1.5", "1.5 is not a whole number of "},
		{"exponent into an integer", scanOne[int64], "1e3", "1e3 is not a whole number of 64 bits"},
		{"float overflow", scanOne[float64], "1e400", "out of range"},
		{"float32 overflow", scanOne[float32], "1e39", "out of range"},
		{"text into a number", scanOne[int], `"many"`, "not a whole number of "},
		{"number into a time", scanOne[time.Time], "1700000000", "timestamp"},
		{"text that is no time", scanOne[time.Time], `"yesterday"`, "timestamp"},
		{"text that is no address", scanOne[netip.Addr], `"192.0.2.256"`, "IP address"},
		{"text that is no prefix", scanOne[netip.Prefix], `"192.0.2.1"`, `value "192.0.2.1": "192.0.2.1" is not a CIDR range`},
		{"a number into a prefix", scanOne[netip.Prefix], `8`, "value 8: 8 is not a CIDR range"},
		{"text into a bool", scanOne[bool], `"maybe"`, "is not a bool"},
		{"a letter into a bool", scanOne[bool], `"t"`, "is not a bool"},
		{"a digit into a bool", scanOne[bool], `"1"`, "is not a bool"},
		{"a number into a bool", scanOne[bool], `1`, "is not a bool"},
		{"text into a json.Number", scanOne[json.Number], `"1"`, "number"},
		{"null into a string", scanOne[string], "null", "null"},
		{"null into an integer", scanOne[int], "null", "null"},
		{"null into a time", scanOne[time.Time], "null", "null"},
		{"null into an address", scanOne[netip.Addr], "null", "null"},
		{"null into a TextUnmarshaler", scanOne[netip.Prefix], "null", "null"},
		{"overflow behind a pointer", scanOne[*int8], "128", "not a whole number of 8 bits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				_, err := tt.scan(f, []string{"x", "a"}, `[1,`+tt.value+`]`)
				var scanning *webdelivery.ScanError
				require.ErrorAs(f, err, &scanning)
				assert.Equal(f, int64(1), scanning.Row)
				assert.Equal(f, "a", scanning.Column)
				assert.Equal(f, tt.value, scanning.Value)
				assert.ErrorContains(f, err, "webdelivery: row 1, column a for field A (")
				assert.ErrorContains(f, err, tt.says)
			})
		})
	}
}

// scanOne reads into a struct with one field of type T.
func scanOne[T any](f *fixture.Fixture, columns []string, rows ...string) (int, error) {
	type row struct {
		A T `stats:"a"`
	}
	got, err := scanned[row](f, columns, rows...)
	return len(got), err
}

// A column that the query does not have is an error that names it.
func TestScanOfAMissingColumn(t *testing.T) {
	t.Parallel()
	type missing struct {
		A int `stats:"b"`
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		_, err := scanned[missing](f, []string{"a"}, "[1]")
		var scanning *webdelivery.ScanError
		require.ErrorAs(f, err, &scanning)
		assert.Equal(f, "b", scanning.Column)
	})
}

// Scan yields the error of the rows, and a loop that ends early ends the rows.
func TestScanPassesOn(t *testing.T) {
	t.Parallel()
	type row struct {
		A int `stats:"a"`
	}
	var broken iter.Seq2[webdelivery.Row, error] = func(yield func(webdelivery.Row, error) bool) {
		yield(webdelivery.Row{}, assert.AnError)
	}
	for _, err := range webdelivery.Scan[row](broken) {
		require.ErrorIs(t, err, assert.AnError)
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a"}, "[1]", "[2]", "[3]"))
		for value, err := range webdelivery.Scan[row](f.Client.Stats.Events.All(f.Context(), fixture.FirstRows)) {
			require.NoError(f, err)
			assert.Equal(f, 1, value.A)
			break
		}
	})
}

// One scan over several results: the columns may have another order in the second.
func TestScanOverResponsesWithOtherColumns(t *testing.T) {
	t.Parallel()
	type row struct {
		A string `stats:"a"`
		B int    `stats:"b"`
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a", "b"}, `["x",1]`))
		first, err := f.Client.Stats.Events.Query(f.Context(), fixture.ADay)
		require.NoError(f, err)
		second := webdelivery.Row{}
		f2 := resultOf([]string{"b", "c", "a"}, `[2,null,"y"]`)
		inSecond(f, f2, &second)
		var got []string
		for value, err := range webdelivery.Scan[row](func(yield func(webdelivery.Row, error) bool) {
			_ = yield(first.Rows[0], nil) && yield(second, nil)
		}) {
			require.NoError(f, err)
			got = append(got, fmt.Sprint(value))
		}
		assert.Equal(f, []string{"{x 1}", "{y 2}"}, got)
	})
}

// inSecond reads the one row of another result.
func inSecond(f *fixture.Fixture, body string, into *webdelivery.Row) {
	q := webdelivery.TrendsQuery{
		Dimensions: fixture.ADay.Dimensions, Metrics: []string{webdelivery.MetricHits}, Start: fixture.ADay.Start, End: fixture.ADay.End,
		Granularity: webdelivery.GranularityDay,
	}
	f.Srv.Fail(faultFor("/stats/security/waf/trends/data", body))
	result, err := f.Client.Stats.WAFTrends.Query(f.Context(), q)
	require.NoError(f, err)
	*into = result.Rows[0]
}

// DimensionsOf returns the tags of a struct as the dimensions of its query; hits is the metric.
func TestDimensionsOf(t *testing.T) {
	t.Parallel()
	type trend struct {
		Time    time.Time `stats:"event_timestamp_ms"`
		Note    string
		Country string `stats:"client_country_code"`
		Hits    int64  `stats:"hits"`
		network
	}
	assert.Equal(t, []string{"event_timestamp_ms", "client_country_code", "client_asn"}, webdelivery.DimensionsOf[struct {
		Time    time.Time `stats:"event_timestamp_ms"`
		Country string    `stats:"client_country_code"`
		Hits    int64     `stats:"hits"`
		ASN     int       `stats:"client_asn"`
	}]())
	assert.Equal(t, []string{"event_timestamp_ms", "client_country_code", "client_asn"}, webdelivery.DimensionsOf[trend](),
		"the embedded field is shadowed, and not requested twice")
	assert.Equal(t, []string{"client_ip"}, webdelivery.DimensionsOf[struct {
		Addr netip.Addr `stats:"client_ip"`
		Text string     `stats:"client_ip"`
	}]())
	assert.Empty(t, webdelivery.DimensionsOf[int]())
}

// If T cannot be scanned into, Scan returns an error before it requests the rows, so nothing is sent.
func TestScanRefusesBeforeItAsks(t *testing.T) {
	t.Parallel()
	type hidden struct {
		a int `stats:"a"` //nolint:unused // that it cannot be set is what is tested
	}
	type strange struct {
		Good int         `stats:"a"`
		A    map[int]int `stats:"b"`
	}
	type Shown struct {
		A int `stats:"a"`
	}
	type embedded struct{ *Shown }
	type untagged struct{ A int }
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		rows := f.Client.Stats.Events.All(f.Context(), fixture.ADay)
		const unexported = ": it is not exported, or in an embedded pointer; embed the struct by value"
		for want, err := range map[string]error{
			"int is not a struct with stats tags":                                 scanError[int](rows),
			"webdelivery_test.untagged is not a struct with stats tags":           scanError[untagged](rows),
			"*webdelivery_test.strange is not a struct with stats tags":           scanError[*strange](rows),
			"cannot set field a of webdelivery_test.hidden" + unexported:          scanError[hidden](rows),
			"cannot set field A of webdelivery_test.embedded" + unexported:        scanError[embedded](rows),
			"cannot read into field A of webdelivery_test.strange, a map[int]int": scanError[strange](rows),
			"cannot read into field A of struct { A []string \"stats:\\\"a\\\"\" }, a []string": scanError[struct {
				A []string `stats:"a"`
			}](rows),
		} {
			var invalid *webdelivery.ValidationError
			require.ErrorAs(f, err, &invalid, want)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
			assert.Equal(f, webdelivery.ValidationError{Field: "Scan", Reason: want}, *invalid)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		}
		assert.Empty(f, f.Srv.Requests())
	})
}

func scanError[T any](rows iter.Seq2[webdelivery.Row, error]) error {
	values, err := webdelivery.Collect(webdelivery.Scan[T](rows))
	if len(values) > 0 {
		return errors.New("Scan yields a value")
	}
	return err
}

// Collect returns the rows before an error together with it, and its rows stay valid.
func TestCollect(t *testing.T) {
	t.Parallel()
	numbers := func(items int, err error) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range items {
				if !yield(i, nil) {
					return
				}
			}
			if err != nil {
				yield(99, err)
			}
		}
	}
	for _, tt := range []struct {
		items int
		err   error
		want  []int
	}{{3, nil, []int{0, 1, 2}}, {2, assert.AnError, []int{0, 1}}, {0, assert.AnError, nil}, {0, nil, nil}} {
		got, err := webdelivery.Collect(numbers(tt.items, tt.err))
		assert.Equal(t, tt.want, got)
		assert.Equal(t, tt.err, err)
	}

	client := fixture.Always(t, []byte(resultOf([]string{"a"}, `["x"]`, `["y"]`, `["z"]`)))
	rows, err := webdelivery.Collect(client.Stats.Events.All(t.Context(), fixture.FirstRows))
	require.NoError(t, err)
	assert.Equal(t, `[["x"] ["y"] ["z"]]`, fmt.Sprint(rows), "each row has its own values")
	rows, err = webdelivery.Collect(fixture.Always(t, []byte(resultOf([]string{"a"}, `["x"]`, `[]`))).Stats.Events.All(t.Context(), fixture.FirstRows))
	require.ErrorIs(t, err, webdelivery.ErrBadResponse)
	assert.Equal(t, `[["x"]]`, fmt.Sprint(rows))
}

// A top-K query without dimensions and metrics requests hits and the dimension of its category, if the service
// document names one.
func TestDefaultsOfTopK(t *testing.T) {
	t.Parallel()
	type ask = func(context.Context, *webdelivery.StatsService) error
	waf := func(c webdelivery.WAFCategory) ask {
		return func(ctx context.Context, s *webdelivery.StatsService) error {
			q := webdelivery.WAFTopKQuery{Start: spanStart, End: spanEnd}
			_, err := s.WAFTopK(c).Query(ctx, q)
			_, err2 := collect(s.WAFTopK(c).All(ctx, q))
			_, err3 := collect(s.WAFTopK(c).All(ctx, q))
			return errors.Join(err, err2, err3)
		}
	}
	shaping := func(c webdelivery.TrafficShapingCategory) ask {
		return func(ctx context.Context, s *webdelivery.StatsService) error {
			q := webdelivery.TrafficShapingTopKQuery{Start: spanStart, End: spanEnd, SortBy: []string{webdelivery.Desc("hits")}}
			_, err := s.TrafficShapingTopK(c).Query(ctx, q)
			_, err2 := collect(s.TrafficShapingTopK(c).All(ctx, q))
			_, err3 := collect(s.TrafficShapingTopK(c).All(ctx, q))
			return errors.Join(err, err2, err3)
		}
	}
	for _, tt := range []struct {
		name string
		ask  ask
		want string // "": an error
	}{
		{"waf browser", waf(webdelivery.WAFByBrowser), "client_browser"},
		{"waf clientip", waf(webdelivery.WAFByClientIP), "client_ip"},
		{"waf country", waf(webdelivery.WAFByCountry), "client_country_code"},
		{"waf ruleid", waf(webdelivery.WAFByRuleID), "rule_id"},
		{"waf severity", waf(webdelivery.WAFBySeverity), "event_severity"},
		{"waf requestpath", waf(webdelivery.WAFByRequestPath), ""},
		{"shaping browser", shaping(webdelivery.TrafficShapingByBrowser), "client_browser"},
		{"shaping clientip", shaping(webdelivery.TrafficShapingByClientIP), "client_ip"},
		{"shaping country", shaping(webdelivery.TrafficShapingByCountry), "client_country_code"},
		{"shaping ratelimitclientip", shaping(webdelivery.TrafficShapingByRateLimitClientIP), ""},
		{"shaping ratelimitcountry", shaping(webdelivery.TrafficShapingByRateLimitCountry), ""},
		{"shaping requestpath", shaping(webdelivery.TrafficShapingByRequestPath), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
				err := tt.ask(f.Context(), f.Client.Stats)
				if tt.want == "" {
					var invalid *webdelivery.ValidationError
					require.ErrorAs(f, err, &invalid)
					assert.Equal(f, "dimensions", invalid.Field)
					require.ErrorContains(f, err, "invalid dimensions: must be set, because the dimension of this category is not documented; ask Dimensions for the names")
					assert.Empty(f, f.Srv.Requests())
					return
				}
				require.NoError(f, err)
				assert.Len(f, f.Srv.Requests(), 3)
				for _, r := range f.Srv.Requests() {
					values, err := url.ParseQuery(r.RawQuery)
					require.NoError(f, err)
					assert.Equal(f, []string{tt.want}, values["dimensions"])
					assert.Equal(f, []string{"hits"}, values["metrics"])
				}
			})
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
		_, err := f.Client.Stats.WAFTopK(webdelivery.WAFByRequestPath).Query(f.Context(), webdelivery.WAFTopKQuery{
			Dimensions: []string{"request_path"}, Start: spanStart, End: spanEnd,
		})
		require.NoError(f, err, "hits is the metric of every category")
	})
}
