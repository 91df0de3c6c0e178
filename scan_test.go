package webdelivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// scanOne reads a value into a field of type T, and checks that the method of a Value for that type, if there is one, does
// the same.
func scanOne[T any](t *testing.T, raw string) (into T, err error) {
	t.Helper()
	type row struct {
		A T                 `stats:"a"`
		V webdelivery.Value `stats:"b"`
	}
	var v webdelivery.Value
	three := slices.Repeat([]string{`[1,` + raw + `,` + raw + `]`}, 3) // from the third row on, rows are read while they are split
	rows := fixture.Always(t, []byte(resultOf([]string{"x", "a", "b"}, three...))).Stats.Events.All(t.Context(), fixture.FirstRows)
	for got, failed := range webdelivery.Scan[row](rows) {
		into, v, err = got.A, got.V, failed
	}
	if wrong, ok := errors.AsType[*webdelivery.ScanError](err); ok {
		v, _ = wrong.Whole().Get("b")
	}
	assert.Equal(t, []any{raw, raw == "null"}, []any{string(v.Raw()), v.IsNull()})
	as, wrong := any(into), err
	switch as.(type) {
	case int64:
		as, wrong = v.Int64()
	case time.Time:
		as, wrong = v.Time()
	case netip.Addr:
		as, wrong = v.Addr()
	}
	assert.Equal(t, any(into), as, raw)
	if assert.Equal(t, err == nil, wrong == nil, raw); err != nil && raw != "null" {
		require.ErrorContains(t, err, wrong.Error())
	}
	return into, err
}

// fits checks that these values are read as one.
func fits[T any](want T, values ...string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, raw := range values {
			got, err := scanOne[T](t, raw)
			require.NoError(t, err)
			assert.Equal(t, want, got, raw)
		}
	}
}

// misfits checks that these values do not fit.
func misfits[T any](says string, values ...string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, raw := range values {
			_, err := scanOne[T](t, raw)
			cause := strings.ReplaceAll(says, "*", raw)
			if raw == "null" {
				cause = "null does not fit; make the field a pointer, which is nil then"
			}
			require.EqualError(t, err, fmt.Sprintf("webdelivery: row 3, column a: field A (%v), value %s: %s", reflect.TypeFor[T](), raw, cause))
		}
	}
}

