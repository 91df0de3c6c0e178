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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// scanOne reads a value into a field of type T, and returns the value, too.
func scanOne[T any](t *testing.T, raw string) (into T, v webdelivery.Value, err error) {
	t.Helper()
	type row struct {
		A T                 `stats:"a"`
		V webdelivery.Value `stats:"a"`
	}
	rows := fixture.Always(t, []byte(resultOf([]string{"x", "a"}, `[1,`+raw+`]`))).Stats.Events.All(t.Context(), fixture.FirstRows)
	for got, failed := range webdelivery.Scan[row](rows) {
		into, v, err = got.A, got.V, failed
	}
	if wrong, ok := errors.AsType[*webdelivery.ScanError](err); ok {
		assert.Equal(t, []any{int64(1), "a"}, []any{wrong.Row, wrong.Column})
		v, _ = wrong.Whole().Get("a")
	}
	assert.Equal(t, []any{raw, raw == "null"}, []any{string(v.Raw()), v.IsNull()})
	return into, v, err
}

// method calls the method of a value for type T, if there is one.
func method[T any](v webdelivery.Value) (got any, err error) {
	switch any(*new(T)).(type) {
	case int64:
		return v.Int64()
	case time.Time:
		return v.Time()
	case netip.Addr:
		return v.Addr()
	}
	return nil, nil
}

// fits checks that these values are read as one.
func fits[T any](want T, values ...string) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, raw := range values {
			got, v, err := scanOne[T](t, raw)
			require.NoError(t, err)
			assert.Equal(t, want, got, raw)
			if as, err := method[T](v); as != nil {
				require.NoError(t, err)
				assert.Equal(t, any(want), as, raw)
			}
		}
	}
}

