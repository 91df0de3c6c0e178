package rowjson_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// A number in quotes is read if JSON would take it for a number without them. Everything else is an error that says
// what the value is not.
func TestNumbersInEverySpelling(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]any{ // an int64, or a float64 that is no int64
		`0`: int64(0), `-0`: int64(0), `9`: int64(9), `"9"`: int64(9), `"-9"`: int64(-9), `"90"`: int64(90), `"\u0031\u0030"`: int64(10),
		`9223372036854775807`: int64(math.MaxInt64), `"-9223372036854775808"`: int64(math.MinInt64),
		`9223372036854775808`: 9223372036854775808.0, `"-9223372036854775809"`: -9223372036854775808.0,
		`0.9`: 0.9, `"9.5"`: 9.5, `"9.09"`: 9.09, `-1e3`: -1000.0, `"1E-2"`: 0.01,
	} {
		n, err := valueOf(t, raw).Int64()
		whole, isWhole := want.(int64)
		assert.Equal(t, whole, n, raw)
		if isWhole {
			require.NoError(t, err, raw)
			want = float64(whole)
		} else {
			require.EqualError(t, err, raw+" is not a whole number of 64 bits")
		}
		f, err := valueOf(t, raw).Float64()
		require.NoError(t, err, raw)
		assert.InDelta(t, want, f, 0, raw)
	}
	for _, raw := range []string{
		`1e400`, `"-1e400"`, `null`, `true`, `false`, `""`, `"true"`, `"null"`, `"+5"`, `"05"`, `"-05"`, `" 5"`, `"5 "`, `"5\n"`, `"5."`, `".5"`, `"-"`,
		`"[5]"`, `"NaN"`, `"Inf"`, `"0x5"`, `"5_0"`, `"\u0663"`, // the last one is the digit three of another script
	} {
		says := " is not a number"
		if strings.Contains(raw, "1e400") {
			says = " is out of range of a float64"
		}
		n, err := valueOf(t, raw).Int64()
		require.EqualError(t, err, raw+" is not a whole number of 64 bits")
		f, err := valueOf(t, raw).Float64()
		require.EqualError(t, err, raw+says)
		assert.True(t, n == 0 && f == 0, raw)
	}
}

func TestTimestampsInEverySpelling(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)
	spellings(t, rowjson.Value.Time, "a timestamp", map[string]time.Time{
		`"2026-11-20T08:30:00"`:           at,
		`"2026-11-20 08:30:00"`:           at,
		`"2026-11-20T08:30:00Z"`:          at,
		`"2026-11-20T09:30:00+01:00"`:     at,
		`"2026-11-20T08:30:00.123"`:       at.Add(123 * time.Millisecond),
		`"2026-11-20 08:30:00.5"`:         at.Add(500 * time.Millisecond),
		`"2026-11-20T08:30:00.000000001"`: at.Add(1),
		`"2026-11-20T08:30:00\u002e5"`:    at.Add(500 * time.Millisecond),
		`"2026-11-20"`:                    time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
		`"2024-02-29T23:59:59"`:           time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC),
	},
		`null`, `true`, `1700000000`, `""`, `"yesterday"`, `"2026-02-29T00:00:00"`, `"2026-11-20T24:00:00"`, `"2026-11-20T08:30:00."`, `"2026-11-20T08:30"`)
}

// spellings reads values, and others that are errors.
func spellings[T any](t *testing.T, read func(rowjson.Value) (T, error), what string, right map[string]T, wrong ...string) {
	t.Helper()
	for raw, want := range right {
		got, err := read(valueOf(t, raw))
		require.NoError(t, err)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range wrong {
		got, err := read(valueOf(t, raw))
		require.EqualError(t, err, raw+" is not "+what)
		assert.Zero(t, got)
	}
	_, err := read(rowjson.Value{})
	require.EqualError(t, err, "null is not "+what)
}

func TestAddressesInEverySpelling(t *testing.T) {
	t.Parallel()
	spellings(t, rowjson.Value.Addr, "an IP address", map[string]netip.Addr{
		`"192.0.2.1"`:             netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		`"192.0.2.\u0031"`:        netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		`"::FFFF"`:                netip.AddrFrom16([16]byte{14: 0xff, 15: 0xff}),
		`"::ffff:192.0.2.1"`:      netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}),
		`"2001\u003adb8::\u0031"`: netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 15: 1}),
	}, `null`, `false`, `192`, `192.0`, `""`, `"192.0.2.1 "`, `"192.0.2.0/24"`, `"host"`)
}

// A column of texts has few different ones, and each of them is built once. Texts of more than 64 bytes are not kept.
func TestTextsOfAColumnAreBuiltOnce(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted too
	var got struct {
		A string `column:"a"`
	}
	for name, tt := range map[string]struct {
		value  string
		builds bool
	}{
		"one byte":  {`"a"`, false},
		"a country": {`"CN"`, false},
		"64 bytes":  {`"` + strings.Repeat("x", 64) + `"`, false},
		"65 bytes":  {`"` + strings.Repeat("x", 65) + `"`, true},
		"escapes":   {`"\"Chrome\""`, false},
		"not ASCII": {`"Köln"`, false},
		"broken":    {"\"K\xffln\"", false},
		"17 bytes":  {`"` + strings.Repeat("x", 17) + `"`, false},
	} {
		row := one(t, "["+tt.value+"]").Clone()
		target, err := fields.Target(&got)
		require.NoError(t, err)
		allocs := testing.AllocsPerRun(10, func() {
			if wrong := target.Store(row); wrong != nil {
				panic(wrong)
			}
		})
		assert.Equal(t, tt.builds, allocs > 0, "%s: %v", name, allocs)
		var want string
		require.NoError(t, json.Unmarshal([]byte(tt.value), &want))
		assert.Equal(t, want, got.A)
	}
}
