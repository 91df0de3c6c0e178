package webdelivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strings"
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
		got, err := scanned[everything](f, everyColumn,
			`["2026-11-20 08:30:00.25","192.0.2.1","2001:db8::/32","high",9007199254740993,-128,18446744073709551615,0.5,true,`+
				`1.50,"any",null,"192.0.2.7",5,64500,"DE","x"]`,
			`["2026-11-20T08:30:01","2001:db8::1","192.0.2.0/24","low",-1,127,"0",1e1,false,"1",null,"here",null,null,"1","AT",null]`)
		require.ErrorContains(f, err, "number", `a json.Number takes no text`)
		require.Len(f, got, 1)
		there, also := netip.MustParseAddr("192.0.2.7"), 5
		assert.Equal(f, "any", got[0].Any.String())
		got[0].Any = webdelivery.Value{}
		assert.Equal(f, everything{
			Time: time.Date(2026, 11, 20, 8, 30, 0, 250_000_000, time.UTC), IP: netip.MustParseAddr("192.0.2.1"),
			Net: netip.MustParsePrefix("2001:db8::/32"), Rule: "high", Big: 9007199254740993, Small: -128, Count: 18446744073709551615,
			Ratio: 0.5, Yes: true, Number: "1.50", There: &there, Also: &also, network: network{ASN: 64500, Country: "DE"},
		}, got[0])
	})
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
		assert.Equal(f, "a1 b1 c1 1 a2 b2 c2 a3 c3 3", fmt.Sprint(
			got[0].S, " ", *got[0].P, " ", got[0].V, " ", *got[0].N, " ", got[1].S, " ", *got[1].P, " ", got[1].V, " ", got[2].S, " ", got[2].V, " ", *got[2].N))
		assert.Nil(f, got[1].N)
		assert.Nil(f, got[2].P)
	})
}

// If a value does not fit its field, the error contains the row, the column and the value. The rows before it are
// yielded.
func TestScanErrors(t *testing.T) {
	t.Parallel()
	const whole, noBool = "is not a whole number of ", "is not a bool"
	for _, tt := range []struct {
		scan        func(f *fixture.Fixture, columns []string, rows ...string) (int, error)
		value, says string
	}{
		{scanOne[int8], "128", "value 128: 128 is not a whole number of 8 bits"},
		{scanOne[int16], "-32769", whole + "16 bits"},
		{scanOne[uint], "-1", "-1 is not a whole number from 0, of "},
		{scanOne[int], "1.5", "1.5 " + whole},
		{scanOne[int64], "1e3", "1e3 is not a whole number of 64 bits"},
		{scanOne[float64], "1e400", "out of range"},
		{scanOne[float32], "1e39", "out of range"},
		{scanOne[int], `"many"`, whole},
		{scanOne[time.Time], "1700000000", "timestamp"},
		{scanOne[time.Time], `"yesterday"`, "timestamp"},
		{scanOne[netip.Addr], `"192.0.2.256"`, "IP address"},
		{scanOne[netip.Prefix], `"192.0.2.1"`, `value "192.0.2.1": "192.0.2.1" is not a CIDR range`},
		{scanOne[netip.Prefix], `8`, "value 8: 8 is not a CIDR range"},
		{scanOne[bool], `"maybe"`, noBool},
		{scanOne[bool], `"t"`, noBool},
		{scanOne[bool], `"1"`, noBool},
		{scanOne[bool], `1`, noBool},
		{scanOne[json.Number], `"1"`, "number"},
		{scanOne[string], "null", "null"},
		{scanOne[int], "null", "null"},
		{scanOne[time.Time], "null", "null"},
		{scanOne[netip.Addr], "null", "null"},
		{scanOne[netip.Prefix], "null", "null"},
		{scanOne[*int8], "128", whole + "8 bits"},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			_, err := tt.scan(f, []string{"x", "a"}, `[1,`+tt.value+`]`)
			var scanning *webdelivery.ScanError
			require.ErrorAs(f, err, &scanning)
			assert.Equal(f, []any{int64(1), "a"}, []any{scanning.Row, scanning.Column})
			assert.Contains(f, scanning.Err.Error(), "value "+tt.value+": ")
			assert.ErrorContains(f, err, "webdelivery: row 1, column a: field A (")
			assert.ErrorContains(f, err, tt.says)
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
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		_, err := scanOne[int](f, []string{"b"}, "[1]", "[2]")
		require.ErrorIs(f, err, webdelivery.ErrBadResponse)
		assert.ErrorContains(f, err, "the rows have no column a for field A; ask for it in the query, or remove the tag")
	})
}