// misfits checks that these values do not fit.
func misfits[T any](says string, values ...string) func(t *testing.T) {
	type alone struct {
		A T `stats:"a"`
	}
	return func(t *testing.T) {
		t.Helper()
		for _, raw := range values {
			for _, err := range webdelivery.Scan[alone](fixture.Always(t, []byte(resultOf([]string{"a"}, "["+raw+"]", "["+raw+"]", "["+raw+"]"))).Stats.Events.All(t.Context(), fixture.FirstRows)) {
				require.Error(t, err, raw) // from the third row on, rows are read while they are split
			}
			_, v, err := scanOne[T](t, raw)
			cause := strings.ReplaceAll(says, "*", raw)
			if as, err := method[T](v); as != nil {
				require.EqualError(t, err, cause)
				assert.Zero(t, as)
			}
			if raw == "null" {
				cause = "null does not fit; make the field a pointer, which is nil then"
			}
			require.EqualError(t, err, fmt.Sprintf("webdelivery: row 1, column a: field A (%v), value %s: %s", reflect.TypeFor[T](), raw, cause))
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
		misfits[netip.Addr]("* is not an IP address", `192`, `"192.0.2.256"`, `"192.0.2.01"`, `"192.0.2.1 "`, `"192.0.2.0/24"`, `"host"`, `""`, `null`),
		fits(netip.PrefixFrom(addr, 32), `"192.0.2.1/32"`), misfits[netip.Prefix]("* is not a CIDR range", `"192.0.2.1"`, `8`, `null`),
		fits((*int)(nil), `null`), fits(&five, `5`, `"5"`), fits(&addr, `"192.0.2.1"`),
	} {
		check(t)
	}
	_, v, err := scanOne[webdelivery.Value](t, `null`)
	require.NoError(t, err)
	assert.True(t, v.IsNull())
	rows := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["`+fixture.Password+`",""]`))).Stats.Events.All(t.Context(), fixture.FirstRows)
	require.ErrorContains(t, scanError[numbered](rows), `value "[redacted]": "[redacted]" is not a whole number of `)
}

// One scan may mix rows of several responses, whose columns may have another order, drop and repeat rows. What was
// yielded does not change: texts, pointers and Values are not shared.
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
		var want, got []string
		kept, err := webdelivery.Collect(webdelivery.Scan[record](func(yield func(webdelivery.Row, error) bool) {
			for range 2 * count {
				row, err, more := next[random.IntN(3)]()
				if !more || random.IntN(4) == 0 {
					continue // a row is dropped
				}
				if random.IntN(4) == 0 {
					row = row.Clone()
				}
				a, _ := row.Get("a")
				b, _ := row.Get("b")
				c, _ := row.Get("c")
				for range 1 + random.IntN(2) {
					want = append(want, fmt.Sprint(a, string(b.Raw()), c))
					if !yield(row, err) {
						return
					}
				}
			}
		}))
		require.NoError(t, err)
		for _, r := range kept {
			b, _ := json.Marshal(r.B)
			got = append(got, fmt.Sprint(r.A, string(b), r.C))
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// Two scans may take turns with the rows of one response.
func TestScansThatShareRows(t *testing.T) {
	t.Parallel()
	var rows []string
	for n := range 20 {
		rows = append(rows, fmt.Sprintf(`[%d,"%d"]`, n, n))
	}
	next, stop := iter.Pull2(fixture.Always(t, []byte(resultOf([]string{"a", "b"}, rows...))).Stats.Events.All(t.Context(), fixture.FirstRows))
	defer stop()
	shared := func(yield func(webdelivery.Row, error) bool) {
		for row, err, more := next(); more && yield(row, err); row, err, more = next() {
			continue
		}
	}
	first, stopFirst := iter.Pull2(webdelivery.Scan[numbered](shared))
	defer stopFirst()
	second, stopSecond := iter.Pull2(webdelivery.Scan[numbered](shared))
	defer stopSecond()
	for n := range 20 {
		take := first
		if n%2 > 0 {
			take = second
		}
		got, err, _ := take()
		require.NoError(t, err)
		require.Equal(t, numbered{n, strconv.Itoa(n)}, got)
	}
}

// A column that the query does not have is an error that names it.
func TestScanOfAMissingColumn(t *testing.T) {
	t.Parallel()
	rows := fixture.Always(t, []byte(resultOf([]string{"b"}, "[1]", "[2]"))).Stats.Events.All(t.Context(), fixture.FirstRows)
	require.ErrorIs(t, scanError[numbered](rows), webdelivery.ErrBadResponse)
	assert.ErrorContains(t, scanError[numbered](rows), "the rows have no column a for field A; ask for it in the query, or remove the tag")
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
		var whole []webdelivery.Row
		for value, err := range webdelivery.Scan[row](f.Client.Stats.Events.All(f.Context(), fixture.FirstRows)) {
			if wrong, ok := errors.AsType[*webdelivery.ScanError](err); ok {
				odd = append(odd, fmt.Sprint(wrong.Row, wrong.Column, wrong.Whole()))
				whole = append(whole, wrong.Whole())
				assert.Zero(f, value)
				continue
			}
			require.NoError(f, err)
			got = append(got, fmt.Sprint(value.A, value.C))
		}
		assert.Equal(f, []string{"1 1", "3 3", "7 7"}, got)
		assert.Equal(f, []string{`2b[2,"",2]`, `4a["x",4,4]`, `5b[5,"y","z"]`, `6c[6,6,null]`}, odd)
		assert.Equal(f, `[[2,"",2] ["x",4,4] [5,"y","z"] [6,6,null]]`, fmt.Sprint(whole), "they stay valid")
	})
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
	// Own is a value itself, if it is embedded with a tag.
	Own struct {
		A    string `stats:"a"`
		text string
	}
)

func (o *Own) UnmarshalText(text []byte) error {
	o.text = string(text)
	return nil
}

// Fields of embedded structs get the values that encoding/json gives them, whatever their Go names. If a column occurs
// at several depths, only the outermost field has it.
func TestScanIntoEmbeddedStructs(t *testing.T) {
	t.Parallel()
	asJSON[both](t)
	asJSON[struct {
		both
		Name string `stats:"c" json:"c"`
	}](t)
	asJSON[struct {
		named
		Name string `stats:"-" json:"-"`
	}](t)
	asJSON[struct {
		numbered
		A string `stats:"a" json:"a"`
	}](t)
	asJSON[struct {
		both
		numbered
		A string `stats:"a" json:"a"`
	}](t)
	asJSON[struct {
		named
		numbered `stats:"-" json:"-"`
	}](t)
	type valued struct {
		Own `stats:"b"`
		A   string `stats:"a"`
	}
	rows := fixture.Always(t, []byte(resultOf([]string{"a", "b"}, `["x",1]`))).Stats.Events.All(t.Context(), fixture.FirstRows)
	for got, err := range webdelivery.Scan[valued](rows) {
		require.NoError(t, err)
		assert.Equal(t, valued{Own{text: "1"}, "x"}, got, "an embedded struct with a tag is one value")
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
		ASN     uint32 `stats:"client_asn"`
		Country string `stats:"client_country_code"`
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