// What each type takes. A number or a bool may be in quotes if JSON would take it for one without them. null fits a
// pointer or a Value.
func TestScanOfEachType(t *testing.T) {
	t.Parallel()
	type word string
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	addr, five := netip.AddrFrom4([4]byte{192, 0, 2, 1}), 5
	const whole, noBool = "* is not a whole number of ", "* is not a bool"
	for _, check := range []func(t *testing.T){
		fits("Zürich", `"Zürich"`, `"Z\u00fcrich"`), fits("1.50", `1.50`), fits("true", `true`), fits(word("high"), `"high"`), misfits[string]("", `null`),
		fits("a\ufffd", "\"a\xff\"", `"a\ud800"`, `"a\ufffd"`),
		fits(int64(0), `0`, `-0`), fits(int64(10), `10`, `"10"`, `"\u0031\u0030"`), fits(int64(9007199254740993), `9007199254740993`),
		fits(int64(math.MaxInt64), `9223372036854775807`), fits(int64(math.MinInt64), `"-9223372036854775808"`),
		misfits[int64](whole+"64 bits", `9223372036854775808`, `9999999999999999999`, `"-9223372036854775809"`, `1.5`, `1e3`, `"+5"`, `"05"`, `" 5"`, `"5\n"`, `"-"`, `"0x5"`, `"5_0"`,
			`"\u0663"`, `true`, `""`, `"null"`, `null`), // U+0663 is the digit three of another script
		fits(int8(-128), `-128`), misfits[int8](whole+"8 bits", `128`), misfits[*int8](whole+"8 bits", `128`), misfits[int16](whole+"16 bits", `-32769`),
		fits(int32(-7), `-7`), fits(uint8(255), `255`), fits(uint16(7), `7`), fits(uint32(7), `"7"`), fits(uint64(math.MaxUint64), `18446744073709551615`),
		misfits[uint8]("* is not a whole number from 0, of 8 bits", `-1`, `256`, `null`), fits(uint(7), `7`), fits(uintptr(7), `7`),
		fits(float32(0.5), `0.5`, `"5e-1"`), fits(-1000.0, `-1e3`), misfits[float64]("* is out of range of a float64", `1e400`), misfits[float64]("* is not a number", `"x"`, `true`),
		misfits[float32]("* is out of range of a float32", `1e39`),
		fits(true, `true`, `"true"`), fits(false, `false`), misfits[bool](noBool, `"maybe"`, `"t"`, `"1"`, `1`, `null`),
		fits(json.Number("1.50"), `1.50`), misfits[json.Number]("* is not a number", `"1"`, `true`),
		fits(at, `"2026-11-20T08:30:00"`, `"2026-11-20 08:30:00"`, `"2026-11-20T08:30:00Z"`, `"2026-11-20T09:30:00+01:00"`, `"2026-11-20T08:30:00.000"`),
		fits(at.Add(123*time.Millisecond), `"2026-11-20T08:30:00.123"`, `"2026-11-20T08:30:00\u002e123"`), fits(at.Add(1), `"2026-11-20T08:30:00.000000001"`),
		fits(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), `"2026-11-20"`), fits(time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC), `"2024-02-29T23:59:59"`),
		misfits[time.Time]("* is not a timestamp", `1700000000`, `"yesterday"`, `"2026-02-29T00:00:00"`, `"2026-11-20T24:00:00"`, `"2026-11-20T08:30:00."`, `"2026-11-20T08:30"`, `null`),
		fits(addr, `"192.0.2.1"`, `"192.0.2.\u0031"`), fits(netip.AddrFrom16([16]byte{1: 1, 13: 2, 15: 3}), `"1::2:3"`, `"1:0::2:3"`),
		fits(netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}), `"::FFFF:192.0.2.1"`),
		misfits[netip.Addr]("* is not an IP address", `192`, `"192.0.2.256"`, `"192.0.2.01"`, `"192.0.2.1 "`, `"192.0.2.0/24"`, `"host"`, `""`, `null`,
			`"192..2.1"`, `"192.0.2"`, `"1::2:"`, `":12"`, `"1::2::3"`, `"1:2:3:4:5:6:7:8:9"`, `"1::2:3:4:5:6:7:8"`, `"12345::"`, `"::g"`),
		fits(netip.PrefixFrom(addr, 32), `"192.0.2.1/32"`), misfits[netip.Prefix]("* is not a CIDR range", `"192.0.2.1"`, `8`, `null`),
		fits((*int)(nil), `null`), fits(&five, `5`, `"5"`), fits(&addr, `"192.0.2.1"`),
	} {
		check(t)
	}
	v, err := scanOne[webdelivery.Value](t, `null`)
	require.NoError(t, err)
	assert.True(t, v.IsNull())
	rows := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["`+fixture.Password+`",""]`))).Stats.Events.All(t.Context(), fixture.FirstRows)
	require.ErrorContains(t, scanError[numbered](rows), `value "[redacted]": "[redacted]" is not a whole number of `)
}

// One scan may mix rows of several responses, whose columns may have another order, drop and repeat rows, and two scans
// may take turns. What was yielded does not change: texts, pointers and Values are not shared.
func TestScanOfMixedRows(t *testing.T) {
	t.Parallel()
	type record struct {
		A string            `stats:"a"`
		B *int              `stats:"b"`
		C webdelivery.Value `stats:"c"`
	}
	const count = 30
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		var next [3]func() (webdelivery.Row, error, bool)
		for i := range next {
			var rows []string
			for n := range count {
				rows = append(rows, fmt.Sprintf(`["a%d.%d",%s,"c%d"]`, i, n, []string{"null", "1", strconv.Itoa(n)}[n%3], n))
			}
			columns := [][]string{{"a", "b", "c"}, {"a", "b", "c"}, {"c", "b", "a"}}[i]
			var stop func()
			next[i], stop = iter.Pull2(fixture.Always(t, []byte(resultOf(columns, rows...))).Stats.Events.All(t.Context(), fixture.FirstRows))
			defer stop()
		}
		scans := make([]func() (record, error, bool), 1+seed%2)
		var want, got []string
		mixed := webdelivery.Scan[record](func(yield func(webdelivery.Row, error) bool) {
			for range 2 * count {
				row, err, more := next[random.IntN(3)]()
				if !more || random.IntN(4) == 0 {
					continue // a row is dropped
				}
				times := 1 + random.IntN(2)
				if random.IntN(4) == 0 || times*len(scans) > 2 { // a row is valid until the next step, of either scan
					row = row.Clone()
				}
				a, _ := row.Get("a")
				b, _ := row.Get("b")
				c, _ := row.Get("c")
				for range times {
					want = append(want, fmt.Sprint(a, string(b.Raw()), c))
					if !yield(row, err) {
						return
					}
				}
			}
		})
		for i := range scans {
			var stop func()
			scans[i], stop = iter.Pull2(mixed)
			defer stop()
		}
		var kept []record
		for r, err, more := scans[0](); more; r, err, more = scans[random.IntN(len(scans))]() {
			require.NoError(t, err)
			kept = append(kept, r)
		}
		for _, r := range kept {
			b, _ := json.Marshal(r.B)
			got = append(got, fmt.Sprint(r.A, string(b), r.C))
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// After a value that does not fit, a loop may go on with the rows that follow. The error has the whole row. If the rows lack
// a column, the error names it.
func TestScanGoesOn(t *testing.T) {
	t.Parallel()
	type row struct {
		A int  `stats:"a"`
		B *int `stats:"b"`
		C int  `stats:"c"`
	}
	client := fixture.Always(t, []byte(resultOf([]string{"a", "b", "c"}, `[1,1,1]`, `[2,"",2]`, `[3,3,3]`, `["x",4,4]`, `[5,"y","z"]`, `[6,6,null]`, `[7,null,7]`)))
	var got, odd []string
	var all []*webdelivery.ScanError
	for value, err := range webdelivery.Scan[row](client.Stats.Events.All(t.Context(), fixture.FirstRows)) {
		if wrong, ok := errors.AsType[*webdelivery.ScanError](err); ok {
			all = append(all, wrong)
			assert.Zero(t, value)
			continue
		}
		require.NoError(t, err)
		got = append(got, fmt.Sprint(value.A, value.C))
	}
	for _, wrong := range all { // their rows stay valid
		odd = append(odd, fmt.Sprint(wrong.Row, wrong.Column, wrong.Whole()))
	}
	assert.Equal(t, []string{"1 1", "3 3", "7 7"}, got)
	rows := fixture.Always(t, []byte(resultOf([]string{"b", "c"}, "[1,1]", "[2,2]"))).Stats.Events.All(t.Context(), fixture.FirstRows)
	require.ErrorIs(t, scanError[row](rows), webdelivery.ErrBadResponse)
	require.ErrorContains(t, scanError[row](rows), "the rows have no column a for field A; ask for it in the query, or remove the tag")
	assert.Equal(t, []string{`2b[2,"",2]`, `4a["x",4,4]`, `5b[5,"y","z"]`, `6c[6,6,null]`}, odd)
}

type (
	named struct {
		Name string `stats:"a" json:"a"`
	}
	other struct {
		Name string `stats:"b" json:"b"`
	}
	both struct {
		named
		other
	}
	numbered struct {
		A int    `stats:"a" json:"a"`
		B string `stats:"b" json:"b"`
	}
)

// Fields of embedded structs get the values that encoding/json gives them, whatever their Go names. If a column occurs
// at several depths, only the outermost field has it.
func TestScanIntoEmbeddedStructs(t *testing.T) {
	t.Parallel()
	asJSON[struct {
		both
		Name string `stats:"c" json:"c"`
	}](t)
	asJSON[struct {
		named
		numbered `stats:"-" json:"-"`
		Name     string `stats:"-" json:"-"`
	}](t)
	asJSON[struct {
		both
		numbered
		A string `stats:"a" json:"a"`
	}](t)
	type valued struct {
		netip.Addr `stats:"b"`
		A          string `stats:"a"`
	}
	rows := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["x","::"]`))).Stats.Events.All(t.Context(), fixture.FirstRows)
	for got, err := range webdelivery.Scan[valued](rows) {
		require.NoError(t, err)
		assert.Equal(t, valued{netip.IPv6Unspecified(), "x"}, got, "an embedded struct with a tag is one value")
	}
}