// After a value that does not fit, a loop may go on with the rows that follow. The error has the whole row.
func TestScanGoesOn(t *testing.T) {
	t.Parallel()
	type row struct {
		A int  `stats:"a"`
		B *int `stats:"b"`
		C int  `stats:"c"`
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a", "b", "c"}, `[1,1,1]`, `[2,"",2]`, `[3,3,3]`, `["x",4,4]`, `[5,"y","z"]`, `[6,6,null]`, `[7,null,7]`))
		var got, odd []string
		for value, err := range webdelivery.Scan[row](f.Client.Stats.Events.All(f.Context(), fixture.FirstRows)) {
			if wrong, ok := errors.AsType[*webdelivery.ScanError](err); ok {
				odd = append(odd, fmt.Sprint(wrong.Row, wrong.Column, wrong.Whole()))
				assert.Zero(f, value)
				continue
			}
			require.NoError(f, err)
			got = append(got, fmt.Sprint(value.A, value.C))
		}
		assert.Equal(f, []string{"1 1", "3 3", "7 7"}, got)
		assert.Equal(f, []string{`2b[2,"",2]`, `4a["x",4,4]`, `5b[5,"y","z"]`, `6c[6,6,null]`}, odd)
	})
}

// Scan yields the error of the rows, without a value, and a loop that ends early ends the rows.
func TestScanPassesOn(t *testing.T) {
	t.Parallel()
	type row struct {
		A int `stats:"a"`
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a"}, "[1]", "[2]", "[]"))
		rows := f.Client.Stats.Events.All(f.Context(), fixture.FirstRows)
		for value, err := range webdelivery.Scan[row](rows) {
			require.NoError(f, err)
			assert.Equal(f, 1, value.A)
			break
		}
		var got []int
		var last error
		for value, err := range webdelivery.Scan[row](rows) {
			got, last = append(got, value.A), err
		}
		require.ErrorIs(f, last, webdelivery.ErrBadResponse)
		assert.Equal(f, []int{1, 2, 0}, got)
	})
}

// One scan over several results: the columns may have another order in the second.
func TestScanOverResponsesWithOtherColumns(t *testing.T) {
	t.Parallel()
	type row struct {
		A string `stats:"a"`
		B int    `stats:"b"`
	}
	events := func(body string) iter.Seq2[webdelivery.Row, error] {
		return fixture.Always(t, []byte(body)).Stats.Events.All(t.Context(), fixture.FirstRows)
	}
	got, err := webdelivery.Collect(webdelivery.Scan[row](func(yield func(webdelivery.Row, error) bool) {
		events(resultOf([]string{"a", "b"}, `["x",1]`))(yield)
		events(resultOf([]string{"b", "c", "a"}, `[2,null,"y"]`))(yield)
	}))
	require.NoError(t, err)
	assert.Equal(t, []row{{"x", 1}, {"y", 2}}, got)
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
	type list struct {
		A []string `stats:"a"`
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
			"cannot read into field A of webdelivery_test.list, a []string":       scanError[list](rows),
		} {
			refusedAs(f.T, "Scan", err, want)
			assert.EqualError(f, err, "webdelivery: invalid Scan: "+want)
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
	for rows, want := range map[string]string{`["x"],["y"],["z"]`: `[["x"] ["y"] ["z"]]`, `["x"],[]`: `[["x"]]`, `[]`: "[]", ``: "[]"} {
		body := resultOf([]string{"a"}, strings.FieldsFunc(rows, func(r rune) bool { return r == ',' })...)
		got, err := webdelivery.Collect(fixture.Always(t, []byte(body)).Stats.Events.All(t.Context(), fixture.FirstRows))
		if strings.Contains(rows, "[]") {
			require.ErrorIs(t, err, webdelivery.ErrBadResponse)
		} else {
			require.NoError(t, err)
		}
		assert.Equal(t, want, fmt.Sprint(got))
	}
}