func asJSON[T any](t *testing.T) {
	t.Helper()
	var rows []string
	var want []T
	for i := range 3 {
		rows = append(rows, fmt.Sprintf(`["%d","%d","%d"]`, 3*i+1, 3*i+2, 3*i+3))
		want = append(want, *new(T))
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"a":"%d","b":"%d","c":"%d"}`, 3*i+1, 3*i+2, 3*i+3), &want[i]))
	}
	body := []byte(resultOf([]string{"a", "b", "c"}, rows...))
	got, err := webdelivery.Collect(webdelivery.Scan[T](fixture.Always(t, body).Stats.Events.All(t.Context(), fixture.FirstRows)))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// DimensionsOf returns the tags of a struct as the dimensions of its query; hits is the metric.
func TestDimensionsOf(t *testing.T) {
	t.Parallel()
	type inner struct {
		ASN uint32 `stats:"client_asn"`
	}
	type trend struct {
		Time    time.Time `stats:"event_timestamp_ms"`
		Note    string
		Country string `stats:"client_country_code"`
		Hits    int64  `stats:"hits"`
		Again   string `stats:"event_timestamp_ms"`
		inner
	}
	assert.Equal(t, []string{"event_timestamp_ms", "client_country_code", "client_asn"}, webdelivery.DimensionsOf[trend]())
	assert.Nil(t, webdelivery.DimensionsOf[int]())
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
			"cannot set field a of webdelivery_test.hidden" + unexported:          scanError[hidden](rows),
			"cannot set field A of webdelivery_test.embedded" + unexported:        scanError[embedded](rows),
			"cannot read into field A of webdelivery_test.strange, a map[int]int": scanError[strange](rows),
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
		client := fixture.Always(t, []byte(`{"columns":[{"name":"a"}],"rows":[`+rows+`],"total_results":0}`))
		got, err := webdelivery.Collect(client.Stats.Events.All(t.Context(), fixture.FirstRows))
		if strings.Contains(rows, "[]") {
			require.ErrorIs(t, err, webdelivery.ErrBadResponse)
		} else {
			require.NoError(t, err)
		}
		assert.Equal(t, want, fmt.Sprint(got))
	}
}
